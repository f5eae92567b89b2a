//! Operations of many completions and the buffers they take, against the scripted kernel.

use std::collections::VecDeque;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::WakeCounter;
use crate::ring::backend::{EntryKind, Wait};
use crate::ring::driver::Driver;
use crate::ring::fake::{FakeKernel, PATTERN};
use crate::ring::inflight::{Key, Polled};
use crate::ring::op::{Effects, Flags, Operation};
use crate::ring::ops::accept_multi::{AcceptMulti, INCOMING_MAX, Incoming, ListenerSocket};
use crate::ring::ops::recv_multi::RecvMulti;
use crate::ring::ops::send_zero_copy::SendZeroCopy;
use crate::ring::pooled::PooledBuf;
use crate::ring::received::Received;
use crate::ring::socket::Socket;

const ECANCELED: i32 = -libc::ECANCELED;
/// Buffers of the fake kernel's pool.
const BUFFERS: usize = 4;

/// A driver on the scripted kernel, and one socket.
struct Bench<K> {
    driver: Driver,
    socket: Rc<Socket<K>>,
    peer: UnixStream,
    effects: Effects,
}

impl<K: Default + 'static> Bench<K> {
    fn new() -> Bench<K> {
        let (near, peer) = UnixStream::pair().unwrap();
        peer.set_nonblocking(true).unwrap();
        Bench {
            driver: FakeKernel::driver(64),
            socket: Socket::new(near.into()),
            peer,
            effects: Effects::default(),
        }
    }

    fn kernel(&mut self) -> &mut FakeKernel {
        FakeKernel::of(&mut self.driver)
    }

    fn turn(&mut self) {
        self.driver.turn(Wait::Poll, &mut self.effects).unwrap();
        self.effects.run();
    }

    fn is_open(&mut self) -> bool {
        self.peer
            .read(&mut [0])
            .is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }
}

impl Bench<Received> {
    fn arm(&mut self) -> Key<RecvMulti> {
        let lane = self.socket.try_take_inbound().expect("the lane is free");
        let pool = Rc::clone(self.driver.pool().expect("there is a pool"));
        let key = self.driver.start_multi(RecvMulti::new(lane, pool));
        self.turn();
        key
    }

    fn deliver(&mut self, count: i32, flags: Flags) {
        self.kernel().complete_with_buffer(0, count, flags);
        self.turn();
    }

    fn next(&mut self) -> Option<PooledBuf> {
        self.socket.with_kept(Received::next)?.unwrap()
    }
}

fn ended<T: Operation>(driver: &mut Driver, key: Key<T>) -> T::Output {
    match driver.poll(key, Waker::noop()) {
        Polled::Ready(operation, outcome) => operation.complete(Ok(outcome)),
        Polled::Waiting(_) | Polled::NewWaker(_) => panic!("it goes on"),
    }
}

#[test]
fn every_completion_of_a_receive_is_kept_in_order_and_wakes() {
    let mut bench = Bench::<Received>::new();
    let key = bench.arm();
    for count in [3, 16, 1] {
        let (counter, waker) = WakeCounter::new();
        assert!(bench.driver.watch(&key, waker).is_ok());
        bench.deliver(count, Flags::MORE);
        assert_eq!(counter.count(), 1);
        let chunk = bench.next().unwrap();
        assert_eq!(*chunk, vec![PATTERN; chunk.len()]);
        assert_eq!(chunk.len(), usize::try_from(count).unwrap());
        assert!(chunk.is_pooled());
        assert_eq!(bench.driver.pool_counts(), (BUFFERS, BUFFERS - 1));
        drop(chunk);
    }
    assert_eq!(bench.driver.pool_counts(), (BUFFERS, BUFFERS));
}

#[test]
fn what_still_comes_after_the_handle_was_dropped_is_kept_for_the_next_one() {
    let mut bench = Bench::<Received>::new();
    let key = bench.arm();
    drop(bench.driver.drop_handle(key));
    bench.turn();
    bench.deliver(5, Flags::MORE);
    bench.deliver(6, Flags::MORE);
    bench.kernel().answer_cancel(0, 0);
    bench.kernel().complete(0, ECANCELED);
    bench.turn();
    assert_eq!(bench.driver.live_ops(), 0);
    // The lane is free again, and the bytes are there.
    let _key = bench.arm();
    assert_eq!(bench.next().unwrap().len(), 5);
    assert_eq!(bench.next().unwrap().len(), 6);
}

