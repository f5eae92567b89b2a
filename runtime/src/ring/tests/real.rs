//! The driver on the real kernel, by each of the backends.
#![expect(unsafe_code, reason = "the tests' own operations, and raw descriptors")]

use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::task::Waker;
use std::time::{Duration, Instant};

use super::{Kind, WakeCounter, expect_pending, on_both};
use crate::ring::backend::{EntryKind, Wait};
use crate::ring::driver::Driver;
use crate::ring::inflight::{Key, Polled};
use crate::ring::op::{Effects, Operation, Outcome};

/// No test waits longer than this for anything.
const PATIENCE: Duration = Duration::from_secs(10);

on_both!(
    a_thousand_operations_pass_a_queue_of_eight,
    one_turn_takes_all_of_many_deferred_completions,
    storm_of_reads_dropped_in_flight_leaves_nothing_behind,
    dropped_reads_release_their_descriptors,
    a_forgotten_key_keeps_its_buffer_until_the_kernel_is_done,
    teardown_ends_a_read_that_never_completes,
    a_driver_dropped_with_a_read_in_flight_leaks_its_buffer,
    doorbell_counts_every_ring,
    doorbell_ends_a_wait_from_another_thread,
    a_wait_with_nothing_to_come_ends_in_time,
);

struct Nop;

// SAFETY: the entry holds no address.
unsafe impl Operation for Nop {
    type Output = io::Result<u32>;
    const NAME: &'static str = "nop";

    fn entry(&mut self) -> EntryKind {
        EntryKind::Nop
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        outcome?.into_result()
    }

    fn orphan(self, _outcome: Outcome) {}
}

/// Reads from a socket into a buffer of its own.
struct Read {
    socket: UnixStream,
    buffer: Vec<u8>,
}

impl Read {
    fn new(socket: &UnixStream, len: usize) -> Read {
        Read {
            socket: socket.try_clone().unwrap(),
            buffer: vec![0; len],
        }
    }
}

// SAFETY: the address is that of a vector owned by the payload.
unsafe impl Operation for Read {
    type Output = Vec<u8>;
    const NAME: &'static str = "read";

    fn entry(&mut self) -> EntryKind {
        EntryKind::Read {
            fd: self.socket.as_raw_fd(),
            ptr: self.buffer.as_mut_ptr(),
            len: u32::try_from(self.buffer.len()).unwrap(),
        }
    }

    fn complete(mut self, outcome: io::Result<Outcome>) -> Vec<u8> {
        let count = outcome.and_then(Outcome::into_result).unwrap();
        self.buffer.truncate(count as usize);
        self.buffer
    }

    fn orphan(self, _outcome: Outcome) {}
}

fn start<T: Operation>(driver: &mut Driver, operation: T) -> Key<T> {
    driver.start(operation, Waker::noop().clone())
}

/// Takes turns until `is_done`, running the effects of each.
#[track_caller]
fn turn_until(driver: &mut Driver, mut is_done: impl FnMut(&mut Driver) -> bool) {
    let start = Instant::now();
    let mut effects = Effects::default();
    while !is_done(driver) {
        assert!(start.elapsed() < PATIENCE, "still waiting: {driver:?}");
        driver
            .turn(Wait::Until(Some(Duration::from_millis(50))), &mut effects)
            .unwrap();
        effects.run();
    }
}

/// Hands over what is queued.
fn submit(driver: &mut Driver) {
    let mut effects = Effects::default();
    driver.turn(Wait::Poll, &mut effects).unwrap();
    effects.run();
}

#[track_caller]
fn finish<T: Operation>(driver: &mut Driver, key: Key<T>) -> T::Output {
    let mut key = Some(key);
    let mut output = None;
    turn_until(driver, |driver| {
        if let Some(waiting) = key.take() {
            match driver.poll(waiting, Waker::noop()) {
                Polled::Ready(operation, outcome) => output = Some(operation.complete(Ok(outcome))),
                Polled::Waiting(waiting) | Polled::NewWaker(waiting) => key = Some(waiting),
            }
        }
        output.is_some()
    });
    output.unwrap()
}

