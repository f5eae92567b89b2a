//! What a system tells about its actors.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures_channel::oneshot;
use greenroom::LifeState;
use greenroom::observe::{
    ActorActivity, ActorSnapshot, DeadLetter, DeadLetterReason, Snapshot, WaitReason, WaitSnapshot,
};
use greenroom::prelude::*;
use greenroom_tests::{
    block_shard, bounded, bounded_wait, counts, hear, last_shard, on_shards, poll_once,
};

#[derive(Default)]
struct Guest;

#[actor(mailbox = 4)]
impl Guest {
    pub(crate) fn note(&self) {}

    pub(crate) async fn hold(&self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }

    pub(crate) fn fail(&self) {
        panic!("as it is told");
    }

    pub(crate) fn begin(&self, ctx: &mut Ctx<Self>) {
        ctx.every(Duration::from_hours(1)).note();
        ctx.spawn(std::future::pending());
    }
}

fn guest(system: &System) -> Addr<Guest> {
    let shard = last_shard(system);
    system
        .block_on(system.spawn_on(shard, Guest::default))
        .unwrap()
}

/// The only actor of this name.
fn the_only(snapshot: &Snapshot, name: &str) -> ActorSnapshot {
    let shards = snapshot.shards.iter();
    let states = shards.filter_map(|shard| shard.state.as_ref());
    let mut found = states
        .flat_map(|state| &state.actors)
        .filter(|actor| actor.actor == name);
    let only = found.next().expect("there is one").clone();
    assert!(found.next().is_none());
    only
}

fn the_guest(snapshot: &Snapshot) -> ActorSnapshot {
    the_only(snapshot, "Guest")
}

#[test]
fn a_snapshot_shows_what_each_actor_is_at() {
    on_shards(&[1, 2, 4], |system| {
        let guest = guest(system);
        system.block_on(guest.begin().into_future()).unwrap();
        // Its answer was given before it waited again.
        let idle = loop {
            let found = the_guest(&system.snapshot());
            if found.activity == ActorActivity::Idle {
                break found;
            }
        };
        assert_eq!((idle.state, idle.restarts), (LifeState::Running, 0));
        assert!(idle.handlers.is_empty());
        assert_eq!((idle.errands, idle.lanes[0].queued), (2, 0));

        let (open, gate) = oneshot::channel();
        system.block_on(async {
            guest.hold(gate).tell().await.unwrap();
            guest.note().tell().await.unwrap();
            guest.note().tell().await.unwrap();
            guest.note().urgent().tell().await.unwrap();
        });
        let busy = loop {
            let found = the_guest(&system.snapshot());
            if (found.lanes[0].queued, found.lanes[1].queued) == (2, 1)
                && found
                    .handlers
                    .iter()
                    .all(|handler| handler.age_ns.is_some())
            {
                break found;
            }
        };
        assert_eq!(busy.activity, ActorActivity::Busy);
        assert_eq!(busy.handlers[0].method, "hold");
        let text = system.snapshot().to_string();
        assert!(text.contains("in hold for "), "{text}");
        assert!(text.contains("2 normal, 1 urgent, 2 errands"), "{text}");

        Addr::stop(guest);
        while the_guest(&system.snapshot()).state == LifeState::Running {}
        drop(open);
        system.block_on(Addr::stopped(guest));
        let after = system.snapshot();
        assert!(
            after
                .shards
                .iter()
                .all(|shard| shard.state.as_ref().unwrap().actors.is_empty())
        );
    });
}

#[derive(Default)]
struct Library;

#[actor]
impl Library {
    #[message(concurrent)]
    pub(crate) async fn read(&self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }

    #[message(concurrent)]
    pub(crate) async fn browse(&self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }

    pub(crate) fn tidy(&mut self) {}
}

#[test]
fn a_snapshot_shows_every_handler_that_runs_side_by_side() {
    on_shards(&[1, 2, 4], |system| {
        let library = system
            .block_on(system.spawn_on(last_shard(system), Library::default))
            .unwrap();
        let (open, gates): (Vec<_>, Vec<_>) = (0..3).map(|_| oneshot::channel()).unzip();
        let mut gates = gates.into_iter();
        system.block_on(async {
            let mut gate = || gates.next().unwrap();
            library.read(gate()).tell().await.unwrap();
            library.browse(gate()).tell().await.unwrap();
            library.read(gate()).tell().await.unwrap();
        });
        let methods = || {
            let snapshot = system.snapshot();
            let library = the_only(&snapshot, "Library");
            let waiting = library.handlers.iter();
            let mut methods: Vec<_> = waiting
                .filter(|handler| handler.age_ns.is_some())
                .map(|handler| handler.method)
                .collect();
            methods.sort_unstable();
            methods
        };
        bounded_wait(|| methods() == ["browse", "read", "read"]);
        let mut open = open.into_iter();
        // One that has ended is not shown any more, though the others go on.
        drop(open.next());
        bounded_wait(|| methods() == ["browse", "read"]);
        drop(open);
        system.block_on(library.tidy().into_future()).unwrap();
        bounded_wait(|| methods().is_empty());
    });
}