#[test]
fn a_socket_without_owner_closes_with_its_receive_and_returns_the_buffers() {
    let mut bench = Bench::<Received>::new();
    let key = bench.arm();
    bench.deliver(5, Flags::MORE);
    drop(bench.driver.drop_handle(key));
    bench.socket = Socket::new(UnixStream::pair().unwrap().0.into());
    bench.turn();
    assert!(bench.is_open(), "the kernel still has the descriptor");
    bench.deliver(6, Flags::MORE);
    assert_eq!(bench.driver.pool_counts(), (BUFFERS, BUFFERS - 2));
    bench.kernel().complete(0, ECANCELED);
    bench.turn();
    assert!(!bench.is_open());
    assert_eq!(bench.driver.pool_counts(), (BUFFERS, BUFFERS));
}

#[test]
fn a_receive_that_nobody_empties_is_stopped_once_and_armed_again() {
    let mut bench = Bench::<Received>::new();
    let key = bench.arm();
    bench.deliver(1, Flags::MORE);
    bench.deliver(2, Flags::MORE);
    assert_eq!(bench.kernel().cancel_count(), 1);
    bench.kernel().complete(0, ECANCELED);
    bench.turn();
    assert!(ended(&mut bench.driver, key).is_ok(), "it asked for that");
    assert_eq!(bench.next().unwrap().len(), 1);
    assert_eq!(bench.next().unwrap().len(), 2);
    bench.arm();
}

#[test]
fn a_buffer_that_comes_with_a_failure_goes_back() {
    for (result, flags) in [
        (-libc::ECONNRESET, Flags::default()),
        (0, Flags::default()),
        (ECANCELED, Flags::default()),
        (-libc::ENOBUFS, Flags::default()),
    ] {
        let mut bench = Bench::<Received>::new();
        let key = bench.arm();
        bench.deliver(result, flags);
        assert_eq!(bench.driver.pool_counts(), (BUFFERS, BUFFERS), "{result}");
        drop(bench.driver.drop_handle(key));
    }
}

#[test]
fn running_out_of_buffers_is_not_the_end_of_the_stream() {
    let mut bench = Bench::<Received>::new();
    let mut held = Vec::new();
    for _ in 0..BUFFERS {
        let key = bench.arm();
        bench.deliver(7, Flags::default());
        held.push(bench.next().unwrap());
        assert!(ended(&mut bench.driver, key).is_ok());
    }
    let key = bench.arm();
    bench.deliver(7, Flags::MORE);
    assert!(ended(&mut bench.driver, key).is_ok());
    assert!(!bench.socket.with_kept(|received| received.has_next()));
    held.clear();
    assert_eq!(bench.driver.pool_counts(), (BUFFERS, BUFFERS));
    bench.arm();
    bench.deliver(8, Flags::MORE);
    assert_eq!(bench.next().unwrap().len(), 8);
}

#[test]
fn cancelled_by_the_teardown_is_told_from_stopped() {
    let mut bench = Bench::<Received>::new();
    let key = bench.arm();
    bench.driver.begin_teardown();
    bench.turn();
    bench.kernel().complete(0, ECANCELED);
    bench.turn();
    assert!(ended(&mut bench.driver, key).is_err());
}

#[test]
fn a_driver_dropped_with_a_receive_leaks_the_buffers() {
    let mut bench = Bench::<Received>::new();
    let _key = bench.arm();
    let pool = Rc::downgrade(bench.driver.pool().unwrap());
    drop(bench.driver);
    assert!(pool.strong_count() > 0, "the kernel may still write there");

    let mut bench = Bench::<Received>::new();
    let key = bench.arm();
    bench.deliver(5, Flags::default());
    let pool = Rc::downgrade(bench.driver.pool().unwrap());
    let chunk = bench.next().unwrap();
    drop(bench.driver.drop_handle(key));
    drop(bench.driver);
    assert_eq!(*chunk, [PATTERN; 5]);
    assert_eq!(pool.strong_count(), 1, "only the bytes keep it");
    drop(chunk);
    assert_eq!(pool.strong_count(), 0);
}

/// A descriptor to be accepted, and its other end.
fn connection() -> (i32, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    far.set_nonblocking(true).unwrap();
    let near = std::os::fd::IntoRawFd::into_raw_fd(near);
    (near, far)
}

fn is_closed(far: &UnixStream) -> bool {
    matches!((&mut &*far).read(&mut [0]), Ok(0))
}

fn arm_accept(bench: &mut Bench<Incoming>) -> Key<AcceptMulti> {
    let socket: &Rc<ListenerSocket> = &bench.socket;
    let lane = socket.try_take_inbound().expect("the lane is free");
    let key = bench.driver.start_multi(AcceptMulti::new(lane));
    bench.turn();
    key
}

