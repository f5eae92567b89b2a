//! Every transition in the life of an operation, against the scripted kernel.
#![expect(
    unsafe_code,
    reason = "writes through the addresses of test operations, as the kernel would"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use super::records::{Aligned, Inline, TrackedRead};
use super::{Ledger, WakeCounter, expect_pending, take};
use crate::ring::backend::{EntryKind, Wait};
use crate::ring::driver::Driver;
use crate::ring::fake::{FakeKernel, PATTERN, memory};
use crate::ring::inflight::{Key, Polled};
use crate::ring::op::{Effects, Flags, Operation, Outcome};

const ECANCELED: i32 = -libc::ECANCELED;

/// A driver on a scripted kernel, and the books of its operations.
struct Bench {
    driver: Driver,
    ledger: Rc<Ledger>,
}

impl Bench {
    fn new() -> Bench {
        Bench::with_queue(64)
    }

    fn with_queue(queue_max: usize) -> Bench {
        Bench {
            driver: FakeKernel::driver(queue_max),
            ledger: Rc::default(),
        }
    }

    fn kernel(&mut self) -> &mut FakeKernel {
        FakeKernel::of(&mut self.driver)
    }

    fn start(&mut self) -> Key<TrackedRead> {
        self.driver
            .start(TrackedRead::new(&self.ledger), Waker::noop().clone())
    }

    /// Starts an operation and hands it to the kernel.
    fn submit(&mut self) -> Key<TrackedRead> {
        let key = self.start();
        self.turn();
        key
    }

    fn turn(&mut self) {
        let mut effects = Effects::default();
        self.driver.turn(Wait::Poll, &mut effects).unwrap();
        effects.run();
        self.kernel().check_memory();
    }

    /// Checks what became of all operations so far: how many were delivered, orphaned, and dropped unused.
    #[track_caller]
    fn check(&mut self, delivered: usize, orphaned: usize, dropped: usize) {
        let found = (
            self.ledger.delivered.get(),
            self.ledger.orphaned.get(),
            self.ledger.dropped.get(),
        );
        assert_eq!(found, (delivered, orphaned, dropped));
    }
}

#[test]
fn result_is_delivered_with_the_bytes_the_kernel_wrote() {
    let mut bench = Bench::new();
    let key = bench.submit();
    bench.kernel().complete(0, 5);
    bench.turn();
    let (operation, outcome) = take(&mut bench.driver, key);
    assert_eq!(
        operation.bytes()[..6],
        [PATTERN, PATTERN, PATTERN, PATTERN, PATTERN, 0]
    );
    assert_eq!(operation.complete(Ok(outcome)).unwrap(), 5);
    bench.check(1, 0, 0);
    assert_eq!(bench.driver.live_ops(), 0);
    assert_eq!(memory::alive_count(), 0);
}

#[test]
fn drop_before_submission_never_reaches_the_kernel() {
    let mut bench = Bench::new();
    let (first, middle, last) = (bench.start(), bench.start(), bench.start());
    drop(bench.driver.drop_handle(middle));
    bench.check(0, 0, 1);
    assert_eq!(bench.driver.live_ops(), 2);
    assert_eq!(memory::alive_count(), 2);
    bench.turn();
    assert_eq!(bench.kernel().history.len(), 2);
    bench.kernel().complete(0, 1);
    bench.kernel().complete(0, 2);
    bench.turn();
    assert_eq!(take(&mut bench.driver, first).1.result, 1);
    assert_eq!(take(&mut bench.driver, last).1.result, 2);
}

#[test]
fn drop_after_submission_cancels_and_keeps_the_buffer() {
    let mut bench = Bench::new();
    let key = bench.submit();
    let garbage = bench.driver.drop_handle(key);
    drop(garbage);
    assert_eq!(memory::alive_count(), 1);
    bench.turn();
    assert_eq!(bench.kernel().cancel_count(), 1);
    let [operation, cancel] = bench.kernel().history[..] else {
        panic!("two entries")
    };
    assert!(matches!(cancel.kind, EntryKind::Cancel { target } if target == operation.token));
    bench.kernel().complete(0, ECANCELED);
    bench.turn();
    assert_eq!(memory::alive_count(), 0);
    assert_eq!(bench.driver.live_ops(), 0);
    bench.check(0, 0, 0);
}

