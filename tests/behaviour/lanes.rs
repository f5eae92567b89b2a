//! Urgent messages go first, in a lane of their own with an order and a bound of its own.

use std::sync::mpsc;

use futures_channel::oneshot;
use futures_util::future::join_all;
use futures_util::join;
use greenroom::Handle;
use greenroom::prelude::*;
use greenroom_tests::{
    Homely, Ledger, bounded, counts, hear, last_shard, ledger, on_shards, poll_once, settle, start,
};

/// Runs a future where it says: on each shard in turn, and outside of the system.
fn from_everywhere<F: Future<Output = ()> + Send + 'static>(
    system: &System,
    mut body: impl FnMut() -> F,
) {
    for shard in system.shards() {
        let body = body();
        system.run_on(shard, move || body);
    }
    system.block_on(body());
}

/// Sends urgent and other messages to an actor that is busy meanwhile, in three ways.
async fn send_to_busy(to: Addr<Ledger<16>>, system: Handle, shard: u16) {
    let (open, gate) = oneshot::channel();
    to.wait(gate).tell().await.unwrap();
    settle(&system, shard).await;
    for number in 0..3 {
        to.note(0, number).tell().await.unwrap();
        to.note(1, 10 * number).urgent().tell().await.unwrap();
        to.note(1, 10 * number + 1).urgent().try_tell().unwrap();
    }
    let mut asked = to.note(1, 30).urgent().into_future();
    assert!(poll_once(&mut asked).is_pending());
    let mut asked_slowly = to.note_slowly(1, 31).urgent().into_future();
    assert!(poll_once(&mut asked_slowly).is_pending());
    settle(&system, shard).await;
    open.send(()).unwrap();
    assert_eq!(asked.await.unwrap(), 30);
    assert_eq!(asked_slowly.await.unwrap(), 31);
}

#[test]
fn urgent_messages_pass_the_others_and_keep_their_own_order_on_every_way() {
    on_shards(&[1, 2], |system| {
        let shard = last_shard(system);
        from_everywhere(system, || {
            let to: Addr<Ledger<16>> = ledger(system, shard);
            let system = system.handle().clone();
            async move {
                send_to_busy(to, system, shard).await;
                let urgent = [0, 1, 10, 11, 20, 21, 30, 31].map(|number| (1, number));
                let normal = [0, 1, 2].map(|number| (0, number));
                assert_eq!(to.seen().await.unwrap(), [&urgent[..], &normal].concat());
            }
        });
    });
}

/// What it notes without being told to is urgent.
#[derive(Default)]
struct Alarms {
    seen: Vec<&'static str>,
}

#[actor]
impl Alarms {
    #[message(urgent)]
    pub(crate) fn alarm(&mut self) {
        self.seen.push("alarm");
    }

    #[message(local, urgent)]
    pub(crate) fn near_alarm(&mut self) {
        self.seen.push("near alarm");
    }

    pub(crate) fn work(&mut self) {
        self.seen.push("work");
    }

    pub(crate) fn seen(&self) -> Vec<&'static str> {
        self.seen.clone()
    }
}

#[test]
fn a_message_that_is_declared_urgent_is_so_in_every_call() {
    on_shards(&[1], |system| {
        let seen = system.run_on(0, || async {
            let alarms = greenroom::spawn(Alarms::default());
            alarms.work().tell().await.unwrap();
            alarms.alarm().tell().await.unwrap();
            let local = Addr::local(alarms).unwrap();
            local.near_alarm().try_tell().unwrap();
            alarms.seen().await.unwrap()
        });
        assert_eq!(seen, ["alarm", "near alarm", "work"]);
    });
}

struct Siren {
    seen: Vec<u32>,
}

#[actor(trait = Sounds)]
impl Siren {
    pub(crate) async fn wait(&mut self, gate: oneshot::Receiver<()>) {
        gate.await.unwrap();
    }

    pub(crate) fn sound(&mut self, number: u32) -> u32 {
        self.seen.push(number);
        number
    }

    pub(crate) fn heard(&self) -> Vec<u32> {
        self.seen.clone()
    }
}

