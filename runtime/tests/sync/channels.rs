//! Channels for one value and for many: order, bounds, and what becomes of values when an end goes.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use greenroom_runtime::sync::Sharing;
use greenroom_runtime::sync::generic::mpsc::{SendError, TryRecvError, TrySendError};
use greenroom_runtime::sync::generic::{mpsc, oneshot};

use crate::support::{Probe, ready, waker_that};

for_both_kinds! {
    one_value_wakes_who_waits_for_it
    a_dropped_sender_of_one_value_is_an_error
    a_value_for_nobody_comes_back
    a_sender_hears_that_nobody_wants_the_value
    a_closed_receiver_still_gets_what_was_sent
    a_value_that_is_not_received_is_dropped_once
    values_come_in_the_order_they_were_sent
    a_full_channel_gives_the_value_back
    the_bound_holds_however_many_senders_there_are
    senders_get_room_in_the_order_they_came
    a_place_given_to_a_dropped_sender_goes_on
    a_permit_that_is_not_used_goes_back
    a_permit_sends_into_a_closed_channel_and_the_end_waits_for_it
    the_end_comes_when_the_last_granted_place_is_dropped
    closing_a_full_channel_wakes_every_sender
    dropping_the_receiver_of_a_full_channel_gives_waiting_values_back
    a_permit_whose_receiver_is_gone_gives_the_value_back
    the_last_sender_ends_the_channel_after_what_it_sent
    many_values_are_taken_at_once_and_as_many_senders_woken
    zero_is_a_capacity_of_one_and_a_limit_of_nothing
    a_value_whose_drop_sends_into_its_own_channel_does_no_harm
    a_waker_that_uses_the_channel_does_no_harm
    the_queue_goes_round_many_times
    senders_hear_that_the_channel_was_closed
}

fn one_value_wakes_who_waits_for_it<K: Sharing>() {
    let (sender, receiver) = oneshot::channel::<_, K>();
    let mut receiver = Probe::waiting(receiver);
    sender.send(7).unwrap();
    assert_eq!(receiver.woken(), Ok(7));

    let (sender, mut receiver) = oneshot::channel::<_, K>();
    assert_eq!(receiver.try_recv(), Err(oneshot::TryRecvError::Empty));
    sender.send(8).unwrap();
    assert_eq!(receiver.try_recv(), Ok(8));
    assert_eq!(receiver.try_recv(), Err(oneshot::TryRecvError::Closed));
}

fn a_dropped_sender_of_one_value_is_an_error<K: Sharing>() {
    let (sender, receiver) = oneshot::channel::<u8, K>();
    let mut receiver = Probe::waiting(receiver);
    drop(sender);
    assert_eq!(receiver.woken(), Err(oneshot::RecvError));
}

fn a_value_for_nobody_comes_back<K: Sharing>() {
    let (sender, receiver) = oneshot::channel::<_, K>();
    drop(receiver);
    assert!(sender.is_closed());
    assert_eq!(sender.send("value"), Err("value"));
}

fn a_sender_hears_that_nobody_wants_the_value<K: Sharing>() {
    let (mut sender, receiver) = oneshot::channel::<u8, K>();
    let mut closed = Probe::waiting(sender.closed());
    drop(receiver);
    closed.woken();
}

fn a_closed_receiver_still_gets_what_was_sent<K: Sharing>() {
    let (sender, mut receiver) = oneshot::channel::<_, K>();
    sender.send(1).unwrap();
    receiver.close();
    assert_eq!(ready(receiver), Ok(1));
    let (sender, mut receiver) = oneshot::channel::<u8, K>();
    receiver.close();
    assert_eq!(sender.send(1), Err(1));
    assert_eq!(ready(receiver), Err(oneshot::RecvError));
}

fn a_value_that_is_not_received_is_dropped_once<K: Sharing>() {
    let witness = Rc::new(());
    let (sender, receiver) = oneshot::channel::<_, K>();
    sender.send(witness.clone()).unwrap();
    drop(receiver);
    assert_eq!(Rc::strong_count(&witness), 1);

    let (sender, receiver) = mpsc::channel::<_, K>(2);
    sender.try_send(witness.clone()).unwrap();
    sender.try_send(witness.clone()).unwrap();
    drop(receiver);
    assert_eq!(Rc::strong_count(&witness), 1, "though a sender is left");
}

fn values_come_in_the_order_they_were_sent<K: Sharing>() {
    let (sender, mut receiver) = mpsc::channel::<_, K>(4);
    let mut waits = Probe::waiting(async {
        let first = receiver.recv().await;
        (first, receiver)
    });
    sender.try_send(1).unwrap();
    sender.try_send(2).unwrap();
    let (first, mut receiver) = waits.woken();
    assert_eq!(first, Some(1));
    assert_eq!(receiver.len(), 1);
    assert_eq!(ready(receiver.recv()), Some(2));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
}