#[test]
fn drop_after_completion_runs_the_orphan_hook() {
    let mut bench = Bench::new();
    let key = bench.submit();
    bench.kernel().complete(0, 3);
    bench.turn();
    drop(bench.driver.drop_handle(key));
    bench.check(0, 1, 0);
    assert_eq!(bench.kernel().cancel_count(), 0);
    assert_eq!(memory::alive_count(), 0);
}

#[test]
fn answer_to_a_cancel_frees_nothing() {
    for answer in [0, -libc::ENOENT, -libc::EALREADY] {
        let mut bench = Bench::new();
        let key = bench.submit();
        drop(bench.driver.drop_handle(key));
        bench.turn();
        bench.kernel().answer_cancel(0, answer);
        bench.turn();
        assert_eq!(
            (bench.driver.live_ops(), memory::alive_count()),
            (1, 1),
            "after answer {answer}"
        );
        bench.kernel().complete(0, ECANCELED);
        bench.turn();
        assert_eq!(
            (bench.driver.live_ops(), memory::alive_count()),
            (0, 0),
            "after answer {answer}"
        );
        assert_eq!(bench.driver.stale_completions(), 0);
    }
}

#[test]
fn answer_to_a_cancel_may_come_after_its_target() {
    let mut bench = Bench::new();
    let key = bench.submit();
    drop(bench.driver.drop_handle(key));
    bench.turn();
    bench.kernel().complete(0, ECANCELED);
    bench.turn();
    // The slot is in use again when the answer comes.
    let next = bench.submit();
    bench.kernel().answer_cancel(0, -libc::ENOENT);
    bench.turn();
    let next = expect_pending(&mut bench.driver, next);
    bench.kernel().complete(0, 9);
    bench.turn();
    assert_eq!(take(&mut bench.driver, next).1.result, 9);
    assert_eq!(bench.driver.stale_completions(), 0);
}

#[test]
fn success_that_beats_its_cancel_goes_to_the_orphan_hook() {
    let mut bench = Bench::new();
    let key = bench.submit();
    drop(bench.driver.drop_handle(key));
    bench.turn();
    bench.kernel().complete(0, 4);
    bench.kernel().answer_cancel(0, -libc::ENOENT);
    bench.turn();
    bench.check(0, 1, 0);
}

#[test]
fn success_that_beats_the_teardown_is_delivered() {
    let mut bench = Bench::new();
    let key = bench.submit();
    bench.driver.begin_teardown();
    bench.turn();
    assert_eq!(bench.kernel().cancel_count(), 1);
    bench.kernel().complete(0, 4);
    bench.turn();
    let (operation, outcome) = take(&mut bench.driver, key);
    assert_eq!(operation.complete(Ok(outcome)).unwrap(), 4);
}

#[test]
fn completion_that_beats_a_listed_cancel_withdraws_it() {
    let mut bench = Bench::new();
    let key = bench.submit();
    bench.kernel().complete(0, 1);
    drop(bench.driver.drop_handle(key));
    // A turn would hand the cancel over first.
    let mut effects = Effects::default();
    bench.driver.reap_only(&mut effects);
    effects.run();
    bench.check(0, 1, 0);
    bench.turn();
    assert_eq!(bench.kernel().cancel_count(), 0);
    assert_eq!(bench.kernel().history.len(), 1);
}

#[test]
fn cancels_go_before_the_backlog_and_survive_a_full_queue() {
    let mut bench = Bench::with_queue(1);
    let cancelled: Vec<_> = (0..3).map(|_| bench.start()).collect();
    bench.turn();
    assert_eq!(bench.kernel().running_count(), 3);
    let waiting: Vec<_> = (0..3).map(|_| bench.start()).collect();
    for key in cancelled {
        drop(bench.driver.drop_handle(key));
    }
    bench.turn();
    let is_cancel: Vec<bool> = bench
        .kernel()
        .history
        .iter()
        .map(|entry| matches!(entry.kind, EntryKind::Cancel { .. }))
        .collect();
    assert_eq!(
        is_cancel,
        [false, false, false, true, true, true, false, false, false]
    );
    for key in waiting {
        let _running = expect_pending(&mut bench.driver, key);
    }
}

