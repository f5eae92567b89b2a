//! Which public types and futures may cross threads. That most may not is a promise.

#![expect(
    dead_code,
    reason = "of each pair of constants one is taken, and the compiler counts the other"
)]

use std::marker::PhantomData;

use greenroom_runtime::sync::{self, cross};
use greenroom_runtime::task::{AbortHandle, Id, JoinSet};
use greenroom_runtime::{Handle, JoinError, JoinHandle, RemoteJoinHandle, Runtime};

/// Answers for a type: an inherent constant is taken if its bound holds, and else the trait's.
struct Is<T>(PhantomData<T>);

trait IsNot {
    const SEND: bool = false;
    const SYNC: bool = false;
    const UNPIN: bool = false;

    fn is_send(&self) -> bool {
        false
    }
}

impl<T> IsNot for Is<T> {}

impl<T: Send> Is<T> {
    const SEND: bool = true;

    fn is_send(&self) -> bool {
        true
    }
}

impl<T: Sync> Is<T> {
    const SYNC: bool = true;
}

impl<T: Unpin> Is<T> {
    const UNPIN: bool = true;
}

macro_rules! types_are {
    ($(($send:ident, $sync:ident): $($type:ty),+;)+) => {
        $($(
            const _: () = assert!(Is::<$type>::SEND == $send, stringify!($type));
            const _: () = assert!(Is::<$type>::SYNC == $sync, stringify!($type));
            const _: () = assert!(Is::<$type>::UNPIN, stringify!($type));
        )+)+
    };
}

type NotSend = std::rc::Rc<()>;
type OnlySend = std::cell::Cell<()>;

types_are! {
    // Send, Sync
    (true, true): Handle, Id, AbortHandle, JoinError, RemoteJoinHandle<u8>;
    (false, false): JoinHandle<u8>, JoinHandle<NotSend>, JoinSet<u8>, RemoteJoinHandle<NotSend>;

    (false, false): sync::Notify, sync::Notified, sync::Semaphore, sync::Acquire, sync::Permit,
        sync::Gate, sync::Entered, sync::AllLeft,
        sync::oneshot::Sender<u8>, sync::oneshot::Receiver<u8>,
        sync::mpsc::Sender<u8>, sync::mpsc::Receiver<u8>, sync::mpsc::Permit<u8>,
        sync::mpsc::Reserve<u8>, sync::mpsc::Sending<'static, u8>,
        sync::watch::Sender<u8>, sync::watch::Receiver<u8>,
        sync::broadcast::Sender<u8>, sync::broadcast::Receiver<u8>;

    (true, true): cross::Notify, cross::Notified, cross::Semaphore, cross::Acquire, cross::Permit,
        cross::Gate, cross::Entered, cross::AllLeft,
        cross::oneshot::Sender<OnlySend>, cross::oneshot::Receiver<OnlySend>,
        cross::mpsc::Sender<OnlySend>, cross::mpsc::Receiver<OnlySend>, cross::mpsc::Permit<OnlySend>,
        cross::mpsc::Reserve<OnlySend>, cross::mpsc::Sending<'static, u8>,
        cross::watch::Sender<u8>, cross::watch::Receiver<u8>,
        cross::broadcast::Sender<u8>, cross::broadcast::Receiver<u8>;

    // What is shared among readers must bear that.
    (false, false): cross::mpsc::Sender<NotSend>, cross::oneshot::Receiver<NotSend>,
        cross::watch::Receiver<OnlySend>, cross::broadcast::Receiver<OnlySend>;
}

const _: () = assert!(Is::<Runtime>::SEND);

macro_rules! futures_are {
    ($send:literal: $($future:expr),+ $(,)?) => {
        $(
            // Made and not polled.
            assert_eq!(Is::of(|| $future).is_send(), $send, stringify!($future));
        )+
    };
}

impl<T> Is<T> {
    fn of(_never_called: impl FnOnce() -> T) -> Self {
        Self(PhantomData)
    }
}

#[test]
fn futures_of_methods_cross_threads_if_their_primitives_do() {
    let (mut sender, mut receiver) = sync::mpsc::channel::<u8>(1);
    futures_are!(false: receiver.recv());
    futures_are!(false: receiver.recv_many(unreachable(), 1));
    futures_are!(false: sender.send(1), sender.closed());
    let (mut watches, mut watched) = sync::watch::channel(1);
    futures_are!(false: watched.changed());
    futures_are!(false: watched.wait_for(|_| true));
    futures_are!(false: watches.closed());
    let (_, mut casts) = sync::broadcast::channel::<u8>(1);
    futures_are!(false: casts.recv());
    let (mut answers, _) = sync::oneshot::channel::<u8>();
    futures_are!(false: answers.closed());

    let (mut cross_sender, mut cross_receiver) = cross::mpsc::channel::<u8>(1);
    futures_are!(true: cross_receiver.recv());
    futures_are!(true: cross_receiver.recv_many(unreachable(), 1));
    futures_are!(true: cross_sender.send(1), cross_sender.closed());
    let (mut cross_watches, mut cross_watched) = cross::watch::channel(1);
    futures_are!(true: cross_watched.changed());
    futures_are!(true: cross_watched.wait_for(|_| true));
    futures_are!(true: cross_watches.closed());
    let (_, mut cross_casts) = cross::broadcast::channel::<u8>(1);
    futures_are!(true: cross_casts.recv());
    let (mut cross_answers, _) = cross::oneshot::channel::<u8>();
    futures_are!(true: cross_answers.closed());
    let _used = (
        &mut sender,
        &mut watches,
        &mut cross_sender,
        &mut cross_watches,
    );
}

fn unreachable<T>() -> T {
    unreachable!("futures are not polled here")
}
