//! One value for many: the newest one, or every one with a bound.

use std::cell::Cell;
use std::rc::Rc;

use greenroom_runtime::sync::Sharing;
use greenroom_runtime::sync::generic::{broadcast, watch};

use crate::support::{Probe, ready};

for_both_kinds! {
    a_change_wakes_every_watcher_once
    only_the_newest_of_several_changes_is_seen
    a_watched_value_that_is_held_stays_as_it_is
    a_value_nobody_watches_comes_back_or_replaces
    the_last_value_of_a_watch_is_seen_after_its_sender_is_gone
    a_watcher_waits_for_a_value_that_fits
    a_modification_may_look_at_the_value_it_changes
    the_sender_of_a_watch_hears_that_nobody_watches
    the_sender_of_a_watch_waits_on_when_somebody_comes_in_between
    a_dropped_wait_for_a_change_loses_nothing
    every_receiver_of_a_broadcast_gets_every_value
    a_slow_receiver_is_told_how_much_it_missed
    a_receiver_gets_what_was_sent_since_it_was_made
    the_last_receiver_to_see_a_value_gets_itself
    values_that_all_have_seen_are_dropped_at_once
    a_dropped_receiver_lets_go_of_what_only_it_had_before_it
    a_broadcast_ends_after_what_was_sent
    a_broadcast_to_nobody_comes_back
    a_dropped_wait_for_a_broadcast_loses_nothing
    a_clone_that_uses_its_own_broadcast_does_no_harm
    a_broadcast_of_capacity_zero_keeps_one
}

fn a_change_wakes_every_watcher_once<K: Sharing>() {
    let (sender, first) = watch::channel::<_, K>(0);
    let second = first.clone();
    let mut watchers: Vec<_> = [first, second]
        .into_iter()
        .map(|mut watcher| {
            Probe::waiting(async move {
                watcher.changed().await.unwrap();
                watcher
            })
        })
        .collect();
    sender.send(1).unwrap();
    for waits in &mut watchers {
        let watcher = waits.woken();
        assert_eq!(*watcher.borrow(), 1);
        assert!(!watcher.has_changed());
    }
}

fn only_the_newest_of_several_changes_is_seen<K: Sharing>() {
    let (sender, mut watcher) = watch::channel::<_, K>(0);
    (1..=3).for_each(|n| sender.send(n).unwrap());
    assert!(watcher.has_changed());
    ready(watcher.changed()).unwrap();
    assert_eq!(*watcher.borrow_and_update(), 3);
    Probe::waiting(watcher.changed());
    let mut late = sender.subscribe();
    Probe::waiting(late.changed());
}

fn a_watched_value_that_is_held_stays_as_it_is<K: Sharing>() {
    let (mut sender, watcher) = watch::channel::<_, K>(vec![1]);
    let held = watcher.borrow();
    sender.send_modify(|value| value.push(2));
    sender.send(vec![3]).unwrap();
    assert_eq!((&*held, &*watcher.borrow()), (&vec![1], &vec![3]));
}

fn a_value_nobody_watches_comes_back_or_replaces<K: Sharing>() {
    let (sender, watcher) = watch::channel::<_, K>(1);
    drop(watcher);
    assert!(sender.is_closed());
    assert_eq!(sender.send(2), Err(watch::SendError(2)));
    assert_eq!(*sender.borrow(), 1);
    assert_eq!(*sender.send_replace(3), 1);
    assert_eq!(*sender.subscribe().borrow(), 3);
}

fn the_last_value_of_a_watch_is_seen_after_its_sender_is_gone<K: Sharing>() {
    let (sender, mut watcher) = watch::channel::<_, K>(0);
    sender.send(1).unwrap();
    drop(sender);
    assert!(watcher.is_closed());
    ready(watcher.changed()).unwrap();
    assert_eq!(ready(watcher.changed()), Err(watch::RecvError));
    assert_eq!(*watcher.borrow(), 1);

    let (sender, mut watcher) = watch::channel::<_, K>(0);
    let mut waits = Probe::waiting(watcher.changed());
    drop(sender);
    assert_eq!(waits.woken(), Err(watch::RecvError));
}