#[test]
fn one_turn_enters_a_bounded_number_of_times() {
    let mut bench = Bench::with_queue(1);
    let _keys: Vec<_> = (0..100).map(|_| bench.start()).collect();
    bench.turn();
    assert_eq!(bench.kernel().enters.len(), 8);
    assert_eq!(bench.kernel().running_count(), 8);
    assert!(bench.driver.needs_enter() && bench.driver.has_unsubmitted());
}

#[test]
fn a_turn_waits_only_when_nothing_is_left_to_hand_over() {
    let wait = Wait::Until(Some(Duration::from_secs(1)));
    let mut bench = Bench::with_queue(1);
    let mut effects = Effects::default();
    let _keys = [bench.start(), bench.start()];
    bench.driver.turn(wait, &mut effects).unwrap();
    assert_eq!(bench.kernel().enters, [Wait::Poll, Wait::Poll]);
    bench.driver.turn(wait, &mut effects).unwrap();
    assert_eq!(bench.kernel().enters[2..], [wait]);
    bench.driver.turn(Wait::Poll, &mut effects).unwrap();
    assert_eq!(
        bench.kernel().enters.len(),
        3,
        "polling with nothing to do makes no system call"
    );
    assert!(effects.is_empty());
}

#[test]
fn a_completion_with_more_keeps_the_record() {
    let mut bench = Bench::new();
    let (delivered, dropped) = (bench.submit(), bench.submit());
    bench.kernel().complete_more(0, 7);
    bench.kernel().complete_more(1, 8);
    bench.turn();
    let delivered = expect_pending(&mut bench.driver, delivered);
    drop(bench.driver.drop_handle(dropped));
    assert_eq!(memory::alive_count(), 2);
    // The notification that ends a zero-copy send has a result of its own, which means nothing.
    bench.kernel().complete(0, 0);
    bench.kernel().complete(0, 0);
    bench.turn();
    assert_eq!(take(&mut bench.driver, delivered).1.result, 7);
    bench.check(0, 1, 1);
    assert_eq!(memory::alive_count(), 0);
}

#[test]
fn stale_completions_are_counted_and_change_nothing() {
    let mut bench = Bench::new();
    let key = bench.submit();
    let token = bench.kernel().complete(0, 1);
    bench.turn();
    drop(take(&mut bench.driver, key));
    // The same slot, used again.
    let key = bench.submit();
    bench.kernel().post(token, 99, Flags::default());
    bench.kernel().post(u64::MAX >> 33, 99, Flags::default());
    bench.turn();
    assert_eq!(bench.driver.stale_completions(), 2);
    let key = expect_pending(&mut bench.driver, key);
    bench.kernel().complete(0, 2);
    bench.turn();
    assert_eq!(take(&mut bench.driver, key).1.result, 2);
}

#[test]
fn a_record_ends_once_even_if_the_kernel_repeats_itself() {
    let mut bench = Bench::new();
    let key = bench.submit();
    let token = bench.kernel().complete(0, 1);
    bench.kernel().post(token, 2, Flags::default());
    bench.turn();
    assert_eq!(take(&mut bench.driver, key).1.result, 1);
    assert_eq!(bench.driver.stale_completions(), 1);
}

#[test]
fn teardown_ends_operations_in_every_state() {
    let mut bench = Bench::new();
    let submitted = bench.submit();
    let orphaned = bench.submit();
    let done = bench.submit();
    bench.kernel().complete(2, 6);
    bench.turn();
    drop(bench.driver.drop_handle(orphaned));
    bench.turn();
    bench.kernel().answer_cancel(0, -libc::EALREADY);
    let queued = bench.start();
    bench.driver.begin_teardown();
    assert_eq!(
        bench.driver.live_ops(),
        2,
        "the queued operation is over at once"
    );
    bench.turn();
    assert_eq!(
        bench.kernel().cancel_count(),
        2,
        "the orphan, whose cancel was answered, is asked again"
    );
    bench.kernel().complete(0, ECANCELED);
    bench.kernel().complete(0, ECANCELED);
    bench.turn();
    assert_eq!(bench.driver.live_ops(), 0);
    assert_eq!(take(&mut bench.driver, queued).1, Outcome::CANCELLED);
    assert_eq!(take(&mut bench.driver, submitted).1.result, ECANCELED);
    assert_eq!(take(&mut bench.driver, done).1.result, 6);
    assert_eq!(memory::alive_count(), 0);
}

