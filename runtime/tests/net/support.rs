//! What the tests of sockets have in common.

use std::fs::File;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::task::Poll;

use greenroom_runtime::net::UdpSocket;
use greenroom_runtime::{Builder, yield_now};

/// Runs a test on a shard of its own, and checks that it left nothing with the kernel.
pub(crate) fn on_shard<F>(test: impl FnOnce() -> F + Send + 'static)
where
    F: Future<Output = io::Result<()>> + 'static,
{
    let runtime = Builder::new().shards(1).start().unwrap();
    runtime.run_on(0, test).unwrap();
    assert_eq!(runtime.shutdown().leaked_operations(), 0);
}

/// Polls a future once, which must not be ready.
pub(crate) async fn start<F: Future>(mut future: Pin<&mut F>) {
    poll_fn(|cx| {
        assert!(
            future.as_mut().poll(cx).is_pending(),
            "the operation ended at once"
        );
        Poll::Ready(())
    })
    .await;
}

/// Lets the shard take turns, so that what was started is in the kernel, and what happened there is known.
pub(crate) async fn turns() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    for _ in 0..8 {
        socket.send_to("turn", address).await.0.unwrap();
        assert_eq!(socket.recv([0; 4]).await.0.unwrap().len, 4);
        yield_now().await;
    }
}

/// When an operation is dropped: right after what it waits for happened, or once the shard knows of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DropWhen {
    InFlight,
    Done,
}

impl DropWhen {
    pub(crate) const BOTH: [DropWhen; 2] = [DropWhen::InFlight, DropWhen::Done];

    /// Starts the operation, makes happen what it waits for, and drops it.
    pub(crate) async fn drop<F: Future>(self, operation: F, happens: impl AsyncFnOnce()) {
        let mut operation = pin!(operation);
        start(operation.as_mut()).await;
        turns().await;
        happens().await;
        if let DropWhen::Done = self {
            turns().await;
        }
    }
}

/// A path for a socket, which no other test uses and no file has.
pub(crate) fn scratch_path(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("greenroom-{}-{name}.sock", std::process::id()));
    std::fs::remove_file(&path).ok();
    path
}

/// The read end of a pipe, and the file at the other end: it tells when the last copy of the first is closed.
pub(crate) fn pipe() -> io::Result<(OwnedFd, File)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader.into(), OwnedFd::from(writer).into()))
}

/// Whether every copy of a pipe's read end is closed.
pub(crate) fn is_orphaned(mut writer: &File) -> bool {
    match io::Write::write(&mut writer, b"x") {
        Ok(_) => false,
        Err(error) => error.kind() == ErrorKind::BrokenPipe,
    }
}
