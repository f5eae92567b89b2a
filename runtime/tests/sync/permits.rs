//! Notifications, permits and gates: who waits gets what it was given, or somebody else does.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use crate::support::{Probe, ready, waker_that};
use greenroom_runtime::sync::Sharing;
use greenroom_runtime::sync::generic::gate::{Gate, GateClosed};
use greenroom_runtime::sync::generic::notify::Notify;
use greenroom_runtime::sync::generic::semaphore::{AcquireError, Semaphore, TryAcquireError};

for_both_kinds! {
    one_notification_is_kept_and_no_more
    one_notification_wakes_the_one_that_waits_longest
    a_dropped_waiter_passes_its_notification_on
    a_notification_with_no_one_left_is_kept
    all_who_wait_are_notified_and_nothing_is_kept
    a_waiter_made_before_a_notification_of_all_gets_it_unpolled
    a_dropped_waiter_does_not_pass_on_what_all_got
    a_waiter_that_is_dropped_by_a_waker_misses_nobody
    a_waker_that_panics_keeps_no_other_from_being_woken
    a_moved_waiter_is_woken_through_its_last_waker
    permits_come_in_the_order_they_were_asked_for
    a_large_request_is_not_passed_by_small_ones
    a_granted_permit_of_a_dropped_waiter_goes_on
    the_request_behind_a_dropped_one_is_looked_at
    closing_a_semaphore_fails_waiters_and_keeps_permits_valid
    permits_can_be_split_forgotten_and_added
    zero_permits_are_there_at_once_and_huge_numbers_do_not_overflow
    thousands_of_waiters_can_leave_in_any_order
    a_gate_resolves_when_the_last_has_left
    every_closer_of_a_gate_is_told
    a_dropped_close_leaves_the_gate_closed
}

fn one_notification_is_kept_and_no_more<K: Sharing>() {
    let notify = Notify::<K>::new();
    notify.notify_one();
    notify.notify_one();
    ready(notify.notified());
    Probe::waiting(notify.notified());
}

fn one_notification_wakes_the_one_that_waits_longest<K: Sharing>() {
    let notify = Notify::<K>::new();
    let mut first = Probe::waiting(notify.notified());
    let mut second = Probe::waiting(notify.notified());
    notify.notify_one();
    second.still_waits();
    first.woken();
    notify.notify_one();
    second.woken();
}

fn a_dropped_waiter_passes_its_notification_on<K: Sharing>() {
    let notify = Notify::<K>::new();
    let first = Probe::waiting(notify.notified());
    let mut second = Probe::waiting(notify.notified());
    notify.notify_one();
    drop(first);
    second.woken();
}

fn a_notification_with_no_one_left_is_kept<K: Sharing>() {
    let notify = Notify::<K>::new();
    let only = Probe::waiting(notify.notified());
    notify.notify_one();
    drop(only);
    ready(notify.notified());
    let given_nothing = Probe::waiting(notify.notified());
    drop(given_nothing);
    Probe::waiting(notify.notified());
}

fn all_who_wait_are_notified_and_nothing_is_kept<K: Sharing>() {
    let notify = Notify::<K>::new();
    let mut waiters: Vec<_> = (0..3).map(|_| Probe::waiting(notify.notified())).collect();
    notify.notify_waiters();
    waiters.iter_mut().for_each(Probe::woken);
    Probe::waiting(notify.notified());
}

fn a_waiter_made_before_a_notification_of_all_gets_it_unpolled<K: Sharing>() {
    let notify = Notify::<K>::new();
    let early = notify.notified();
    notify.notify_waiters();
    ready(early);
}

fn a_dropped_waiter_does_not_pass_on_what_all_got<K: Sharing>() {
    let notify = Notify::<K>::new();
    let waiter = Probe::waiting(notify.notified());
    notify.notify_waiters();
    drop(waiter);
    Probe::waiting(notify.notified());
}

