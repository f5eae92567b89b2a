//! Cancels that do not find their operation, against the scripted kernel.

use std::fs::File;
use std::rc::Rc;
use std::task::Waker;

use super::records::TrackedRead;
use super::{Ledger, take};
use crate::ring::backend::{Entry, EntryKind, Extent, Wait};
use crate::ring::driver::Driver;
use crate::ring::fake::FakeKernel;
use crate::ring::inflight::Key;
use crate::ring::op::{Effects, Operation};
use crate::ring::ops::pieces::Single;
use crate::ring::ops::receive_message::KeptMessages;
use crate::ring::ops::send::Send;
use crate::ring::ops::send_datagram::SendDatagram;
use crate::ring::ops::send_message::SendMessage;
use crate::ring::ops::send_zero_copy::SendZeroCopy;
use crate::ring::socket::{Outbound, Socket};

const ENOENT: i32 = -libc::ENOENT;
const ECANCELED: i32 = -libc::ECANCELED;

/// An operation that the scripted kernel has.
struct Bench<T> {
    driver: Driver,
    key: Option<Key<T>>,
}

impl<T: Operation> Bench<T> {
    fn running(operation: T) -> Bench<T> {
        let mut driver = FakeKernel::driver(64);
        let key = driver.start(operation, Waker::noop().clone());
        let mut bench = Bench {
            driver,
            key: Some(key),
        };
        bench.turn();
        assert_eq!(bench.kernel().running_count(), 1);
        bench
    }

    fn kernel(&mut self) -> &mut FakeKernel {
        FakeKernel::of(&mut self.driver)
    }

    fn turn(&mut self) {
        let mut effects = Effects::default();
        self.driver.turn(Wait::Poll, &mut effects).unwrap();
        effects.run();
    }

    /// Nobody waits for it any more: its cancel is asked for.
    fn drop_handle(&mut self) {
        let key = self.key.take().expect("dropped once");
        drop(self.driver.drop_handle(key));
        self.turn();
        assert_eq!(self.kernel().cancel_count(), 1);
    }

    /// Answers the cancel. Returns how many cancels wait for an answer after that: 1 if it was asked for again.
    fn answer_cancel(&mut self, result: i32) -> usize {
        self.kernel().answer_cancel(0, result);
        // One turn hears the answer, the next one asks again.
        self.turn();
        self.turn();
        self.kernel().cancel_count()
    }
}

/// The lane of a socket, which the scripted kernel never touches.
fn lane<K: Default + 'static>() -> Outbound<K> {
    let socket = Socket::new(File::open("/dev/null").unwrap().into());
    socket.try_take_outbound().expect("the lane is free")
}

fn send() -> Send<&'static str> {
    Send::new(lane(), "bytes", Extent::All)
}

fn send_message() -> SendMessage<&'static str> {
    SendMessage::new(lane(), vec!["by", "tes"], 0)
}

fn send_datagram() -> SendDatagram<KeptMessages, Single<&'static str>> {
    SendDatagram::new(lane(), None, Single("bytes"), Vec::new())
}

fn send_zero_copy() -> SendZeroCopy<&'static str> {
    SendZeroCopy::new(lane(), "bytes")
}

/// The cancel of a dropped operation is asked for until it finds it.
fn check_dropped(operation: impl Operation) {
    let mut bench = Bench::running(operation);
    bench.drop_handle();
    for asked in 2..5 {
        assert_eq!(bench.answer_cancel(ENOENT), 1);
        let [operation, cancels @ ..] = &*bench.kernel().history else {
            panic!("the operation was handed over")
        };
        assert_eq!(cancels.len(), asked);
        assert!(cancels.iter().all(|cancel| is_cancel_of(cancel, operation)));
    }
    assert_eq!(bench.answer_cancel(0), 0, "it was found");
    assert_eq!(bench.driver.live_ops(), 1);
    bench.kernel().complete(0, ECANCELED);
    bench.turn();
    assert_eq!(bench.driver.live_ops(), 0);
    assert_eq!(bench.driver.stale_completions(), 0);
}

fn is_cancel_of(entry: &Entry, operation: &Entry) -> bool {
    matches!(entry.kind, EntryKind::Cancel { target } if target == operation.token)
}

#[test]
fn a_dropped_send_that_hides_from_its_cancel_is_asked_about_again() {
    check_dropped(send());
    check_dropped(send_message());
    check_dropped(send_datagram());
    check_dropped(send_zero_copy());
}

#[test]
fn a_send_that_hides_from_the_teardown_is_asked_about_again_and_its_success_delivered() {
    let mut bench = Bench::running(send());
    bench.driver.begin_teardown();
    bench.turn();
    for _ in 0..3 {
        assert_eq!(bench.answer_cancel(ENOENT), 1);
    }
    bench.kernel().complete(0, 5);
    bench.turn();
    let key = bench.key.take().unwrap();
    assert_eq!(take(&mut bench.driver, key).1.result, 5);
    assert_eq!(bench.answer_cancel(ENOENT), 0, "it has ended");
    assert_eq!(bench.driver.stale_completions(), 0);
}

#[test]
fn a_send_that_was_found_is_not_asked_about_again() {
    for answer in [0, -libc::EALREADY] {
        let mut bench = Bench::running(send());
        bench.drop_handle();
        assert_eq!(bench.answer_cancel(answer), 0, "after answer {answer}");
        bench.kernel().complete(0, ECANCELED);
        bench.turn();
        assert_eq!(bench.driver.live_ops(), 0);
    }
}

#[test]
fn a_send_that_ends_before_it_is_asked_about_again_is_left_alone() {
    let mut bench = Bench::running(send());
    bench.drop_handle();
    bench.kernel().answer_cancel(0, ENOENT);
    bench.kernel().complete(0, 5);
    bench.turn();
    bench.turn();
    assert_eq!(bench.kernel().cancel_count(), 0);
    assert_eq!(bench.driver.live_ops(), 0);
}

#[test]
fn a_buffer_on_its_way_back_is_not_hurried() {
    let mut bench = Bench::running(send_zero_copy());
    bench.drop_handle();
    bench.kernel().complete_more(0, 5);
    assert_eq!(bench.answer_cancel(ENOENT), 0);
    assert_eq!(bench.driver.live_ops(), 1);
    bench.kernel().complete(0, 0);
    bench.turn();
    assert_eq!(bench.driver.live_ops(), 0);
}

#[test]
fn an_operation_that_cannot_hide_is_asked_about_once() {
    let mut bench = Bench::running(TrackedRead::new(&Rc::<Ledger>::default()));
    bench.drop_handle();
    assert_eq!(bench.answer_cancel(ENOENT), 0);
    bench.kernel().complete(0, ECANCELED);
    bench.turn();
    assert_eq!(bench.driver.live_ops(), 0);
}