fn a_watcher_waits_for_a_value_that_fits<K: Sharing>() {
    let (sender, mut watcher) = watch::channel::<_, K>(1);
    assert_eq!(*ready(watcher.wait_for(|n| *n == 1)).unwrap(), 1);
    let mut waits = Probe::waiting(watcher.wait_for(|n| *n > 5));
    sender.send(4).unwrap();
    assert!(waits.is_woken());
    assert!(waits.poll().is_pending());
    sender.send(6).unwrap();
    assert_eq!(*waits.woken().unwrap(), 6);
    drop(waits);
    let mut waits = Probe::waiting(watcher.wait_for(|n| *n > 10));
    sender.send(11).unwrap();
    drop(sender);
    assert_eq!(*waits.woken().unwrap(), 11, "the last value counts");
    drop(waits);
    assert!(ready(watcher.wait_for(|n| *n > 20)).is_err());
}

fn a_modification_may_look_at_the_value_it_changes<K: Sharing>() {
    let (mut sender, watcher) = watch::channel::<_, K>(1);
    sender.send_modify(|value| *value += *watcher.borrow());
    assert_eq!(*watcher.borrow(), 2);
    assert!(!sender.send_if_modified(|value| {
        *value = 100;
        false
    }));
    assert_eq!(*watcher.borrow(), 2);
    assert!(watcher.has_changed());
}

fn the_sender_of_a_watch_hears_that_nobody_watches<K: Sharing>() {
    let (sender, first) = watch::channel::<_, K>(1);
    let second = first.clone();
    assert_eq!(sender.receiver_count(), 2);
    let mut closed = Probe::waiting(sender.closed());
    drop(first);
    closed.still_waits();
    drop(second);
    closed.woken();
}

fn the_sender_of_a_watch_waits_on_when_somebody_comes_in_between<K: Sharing>() {
    let (sender, first) = watch::channel::<_, K>(1);
    let mut closed = Probe::waiting(sender.closed());
    drop(first);
    let second = sender.subscribe();
    assert!(closed.is_woken());
    assert!(closed.poll().is_pending());
    drop(second);
    closed.woken();
}

fn a_dropped_wait_for_a_change_loses_nothing<K: Sharing>() {
    let (sender, mut watcher) = watch::channel::<_, K>(0);
    let mut waits = Probe::waiting(watcher.changed());
    sender.send(1).unwrap();
    assert!(waits.is_woken());
    drop(waits);
    ready(watcher.changed()).unwrap();
}

fn every_receiver_of_a_broadcast_gets_every_value<K: Sharing>() {
    let (sender, mut first) = broadcast::channel::<_, K>(4);
    let mut second = sender.subscribe();
    let mut waits = Probe::waiting(async {
        let value = first.recv().await;
        (value, first)
    });
    assert_eq!(sender.send('a'), Ok(2));
    assert_eq!(sender.send('b'), Ok(2));
    let (value, mut first) = waits.woken();
    assert_eq!(value, Ok('a'));
    assert_eq!(ready(first.recv()), Ok('b'));
    assert_eq!(second.len(), 2);
    assert_eq!(second.try_recv(), Ok('a'));
    assert_eq!(second.try_recv(), Ok('b'));
    assert_eq!(second.try_recv(), Err(broadcast::TryRecvError::Empty));
}

fn a_slow_receiver_is_told_how_much_it_missed<K: Sharing>() {
    let (sender, mut slow) = broadcast::channel::<_, K>(3);
    let mut quick = sender.subscribe();
    for n in 0..8 {
        sender.send(n).unwrap();
        assert_eq!(quick.try_recv(), Ok(n));
    }
    assert_eq!(slow.len(), 3);
    assert_eq!(ready(slow.recv()), Err(broadcast::RecvError::Lagged(5)));
    assert_eq!(ready(slow.recv()), Ok(5));
    sender.send(8).unwrap();
    sender.send(9).unwrap();
    assert_eq!(slow.try_recv(), Err(broadcast::TryRecvError::Lagged(1)));
    assert_eq!(
        (0..3).map(|_| slow.try_recv().unwrap()).collect::<Vec<_>>(),
        [7, 8, 9]
    );
}

fn a_receiver_gets_what_was_sent_since_it_was_made<K: Sharing>() {
    let (sender, mut early) = broadcast::channel::<_, K>(4);
    sender.send(1).unwrap();
    let mut late = early.resubscribe();
    sender.send(2).unwrap();
    assert_eq!(late.try_recv(), Ok(2));
    assert_eq!(early.try_recv(), Ok(1));
    assert_eq!(early.try_recv(), Ok(2));
}