#[test]
fn connections_nobody_accepted_close_with_the_listener() {
    let mut bench = Bench::<Incoming>::new();
    let key = arm_accept(&mut bench);
    let (before, before_far) = connection();
    bench.kernel().complete_more(0, before);
    bench.turn();
    drop(bench.driver.drop_handle(key));
    bench.socket = Socket::new(UnixStream::pair().unwrap().0.into());
    bench.turn();
    // Accepted although the cancel is on its way, with the final completion even.
    let (late, late_far) = connection();
    bench.kernel().complete_more(0, late);
    let (last, last_far) = connection();
    bench.kernel().complete(0, last);
    for far in [&before_far, &late_far, &last_far] {
        assert!(!is_closed(far));
    }
    bench.turn();
    for far in [&before_far, &late_far, &last_far] {
        assert!(is_closed(far));
    }
}

#[test]
fn accepting_stops_while_enough_connections_wait() {
    let mut bench = Bench::<Incoming>::new();
    let key = arm_accept(&mut bench);
    let mut far_ends = Vec::new();
    for count in 1..=INCOMING_MAX {
        let (fd, far) = connection();
        far_ends.push(far);
        bench.kernel().complete_more(0, fd);
        bench.turn();
        let is_last = count == INCOMING_MAX;
        assert_eq!(bench.kernel().cancel_count(), usize::from(is_last));
    }
    bench.kernel().complete(0, ECANCELED);
    bench.turn();
    assert!(ended(&mut bench.driver, key).is_ok());
    for _ in 0..INCOMING_MAX {
        assert!(bench.socket.with_kept(Incoming::next).unwrap().is_ok());
    }
    assert!(bench.socket.with_kept(Incoming::next).is_none());
}

#[test]
fn errors_of_one_connection_are_passed_over_and_a_shortage_is_not() {
    for (errno, is_told) in [
        (libc::ECONNABORTED, false),
        (libc::EPROTO, false),
        (libc::EINTR, false),
        (libc::EMFILE, true),
        (libc::ENFILE, true),
        (libc::ENOMEM, true),
        (libc::EINVAL, true),
    ] {
        let mut bench = Bench::<Incoming>::new();
        let key = arm_accept(&mut bench);
        bench.kernel().complete(0, -errno);
        bench.turn();
        assert!(ended(&mut bench.driver, key).is_ok());
        let told = bench.socket.with_kept(Incoming::next);
        let found = told.map(|told| told.unwrap_err().raw_os_error().unwrap());
        assert_eq!(found, is_told.then_some(errno));
    }
}

#[test]
fn a_send_without_copying_frees_the_lane_first_and_the_buffer_last() {
    let mut bench = Bench::<Received>::new();
    let lane = bench.socket.try_take_outbound().unwrap();
    let mut next_lane = pin!(bench.socket.take_outbound());
    let (counter, waker) = WakeCounter::new();
    let mut cx = Context::from_waker(&waker);
    assert!(next_lane.as_mut().poll(&mut cx).is_pending());
    let key = bench.driver.start_multi(SendZeroCopy::new(lane, [1; 64]));
    bench.driver.turn(Wait::Poll, &mut bench.effects).unwrap();
    assert_eq!(bench.driver.first_outcome(&key), None);

    FakeKernel::of(&mut bench.driver).complete_more(0, 64);
    bench.driver.turn(Wait::Poll, &mut bench.effects).unwrap();
    assert_eq!(
        counter.count(),
        0,
        "no waker runs while the driver is borrowed"
    );
    bench.effects.run();
    assert_eq!(counter.count(), 1);
    assert!(matches!(next_lane.as_mut().poll(&mut cx), Poll::Ready(_)));
    assert_eq!(bench.driver.first_outcome(&key).unwrap().result, 64);

    FakeKernel::of(&mut bench.driver).complete(0, 0);
    bench.driver.turn(Wait::Poll, &mut bench.effects).unwrap();
    assert_eq!(ended(&mut bench.driver, key), [1; 64]);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Arm,
    DropHandle,
    /// The kernel fills a buffer; whether it goes on.
    Deliver(i32, bool),
    /// The kernel ends the receive without a buffer.
    End(i32),
    AnswerCancel,
    Turn,
    Take,
    Hold,
    Release,
    DropSocket,
}

fn step() -> impl Strategy<Value = Step> {
    let end = prop_oneof![
        Just(ECANCELED),
        Just(-libc::ENOBUFS),
        Just(-libc::EAGAIN),
        Just(0)
    ];
    prop_oneof![
        4 => Just(Step::Arm),
        2 => Just(Step::DropHandle),
        8 => (1..=16_i32, any::<bool>()).prop_map(|(count, more)| Step::Deliver(count, more)),
        2 => end.prop_map(Step::End),
        2 => Just(Step::AnswerCancel),
        6 => Just(Step::Turn),
        4 => Just(Step::Take),
        2 => Just(Step::Hold),
        2 => Just(Step::Release),
        1 => Just(Step::DropSocket),
    ]
}

