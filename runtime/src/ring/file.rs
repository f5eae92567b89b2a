//! An open file, shared by its handle and by the operations in flight on it.
//!
//! A file closes when the last reference goes. An operation in flight holds one, so the number of a descriptor is not
//! given out again while the kernel may still act on it.
//!
//! Closing may have to wait for the device, so it is an operation too: see [`close`](super::ops::close). A file that is
//! dropped is closed by an operation that nobody waits for. Unlike a socket a file has no lanes: reads and writes say
//! where they act, and whoever runs two on the same bytes at once gets what the kernel makes of that.

use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::future::Op;
use super::ops::close::Close;

/// A reference that keeps a file open.
#[derive(Clone)]
pub(crate) struct FileRef(Rc<OpenFile>);

struct OpenFile {
    /// Invariant: `Some` until [`FileRef::into_fd`] or `drop` takes it.
    fd: Option<OwnedFd>,
    /// Who waits until there is only one reference left.
    last_holder: Cell<Option<Waker>>,
}

impl FileRef {
    pub(crate) fn new(fd: OwnedFd) -> FileRef {
        FileRef(Rc::new(OpenFile {
            fd: Some(fd),
            last_holder: Cell::new(None),
        }))
    }

    /// Waits until no operation, a cancelled one included, is in flight on the file, and closes it.
    ///
    /// Dropping the future leaves the close to go on by itself.
    pub(crate) async fn close(mut self) -> io::Result<()> {
        poll_fn(|cx| {
            if Rc::strong_count(&self.0) == 1 {
                return Poll::Ready(());
            }
            // Dropped after the clone was made, and with nothing borrowed: a waker may be anyone's code.
            let replaced = self.0.last_holder.replace(Some(cx.waker().clone()));
            drop(replaced);
            Poll::Pending
        })
        .await;
        let fd = self.take_fd().expect("the last reference");
        Unhurried(Some(Op::new(Close::new(fd)))).await
    }

    /// Takes the descriptor out, unless an operation is in flight on the file.
    pub(crate) fn into_fd(mut self) -> Result<OwnedFd, FileRef> {
        self.take_fd().ok_or(self)
    }

    /// Takes the descriptor out of the last reference.
    fn take_fd(&mut self) -> Option<OwnedFd> {
        Rc::get_mut(&mut self.0)?.fd.take()
    }
}

impl AsFd for FileRef {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let fd = self.0.fd.as_ref();
        fd.expect("taken by the last reference only").as_fd()
    }
}

impl AsRawFd for FileRef {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl fmt::Debug for FileRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileRef").field(&self.0.fd).finish()
    }
}

impl Drop for FileRef {
    fn drop(&mut self) {
        // This one and the last one.
        if Rc::strong_count(&self.0) == 2
            && let Some(waker) = self.0.last_holder.take()
        {
            waker.wake();
        }
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        if let Some(fd) = self.fd.take() {
            close_unattended(fd);
        }
    }
}

/// Closes a descriptor without waiting for it. On a thread that is no shard, or one that is closing, it is closed at once.
pub(crate) fn close_unattended(fd: OwnedFd) {
    Op::new(Close::new(fd)).detach();
}

/// A close that goes on if its future is dropped: cancelling it would leave the closing to a destructor.
struct Unhurried(Option<Op<Close>>);

impl Future for Unhurried {
    type Output = io::Result<()>;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> Poll<io::Result<()>> {
        let close = self.0.as_mut().expect("polled until it is ready");
        let polled = std::pin::Pin::new(close).poll(cx);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl Drop for Unhurried {
    fn drop(&mut self) {
        if let Some(close) = self.0.take() {
            close.detach();
        }
    }
}
