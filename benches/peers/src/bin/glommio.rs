//! The server on glommio.

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::net::{TcpListener, TcpStream};
use glommio::{LocalExecutorBuilder, Placement};
use greenroom_bench_peers::{READ_BYTES, address, answer};

async fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        stream.write_all(answer(&buffer[..count])).await?;
    }
}

fn main() {
    let executor = LocalExecutorBuilder::new(Placement::Fixed(0)).spawn(|| async {
        let listener = TcpListener::bind(address()).expect("the port is free");
        loop {
            let stream = listener.accept().await.expect("a connection");
            glommio::spawn_local(async move { serve(stream).await.ok() }).detach();
        }
    });
    executor
        .expect("an executor")
        .join()
        .expect("it runs for ever");
}