/// Calls guests and waits.
struct Host {
    guest: Addr<Guest>,
    other: Addr<Guest>,
}

type Gate = oneshot::Receiver<()>;

#[actor]
impl Host {
    pub(crate) async fn receive(&mut self, gate: Gate) {
        self.guest.hold(gate).await.ok();
    }

    pub(crate) async fn receive_both(&mut self, first: Gate, second: Gate) {
        let (guest, other) = (self.guest.hold(first), self.other.hold(second));
        futures_util::join!(guest.into_future(), other.into_future())
            .0
            .ok();
    }

    /// Until there is no room, and then until there is.
    pub(crate) async fn crowd(&mut self, times: usize) {
        for _ in 0..times {
            self.guest.note().tell().await.unwrap();
        }
    }

    pub(crate) async fn think(&self, gate: Gate) {
        gate.await.ok();
    }

    #[message(concurrent)]
    pub(crate) async fn accompany(&self, gate: Gate) {
        self.guest.hold(gate).await.ok();
    }

    #[message(concurrent)]
    pub(crate) async fn stand_by(&self, gate: Gate) {
        gate.await.ok();
    }
}

/// Calls a guest by its key, as soon as it starts.
struct Caller;

#[actor]
impl Caller {
    #[on(started)]
    async fn started(&mut self, ctx: &mut Ctx<Self>) {
        let guests = ctx.system().keyed(|_: &u32| Guest).start().await.unwrap();
        let (_open, gate) = oneshot::channel();
        guests.at(&7).hold(gate).await.ok();
    }
}

/// A host on the first shard and two guests on the last.
fn hosted(system: &System) -> (Addr<Host>, Addr<Guest>, Addr<Guest>) {
    let (guest, other) = (guest(system), guest(system));
    let host = system
        .block_on(system.spawn_on(0, move || Host { guest, other }))
        .unwrap();
    (host, guest, other)
}

fn gates<const N: usize>() -> ([oneshot::Sender<()>; N], [Gate; N]) {
    let mut gates = Vec::new();
    let open = std::array::from_fn(|_| {
        let (open, gate) = oneshot::channel();
        gates.push(gate);
        open
    });
    (open, gates.try_into().unwrap())
}

/// What the handlers of the host wait for, method by method.
fn host_waits(system: &System) -> Vec<(&'static str, Vec<WaitSnapshot>)> {
    let host = the_only(&system.snapshot(), "Host");
    let mut found: Vec<_> = host
        .handlers
        .into_iter()
        .map(|handler| (handler.method, handler.waits_for))
        .collect();
    found.sort_by_key(|(method, _)| *method);
    found
}

fn is_for(wait: &WaitSnapshot, guest: Addr<Guest>, method: &str, reason: WaitReason) -> bool {
    (wait.actor, wait.method, wait.reason) == ("Guest", method, reason)
        && wait.id == Some(Addr::actor_id(guest))
}

#[test]
fn a_snapshot_shows_whose_answer_a_handler_waits_for() {
    on_shards(&[1, 2, 4], |system| {
        let (host, guest, other) = hosted(system);
        let ([first, second, third], [a, b, c]) = gates();
        system.block_on(host.receive(a).tell()).unwrap();
        bounded_wait(|| {
            let waits = host_waits(system);
            matches!(&*waits, [("receive", waits)] if matches!(&**waits, [wait]
                if is_for(wait, guest, "hold", WaitReason::Answer)
                    && wait.shard == system.shards().last()))
        });
        let text = system.snapshot().to_string();
        let id = Addr::actor_id(guest);
        assert!(
            text.contains(&format!("(waits for Guest::hold of {id})")),
            "{text}"
        );

        // What it has got is not waited for; of two calls at a time both are.
        drop(first);
        system.block_on(host.receive_both(b, c).tell()).unwrap();
        bounded_wait(|| {
            let waits = host_waits(system);
            matches!(&*waits, [("receive_both", waits)] if matches!(&**waits, [one, two]
                if is_for(one, guest, "hold", WaitReason::Answer)
                    && is_for(two, other, "hold", WaitReason::Answer)))
        });
        drop(second);
        bounded_wait(|| {
            let waits = host_waits(system);
            matches!(&*waits, [("receive_both", waits)] if matches!(&**waits, [wait]
                if is_for(wait, other, "hold", WaitReason::Answer)))
        });
        drop(third);

        // What is no call is not shown.
        let ([open], [gate]) = gates();
        system.block_on(host.think(gate).tell()).unwrap();
        bounded_wait(|| host_waits(system) == [("think", vec![])]);
        drop(open);
        bounded_wait(|| host_waits(system).is_empty());
    });
}

