//! What becomes of messages that find no room, by policy, way and lane.

mod storm;
mod weights;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_channel::oneshot;
use futures_util::future::{BoxFuture, join, join_all};
use greenroom::prelude::*;
use greenroom::runtime::yield_now;
use greenroom::{Actor, Handle, Remote};
use greenroom_tests::{counts, on_shards, settle};

/// Room of the normal lane.
const ROOM: u64 = 4;
/// Messages that find no room.
const BEYOND: u64 = 3;

type Log = Arc<Mutex<Vec<u64>>>;
/// What became of a tell: `Err` with the argument, if it came back.
type Told = Result<(), Option<u64>>;

/// An actor of any policy.
trait Subject: Actor<Client<Remote<Self>>: Send> {
    /// Whether the actor, of all that come and find it busy, handles what stands at this place.
    const HANDLES: fn(place: u64, room: u64, sent: u64) -> bool;
    const DROPS: bool = false;
    const REJECTS: bool = false;

    fn new(log: Log) -> Self;
    fn ask(to: Addr<Self>, urgent: bool, number: u64)
    -> BoxFuture<'static, Result<u64, CallError>>;
    fn tell(to: Addr<Self>, urgent: bool, number: u64) -> BoxFuture<'static, Told>;
    fn try_tell(to: Addr<Self>, urgent: bool, number: u64) -> Told;
    fn wait(to: Addr<Self>, gate: oneshot::Receiver<()>) -> BoxFuture<'static, ()>;
}

macro_rules! subject {
    ($actor:ident, ($($options:tt)*), { $($consts:tt)* }) => {
        struct $actor {
            log: Log,
        }

        #[actor($($options)*)]
        impl $actor {
            pub(crate) fn note(&mut self, number: u64) -> u64 {
                self.log.lock().unwrap().push(number);
                number
            }

            pub(crate) async fn note_slowly(&mut self, number: u64) -> u64 {
                self.log.lock().unwrap().push(number);
                yield_now().await;
                number
            }

            pub(crate) async fn wait(&mut self, gate: oneshot::Receiver<()>) {
                gate.await.ok();
            }
        }

        impl Subject for $actor {
            $($consts)*

            fn new(log: Log) -> Self {
                Self { log }
            }

            fn ask(
                to: Addr<Self>,
                urgent: bool,
                number: u64,
            ) -> BoxFuture<'static, Result<u64, CallError>> {
                match (urgent, number % 4 == 1) {
                    (true, true) => Box::pin(to.note_slowly(number).urgent().into_future()),
                    (true, false) => Box::pin(to.note(number).urgent().into_future()),
                    (false, true) => Box::pin(to.note_slowly(number).into_future()),
                    (false, false) => Box::pin(to.note(number).into_future()),
                }
            }

            fn tell(to: Addr<Self>, urgent: bool, number: u64) -> BoxFuture<'static, Told> {
                Box::pin(async move {
                    let told = if urgent {
                        to.note(number).urgent().tell().await
                    } else {
                        to.note(number).tell().await
                    };
                    told.map_err(|error| error.into_args().map(|(number,)| number))
                })
            }

            fn try_tell(to: Addr<Self>, urgent: bool, number: u64) -> Told {
                let told = if urgent {
                    to.note(number).urgent().try_tell()
                } else {
                    to.note(number).try_tell()
                };
                told.map_err(|error| error.into_args().map(|(number,)| number))
            }

            fn wait(to: Addr<Self>, gate: oneshot::Receiver<()>) -> BoxFuture<'static, ()> {
                Box::pin(async move { drop(to.wait(gate).tell().await) })
            }
        }
    };
}

subject!(Waits, (mailbox = 4), {
    const HANDLES: fn(u64, u64, u64) -> bool = |_, _, _| true;
});
subject!(Rejects, (mailbox = 4, overflow = reject), {
    const HANDLES: fn(u64, u64, u64) -> bool = |place, room, _| place < room;
    const REJECTS: bool = true;
});
subject!(DropsOldest, (mailbox = 4, overflow = drop_oldest), {
    const HANDLES: fn(u64, u64, u64) -> bool = |place, room, sent| place >= sent - room;
    const DROPS: bool = true;
});
subject!(DropsNewest, (mailbox = 4, overflow = drop_newest), {
    const HANDLES: fn(u64, u64, u64) -> bool = |place, room, _| place < room;
    const DROPS: bool = true;
});
subject!(Unbounded, (mailbox = unbounded), {
    const HANDLES: fn(u64, u64, u64) -> bool = |_, _, _| true;
});

