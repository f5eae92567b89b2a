//! What may cross threads, and how large handles are: checked when this compiles.

use std::fmt::Debug;
use std::rc::Rc;

use greenroom::prelude::*;
use greenroom::runtime::{JoinError, JoinHandle};
use greenroom::{
    Caller, Counts, Error, Handle, Killed, PanicReport, Recipient, Remote, Route, SendError,
    ShutdownReport, SpawnError, StartError, StartFailure,
};
use greenroom_tests::Ledger;

/// An actor that is not `Send`, with a message that is not.
struct Rooted(Rc<u8>);

#[actor]
impl Rooted {
    pub(crate) fn value(&self) -> u8 {
        *self.0
    }

    #[message(local)]
    pub(crate) fn share(&self) -> Rc<u8> {
        self.0.clone()
    }
}

macro_rules! is {
    (@one [$($bound:tt)+] $kind:ty) => {
        const _: () = {
            const fn check<T: $($bound)+>() {}
            check::<$kind>();
        };
    };
    ($bounds:tt: $($kind:ty),+ $(,)?) => {
        $(is!(@one $bounds $kind);)+
    };
}

/// Fails to compile, for ambiguity, if the type implements the trait.
macro_rules! is_not {
    ($bound:path: $($kind:ty),+ $(,)?) => {
        $(const _: () = {
            trait Ambiguous<A> {
                const CHECK: () = ();
            }
            struct Unwanted;
            impl<T: ?Sized> Ambiguous<()> for T {}
            impl<T: ?Sized + $bound> Ambiguous<Unwanted> for T {}
            <$kind as Ambiguous<_>>::CHECK
        };)+
    };
}

is!([Send + Sync + Unpin + Copy + Debug]: Addr<Rooted>, Addr<Ledger<4>>, Remote<Rooted>, Counts);
is!([Send + Sync + Unpin + Copy + Debug]: Route<'static, Rooted>);
is!([Send + Sync + Unpin + Clone]: Sharded<Rooted>, Handle, PanicReport, Killed);
is!([Send + Sync + Debug]: System, ShutdownReport);
is!([Send + Sync + Unpin + Clone + Debug + Eq + std::hash::Hash]: Recipient<u8>, Recipient<String>, Caller<u8, String>);
is!([Send + Unpin]: Reply<u8>, Reply<String>);
is!([Send + Sync + std::error::Error]: SpawnError, StartError, CallError, CallError<std::io::Error>, SendError<(u8, String)>);
is!([Send + std::error::Error]: JoinError);
is!([Send + Sync + Debug]: Error, StartFailure);
is!([Copy + Unpin]: Local<Rooted>);

is_not!(Send: Local<Rooted>, Reply<Rc<u8>>, JoinHandle<()>, Ctx<Rooted>);
is_not!(Sync: Local<Rooted>, JoinHandle<()>, Ctx<Rooted>);
is_not!(Clone: Reply<u8>, System);

const _: () = assert!(size_of::<Addr<Rooted>>() == 16);
const _: () = assert!(size_of::<Local<Rooted>>() == 16);
const _: () = assert!(size_of::<Sharded<Rooted>>() == 16);
const _: () = assert!(size_of::<Reply<String>>() == 16);
const _: () = assert!(size_of::<Option<Reply<u8>>>() == 16);

fn is_send<T: Send>(_: &T) {}

#[test]
fn futures_of_calls_through_an_address_are_send_and_through_a_local_handle_take_what_is_not() {
    greenroom_tests::on_shards(&[1], |system| {
        let rooted = system
            .block_on(system.spawn_on(0, || Rooted(Rc::new(7))))
            .unwrap();
        let (call, tell) = (rooted.value(), rooted.value().tell());
        is_send(&call);
        is_send(&tell);
        let ask = call.into_future();
        is_send(&ask);
        is_send(&rooted.value().timeout(std::time::Duration::from_secs(1)));
        is_send(&Addr::stopped(rooted));
        is_send(&system.counts());
        is_send(&system.spawn_on(0, || Rooted(Rc::new(8))));
        system.block_on(tell).unwrap();
        assert_eq!(system.block_on(ask).unwrap(), 7);
        let shared = system.run_on(0, move || async move {
            let local = Addr::local(rooted).expect("it lives here");
            *local.share().await.unwrap()
        });
        assert_eq!(shared, 7);
    });
}