fn a_waiter_that_is_dropped_by_a_waker_misses_nobody<K: Sharing>() {
    // The first waker drops the second waiter and waits anew; the third one must be woken all the same.
    thread_local!(static VICTIM: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) });
    let notify = Notify::<K>::new();
    let mut first = Box::pin(notify.notified());
    let waker = waker_that(|| VICTIM.with_borrow_mut(Option::take).unwrap()());
    let polled = first.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    let second = Probe::waiting(notify.notified());
    let mut third = Probe::waiting(notify.notified());
    let late = Rc::new(RefCell::new(None));
    let (sets, anew) = (late.clone(), notify.clone());
    let act = move || {
        drop(second);
        *sets.borrow_mut() = Some(Probe::waiting(anew.notified()));
    };
    VICTIM.set(Some(Box::new(act)));
    notify.notify_waiters();
    third.woken();
    let mut late = late.borrow_mut().take().unwrap();
    late.still_waits();
}

fn a_waker_that_panics_keeps_no_other_from_being_woken<K: Sharing>() {
    let notify = Notify::<K>::new();
    let mut first = Box::pin(notify.notified());
    let bomb = waker_that(|| panic!("this waker cannot be woken"));
    let polled = first.as_mut().poll(&mut Context::from_waker(&bomb));
    assert!(polled.is_pending());
    let mut second = Probe::waiting(notify.notified());
    notify.notify_waiters();
    second.woken();
}