fn subject<S: Subject>(system: &System, shard: u16) -> (Addr<S>, Log) {
    let log = Log::default();
    let theirs = log.clone();
    let spawned = system.spawn_on(shard, move || S::new(theirs));
    (system.block_on(spawned).unwrap(), log)
}

fn room(urgent: bool) -> u64 {
    if urgent { 16 } else { ROOM }
}

/// Where a sender is, seen from the actor.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Here,
    Peer,
    Outside,
}

impl Way {
    const ALL: [Self; 3] = [Self::Here, Self::Peer, Self::Outside];

    /// Runs a future of a sender to an actor on shard 1.
    fn run<R: Send + 'static>(
        self,
        system: &System,
        body: impl Future<Output = R> + Send + 'static,
    ) -> R {
        match self {
            Self::Here => system.run_on(1, move || body),
            Self::Peer => system.run_on(0, move || body),
            Self::Outside => system.block_on(body),
        }
    }
}

/// Runs what begins by sending while the actor waits for a gate, which opens when it has arrived.
async fn while_busy<S: Subject, R>(
    to: Addr<S>,
    system: &Handle,
    sends: impl Future<Output = R>,
) -> R {
    let (open, gate) = oneshot::channel();
    S::wait(to, gate).await;
    settle(system, 1).await;
    let opened = async {
        settle(system, 1).await;
        settle(system, 1).await;
        open.send(()).unwrap();
    };
    join(sends, opened).await.0
}

fn check_asks<S: Subject>(system: &System, way: Way, urgent: bool) {
    let (to, log) = subject::<S>(system, 1);
    let sent = room(urgent) + BEYOND;
    let handle = system.handle().clone();
    let answers = way.run(system, async move {
        let asks = join_all((0..sent).map(|number| S::ask(to, urgent, number)));
        while_busy(to, &handle, asks).await
    });
    let is_handled = |number: &u64| S::HANDLES(*number, room(urgent), sent);
    for (number, answer) in (0..sent).zip(answers) {
        match answer {
            Ok(answer) => assert!(answer == number && is_handled(&number)),
            Err(error) => {
                assert!(
                    error.is_overflowed() && !is_handled(&number),
                    "{number}: {error}"
                );
                assert_eq!(error.handler_ran(), greenroom::HandlerRan::No);
                let text = error.to_string();
                assert!(
                    text.contains("was not called: the mailbox was full"),
                    "{text}"
                );
            }
        }
    }
    let handled: Vec<_> = (0..sent).filter(is_handled).collect();
    assert_eq!(*log.lock().unwrap(), handled, "{} {way:?}", S::NAME);
}

fn check_tells<S: Subject>(system: &System, way: Way, urgent: bool) {
    let (to, log) = subject::<S>(system, 1);
    let sent = room(urgent) + BEYOND;
    let handle = system.handle().clone();
    let dead_before = counts(system).dead_letters;
    let told = way.run(system, async move {
        let tells = join_all((0..sent).map(|number| S::tell(to, urgent, number)));
        let told = while_busy(to, &handle, tells).await;
        Addr::stop(to);
        Addr::stopped(to).await;
        told
    });
    let is_handled = |number: &u64| S::HANDLES(*number, room(urgent), sent);
    for (number, told) in (0..sent).zip(told) {
        let expected = match way {
            Way::Here if S::REJECTS && !is_handled(&number) => Err(Some(number)),
            Way::Outside if S::REJECTS && !is_handled(&number) => Err(None),
            _ => Ok(()),
        };
        assert_eq!(told, expected, "{} {way:?} {number}", S::NAME);
    }
    let handled: Vec<_> = (0..sent).filter(is_handled).collect();
    assert_eq!(*log.lock().unwrap(), handled, "{} {way:?}", S::NAME);
    let dead = counts(system).dead_letters - dead_before;
    let is_lost = S::DROPS || S::REJECTS && way != Way::Here;
    assert_eq!(
        dead,
        if is_lost { BEYOND } else { 0 },
        "{} {way:?}",
        S::NAME
    );
}

