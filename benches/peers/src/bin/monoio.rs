//! The server on monoio.

use greenroom_bench_peers::{READ_BYTES, address, answer};
use monoio::io::{AsyncReadRent, AsyncWriteRentExt};
use monoio::net::{TcpListener, TcpStream};

async fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(READ_BYTES);
    loop {
        let (result, filled) = stream.read(buffer).await;
        if result? == 0 {
            return Ok(());
        }
        buffer = filled;
        stream.write_all(answer(&buffer)).await.0?;
        buffer.clear();
    }
}

fn main() -> std::io::Result<()> {
    let mut runtime = monoio::RuntimeBuilder::<monoio::IoUringDriver>::new().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address())?;
        loop {
            let (stream, _) = listener.accept().await?;
            monoio::spawn(serve(stream));
        }
    })
}