#[test]
fn a_snapshot_shows_in_whose_mailbox_a_handler_waits_for_room() {
    on_shards(&[1, 2, 4], |system| {
        let (host, guest, _) = hosted(system);
        let ([open], [gate]) = gates();
        system.block_on(guest.hold(gate).tell()).unwrap();
        system.block_on(host.crowd(2000).tell()).unwrap();
        bounded_wait(|| {
            let waits = host_waits(system);
            matches!(&*waits, [("crowd", waits)] if matches!(&**waits, [wait]
                if is_for(wait, guest, "note", WaitReason::Room)))
        });
        let text = system.snapshot().to_string();
        assert!(
            text.contains("(waits for room for Guest::note of "),
            "{text}"
        );
        drop(open);
        bounded_wait(|| host_waits(system).is_empty());
    });
}

#[test]
fn a_snapshot_shows_that_a_start_hook_waits_and_that_an_actor_was_called_by_its_key() {
    on_shards(&[1, 2, 4], |system| {
        let mut start = Box::pin(system.spawn_on(last_shard(system), || Caller));
        assert!(poll_once(&mut start).is_pending());
        bounded_wait(|| {
            let snapshot = system.snapshot();
            let mut callers = snapshot.actors().filter(|actor| actor.actor == "Caller");
            callers.next().is_some_and(|caller| {
                let handler = caller.handlers.first();
                caller.state == LifeState::Starting
                    && handler.is_some_and(|handler| {
                        let wait = handler.waits_for.first();
                        handler.method == "#[on(started)]"
                            && wait.is_some_and(|wait| {
                                (wait.actor, wait.method, wait.id) == ("Guest", "hold", None)
                            })
                    })
            })
        });
    });
}

#[test]
fn a_snapshot_shows_what_each_of_several_handlers_waits_for() {
    on_shards(&[1, 2, 4], |system| {
        let (host, guest, _) = hosted(system);
        let ([first, second, third], [a, b, c]) = gates();
        system.block_on(async {
            host.stand_by(a).tell().await.unwrap();
            host.accompany(b).tell().await.unwrap();
            host.accompany(c).tell().await.unwrap();
        });
        let waits_for_guest = |waits: &[WaitSnapshot]| {
            matches!(waits, [wait]
                if is_for(wait, guest, "hold", WaitReason::Answer))
        };
        bounded_wait(|| {
            let waits = host_waits(system);
            matches!(&*waits, [("accompany", one), ("accompany", two), ("stand_by", none)]
                if waits_for_guest(one) && waits_for_guest(two) && none.is_empty())
        });
        drop(second);
        bounded_wait(|| {
            let waits = host_waits(system);
            matches!(&*waits, [("accompany", one), ("stand_by", none)]
                if waits_for_guest(one) && none.is_empty())
        });
        drop((first, third));
        bounded_wait(|| host_waits(system).is_empty());
    });
}

#[test]
fn a_stuck_shard_is_named_and_the_others_answer() {
    bounded("the snapshot of a stuck shard", || {
        let system = System::builder()
            .shards(2)
            .pin(false)
            .runtime(|runtime| runtime.watchdog(Duration::from_secs(1000)))
            .start()
            .unwrap();
        let release = block_shard(&system, 0);
        let snapshot = system.snapshot();
        assert!(snapshot.shards[0].state.is_none());
        assert!(snapshot.shards[0].stuck_in.is_some());
        assert!(snapshot.shards[1].state.is_some());
        assert!(
            snapshot
                .to_string()
                .contains("shard 0: does not answer; it is in task")
        );
        drop(release);
        // From a shard, without blocking it.
        let handle = system.handle().clone();
        let snapshot = system.run_on(1, move || async move { handle.snapshot().await });
        assert!(snapshot.shards[1].state.is_some());
    });
}