#[test]
fn what_finds_no_room_fares_as_the_policy_says_on_every_way_and_in_both_lanes() {
    fn check<S: Subject>(system: &System) {
        for way in Way::ALL {
            for urgent in [false, true] {
                check_asks::<S>(system, way, urgent);
                check_tells::<S>(system, way, urgent);
            }
        }
    }
    on_shards(&[2], |system| {
        check::<Waits>(system);
        check::<Rejects>(system);
        check::<DropsOldest>(system);
        check::<DropsNewest>(system);
        check::<Unbounded>(system);
    });
}

#[test]
fn only_waiting_and_rejecting_actors_refuse_a_send_that_does_not_wait() {
    fn check<S: Subject>(system: &System, refuses: bool) {
        for urgent in [false, true] {
            let (to, _) = subject::<S>(system, 0);
            let handle = system.handle().clone();
            system.run_on(0, move || async move {
                let told: Vec<_> = while_busy(to, &handle, async move {
                    (0..room(urgent) + BEYOND)
                        .map(|number| S::try_tell(to, urgent, number))
                        .collect()
                })
                .await;
                for (number, told) in (0..).zip(told) {
                    let is_refused = refuses && number >= room(urgent);
                    assert_eq!(
                        told,
                        if is_refused {
                            Err(Some(number))
                        } else {
                            Ok(())
                        }
                    );
                }
            });
        }
    }
    on_shards(&[2], |system| {
        check::<Waits>(system, true);
        check::<Rejects>(system, true);
        check::<DropsOldest>(system, false);
        check::<DropsNewest>(system, false);
        check::<Unbounded>(system, false);
    });
}

#[test]
fn a_shard_that_knows_a_rejecting_mailbox_to_be_full_refuses_at_once_until_there_is_room() {
    on_shards(&[2], |system| {
        let (to, log) = subject::<Rejects>(system, 1);
        let handle = system.handle().clone();
        system.run_on(0, move || async move {
            let (open, gate) = oneshot::channel();
            to.wait(gate).tell().await.unwrap();
            settle(&handle, 1).await;
            for number in 0..ROOM {
                Rejects::tell(to, false, number).await.unwrap();
            }
            settle(&handle, 1).await;
            assert_eq!(Rejects::try_tell(to, false, 10).unwrap_err(), Some(10));
            assert_eq!(Rejects::tell(to, false, 11).await.unwrap_err(), Some(11));
            let refused = Rejects::ask(to, false, 12).await.unwrap_err();
            assert!(refused.is_overflowed());
            open.send(()).unwrap();
            while Rejects::tell(to, false, ROOM).await.is_err() {
                settle(&handle, 1).await;
            }
            assert_eq!(Rejects::ask(to, false, 6).await.unwrap(), 6);
        });
        assert_eq!(*log.lock().unwrap(), [0, 1, 2, 3, 4, 6]);
        assert_eq!(counts(system).dead_letters, 0, "refused is not dropped");
    });
}

/// Something whose drop sends, to an actor that may have no room.
struct Echoing {
    to: Option<Addr<Echo>>,
    refused: Arc<AtomicUsize>,
}

impl Drop for Echoing {
    fn drop(&mut self) {
        if let Some(to) = self.to.take() {
            let echo = Self {
                to: Some(to),
                refused: self.refused.clone(),
            };
            if let Err(error) = to.take(echo).try_tell() {
                self.refused.fetch_add(1, Ordering::Relaxed);
                // What comes back is no echo any more.
                error.into_args().unwrap().0.to = None;
            }
        }
    }
}

#[derive(Default)]
struct Echo {
    taken: usize,
}

#[actor(mailbox = 2, overflow = drop_oldest)]
impl Echo {
    pub(crate) fn take(&mut self, mut echoing: Echoing) {
        echoing.to = None;
        self.taken += 1;
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken
    }
}

#[test]
fn a_dropped_message_that_sends_another_one_does_not_do_so_for_ever() {
    on_shards(&[1], |system| {
        let refused = Arc::new(AtomicUsize::new(0));
        let theirs = refused.clone();
        let taken = system.run_on(0, move || async move {
            let echo = greenroom::spawn(Echo::default());
            for _ in 0..5 {
                let echoing = Echoing {
                    to: Some(echo),
                    refused: theirs.clone(),
                };
                echo.take(echoing).try_tell().unwrap();
            }
            echo.taken().urgent().await.unwrap();
            echo.taken().await.unwrap()
        });
        assert_eq!((taken, refused.load(Ordering::Relaxed)), (2, 3));
    });
}
