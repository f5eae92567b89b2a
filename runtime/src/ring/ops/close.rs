//! Closing a file.
//!
//! On Linux a close takes the descriptor away whatever it reports, so it is tried once. Only a close that never began
//! leaves a descriptor behind, and that is then closed on the spot.
#![expect(
    unsafe_code,
    reason = "implements the contract of operations; holds no address"
)]

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::rc::Rc;
use std::task::{Poll, Waker};

use crate::ring::backend::EntryKind;
use crate::ring::op::{Operation, Outcome};
use crate::shard::context;

/// How many closes may be on their way before [`room_to_open`] holds up who wants to open more. A loop that opens and
/// drops files could otherwise use up all descriptors before the first of them is closed.
const CLOSING_MAX: usize = 64;

/// Closes a descriptor.
pub(crate) struct Close {
    fd: OwnedFd,
    counted: Option<Counted>,
}

impl Close {
    pub(crate) fn new(fd: OwnedFd) -> Close {
        let counted = context::with(|shard| Counted::new(shard.extension(Closing::default)));
        Close { fd, counted }
    }

    /// Gives up the descriptor if the kernel took it.
    fn closed(self, outcome: Outcome) -> io::Result<()> {
        if outcome == Outcome::CANCELLED {
            // It never began; the destructor closes.
            drop(self.fd);
            return Ok(());
        }
        // Gone already: its number may be someone else's by now.
        let _closed = self.fd.into_raw_fd();
        drop(self.counted);
        match outcome.into_result() {
            // The descriptor is gone all the same, and there is nothing to do again.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            ended => ended.map(drop),
        }
    }
}

// SAFETY: the entry holds no address.
unsafe impl Operation for Close {
    type Output = io::Result<()>;

    const NAME: &'static str = "close";

    fn entry(&mut self) -> EntryKind {
        EntryKind::Close {
            fd: self.fd.as_raw_fd(),
        }
    }

    /// Without a shard the descriptor is closed by its destructor.
    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        outcome.map_or(Ok(()), |outcome| self.closed(outcome))
    }

    /// What went wrong, nobody can be told.
    fn orphan(self, outcome: Outcome) {
        self.closed(outcome).ok();
    }
}

/// Waits until few enough files of this shard are closing for one more to be opened.
pub(crate) async fn room_to_open() {
    let Some(closing) = context::with(|shard| shard.extension(Closing::default)) else {
        return;
    };
    poll_fn(|cx| {
        if closing.count.get() < CLOSING_MAX {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        closing.waiting.borrow_mut().push(waker);
        Poll::Pending
    })
    .await;
}

/// The closes of one shard that are on their way.
#[derive(Default)]
struct Closing {
    count: Cell<usize>,
    waiting: RefCell<Vec<Waker>>,
}

/// One close that is on its way.
struct Counted(Rc<Closing>);

impl Counted {
    fn new(closing: Rc<Closing>) -> Counted {
        closing.count.set(closing.count.get() + 1);
        Counted(closing)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.count.set(self.0.count.get() - 1);
        for waker in self.0.waiting.take() {
            waker.wake();
        }
    }
}