fn a_full_channel_gives_the_value_back<K: Sharing>() {
    let (sender, mut receiver) = mpsc::channel::<_, K>(1);
    sender.try_send("first").unwrap();
    assert_eq!(sender.capacity(), 0);
    let error = sender.try_send("second").unwrap_err();
    assert!(matches!(error, TrySendError::Full("second")));
    assert_eq!(error.into_inner(), "second");
    assert!(matches!(sender.try_reserve(), Err(TrySendError::Full(()))));
    assert_eq!(receiver.try_recv(), Ok("first"));
    assert_eq!(sender.capacity(), 1);
    drop(receiver);
    assert!(matches!(
        sender.try_send("third"),
        Err(TrySendError::Closed("third"))
    ));
    assert!(matches!(
        sender.try_reserve(),
        Err(TrySendError::Closed(()))
    ));
    assert_eq!(ready(sender.send("fourth")), Err(SendError("fourth")));
}

fn the_bound_holds_however_many_senders_there_are<K: Sharing>() {
    let (sender, receiver) = mpsc::channel::<_, K>(3);
    let accepted = (0..100)
        .filter(|&n| sender.clone().try_send(n).is_ok())
        .count();
    assert_eq!((accepted, receiver.len()), (3, 3));
    assert_eq!(sender.max_capacity(), 3);
}

fn senders_get_room_in_the_order_they_came<K: Sharing>() {
    let (sender, mut receiver) = mpsc::channel::<_, K>(1);
    sender.try_send(0).unwrap();
    let mut first = Probe::waiting(sender.send(1));
    let mut second = Probe::waiting(sender.send(2));
    assert_eq!(receiver.try_recv(), Ok(0));
    assert!(
        matches!(sender.try_send(3), Err(TrySendError::Full(3))),
        "the room is the first waiter's"
    );
    second.still_waits();
    first.woken().unwrap();
    assert_eq!(receiver.try_recv(), Ok(1));
    second.woken().unwrap();
    assert_eq!(receiver.try_recv(), Ok(2));
}

fn a_place_given_to_a_dropped_sender_goes_on<K: Sharing>() {
    let (sender, mut receiver) = mpsc::channel::<_, K>(1);
    sender.try_send(0).unwrap();
    let first = Probe::waiting(sender.send(1));
    let mut second = Probe::waiting(sender.send(2));
    receiver.try_recv().unwrap();
    drop(first);
    second.woken().unwrap();
    assert_eq!(receiver.try_recv(), Ok(2), "what was given up was not sent");
}

fn a_permit_that_is_not_used_goes_back<K: Sharing>() {
    let (sender, _receiver) = mpsc::channel::<u8, K>(1);
    let permit = ready(sender.reserve()).unwrap();
    let mut waits = Probe::waiting(sender.reserve());
    drop(permit);
    waits.woken().unwrap().send(1).unwrap();
}

fn a_permit_sends_into_a_closed_channel_and_the_end_waits_for_it<K: Sharing>() {
    let (sender, mut receiver) = mpsc::channel::<_, K>(2);
    let used = sender.try_reserve().unwrap();
    let unused = sender.try_reserve().unwrap();
    receiver.close();
    assert!(receiver.is_closed());
    let mut waits = Probe::waiting(async {
        let first = receiver.recv().await;
        (first, receiver)
    });
    used.send(1).unwrap();
    let (first, mut receiver) = waits.woken();
    assert_eq!(first, Some(1));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    let mut end = Probe::waiting(receiver.recv());
    drop(unused);
    assert_eq!(end.woken(), None, "though a sender is left");
    drop(sender);
}

fn the_end_comes_when_the_last_granted_place_is_dropped<K: Sharing>() {
    let (sender, mut receiver) = mpsc::channel::<_, K>(1);
    sender.try_send(1).unwrap();
    let granted = Probe::waiting(sender.reserve());
    assert_eq!(receiver.try_recv(), Ok(1));
    receiver.close();
    let mut end = Probe::waiting(receiver.recv());
    drop(granted);
    assert_eq!(end.woken(), None);
}

fn closing_a_full_channel_wakes_every_sender<K: Sharing>() {
    let (sender, mut receiver) = mpsc::channel::<_, K>(1);
    sender.try_send(0).unwrap();
    let mut senders: Vec<_> = (1..4).map(|n| Probe::waiting(sender.send(n))).collect();
    let mut reserving = Probe::waiting(sender.reserve());
    receiver.close();
    for (n, waits) in (1..).zip(&mut senders) {
        assert_eq!(waits.woken(), Err(SendError(n)));
    }
    assert!(reserving.woken().is_err());
    assert_eq!(ready(receiver.recv()), Some(0));
    assert_eq!(ready(receiver.recv()), None);
}

fn dropping_the_receiver_of_a_full_channel_gives_waiting_values_back<K: Sharing>() {
    let (sender, receiver) = mpsc::channel::<_, K>(1);
    sender.try_send(0).unwrap();
    let mut waits = Probe::waiting(sender.send(1));
    drop(receiver);
    assert_eq!(waits.woken(), Err(SendError(1)));
}

