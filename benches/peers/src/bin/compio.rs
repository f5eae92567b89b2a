//! The server on compio.

use compio::BufResult;
use compio::io::{AsyncRead, AsyncWriteExt};
use compio::net::{TcpListener, TcpStream};
use greenroom_bench_peers::{READ_BYTES, address, answer};

async fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut buffer = Vec::with_capacity(READ_BYTES);
    loop {
        let BufResult(result, filled) = stream.read(buffer).await;
        if result? == 0 {
            return Ok(());
        }
        buffer = filled;
        stream.write_all(answer(&buffer)).await.0?;
        buffer.clear();
    }
}

fn main() -> std::io::Result<()> {
    compio::runtime::Runtime::new()?.block_on(async {
        let listener = TcpListener::bind(address()).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            compio::runtime::spawn(async move { serve(stream).await.ok() }).detach();
        }
    })
}