#[test]
fn what_starts_during_teardown_is_cancelled_at_once() {
    let mut bench = Bench::new();
    bench.driver.begin_teardown();
    let (polled, dropped) = (bench.start(), bench.start());
    assert_eq!(bench.driver.live_ops(), 0);
    assert_eq!(take(&mut bench.driver, polled).1, Outcome::CANCELLED);
    drop(bench.driver.drop_handle(dropped));
    bench.turn();
    assert!(bench.kernel().history.is_empty());
    assert_eq!(memory::alive_count(), 0);
}

#[test]
fn teardown_wakes_whoever_waits_for_a_queued_operation() {
    let mut bench = Bench::new();
    let (counter, waker) = WakeCounter::new();
    let key = bench.driver.start(TrackedRead::new(&bench.ledger), waker);
    bench.driver.begin_teardown();
    bench.turn();
    assert_eq!(counter.count(), 1);
    assert_eq!(take(&mut bench.driver, key).1, Outcome::CANCELLED);
}

#[test]
fn the_last_waker_is_woken_and_once() {
    let mut bench = Bench::new();
    let (first, waker) = WakeCounter::new();
    let key = bench
        .driver
        .start(TrackedRead::new(&bench.ledger), waker.clone());
    bench.turn();
    let Polled::Waiting(key) = bench.driver.poll(key, &waker) else {
        panic!("the waker is known")
    };
    let (second, waker) = WakeCounter::new();
    let Polled::NewWaker(key) = bench.driver.poll(key, &waker) else {
        panic!("the waker is new")
    };
    assert!(
        bench.driver.set_waker(&key, waker).is_some(),
        "the old waker comes back to be dropped"
    );
    bench.kernel().complete_more(0, 1);
    bench.turn();
    assert_eq!(
        (first.count(), second.count()),
        (0, 0),
        "an operation that goes on wakes nobody"
    );
    bench.kernel().complete(0, 1);
    bench.turn();
    assert_eq!((first.count(), second.count()), (0, 1));
    drop(take(&mut bench.driver, key));
}

#[test]
fn dropping_the_handle_gives_the_waker_back_and_wakes_nobody() {
    let mut bench = Bench::new();
    let (counter, waker) = WakeCounter::new();
    let key = bench.driver.start(TrackedRead::new(&bench.ledger), waker);
    bench.turn();
    drop(bench.driver.drop_handle(key));
    assert_eq!(std::sync::Arc::strong_count(&counter), 1);
    bench.turn();
    bench.kernel().complete(0, 1);
    bench.turn();
    assert_eq!(counter.count(), 0);
}

#[test]
fn a_key_does_not_open_the_records_of_another_driver() {
    let mut ours = Bench::new();
    let mut theirs = Bench::new();
    let stray = ours.submit();
    let key = theirs.submit();
    drop(theirs.driver.drop_handle(stray));
    let key = expect_pending(&mut theirs.driver, key);
    let polled = catch_unwind(AssertUnwindSafe(|| ours.driver.poll(key, Waker::noop())));
    let text = *polled.err().unwrap().downcast::<&str>().unwrap();
    assert!(text.contains("outside of the shard"), "{text}");
}

#[test]
fn dropping_the_driver_leaks_what_the_kernel_has_and_nothing_else() {
    let mut bench = Bench::new();
    let _running = bench.submit();
    let orphaned = bench.submit();
    drop(bench.driver.drop_handle(orphaned));
    let _done = bench.submit();
    bench.kernel().complete(2, 1);
    bench.turn();
    let _queued = bench.start();
    assert_eq!(memory::alive_count(), 4);
    let report = bench.driver.leak_remaining();
    assert_eq!(report.operations, 2);
    assert_eq!(report.to_string(), "2 operations leaked, 2 tracked read");
    drop(bench.driver);
    assert_eq!(memory::alive_count(), 2);
    // The result that nobody took goes to the orphan hook; the queued operation never was.
    assert_eq!(
        (bench.ledger.orphaned.get(), bench.ledger.dropped.get()),
        (1, 1)
    );
}

