//! An open socket, shared by its handles and by the operations in flight on it.
//!
//! A socket closes when the last reference goes. An operation in flight holds one, so the number of a descriptor is
//! not given out again while the kernel may still act on it.
//!
//! A socket has two *lanes*, inbound and outbound, and each has at most one operation in flight. Two sends on one
//! socket could overtake each other, and a receive that starts while a cancelled one is still on its way out could
//! see the bytes after those that the cancelled one already took. Whoever wants to start an operation takes the lane
//! first and waits if it is busy. The lane goes into the payload and is released when the payload ends: with its
//! result, or with the final completion of an operation that nobody waits for.
//!
//! What such an orphaned inbound operation brought home (received bytes, an accepted connection) is kept at the socket
//! for whoever takes the lane next. That makes receives and accepts safe to cancel: nothing is lost, unless the socket
//! goes too. The price is paid by who forgets a future (`mem::forget`) instead of dropping it: its lane stays busy.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::op::Effects;
use super::payload::Garbage;

/// An open socket. `K` holds what cancelled inbound operations brought home.
pub(crate) struct Socket<K> {
    fd: OwnedFd,
    inbound: Lane,
    outbound: Lane,
    kept: RefCell<K>,
}

impl<K: Default + 'static> Socket<K> {
    pub(crate) fn new(fd: OwnedFd) -> Rc<Socket<K>> {
        Rc::new(Socket {
            fd,
            inbound: Lane::default(),
            outbound: Lane::default(),
            kept: RefCell::default(),
        })
    }

    /// Waits for the right to receive or accept.
    pub(crate) async fn take_inbound(self: &Rc<Self>) -> Inbound<K> {
        self.inbound.take().await;
        Inbound {
            socket: Rc::clone(self),
        }
    }

    /// Takes the right to receive, unless an operation has it.
    pub(crate) fn try_take_inbound(self: &Rc<Self>) -> Option<Inbound<K>> {
        self.inbound.try_take().then(|| Inbound {
            socket: Rc::clone(self),
        })
    }

    /// Takes the right to send, unless an operation has it.
    pub(crate) fn try_take_outbound(self: &Rc<Self>) -> Option<Outbound<K>> {
        self.outbound.try_take().then(|| Outbound {
            socket: Rc::clone(self),
        })
    }

    /// Waits for the right to send.
    pub(crate) async fn take_outbound(self: &Rc<Self>) -> Outbound<K> {
        self.outbound.take().await;
        Outbound {
            socket: Rc::clone(self),
        }
    }

    /// Waits until no operation, a cancelled one included, is in flight on the socket, and closes it.
    ///
    /// For who has the only handle. Dropping the future leaves the closing to the last operation.
    pub(crate) async fn close(socket: Rc<Self>) {
        let lanes = (socket.take_inbound().await, socket.take_outbound().await);
        drop(lanes);
        debug_assert_eq!(
            Rc::strong_count(&socket),
            1,
            "what is in flight holds a lane"
        );
    }
}

/// What cancelled inbound operations brought home for the next one.
pub(crate) trait Kept {
    /// Whether something would be lost with it.
    fn holds_something(&self) -> bool;
}

impl<K: Kept> Socket<K> {
    /// Takes the descriptor out, unless someone else holds the socket or something is kept in it.
    pub(crate) fn into_fd(socket: Rc<Self>) -> Result<OwnedFd, Rc<Self>> {
        if socket.kept.borrow().holds_something() {
            return Err(socket);
        }
        Rc::try_unwrap(socket).map(|socket| socket.fd)
    }
}

impl<K> Socket<K> {
    /// Looks at what inbound operations brought home.
    pub(crate) fn with_kept<R>(&self, f: impl FnOnce(&mut K) -> R) -> R {
        f(&mut self.kept.borrow_mut())
    }
}

impl<K> AsFd for Socket<K> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl<K> AsRawFd for Socket<K> {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl<K> fmt::Debug for Socket<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket")
            .field("fd", &self.fd)
            .finish_non_exhaustive()
    }
}

/// The right to run the one inbound operation of a socket. Keeps it open; released when dropped.
#[derive(Debug)]
pub(crate) struct Inbound<K> {
    socket: Rc<Socket<K>>,
}

impl<K> Inbound<K> {
    pub(crate) fn fd(&self) -> RawFd {
        self.socket.fd.as_raw_fd()
    }

    /// Looks at what earlier operations brought home.
    pub(crate) fn with_kept<R>(&self, f: impl FnOnce(&mut K) -> R) -> R {
        self.socket.with_kept(f)
    }
}