#[test]
fn a_call_through_a_trait_is_urgent_in_each_way_it_is_made() {
    on_shards(&[1, 2], |system| {
        let shard = last_shard(system);
        let siren = system
            .block_on(system.spawn_on(shard, || Siren { seen: Vec::new() }))
            .unwrap();
        let handle = system.handle().clone();
        let heard = system.run_on(0, move || async move {
            let sounds: &dyn Sounds = &*siren;
            let (open, gate) = oneshot::channel();
            sounds.wait(gate).tell().await.unwrap();
            settle(&handle, shard).await;
            sounds.sound(0).tell().await.unwrap();
            sounds.sound(1).urgent().tell().await.unwrap();
            sounds.sound(2).urgent().try_tell().unwrap();
            let mut asked = sounds.sound(3).urgent().into_future();
            assert!(poll_once(&mut asked).is_pending());
            let mut limited = sounds.sound(4).urgent().no_timeout();
            assert!(poll_once(&mut limited).is_pending());
            settle(&handle, shard).await;
            open.send(()).unwrap();
            assert_eq!((asked.await.unwrap(), limited.await.unwrap()), (3, 4));
            siren.heard().await.unwrap()
        });
        assert_eq!(heard, [1, 2, 3, 4, 0]);
    });
}

#[test]
fn an_actor_has_room_for_sixteen_urgent_messages_whatever_else_waits() {
    on_shards(&[1, 2], |system| {
        let to: Addr<Ledger<1>> = ledger(system, 0);
        let handle = system.handle().clone();
        let (open, gate) = oneshot::channel();
        let taken = system.run_on(0, move || async move {
            to.wait(gate).tell().await.unwrap();
            settle(&handle, 0).await;
            to.note(0, 0).tell().await.unwrap();
            assert!(to.note(0, 1).try_tell().unwrap_err().is_full());
            let taken = (0..)
                .take_while(|number| to.note(1, *number).urgent().try_tell().is_ok())
                .count();
            assert!(poll_once(&mut to.note(1, 0).urgent().tell()).is_pending());
            taken
        });
        assert_eq!(taken, 16);
        open.send(()).unwrap();
        let seen = system.block_on(to.seen().into_future()).unwrap();
        assert_eq!(seen.len(), 17);
        assert_eq!(seen[16], (0, 0), "after all that was urgent");
    });
}

/// Makes an actor on shard 1 wait for what is returned.
async fn keep_busy(to: Addr<Ledger<1>>, system: &Handle) -> oneshot::Sender<()> {
    let (open, gate) = oneshot::channel();
    to.wait(gate).tell().await.unwrap();
    settle(system, 1).await;
    open
}

/// Sends to an actor on shard 1 until it wants a pause; returns how many messages that took.
async fn fill<E>(system: &Handle, mut send: impl FnMut(u64) -> Result<(), E>) -> u64 {
    let mut sent = 0;
    while send(sent).is_ok() {
        sent += 1;
        settle(system, 1).await;
    }
    sent
}

#[test]
fn a_lane_that_is_choked_does_not_hold_the_other_one_back() {
    on_shards(&[2], |system| {
        let to: Addr<Ledger<1>> = ledger(system, 1);
        let handle = system.handle().clone();
        let (seen, normal) = system.run_on(0, move || async move {
            let open = keep_busy(to, &handle).await;
            let mut normal = fill(&handle, |number| to.note(0, number).try_tell()).await;
            let mut waits = to.note(0, normal).tell();
            assert!(poll_once(&mut waits).is_pending());
            to.note(1, 100).urgent().try_tell().unwrap();
            open.send(()).unwrap();
            waits.await.unwrap();
            normal += 1;
            let open = keep_busy(to, &handle).await;
            fill(&handle, |number| to.note(1, number).urgent().try_tell()).await;
            to.note(0, normal).tell().await.unwrap();
            open.send(()).unwrap();
            (to.seen().await.unwrap(), normal + 1)
        });
        let of = |sender| seen.iter().filter(move |(from, _)| *from == sender);
        assert!(of(0).map(|(_, number)| *number).eq(0..normal));
        assert!(of(1).count() > 16);
    });
}

/// Every shard to an actor on every shard, with room for one message, in both lanes at once.
#[test]
fn lanes_keep_their_order_between_all_shards_through_mailboxes_of_one_place() {
    const EACH: u64 = 200;
    on_shards(&[1, 2, 4], |system| {
        let ledgers: Vec<Addr<Ledger<1>>> = system
            .shards()
            .map(|shard| ledger(system, shard.index().try_into().unwrap()))
            .collect();
        let senders: Vec<_> = (0_u32..)
            .zip(system.shards())
            .flat_map(|(sender, shard)| {
                let ledgers = ledgers.clone();
                [false, true].map(move |urgent| {
                    let ledgers = ledgers.clone();
                    system.runtime().spawn_on(shard, move || async move {
                        let sender = 2 * sender + u32::from(urgent);
                        for number in 0..EACH {
                            for to in &ledgers {
                                let note = to.note(sender, number);
                                match (urgent, number % 3 == 0) {
                                    (true, true) => drop(note.urgent().await.unwrap()),
                                    (true, false) => note.urgent().tell().await.unwrap(),
                                    (false, true) => drop(note.await.unwrap()),
                                    (false, false) => note.tell().await.unwrap(),
                                }
                            }
                        }
                    })
                })
            })
            .collect();
        for sender in senders {
            system.block_on(sender).unwrap();
        }
        for to in ledgers {
            // Every sender's last message is handled when it has an answer, or before the next one from its shard.
            for shard in system.shards() {
                system.run_on(shard, move || async move {
                    to.seen().urgent().await.unwrap();
                    to.seen().await.unwrap();
                });
            }
            let seen = system.block_on(to.seen().into_future()).unwrap();
            for sender in 0..2 * u32::try_from(system.shard_count()).unwrap() {
                let numbers = seen.iter().filter(|(from, _)| *from == sender);
                assert!(numbers.map(|(_, number)| *number).eq(0..EACH));
            }
        }
    });
}

