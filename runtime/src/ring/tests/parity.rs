//! The same script of operations, run by each backend: whoever started them must not be able to tell which it was.
//!
//! As everywhere above the backends there is at most one operation of each direction on a socket. A socket pair answers
//! at once, so after each step everything that can happen has happened.
#![expect(unsafe_code, reason = "the tests' own operations")]

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use proptest::prelude::*;

use super::Kind;
use crate::ring::backend::{Attempt, EntryKind, Extent, Wait};
use crate::ring::driver::Driver;
use crate::ring::inflight::Polled;
use crate::ring::key::Key;
use crate::ring::op::{Effects, Operation, Outcome};

const SOCKETS: usize = 2;
/// Turns after which nothing moves any more.
const TURNS_TO_SETTLE: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Step {
    Start(usize, What),
    /// Drops the handle of an operation, whether it has ended or not.
    Drop(usize),
    Peer(usize, Peer),
}

#[derive(Clone, Copy, Debug)]
enum What {
    Recv { len: u32, attempt: Attempt },
    Send { len: u32, extent: Extent },
    PollReadable,
    PollWritable,
    Shutdown(i32),
}

impl What {
    fn name(self) -> &'static str {
        match self {
            What::Recv { .. } => "recv",
            What::Send { .. } => "send",
            What::PollReadable | What::PollWritable => "poll",
            What::Shutdown(_) => "shutdown",
        }
    }

    /// Of a poll and a transfer that wait for the same event, io_uring does not say which is first.
    fn direction(self) -> u8 {
        match self {
            What::Recv { .. } | What::PollReadable => 0,
            What::Send { .. } | What::PollWritable => 1,
            What::Shutdown(_) => 2,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Peer {
    Write(usize),
    Read(usize),
    Shutdown,
    Close,
}

/// What can be seen of an operation's end: which it was, its name, the result, and a sum of what was received.
type Seen = (usize, &'static str, i32, u64);

fn step() -> impl Strategy<Value = Step> {
    let recv_len = prop_oneof![1..64_u32, Just(100_000)];
    let attempt = prop_oneof![Just(Attempt::AtOnce), Just(Attempt::WhenReadable)];
    let extent = prop_oneof![Just(Extent::Some), Just(Extent::All)];
    let what = prop_oneof![
        6 => (recv_len, attempt).prop_map(|(len, attempt)| What::Recv { len, attempt }),
        4 => (1..64_u32, extent).prop_map(|(len, extent)| What::Send { len, extent }),
        // Not all of so many: io_uring leaves the rest to a thread of the kernel, which takes its own time.
        4 => Just(What::Send { len: 100_000, extent: Extent::Some }),
        2 => Just(What::PollReadable),
        1 => Just(What::PollWritable),
        // Not of reading alone, here or by the peer writing no more: to io_uring that is news for a blocked send too, which
        // then waits on a thread of the kernel that no cancel reaches.
        1 => prop_oneof![Just(libc::SHUT_WR), Just(libc::SHUT_RDWR)].prop_map(What::Shutdown),
    ];
    let peer = prop_oneof![
        6 => prop_oneof![1..64_usize, Just(50_000)].prop_map(Peer::Write),
        6 => prop_oneof![1..64_usize, Just(150_000)].prop_map(Peer::Read),
        1 => Just(Peer::Shutdown),
        1 => Just(Peer::Close),
    ];
    prop_oneof![
        5 => (0..SOCKETS, what).prop_map(|(socket, what)| Step::Start(socket, what)),
        1 => any::<usize>().prop_map(Step::Drop),
        5 => (0..SOCKETS, peer).prop_map(|(socket, peer)| Step::Peer(socket, peer)),
    ]
}

/// An operation on one end of a socket pair, which notes its end.
struct Scripted {
    number: usize,
    what: What,
    socket: Rc<UnixStream>,
    buffer: Vec<u8>,
    log: Rc<RefCell<Vec<Seen>>>,
}

impl Scripted {
    fn note(&self, outcome: Outcome) {
        let count = match self.what {
            What::Recv { .. } => usize::try_from(outcome.result).unwrap_or(0),
            _ => 0,
        };
        let sum = self.buffer[..count].iter().map(|&byte| u64::from(byte));
        let result = match self.what {
            // An error is told once, to whoever asks first.
            What::PollReadable | What::PollWritable => outcome.result & !i32::from(libc::POLLERR),
            _ => outcome.result,
        };
        self.log
            .borrow_mut()
            .push((self.number, self.what.name(), result, sum.sum()));
    }
}

// SAFETY: the address is that of a vector owned by the payload.
unsafe impl Operation for Scripted {
    type Output = ();
    const NAME: &'static str = "scripted";

    fn entry(&mut self) -> EntryKind {
        let fd = self.socket.as_raw_fd();
        let ptr = self.buffer.as_mut_ptr();
        match self.what {
            What::Recv { len, attempt } => EntryKind::Recv {
                fd,
                ptr,
                len,
                attempt,
            },
            What::Send { len, extent } => EntryKind::Send {
                fd,
                ptr,
                len,
                extent,
            },
            What::PollReadable => EntryKind::PollReadable { fd },
            What::PollWritable => EntryKind::PollWritable { fd },
            What::Shutdown(how) => EntryKind::Shutdown { fd, how },
        }
    }

    fn complete(self, outcome: io::Result<Outcome>) {
        self.note(outcome.unwrap());
    }

    fn orphan(self, outcome: Outcome) {
        self.note(outcome);
    }
}

/// One backend in the course of a script.
struct World {
    driver: Driver,
    ours: Vec<Rc<UnixStream>>,
    peers: Vec<Option<UnixStream>>,
    handles: Vec<(usize, Key<Scripted>)>,
    /// Numbers and sockets of operations that have not ended.
    running: Vec<(usize, usize, What)>,
    started: usize,
    /// An operation that ends with this step, sooner or later.
    due: Option<usize>,
    written: u8,
    log: Rc<RefCell<Vec<Seen>>>,
}

impl World {
    fn new(kind: Kind) -> World {
        let mut ours = Vec::new();
        let mut peers = Vec::new();
        for _ in 0..SOCKETS {
            let (near, far) = UnixStream::pair().unwrap();
            far.set_nonblocking(true).unwrap();
            ours.push(Rc::new(near));
            peers.push(Some(far));
        }
        World {
            driver: kind.driver(32),
            ours,
            peers,
            handles: Vec::new(),
            running: Vec::new(),
            started: 0,
            due: None,
            written: 0,
            log: Rc::default(),
        }
    }

    /// Takes a step, and tells what ended with it. What ends in one step has no order.
    fn run(&mut self, step: Step) -> (usize, Vec<Seen>) {
        let moved = match step {
            Step::Start(socket, what) => self.start(socket, what),
            Step::Drop(index) => self.drop_handle(index),
            Step::Peer(socket, peer) => self.peer(socket, peer),
        };
        self.settle();
        // What has to end now may be up to a thread of the kernel.
        for _ in 0..1000 {
            let has_ended = |number| self.log.borrow().iter().any(|seen| seen.0 == number);
            if self.due.is_none_or(has_ended) {
                break;
            }
            self.turn(Wait::Until(Some(Duration::from_millis(10))));
        }
        self.due = None;
        let mut seen = self.log.take();
        seen.sort_unstable();
        self.running
            .retain(|(number, ..)| seen.iter().all(|(ended, ..)| ended != number));
        (moved, seen)
    }

    fn settle(&mut self) {
        for _ in 0..TURNS_TO_SETTLE {
            self.turn(Wait::Poll);
        }
    }

    fn start(&mut self, socket: usize, what: What) -> usize {
        let is_busy = self
            .running
            .iter()
            .any(|&(_, other, running)| other == socket && running.direction() == what.direction());
        if is_busy {
            return 0;
        }
        let len = match what {
            What::Recv { len, .. } | What::Send { len, .. } => len as usize,
            _ => 0,
        };
        let operation = Scripted {
            number: self.started,
            what,
            socket: Rc::clone(&self.ours[socket]),
            buffer: vec![1; len],
            log: Rc::clone(&self.log),
        };
        self.running.push((self.started, socket, what));
        if let What::Shutdown(_) = what {
            self.due = Some(self.started);
        }
        let key = self.driver.start(operation, Waker::noop().clone());
        self.handles.push((self.started, key));
        self.started += 1;
        1
    }

    fn drop_handle(&mut self, index: usize) -> usize {
        if self.handles.is_empty() {
            return 0;
        }
        let (number, key) = self.handles.remove(index % self.handles.len());
        self.due = Some(number);
        drop(self.driver.drop_handle(key));
        1
    }

    fn peer(&mut self, socket: usize, action: Peer) -> usize {
        let Some(peer) = &mut self.peers[socket] else {
            return 0;
        };
        match action {
            Peer::Write(len) => {
                self.written = self.written.wrapping_add(1);
                peer.write(&vec![self.written; len]).unwrap_or(0)
            }
            Peer::Read(len) => peer.read(&mut vec![0; len]).unwrap_or(0),
            Peer::Shutdown => usize::from(peer.shutdown(Shutdown::Both).is_ok()),
            Peer::Close => usize::from(self.peers[socket].take().is_some()),
        }
    }

    fn turn(&mut self, wait: Wait) {
        let mut effects = Effects::default();
        self.driver.turn(wait, &mut effects).unwrap();
        effects.run();
        for (number, key) in std::mem::take(&mut self.handles) {
            match self.driver.poll(key, Waker::noop()) {
                Polled::Ready(operation, outcome) => {
                    operation.complete(Ok(outcome));
                }
                Polled::Waiting(key) | Polled::NewWaker(key) => self.handles.push((number, key)),
            }
        }
    }

    /// Cancels everything, and tells how that ended.
    fn tear_down(&mut self) -> Vec<Seen> {
        self.driver.begin_teardown();
        for _ in 0..1000 {
            if self.driver.live_ops() == 0 {
                break;
            }
            self.turn(Wait::Until(Some(Duration::from_millis(10))));
        }
        self.settle();
        assert_eq!(self.driver.live_ops(), 0, "{:?}", self.driver);
        assert_eq!(self.driver.stale_completions(), 0);
        let mut seen = self.log.take();
        seen.sort_unstable();
        seen
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn both_backends_tell_the_same_story(steps in proptest::collection::vec(step(), 1..60)) {
        let mut uring = World::new(Kind::Uring);
        let mut epoll = World::new(Kind::Epoll);
        for step in steps {
            prop_assert_eq!(uring.run(step), epoll.run(step), "{:?}", step);
        }
        prop_assert_eq!(uring.tear_down(), epoll.tear_down());
    }
}