#[test]
fn detached_operations_run_to_their_end_uncancelled() {
    let mut bench = Bench::new();
    let submitted = bench.submit();
    let queued = bench.start();
    let done = bench.submit();
    bench.kernel().complete(2, 1);
    bench.turn();
    let garbage: Vec<_> = [submitted, done]
        .into_iter()
        .map(|key| bench.driver.detach(key))
        .collect();
    drop(garbage);
    bench.check(0, 1, 0);
    drop(bench.driver.detach(queued));
    let late = bench.start();
    drop(bench.driver.detach(late));
    assert_eq!(bench.driver.live_ops(), 3);
    bench.turn();
    assert_eq!(bench.kernel().history.len(), 4, "no cancel was sent");
    assert_eq!(memory::alive_count(), 3);
    for count in 0..3 {
        bench.kernel().complete(0, count);
    }
    bench.turn();
    bench.check(0, 4, 0);
    assert_eq!((bench.driver.live_ops(), memory::alive_count()), (0, 0));
}

#[test]
fn teardown_cancels_detached_operations() {
    let mut bench = Bench::new();
    let submitted = bench.submit();
    drop(bench.driver.detach(submitted));
    let queued = bench.start();
    drop(bench.driver.detach(queued));
    bench.driver.begin_teardown();
    let late = bench.start();
    drop(bench.driver.detach(late));
    bench.turn();
    bench.check(0, 0, 1);
    assert_eq!(bench.kernel().cancel_count(), 1);
    bench.kernel().complete(0, ECANCELED);
    bench.turn();
    assert_eq!((bench.driver.live_ops(), memory::alive_count()), (0, 0));
}

#[test]
fn a_detached_operation_that_was_never_handed_over_is_not_leaked() {
    let mut bench = Bench::new();
    let queued = bench.start();
    drop(bench.driver.detach(queued));
    assert_eq!(bench.driver.leak_remaining().operations, 0);
    drop(bench.driver);
    assert_eq!(memory::alive_count(), 0);
    assert_eq!(bench.ledger.dropped.get(), 1);
}

/// Runs one payload through the kernel and back.
fn round_trip<T: Operation>(operation: T, len: usize) -> T {
    let mut driver = FakeKernel::driver(4);
    let key = driver.start(operation, Waker::noop().clone());
    // A second operation, and enough more for a second page, so that records would move if they could.
    let _others: Vec<_> = (0..200)
        .map(|_| driver.start(Inline([0; 8]), Waker::noop().clone()))
        .collect();
    let mut effects = Effects::default();
    driver.turn(Wait::Poll, &mut effects).unwrap();
    let entry = FakeKernel::of(&mut driver).history[0];
    let EntryKind::Read { ptr, .. } = entry.kind else {
        panic!("a read")
    };
    // SAFETY: the record owns that memory until the operation ends, below.
    unsafe { ptr.write_bytes(PATTERN, len) };
    FakeKernel::of(&mut driver).post(entry.token, i32::try_from(len).unwrap(), Flags::default());
    driver.turn(Wait::Poll, &mut effects).unwrap();
    effects.run();
    take(&mut driver, key).0
}

#[test]
fn payloads_of_every_size_stay_where_the_kernel_was_told() {
    assert_eq!(round_trip(Inline([0; 1]), 1).0, [PATTERN; 1]);
    assert_eq!(round_trip(Inline([0; 128]), 128).0, [PATTERN; 128]);
    assert_eq!(round_trip(Inline([0; 129]), 129).0, [PATTERN; 129]);
    assert_eq!(round_trip(Inline([0; 5000]), 5000).0, [PATTERN; 5000]);
    assert_eq!(round_trip(Aligned([0; 8]), 8).0, [PATTERN; 8]);
}