#[test]
fn a_stop_that_comes_while_a_handler_waits_refuses_senders_at_once_and_handles_both_lanes() {
    on_shards(&[1, 2], |system| {
        let to: Addr<Ledger<4>> = ledger(system, 0);
        let handle = system.handle().clone();
        system.run_on(last_shard(system), move || async move {
            let (open, gate) = oneshot::channel();
            to.wait(gate).tell().await.unwrap();
            let mut normal = to.note(0, 0).into_future();
            assert!(poll_once(&mut normal).is_pending());
            let mut urgent = to.note(1, 0).urgent().into_future();
            assert!(poll_once(&mut urgent).is_pending());
            Addr::stop(to);
            Addr::stop(to);
            settle(&handle, 0).await;
            assert!(to.note(0, 1).await.unwrap_err().is_stopped());
            assert!(to.note(0, 1).urgent().await.unwrap_err().is_stopped());
            open.send(()).unwrap();
            assert_eq!((normal.await.unwrap(), urgent.await.unwrap()), (0, 0));
            Addr::stopped(to).await;
        });
    });
}

#[test]
fn a_kill_hands_back_what_waits_in_both_lanes_and_in_front_of_them() {
    on_shards(&[1, 2], |system| {
        let to: Addr<Ledger<1>> = ledger(system, 0);
        let handle = system.handle().clone();
        let answers = system.run_on(last_shard(system), move || async move {
            let (_open, gate) = oneshot::channel::<()>();
            let mut running = to.wait(gate).into_future();
            assert!(poll_once(&mut running).is_pending());
            settle(&handle, 0).await;
            let normal = join_all((0..40).map(|number| to.note(0, number).into_future()));
            let urgent = join_all((0..40).map(|number| to.note(1, number).urgent().into_future()));
            let killed = async {
                settle(&handle, 0).await;
                Addr::kill(to);
            };
            let (normal, urgent, ()) = join!(normal, urgent, killed);
            let answers: Vec<_> = normal.into_iter().chain(urgent).collect();
            assert!(matches!(running.await, Err(CallError::Killed(_))));
            answers
        });
        assert_eq!(answers.len(), 80);
        for answer in answers {
            assert!(answer.unwrap_err().is_stopped());
        }
        let dead = counts(system).dead_letters;
        if system.shard_count() == 1 {
            assert_eq!(dead, 1 + 16, "as many as had been accepted");
        } else {
            assert!((17..=80).contains(&dead), "{dead}");
        }
    });
}

/// Ends after the message it is in, when it is told to.
#[derive(Default)]
struct Ender;

#[actor]
impl Ender {
    pub(crate) async fn end(&mut self, gate: oneshot::Receiver<()>, ctx: &mut Ctx<Self>) {
        ctx.stop_now();
        gate.await.ok();
    }

    pub(crate) fn take(&mut self, homely: Homely) {
        drop(homely);
        unreachable!("nothing is handled any more");
    }
}

#[test]
fn stop_now_leaves_urgent_messages_unhandled_too_and_they_are_dropped_at_home() {
    bounded("the end", || {
        let system = start(1);
        let (dropped, drops) = mpsc::channel();
        system.run_on(0, move || async move {
            let ender = greenroom::spawn(Ender);
            let (open, gate) = oneshot::channel();
            ender.end(gate).tell().await.unwrap();
            let homely = || Homely::new(dropped.clone());
            ender.take(homely()).tell().await.unwrap();
            ender.take(homely()).urgent().tell().await.unwrap();
            let mut asked = ender.take(homely()).urgent().into_future();
            assert!(poll_once(&mut asked).is_pending());
            open.send(()).unwrap();
            assert!(asked.await.unwrap_err().is_stopped());
            Addr::stopped(ender).await;
        });
        assert!((0..3).all(|_| hear(&drops)));
        assert_eq!(counts(&system).dead_letters, 3);
    });
}