fn eventfd(flags: i32) -> OwnedFd {
    // SAFETY: takes no pointers.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | flags) };
    assert!(fd >= 0);
    // SAFETY: just made, and owned by nobody else.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

fn ring_doorbell(fd: RawFd, count: u64) {
    let bytes = count.to_ne_bytes();
    // SAFETY: eight readable bytes.
    let written = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    assert_eq!(written, 8);
}

fn a_thousand_operations_pass_a_queue_of_eight(kind: Kind) {
    let mut driver = kind.driver(8);
    let keys: Vec<_> = (0..1000).map(|_| start(&mut driver, Nop)).collect();
    assert_eq!(driver.live_ops(), 1000);
    turn_until(&mut driver, |driver| driver.live_ops() == 0);
    for key in keys {
        assert_eq!(finish(&mut driver, key).unwrap(), 0);
    }
    assert_eq!(driver.stale_completions(), 0);
}

fn one_turn_takes_all_of_many_deferred_completions(kind: Kind) {
    let mut driver = kind.driver(256);
    let (mut near, far) = UnixStream::pair().unwrap();
    let keys: Vec<_> = (0..100)
        .map(|_| start(&mut driver, Read::new(&far, 1)))
        .collect();
    submit(&mut driver);
    near.write_all(&[1; 100]).unwrap();
    assert!(
        driver.needs_enter() || kind == Kind::Epoll,
        "deferred completions show without entering the kernel"
    );
    submit(&mut driver);
    assert_eq!(driver.live_ops(), 0);
    for key in keys {
        assert_eq!(finish(&mut driver, key), [1]);
    }
}

fn storm_of_reads_dropped_in_flight_leaves_nothing_behind(kind: Kind) {
    let mut driver = kind.driver(16);
    let (mut near, far) = UnixStream::pair().unwrap();
    for round in 0..200_usize {
        let keys: Vec<_> = (0..20)
            .map(|_| start(&mut driver, Read::new(&far, 4096)))
            .collect();
        if round % 3 != 0 {
            submit(&mut driver);
        }
        near.write_all(&vec![7; round]).unwrap();
        for key in keys {
            drop(driver.drop_handle(key));
        }
    }
    turn_until(&mut driver, |driver| driver.live_ops() == 0);
    assert_eq!(driver.stale_completions(), 0);
}

fn dropped_reads_release_their_descriptors(kind: Kind) {
    let (near, far) = UnixStream::pair().unwrap();
    let mut driver = kind.driver(16);
    let keys: Vec<_> = (0..50)
        .map(|_| start(&mut driver, Read::new(&far, 16)))
        .collect();
    let fds: Vec<RawFd> = (0..1024).filter(|fd| refers_to_same(*fd, &far)).collect();
    assert_eq!(fds.len(), 51);
    submit(&mut driver);
    for key in keys {
        drop(driver.drop_handle(key));
    }
    turn_until(&mut driver, |driver| driver.live_ops() == 0);
    let fds: Vec<RawFd> = (0..1024).filter(|fd| refers_to_same(*fd, &far)).collect();
    assert_eq!(fds, [far.as_raw_fd()]);
    drop(near);
}

/// Whether a descriptor of this process is open on the same socket. Other tests open descriptors of their own.
fn refers_to_same(fd: RawFd, socket: &UnixStream) -> bool {
    let link = |fd: RawFd| fs::read_link(format!("/proc/self/fd/{fd}")).ok();
    link(fd).is_some_and(|target| Some(target) == link(socket.as_raw_fd()))
}

fn a_forgotten_key_keeps_its_buffer_until_the_kernel_is_done(kind: Kind) {
    let mut driver = kind.driver(8);
    let (mut near, far) = UnixStream::pair().unwrap();
    let _forgotten = start(&mut driver, Read::new(&far, 64));
    submit(&mut driver);
    near.write_all(&[9; 64]).unwrap();
    turn_until(&mut driver, |driver| driver.live_ops() == 0);
}

fn teardown_ends_a_read_that_never_completes(kind: Kind) {
    let bell = eventfd(0);
    let (_near, far) = UnixStream::pair().unwrap();
    let mut driver = kind.driver(8);
    driver.arm_doorbell(bell.as_raw_fd());
    let (counter, waker) = WakeCounter::new();
    let key = driver.start(Read::new(&far, 16), waker);
    submit(&mut driver);
    let key = expect_pending(&mut driver, key);
    driver.begin_teardown();
    turn_until(&mut driver, |driver| driver.live_ops() == 0);
    assert_eq!(counter.count(), 1);
    let Polled::Ready(_, outcome) = driver.poll(key, Waker::noop()) else {
        panic!("it ended")
    };
    assert_eq!(outcome.result, -libc::ECANCELED);
    assert_eq!(driver.leak_remaining().operations, 0);
}

fn a_driver_dropped_with_a_read_in_flight_leaks_its_buffer(kind: Kind) {
    let (mut near, far) = UnixStream::pair().unwrap();
    let mut driver = kind.driver(8);
    let _key = start(&mut driver, Read::new(&far, 16));
    submit(&mut driver);
    assert_eq!(driver.leak_remaining().operations, 1);
    drop(driver);
    // Were the buffer freed, a read still running could write to it: the address sanitizer would tell.
    near.write_all(&[3; 16]).unwrap();
}

fn doorbell_counts_every_ring(kind: Kind) {
    // Kernels differ in how they read a non-blocking eventfd.
    for flags in [0, libc::EFD_NONBLOCK] {
        let bell = eventfd(flags);
        let mut driver = kind.driver(8);
        driver.arm_doorbell(bell.as_raw_fd());
        submit(&mut driver);
        for round in 1..=3 {
            ring_doorbell(bell.as_raw_fd(), 2);
            turn_until(&mut driver, |driver| driver.doorbell_count() == 2 * round);
        }
        assert_eq!(driver.live_ops(), 1);
    }
}

fn doorbell_ends_a_wait_from_another_thread(kind: Kind) {
    let bell = eventfd(0);
    let fd = bell.as_raw_fd();
    let mut driver = kind.driver(8);
    driver.arm_doorbell(fd);
    submit(&mut driver);
    let ringer = std::thread::spawn(move || ring_doorbell(fd, 1));
    let mut effects = Effects::default();
    let start = Instant::now();
    while driver.doorbell_count() == 0 {
        driver
            .turn(Wait::Until(Some(PATIENCE)), &mut effects)
            .unwrap();
    }
    assert!(start.elapsed() < PATIENCE, "the wait ran to its end");
    ringer.join().unwrap();
}

fn a_wait_with_nothing_to_come_ends_in_time(kind: Kind) {
    let mut driver = kind.driver(8);
    let mut effects = Effects::default();
    let start = Instant::now();
    driver
        .turn(Wait::Until(Some(Duration::from_millis(20))), &mut effects)
        .unwrap();
    assert!(start.elapsed() >= Duration::from_millis(20));
    assert!(effects.is_empty());
}
