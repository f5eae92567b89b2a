//! The accepting side of a listener, whatever the family of its socket.
//!
//! One accept that repeats itself is armed by the first call of [`accept`](Acceptor::accept) and goes on until the listener
//! is dropped, an error ends it, or [`INCOMING_MAX`](crate::ring::ops::accept_multi::INCOMING_MAX) connections wait
//! unclaimed. What it took from the kernel is handed out in order, by whichever call comes next; what is left when the
//! listener goes is closed.
//!
//! Errors that are about one connection are passed over. What is reported (out of descriptors or memory, above all) would
//! be reported again at once, for the same connection still waits: after an error the next accept is put off, by 5 ms at
//! first, doubled with each error in a row up to a second. A server that logs and goes on does not spin.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use crate::ring::multi::MultiOp;
use crate::ring::ops::accept_multi::{AcceptMulti, Incoming, ListenerSocket};
use crate::ring::socket::{Lane, Socket};
use crate::time::{Instant, sleep_until};

const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Accepts from one listening socket.
#[derive(Debug)]
pub(super) struct Acceptor {
    /// Dropped first, so that the socket closes as soon as the kernel lets go of it.
    armed: RefCell<Option<MultiOp<AcceptMulti>>>,
    socket: Rc<ListenerSocket>,
    /// Whose turn it is to wait for the next connection.
    turn: Lane,
    pause: Cell<Option<Pause>>,
}

/// How long no connection is taken after an error.
#[derive(Clone, Copy, Debug)]
struct Pause {
    until: Instant,
    length: Duration,
}

impl Acceptor {
    /// Takes over a socket that listens.
    pub(super) fn new(fd: OwnedFd) -> Acceptor {
        Acceptor {
            armed: RefCell::default(),
            socket: Socket::new(fd),
            turn: Lane::default(),
            pause: Cell::default(),
        }
    }

    pub(super) fn socket(&self) -> &Rc<ListenerSocket> {
        &self.socket
    }

    /// Ends the accept that is armed, waits for its end, and closes the socket.
    pub(super) async fn close(self) {
        let Acceptor { armed, socket, .. } = self;
        drop(armed);
        Socket::close(socket).await;
    }

    /// Waits for a connection.
    pub(super) async fn accept(&self) -> io::Result<OwnedFd> {
        let _turn = self.turn.hold().await;
        loop {
            match self.socket.with_kept(Incoming::next) {
                Some(Ok(connection)) => {
                    self.pause.set(None);
                    return Ok(connection);
                }
                Some(Err(error)) => {
                    self.pause.set(Some(Pause::after(self.pause.get())));
                    return Err(error);
                }
                None => {}
            }
            if self.armed.borrow().is_none() {
                if let Some(pause) = self.pause.get() {
                    sleep_until(pause.until).await;
                }
                let lane = self.socket.take_inbound().await;
                let armed = MultiOp::start(AcceptMulti::new(lane))?;
                *self.armed.borrow_mut() = Some(armed);
            }
            self.progress().await?;
        }
    }

    /// Waits until the armed accept brings something or ends.
    async fn progress(&self) -> io::Result<()> {
        poll_fn(|cx| {
            let mut armed = self.armed.borrow_mut();
            let Some(operation) = &mut *armed else {
                return Poll::Ready(Ok(()));
            };
            // Whoever waits looked at what is there before; a second poll may come because something is there now.
            if self.socket.with_kept(|incoming| incoming.has_next()) {
                return Poll::Ready(Ok(()));
            }
            let ended = operation.poll_end(cx);
            if ended.is_ready() {
                *armed = None;
            }
            ended
        })
        .await
    }
}

impl Pause {
    /// The pause that follows one more error.
    fn after(previous: Option<Pause>) -> Pause {
        let length = previous.map_or(PAUSE_MIN, |pause| (pause.length * 2).min(PAUSE_MAX));
        Pause {
            until: Instant::now() + length,
            length,
        }
    }
}