impl<K> AsFd for Inbound<K> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl<K> Drop for Inbound<K> {
    fn drop(&mut self) {
        self.socket.inbound.release();
    }
}

/// The right to run the one outbound operation of a socket. Keeps it open; released when dropped.
#[derive(Debug)]
pub(crate) struct Outbound<K> {
    socket: Rc<Socket<K>>,
}

impl<K> Outbound<K> {
    pub(crate) fn fd(&self) -> RawFd {
        self.socket.fd.as_raw_fd()
    }

    /// Looks at what the operations of the socket leave for each other.
    pub(crate) fn with_kept<R>(&self, f: impl FnOnce(&mut K) -> R) -> R {
        f(&mut self.socket.kept.borrow_mut())
    }
}

impl<K: 'static> Outbound<K> {
    /// Releases the lane while the driver is borrowed: whom to wake, and perhaps the last reference to the socket, is left
    /// to the effects.
    pub(super) fn release_into(self, effects: &mut Effects) {
        let socket = Rc::clone(&self.socket);
        effects.wakers.extend(socket.outbound.waiting.take());
        // Wakes nobody any more, and is not the last reference.
        drop(self);
        effects.garbage.push_back(Garbage {
            released: Some(socket),
            ..Garbage::default()
        });
    }
}

impl<K> AsFd for Outbound<K> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl<K> Drop for Outbound<K> {
    fn drop(&mut self) {
        self.socket.outbound.release();
    }
}

/// What one at a time may have: a direction of a socket, or the turn to wait for something.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    is_busy: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
}

impl Lane {
    /// Waits for the lane and holds it until the guard is dropped.
    pub(crate) async fn hold(&self) -> Turn<'_> {
        self.take().await;
        Turn(self)
    }

    fn try_take(&self) -> bool {
        !self.is_busy.replace(true)
    }

    async fn take(&self) {
        poll_fn(|cx| {
            if self.try_take() {
                return Poll::Ready(());
            }
            let is_known = self
                .waiting
                .borrow()
                .iter()
                .any(|waker| waker.will_wake(cx.waker()));
            if !is_known {
                let waker = cx.waker().clone();
                self.waiting.borrow_mut().push(waker);
            }
            Poll::Pending
        })
        .await;
    }

    /// Wakes all who wait: the first to be polled takes the lane, and one that lost interest holds up nobody.
    fn release(&self) {
        self.is_busy.set(false);
        for waker in self.waiting.take() {
            waker.wake();
        }
    }
}

/// A lane that is held. Released when dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a>(&'a Lane);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};
    use std::task::Context;

    use super::*;
    use crate::ring::received::Received;
    use crate::ring::tests::WakeCounter;

    fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(waker))
    }

    #[test]
    fn a_lane_is_held_by_one_at_a_time() {
        let (fd, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
        let socket = Socket::<Received>::new(fd.into());
        let (counter, waker) = WakeCounter::new();
        let Poll::Ready(first) = poll(pin!(socket.take_inbound()), &waker) else {
            panic!("the lane is free")
        };
        let Poll::Ready(_outbound) = poll(pin!(socket.take_outbound()), &waker) else {
            panic!("lanes are apart")
        };

        let mut second = pin!(socket.take_inbound());
        let mut third = pin!(socket.take_inbound());
        assert!(poll(second.as_mut(), &waker).is_pending());
        assert!(poll(second.as_mut(), &waker).is_pending());
        assert!(poll(third.as_mut(), Waker::noop()).is_pending());
        drop(first);
        assert_eq!(
            counter.count(),
            1,
            "one task waits once, however often it was polled"
        );

        // The third was woken too and may overtake; the second goes on waiting.
        let Poll::Ready(third) = poll(third, Waker::noop()) else {
            panic!("the lane is free")
        };
        assert!(poll(second.as_mut(), &waker).is_pending());
        drop(third);
        assert_eq!(counter.count(), 2);
        assert!(poll(second, &waker).is_ready());
    }

    #[test]
    fn a_lane_keeps_the_socket_open() {
        let (fd, peer) = std::os::unix::net::UnixStream::pair().unwrap();
        let socket = Socket::<Received>::new(fd.into());
        let Poll::Ready(lane) = poll(pin!(socket.take_outbound()), Waker::noop()) else {
            panic!("the lane is free")
        };
        drop(socket);
        peer.set_nonblocking(true).unwrap();
        let error = std::io::Read::read(&mut &peer, &mut [0]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
        drop(lane);
        assert_eq!(std::io::Read::read(&mut &peer, &mut [0]).unwrap(), 0);
    }
}
