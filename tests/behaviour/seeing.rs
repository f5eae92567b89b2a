//! What a system tells about its actors.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures_channel::oneshot;
use greenroom::LifeState;
use greenroom::observe::{ActorActivity, ActorSnapshot, DeadLetter, DeadLetterReason, Snapshot};
use greenroom::prelude::*;
use greenroom_tests::{block_shard, bounded, bounded_wait, counts, hear, last_shard, on_shards};

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
        });
        let busy = loop {
            let found = the_guest(&system.snapshot());
            if found.lanes[0].queued == 2
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
        assert!(text.contains("2 normal, 2 errands"), "{text}");

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