type Heard = Arc<Mutex<Vec<DeadLetter>>>;

/// A system with a hook that notes, and then panics.
fn listening(shards: usize) -> (System, Heard) {
    let heard = Heard::default();
    let notes = heard.clone();
    let system = System::builder()
        .shards(shards)
        .pin(false)
        .on_dead_letter(move |letter| {
            notes.lock().unwrap().push(letter.clone());
            panic!("in the hook");
        })
        .start()
        .unwrap();
    (system, heard)
}

#[test]
fn each_dead_letter_is_heard_of_with_its_reason() {
    for shards in [1, 2] {
        bounded("hearing of dead letters", move || {
            let (system, heard) = listening(shards);
            let heard = || std::mem::take(&mut *heard.lock().unwrap());
            let expected = |method, reason| {
                let shard = Some(system.shards().last().unwrap());
                let letters = heard();
                assert_eq!(letters.len(), 1, "{letters:?}");
                let letter = &letters[0];
                assert_eq!((letter.actor, letter.method), ("Guest", method));
                assert_eq!((letter.shard, letter.reason), (shard, reason));
                let text = letter.to_string();
                assert!(
                    text.starts_with(&format!("Guest::{method} on shard ")),
                    "{text}"
                );
            };

            let killed = guest(&system);
            let (open, gate) = oneshot::channel();
            system.block_on(killed.hold(gate).tell()).unwrap();
            system.block_on(killed.note().tell()).unwrap();
            Addr::kill(killed);
            system.block_on(Addr::stopped(killed));
            drop(open);
            expected("note", DeadLetterReason::Killed);

            assert!(system.block_on(killed.note().into_future()).is_err());
            expected("note", DeadLetterReason::Late);

            let failing = guest(&system);
            let (open, gate) = oneshot::channel();
            system.block_on(async {
                failing.hold(gate).tell().await.unwrap();
                failing.fail().tell().await.unwrap();
                failing.note().tell().await.unwrap();
            });
            open.send(()).unwrap();
            system.block_on(Addr::stopped(failing));
            expected("note", DeadLetterReason::Failed);

            assert_eq!(counts(&system).dead_letters, 3);
        });
    }
}

#[derive(Default)]
struct Picky;

#[actor(mailbox = 2, overflow = drop_oldest)]
impl Picky {
    pub(crate) fn note(&self, _number: u32) {}

    pub(crate) async fn hold(&self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }
}

#[test]
fn messages_that_overflow_are_dead_letters_too() {
    for shards in [1, 2] {
        bounded("hearing of an overflow", move || {
            let (system, heard) = listening(shards);
            let shard = last_shard(&system);
            let picky = system
                .block_on(system.spawn_on(shard, Picky::default))
                .unwrap();
            let (open, gate) = oneshot::channel();
            system.block_on(picky.hold(gate).tell()).unwrap();
            // Its handler has begun, and holds no place.
            bounded_wait(|| !the_only(&system.snapshot(), "Picky").handlers.is_empty());
            // From the first shard, which is another one if there are two.
            system.run_on(0, move || async move {
                for number in 0..5 {
                    picky.note(number).tell().await.unwrap();
                }
            });
            let letters = || heard.lock().unwrap().clone();
            bounded_wait(|| letters().len() == 3);
            for letter in letters() {
                assert_eq!((letter.actor, letter.method), ("Picky", "note"));
                assert_eq!(letter.reason, DeadLetterReason::Overflow);
                assert_eq!(letter.shard.map(|shard| shard.index()), Some(shard.into()));
            }
            drop(open);
        });
    }
}

#[test]
fn a_hook_may_do_what_tasks_may() {
    bounded("a hook that sends", || {
        let (told, tell) = mpsc::channel();
        let system = System::builder()
            .shards(1)
            .pin(false)
            .on_dead_letter(move |letter| {
                let told = told.clone();
                let text = letter.to_string();
                greenroom::runtime::spawn(async move {
                    told.send(text).unwrap();
                })
                .detach();
            })
            .start()
            .unwrap();
        let guest = guest(&system);
        Addr::kill(guest);
        assert!(system.block_on(guest.note().into_future()).is_err());
        let text = hear(&tell);
        assert_eq!(
            text,
            "Guest::note on shard 0 was not handled: it came after the end of the actor"
        );
    });
}