fn a_moved_waiter_is_woken_through_its_last_waker<K: Sharing>() {
    let notify = Notify::<K>::new();
    let mut waiter = Box::pin(notify.notified());
    let counts: Vec<_> = (0..3).map(|_| Arc::new(AtomicUsize::new(0))).collect();
    for count in counts.clone() {
        let waker = waker_that(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let polled = waiter.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
    }
    notify.notify_one();
    let counts: Vec<_> = counts
        .iter()
        .map(|count| count.load(Ordering::Relaxed))
        .collect();
    assert_eq!(counts, [0, 0, 1]);
}

fn permits_come_in_the_order_they_were_asked_for<K: Sharing>() {
    let semaphore = Semaphore::<K>::new(1);
    let held = ready(semaphore.acquire()).unwrap();
    let mut first = Probe::waiting(semaphore.acquire());
    let mut second = Probe::waiting(semaphore.acquire());
    drop(held);
    assert_eq!(
        semaphore.try_acquire().unwrap_err(),
        TryAcquireError::NoPermits,
        "the permit is the first waiter's, though it has not taken it yet"
    );
    second.still_waits();
    drop(first.woken().unwrap());
    drop(second.woken().unwrap());
    assert_eq!(semaphore.available_permits(), 1);
}

fn a_large_request_is_not_passed_by_small_ones<K: Sharing>() {
    let semaphore = Semaphore::<K>::new(3);
    let mut held: Vec<_> = (0..3).map(|_| semaphore.try_acquire().unwrap()).collect();
    let mut large = Probe::waiting(semaphore.acquire_many(3));
    let mut small = Probe::waiting(semaphore.acquire());
    held.pop();
    held.pop();
    assert_eq!(semaphore.available_permits(), 2);
    large.still_waits();
    small.still_waits();
    assert!(semaphore.try_acquire().is_err());
    held.pop();
    let large = large.woken().unwrap();
    assert_eq!(large.count(), 3);
    small.still_waits();
    drop(large);
    drop(small.woken().unwrap());
}

fn a_granted_permit_of_a_dropped_waiter_goes_on<K: Sharing>() {
    let semaphore = Semaphore::<K>::new(1);
    let held = semaphore.try_acquire().unwrap();
    let first = Probe::waiting(semaphore.acquire());
    let mut second = Probe::waiting(semaphore.acquire());
    drop(held);
    drop(first);
    drop(second.woken().unwrap());
    assert_eq!(semaphore.available_permits(), 1);
}

fn the_request_behind_a_dropped_one_is_looked_at<K: Sharing>() {
    let semaphore = Semaphore::<K>::new(2);
    let _held = semaphore.try_acquire().unwrap();
    let large = Probe::waiting(semaphore.acquire_many(2));
    let mut small = Probe::waiting(semaphore.acquire());
    drop(large);
    drop(small.woken().unwrap());
}

fn closing_a_semaphore_fails_waiters_and_keeps_permits_valid<K: Sharing>() {
    let semaphore = Semaphore::<K>::new(1);
    let held = semaphore.try_acquire().unwrap();
    let mut waiters: Vec<_> = (0..3)
        .map(|_| Probe::waiting(semaphore.acquire()))
        .collect();
    semaphore.close();
    for waiter in &mut waiters {
        assert_eq!(waiter.woken().unwrap_err(), AcquireError);
    }
    assert_eq!(ready(semaphore.acquire()).unwrap_err(), AcquireError);
    assert_eq!(
        semaphore.try_acquire().unwrap_err(),
        TryAcquireError::Closed
    );
    assert!(semaphore.is_closed());
    drop(held);
    assert_eq!(semaphore.available_permits(), 1);

    let semaphore = Semaphore::<K>::new(0);
    let mut granted = Probe::waiting(semaphore.acquire());
    semaphore.add_permits(1);
    semaphore.close();
    let permit = granted.woken();
    assert!(permit.is_ok(), "it had the permit when it was closed");
}

fn permits_can_be_split_forgotten_and_added<K: Sharing>() {
    let semaphore = Semaphore::<K>::new(5);
    let mut four = semaphore.try_acquire_many(4).unwrap();
    assert!(four.split(5).is_none());
    let three = four.split(3).unwrap();
    assert_eq!((four.count(), three.count()), (1, 3));
    three.forget();
    drop(four);
    assert_eq!(semaphore.available_permits(), 2);
    assert_eq!(semaphore.forget_permits(7), 2);
    assert_eq!(semaphore.available_permits(), 0);
    let mut waiters: Vec<_> = (0..3)
        .map(|_| Probe::waiting(semaphore.acquire()))
        .collect();
    semaphore.add_permits(2);
    let _first = waiters[0].woken().unwrap();
    let _second = waiters[1].woken().unwrap();
    waiters[2].still_waits();
}

fn zero_permits_are_there_at_once_and_huge_numbers_do_not_overflow<K: Sharing>() {
    let semaphore = Semaphore::<K>::new(0);
    let mut waiter = Probe::waiting(semaphore.acquire_many(usize::MAX));
    assert_eq!(ready(semaphore.acquire_many(0)).unwrap().count(), 0);
    semaphore.add_permits(usize::MAX - 1);
    waiter.still_waits();
    semaphore.add_permits(usize::MAX);
    let all = waiter.woken().unwrap();
    semaphore.add_permits(5);
    drop(all);
    assert_eq!(semaphore.available_permits(), usize::MAX);
}

fn thousands_of_waiters_can_leave_in_any_order<K: Sharing>() {
    const COUNT: usize = 10_000;
    let semaphore = Semaphore::<K>::new(0);
    let mut waiters: Vec<_> = (0..COUNT)
        .map(|_| Some(Probe::waiting(semaphore.acquire())))
        .collect();
    // Every third leaves, the last first.
    for waiter in waiters.iter_mut().rev().step_by(3) {
        *waiter = None;
    }
    semaphore.add_permits(COUNT);
    let mut taken = 0;
    for waiter in waiters.iter_mut().flatten() {
        waiter.woken().unwrap().forget();
        taken += 1;
    }
    assert_eq!(semaphore.available_permits(), COUNT - taken);
    assert_eq!(taken, COUNT - COUNT.div_ceil(3));
}

fn a_gate_resolves_when_the_last_has_left<K: Sharing>() {
    let gate = Gate::<K>::new();
    let (first, second) = (gate.enter().unwrap(), gate.enter().unwrap());
    assert_eq!(gate.count(), 2);
    let mut closing = Probe::waiting(gate.close());
    assert_eq!(gate.enter().unwrap_err(), GateClosed);
    drop(first);
    closing.still_waits();
    drop(second);
    closing.woken();
    assert!(gate.is_closed());
    ready(gate.close());
}

fn every_closer_of_a_gate_is_told<K: Sharing>() {
    let gate = Gate::<K>::new();
    let inside = gate.enter().unwrap();
    let mut closers: Vec<_> = (0..3).map(|_| Probe::waiting(gate.close())).collect();
    closers.remove(1);
    drop(inside);
    closers.iter_mut().for_each(Probe::woken);
}

fn a_dropped_close_leaves_the_gate_closed<K: Sharing>() {
    let gate = Gate::<K>::new();
    let inside = gate.enter().unwrap();
    drop(gate.close());
    assert!(gate.enter().is_err());
    drop(inside);
    assert!(matches!(Probe::new(gate.close()).poll(), Poll::Ready(())));
}