fn the_last_receiver_to_see_a_value_gets_itself<K: Sharing>() {
    struct Counts(Rc<Cell<u32>>);
    impl Clone for Counts {
        fn clone(&self) -> Self {
            self.0.set(self.0.get() + 1);
            Self(self.0.clone())
        }
    }
    let clones = Rc::new(Cell::new(0));
    let (sender, mut first) = broadcast::channel::<_, K>(1);
    let mut second = sender.subscribe();
    assert!(sender.send(Counts(clones.clone())).is_ok());
    drop(first.try_recv());
    assert_eq!(clones.get(), 1);
    drop(second.try_recv());
    assert_eq!(clones.get(), 1);
}

fn values_that_all_have_seen_are_dropped_at_once<K: Sharing>() {
    let witness = Rc::new(());
    let (sender, mut first) = broadcast::channel::<_, K>(8);
    let mut second = first.resubscribe();
    for _ in 0..4 {
        sender.send(witness.clone()).unwrap();
    }
    (0..4).for_each(|_| drop(first.try_recv()));
    assert_eq!(Rc::strong_count(&witness), 5);
    drop(second.try_recv());
    assert_eq!(Rc::strong_count(&witness), 4);
}

fn a_dropped_receiver_lets_go_of_what_only_it_had_before_it<K: Sharing>() {
    let witness = Rc::new(());
    let (sender, mut first) = broadcast::channel::<_, K>(8);
    let second = first.resubscribe();
    for _ in 0..4 {
        sender.send(witness.clone()).unwrap();
    }
    (0..3).for_each(|_| drop(first.try_recv()));
    drop(second);
    assert_eq!(Rc::strong_count(&witness), 2);
    assert_eq!(first.len(), 1);
    first.try_recv().unwrap();
    // A slow receiver that has missed values lets go as well.
    let slow = sender.subscribe();
    for _ in 0..20 {
        sender.send(witness.clone()).unwrap();
        drop(first.try_recv());
    }
    assert_eq!(Rc::strong_count(&witness), 9);
    drop(slow);
    assert_eq!(Rc::strong_count(&witness), 1);
}

fn a_broadcast_ends_after_what_was_sent<K: Sharing>() {
    let (sender, mut receiver) = broadcast::channel::<_, K>(2);
    let other = sender.clone();
    sender.send(1).unwrap();
    drop(sender);
    assert_eq!(ready(receiver.recv()), Ok(1));
    let mut waits = Probe::waiting(receiver.recv());
    drop(other);
    assert_eq!(waits.woken(), Err(broadcast::RecvError::Closed));
    drop(waits);
    assert_eq!(receiver.try_recv(), Err(broadcast::TryRecvError::Closed));
}

fn a_broadcast_to_nobody_comes_back<K: Sharing>() {
    let (sender, receiver) = broadcast::channel::<_, K>(2);
    drop(receiver);
    assert_eq!(sender.send(1), Err(broadcast::SendError(1)));
    assert_eq!(sender.receiver_count(), 0);
}

fn a_dropped_wait_for_a_broadcast_loses_nothing<K: Sharing>() {
    let (sender, mut receiver) = broadcast::channel::<_, K>(2);
    let mut waits = Probe::waiting(receiver.recv());
    sender.send(1).unwrap();
    assert!(waits.is_woken());
    drop(waits);
    assert_eq!(ready(receiver.recv()), Ok(1));
}

fn a_clone_that_uses_its_own_broadcast_does_no_harm<K: Sharing>() {
    struct Subscribes<K: Sharing>(Rc<broadcast::Sender<Self, K>>);
    impl<K: Sharing> Clone for Subscribes<K> {
        fn clone(&self) -> Self {
            drop(self.0.subscribe());
            Self(self.0.clone())
        }
    }
    let (sender, mut first) = broadcast::channel::<Subscribes<K>, K>(2);
    let mut second = sender.subscribe();
    let sender = Rc::new(sender);
    assert!(sender.send(Subscribes(sender.clone())).is_ok());
    assert!(first.try_recv().is_ok());
    assert!(second.try_recv().is_ok());
}

fn a_broadcast_of_capacity_zero_keeps_one<K: Sharing>() {
    let (sender, mut receiver) = broadcast::channel::<_, K>(0);
    sender.send(1).unwrap();
    assert_eq!(receiver.try_recv(), Ok(1));
}
