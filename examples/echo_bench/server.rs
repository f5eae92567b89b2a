//! The server: one pong for each line.

use std::io;
use std::time::Duration;

use greenroom_runtime::net::{TcpListener, TcpStream};
use greenroom_runtime::{Builder, spawn};

const PONG: &[u8; 7] = b"+PONG\r\n";
/// The most that is answered with one write.
const LINES_MAX: usize = 4096;

static PONGS: [u8; PONG.len() * LINES_MAX] = {
    let mut pongs = [0; PONG.len() * LINES_MAX];
    let mut at = 0;
    while at < pongs.len() {
        pongs[at] = PONG[at % PONG.len()];
        at += 1;
    }
    pongs
};

async fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    while let Some(request) = stream.recv().await? {
        let mut lines = request.iter().filter(|&&byte| byte == b'\n').count();
        // The buffer goes back before the answer goes out.
        drop(request);
        while lines > 0 {
            let count = lines.min(LINES_MAX);
            stream.write_all(&PONGS[..count * PONG.len()]).await.0?;
            lines -= count;
        }
    }
    Ok(())
}

/// Serves until the process is ended.
pub(crate) fn run(port: u16, gather: Option<Duration>) -> io::Result<()> {
    let mut builder = Builder::new().shards(1);
    if let Some(window) = gather {
        builder = builder.gather(window);
    }
    let runtime = builder.start().map_err(io::Error::other)?;
    runtime.run_on(0, move || async move {
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        loop {
            let (stream, _peer) = listener.accept().await?;
            spawn(serve(stream)).detach();
        }
    })
}