fn a_permit_whose_receiver_is_gone_gives_the_value_back<K: Sharing>() {
    let (sender, receiver) = mpsc::channel::<_, K>(1);
    let permit = sender.try_reserve().unwrap();
    drop(receiver);
    assert_eq!(permit.send(5), Err(SendError(5)));
}

fn the_last_sender_ends_the_channel_after_what_it_sent<K: Sharing>() {
    let (sender, mut receiver) = mpsc::channel::<_, K>(1);
    let other = sender.clone();
    other.try_send(1).unwrap();
    drop(other);
    assert!(!receiver.is_closed());
    drop(sender);
    assert!(receiver.is_closed());
    assert_eq!(ready(receiver.recv()), Some(1));
    assert_eq!(ready(receiver.recv()), None);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));

    let (sender, mut receiver) = mpsc::channel::<u8, K>(1);
    let mut end = Probe::waiting(receiver.recv());
    drop(sender);
    assert_eq!(end.woken(), None);
}

fn many_values_are_taken_at_once_and_as_many_senders_woken<K: Sharing>() {
    let (sender, mut receiver) = mpsc::channel::<_, K>(3);
    (0..3).for_each(|n| sender.try_send(n).unwrap());
    let mut senders: Vec<_> = (3..6).map(|n| Probe::waiting(sender.send(n))).collect();
    let mut buffer = vec![100];
    assert_eq!(ready(receiver.recv_many(&mut buffer, 2)), 2);
    senders[0].woken().unwrap();
    senders[1].woken().unwrap();
    senders[2].still_waits();
    assert_eq!(ready(receiver.recv_many(&mut buffer, 10)), 3);
    assert_eq!(buffer, [100, 0, 1, 2, 3, 4]);
    senders[2].woken().unwrap();
    assert_eq!(ready(receiver.recv_many(&mut buffer, usize::MAX)), 1);
    drop(senders);
    drop(sender);
    assert_eq!(ready(receiver.recv_many(&mut buffer, 1)), 0);
}

fn zero_is_a_capacity_of_one_and_a_limit_of_nothing<K: Sharing>() {
    let (sender, mut receiver) = mpsc::channel::<_, K>(0);
    assert_eq!(sender.max_capacity(), 1);
    sender.try_send(1).unwrap();
    let mut buffer = Vec::new();
    assert_eq!(ready(receiver.recv_many(&mut buffer, 0)), 0);
    assert_eq!(receiver.len(), 1);
}

fn a_value_whose_drop_sends_into_its_own_channel_does_no_harm<K: Sharing>() {
    struct Returns<K: Sharing>(
        Option<mpsc::Sender<Self, K>>,
        Rc<RefCell<Vec<&'static str>>>,
    );
    impl<K: Sharing> Drop for Returns<K> {
        fn drop(&mut self) {
            let Some(sender) = self.0.take() else { return };
            let again = sender.try_send(Self(None, self.1.clone()));
            self.1.borrow_mut().push(match again {
                Err(TrySendError::Closed(_)) => "closed",
                _ => "open",
            });
        }
    }
    let log = Rc::default();
    let (sender, receiver) = mpsc::channel::<_, K>(2);
    let value = Returns(Some(sender.clone()), Rc::clone(&log));
    assert!(sender.try_send(value).is_ok());
    drop(receiver);
    assert_eq!(*log.borrow(), ["closed"]);
}

fn a_waker_that_uses_the_channel_does_no_harm<K: Sharing>() {
    thread_local!(static ACT: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) });
    let (sender, mut receiver) = mpsc::channel::<_, K>(2);
    {
        let mut waits = pin!(receiver.recv());
        let waker = waker_that(|| ACT.with_borrow_mut(Option::take).unwrap()());
        let polled = waits.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        let inner = sender.clone();
        ACT.set(Some(Box::new(move || inner.try_send(2).unwrap())));
        sender.try_send(1).unwrap();
    }
    assert_eq!(ready(receiver.recv()), Some(1));
    assert_eq!(ready(receiver.recv()), Some(2));
}

fn the_queue_goes_round_many_times<K: Sharing>() {
    let (sender, mut receiver) = mpsc::channel::<_, K>(3);
    let mut expected = 0;
    for n in 0..10_000 {
        if let Err(error) = sender.try_send(n) {
            for _ in 0..3 {
                assert_eq!(receiver.try_recv(), Ok(expected));
                expected += 1;
            }
            sender.try_send(error.into_inner()).unwrap();
        }
    }
}

fn senders_hear_that_the_channel_was_closed<K: Sharing>() {
    let (sender, mut receiver) = mpsc::channel::<u8, K>(1);
    let mut first = Probe::waiting(sender.closed());
    let other = sender.clone();
    let mut second = Probe::waiting(other.closed());
    receiver.close();
    first.woken();
    second.woken();
    assert!(matches!(
        Probe::new(sender.closed()).poll(),
        Poll::Ready(())
    ));
}
