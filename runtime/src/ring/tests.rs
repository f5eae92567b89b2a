//! The driver on the real ring.
#![expect(unsafe_code, reason = "the tests' own operations, and raw eventfds")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::task::Waker;
use std::time::{Duration, Instant};

use super::RingConfig;
use super::backend::{EntryKind, Wait};
use super::driver::Driver;
use super::inflight::{Key, Polled};
use super::op::{Effects, Operation, Outcome};

/// No test waits longer than this for anything.
const PATIENCE: Duration = Duration::from_secs(10);

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

/// Receives into a buffer of its own.
struct Recv {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

// SAFETY: the address is that of a vector owned by the payload.
unsafe impl Operation for Recv {
    type Output = io::Result<u32>;
    const NAME: &'static str = "recv";

    fn entry(&mut self) -> EntryKind {
        EntryKind::Read {
            fd: self.socket.as_raw_fd(),
            ptr: self.buffer.as_mut_ptr(),
            len: u32::try_from(self.buffer.len()).unwrap(),
        }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        outcome?.into_result()
    }

    fn orphan(self, _outcome: Outcome) {}
}

fn driver(sq_entries: u32) -> Driver {
    Driver::new(&RingConfig {
        sq_entries,
        ..RingConfig::default()
    })
    .unwrap()
}

/// Takes turns until `is_done`, running the effects of each.
fn turn_until(driver: &mut Driver, mut is_done: impl FnMut(&mut Driver) -> bool) {
    let start = Instant::now();
    let mut effects = Effects::default();
    while !is_done(driver) {
        assert!(
            start.elapsed() < PATIENCE,
            "still waiting, {} live",
            driver.live_ops()
        );
        driver
            .turn(Wait::Until(Some(Duration::from_millis(50))), &mut effects)
            .unwrap();
        effects.run();
    }
}

fn finish<T: Operation>(driver: &mut Driver, key: Key<T>) -> T::Output {
    let mut key = Some(key);
    let mut output = None;
    turn_until(driver, |driver| {
        match driver.poll(key.take().unwrap(), Waker::noop()) {
            Polled::Ready(operation, outcome) => output = Some(operation.complete(Ok(outcome))),
            Polled::Waiting(waiting) | Polled::NewWaker(waiting) => key = Some(waiting),
        }
        output.is_some()
    });
    output.unwrap()
}

fn eventfd() -> OwnedFd {
    // SAFETY: takes no pointers.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
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

#[test]
fn a_thousand_operations_pass_a_queue_of_eight() {
    let mut driver = driver(8);
    let keys: Vec<_> = (0..1000)
        .map(|_| driver.start(Nop, Waker::noop().clone()))
        .collect();
    assert_eq!(driver.live_ops(), 1000);
    turn_until(&mut driver, |driver| driver.live_ops() == 0);
    for key in keys {
        assert_eq!(finish(&mut driver, key).unwrap(), 0);
    }
    assert_eq!(driver.stale_completions(), 0);
}

#[test]
fn doorbell_counts_every_ring() {
    let bell = eventfd();
    let mut driver = driver(8);
    driver.arm_doorbell(bell.as_raw_fd());
    turn_until(&mut driver, |driver| !driver.needs_enter());
    for round in 1..=3 {
        ring_doorbell(bell.as_raw_fd(), 2);
        turn_until(&mut driver, |driver| driver.doorbell_count() == 2 * round);
    }
}