/// What the test knows about the bytes on their way.
struct World {
    bench: Bench<Received>,
    key: Option<Key<RecvMulti>>,
    /// How many bytes each buffer was filled with, for those that were not taken out yet.
    expected: VecDeque<usize>,
    held: Vec<PooledBuf>,
}

impl World {
    fn run(&mut self, step: Step) {
        match step {
            Step::Arm => self.arm(),
            Step::DropHandle => {
                if let Some(key) = self.key.take() {
                    drop(self.bench.driver.drop_handle(key));
                }
            }
            Step::Deliver(count, more) => self.deliver(count, more),
            Step::End(result) => {
                if self.bench.kernel().running_count() > 0 {
                    self.bench.kernel().complete(0, result);
                }
            }
            Step::AnswerCancel => {
                if self.bench.kernel().cancel_count() > 0 {
                    self.bench.kernel().answer_cancel(0, -libc::EALREADY);
                }
            }
            Step::Turn => self.bench.turn(),
            Step::Take => drop(self.take()),
            Step::Hold => {
                let chunk = self.take();
                self.held.extend(chunk);
            }
            Step::Release => drop(self.held.pop()),
            Step::DropSocket => self.drop_socket(),
        }
        self.check();
    }

    fn arm(&mut self) {
        // A receive that ended frees the lane when its handle goes.
        if let Some(key) = self.key.take() {
            match self.bench.driver.poll(key, Waker::noop()) {
                Polled::Ready(..) => {}
                Polled::Waiting(key) | Polled::NewWaker(key) => self.key = Some(key),
            }
        }
        if let Some(lane) = self.bench.socket.try_take_inbound() {
            let pool = Rc::clone(self.bench.driver.pool().unwrap());
            let operation = RecvMulti::new(lane, pool);
            self.key = Some(self.bench.driver.start_multi(operation));
        }
    }

    fn deliver(&mut self, count: i32, more: bool) {
        let kernel = self.bench.kernel();
        if kernel.running_count() == 0 {
            return;
        }
        let flags = if more { Flags::MORE } else { Flags::default() };
        // Receives of sockets that were dropped may still be running.
        let index = kernel.running_count() - 1;
        let completion = kernel.complete_with_buffer(index, count, flags);
        let entry = kernel
            .history
            .iter()
            .rfind(|entry| entry.token == completion.token);
        let Some(EntryKind::RecvMulti { fd }) = entry.map(|entry| entry.kind) else {
            panic!("nothing but receives runs")
        };
        if completion.result > 0 && fd == self.bench.socket.as_raw_fd() {
            self.expected.push_back(usize::try_from(count).unwrap());
        }
    }

    fn take(&mut self) -> Option<PooledBuf> {
        let chunk = self.bench.socket.with_kept(Received::next)?.unwrap()?;
        assert_eq!(Some(chunk.len()), self.expected.pop_front());
        Some(chunk)
    }

    fn drop_socket(&mut self) {
        if let Some(key) = self.key.take() {
            drop(self.bench.driver.drop_handle(key));
        }
        self.bench.socket = Socket::new(UnixStream::pair().unwrap().0.into());
        self.expected.clear();
    }

    fn check(&mut self) {
        let (total, free) = self.bench.driver.pool_counts();
        assert!(total == 0 || free <= total);
        assert!(total == 0 || total - free >= self.held.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_buffer_and_no_byte_is_lost(steps in proptest::collection::vec(step(), 1..150)) {
        let mut world = World {
            bench: Bench::new(),
            key: None,
            expected: VecDeque::new(),
            held: Vec::new(),
        };
        for step in steps {
            world.run(step);
        }
        // The kernel ends everything; what it delivered is still there to be read.
        world.bench.turn();
        while world.bench.kernel().running_count() > 0 {
            world.bench.kernel().complete(0, ECANCELED);
        }
        world.bench.turn();
        while world.take().is_some() {}
        prop_assert!(world.expected.is_empty());
        world.drop_socket();
        world.held.clear();
        world.bench.turn();
        let (total, free) = world.bench.driver.pool_counts();
        prop_assert_eq!(free, total);
        prop_assert_eq!(world.bench.driver.live_ops(), 0);
        prop_assert_eq!(world.bench.driver.stale_completions(), 0);
        // Not one was given to the kernel twice either.
        let pool = world.bench.driver.pool().cloned();
        let taken = std::iter::from_fn(|| pool.as_ref()?.take()).count();
        prop_assert_eq!(taken, BUFFERS);
    }
}
