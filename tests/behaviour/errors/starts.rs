//! Errors of what is to start, and of names.

use std::sync::mpsc;
use std::time::Duration;

use futures_channel::oneshot;
use greenroom::prelude::*;
use greenroom::{Builder, ExitReason, SpawnError};
use greenroom_tests::{Ledger, bounded, hear, last_shard, on_shards, start};

use super::ALL;

/// Starts in many ways.
enum Starter {
    Well,
    Refuses,
    Panics,
    /// Says who it is, and waits for ever.
    Waits(mpsc::Sender<Addr<Starter>>),
}

#[actor]
impl Starter {
    #[on(started)]
    async fn started(&mut self, ctx: &mut Ctx<Self>) -> Result<(), &'static str> {
        match self {
            Self::Well => Ok(()),
            Self::Refuses => Err("no licence"),
            Self::Panics => panic!("no engine"),
            Self::Waits(tell) => {
                tell.send(ctx.addr()).ok();
                std::future::pending().await
            }
        }
    }

    /// Has a child, but not before the gate opens.
    pub(crate) fn expect_child(
        &mut self,
        gate: oneshot::Receiver<()>,
        born: mpsc::Sender<String>,
        ctx: &mut Ctx<Self>,
    ) {
        let child = ctx.spawn_child(|| Starter::Well).into_future();
        greenroom::runtime::spawn(async move {
            gate.await.ok();
            born.send(child.await.unwrap_err().to_string()).ok();
        })
        .detach();
    }
}

#[track_caller]
fn check(outcome: Result<Addr<Starter>, SpawnError>, shard: u16, says: &str) {
    let error = outcome.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("Starter did not start on shard {shard}: {says}")
    );
    assert_eq!(format!("{error:?}"), error.to_string());
}

#[test]
fn a_spawn_where_there_is_no_shard() {
    on_shards(&[1], |system| {
        let spawned = system.block_on(system.spawn_on(3, || Starter::Well));
        assert!(spawned.as_ref().unwrap_err().is_no_shard());
        check(spawned, 3, "the system has 1 shards, counted from 0");
    });
}

#[test]
fn a_spawn_in_a_system_that_ends() {
    for shards in ALL {
        bounded("the spawn", || {
            let system = start(*shards);
            let (handle, shard) = (system.handle().clone(), last_shard(&system));
            drop(system);
            let late = handle.spawn_on(shard, || Starter::Well);
            let late = greenroom::runtime::block_on(late);
            assert!(late.as_ref().unwrap_err().is_no_shard());
            check(late, shard, "the system is shutting down");
        });
    }
}

#[test]
fn a_spawn_whose_hook_refuses_or_panics() {
    on_shards(ALL, |system| {
        let shard = last_shard(system);
        let spawned = system.block_on(system.spawn_on(shard, || Starter::Refuses));
        check(spawned, shard, "no licence");
        let spawned = system.block_on(system.spawn_on(shard, || Starter::Panics));
        let error = spawned.unwrap_err();
        assert!(error.is_panic());
        let says = format!("Starter did not start on shard {shard}: it panicked: no engine (at ");
        assert!(error.to_string().starts_with(&says), "{error}");
    });
}

#[test]
fn a_spawn_under_a_name_that_is_taken() {
    on_shards(ALL, |system| {
        let (names, shard) = (system.names(), last_shard(system));
        let first = system.block_on(names.spawn_on("a", 0, || Starter::Well));
        let id = Addr::actor_id(first.unwrap());
        let second = system.block_on(names.spawn_on("a", shard, || Starter::Well));
        assert!(second.as_ref().unwrap_err().is_name_taken());
        let says =
            format!("Starter cannot be named \"a\": the name is held by Starter {id} on shard 0");
        check(second, shard, &says);
    });
}

#[test]
fn a_spawn_that_is_cut_off() {
    on_shards(ALL, |system| {
        let shard = last_shard(system);
        let (tell, told) = mpsc::channel();
        let spawned = system.spawn_on(shard, move || Starter::Waits(tell));
        Addr::kill(hear(&told));
        check(
            system.block_on(spawned),
            shard,
            &ExitReason::Killed.to_string(),
        );
    });
}

#[test]
fn a_spawn_of_a_child_whose_parent_is_gone() {
    on_shards(ALL, |system| {
        let shard = last_shard(system);
        let parent = system.block_on(system.spawn_on(shard, || Starter::Well));
        let parent = parent.unwrap();
        let (open, gate) = oneshot::channel();
        let (born, is_born) = mpsc::channel();
        let expects = parent.expect_child(gate, born).into_future();
        system.block_on(expects).unwrap();
        Addr::stop(parent);
        system.block_on(Addr::stopped(parent));
        drop(open);
        assert_eq!(
            hear(&is_born),
            format!("Starter did not start on shard {shard}: its parent has ended")
        );
    });
}

#[test]
fn a_registration_that_fails() {
    on_shards(ALL, |system| {
        let (names, shard) = (system.names(), last_shard(system));
        let spawn = || {
            let spawned = system.spawn_on(shard, || Starter::Well);
            system.block_on(spawned).unwrap()
        };
        let (first, second) = (spawn(), spawn());
        system.block_on(names.register("a", first)).unwrap();
        let error = system.block_on(names.register("a", second)).unwrap_err();
        assert!(error.is_taken() && error.name() == "a");
        let id = Addr::actor_id(first);
        assert_eq!(
            error.to_string(),
            format!(
                "Starter cannot be named \"a\": the name is held by Starter {id} on shard {shard}"
            )
        );
        assert_eq!(error.holder().unwrap().shard(), shard.into());
        Addr::stop(second);
        system.block_on(Addr::stopped(second));
        let error = system.block_on(names.register("b", second)).unwrap_err();
        assert!(error.is_stopped());
        assert_eq!(
            error.to_string(),
            "Starter cannot be named \"b\": the actor has stopped"
        );
    });
}

#[test]
fn a_lookup_that_fails() {
    on_shards(ALL, |system| {
        let (names, shard) = (system.names(), last_shard(system));
        let error = names.lookup::<Starter>("a").unwrap_err();
        assert!(error.is_not_found());
        assert_eq!(error.to_string(), "no actor is named \"a\"");
        let limit = Duration::from_millis(2);
        let error = system.block_on(names.lookup_within::<Starter>("a", limit));
        let error = error.unwrap_err();
        assert!(error.is_timeout());
        assert_eq!(error.to_string(), "no actor was named \"a\" within 2ms");

        let (entered, has_entered) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let starting = names.spawn_on("a", shard, move || {
            entered.send(()).ok();
            released.recv_timeout(greenroom_tests::PATIENCE).ok();
            Starter::Well
        });
        hear(&has_entered);
        let error = names.lookup::<Starter>("a").unwrap_err();
        assert!(error.is_not_found());
        assert_eq!(
            error.to_string(),
            "the actor named \"a\" is still being made: `lookup_within` waits for it"
        );
        drop(release);
        let id = Addr::actor_id(system.block_on(starting).unwrap());

        let error = names.lookup::<Ledger<1>>("a").unwrap_err();
        assert!(error.is_wrong_type() && error.holder().unwrap().shard() == shard.into());
        assert_eq!(
            error.to_string(),
            format!("\"a\" is not a Ledger: the name is held by Starter {id} on shard {shard}")
        );
    });
}

#[test]
fn a_system_that_cannot_be_what_it_was_told_to_be() {
    let builder = || System::builder().shards(1).pin(false);
    let cases: [(Builder, &str); 7] = [
        (
            builder().shards(0),
            "a runtime needs at least one shard; 0 were asked for",
        ),
        (
            builder().shards(1025),
            "1025 shards were asked for, but a process can have 1024 at a time; ask for fewer",
        ),
        (
            builder().runtime(|runtime| runtime.link_bytes(5000)),
            "a link of 5000 bytes was asked for; it must be a power of two from 4096 to 1073741824",
        ),
        (
            builder().runtime(|runtime| runtime.gather(Duration::from_secs(1))),
            "completions were to gather for 1s; at most 10ms is allowed, and 0 switches it off",
        ),
        (
            builder().runtime(|runtime| runtime.blocking_threads(0)),
            "a blocking pool of 0 threads was asked for; `blocking_threads` must be at least 1",
        ),
        (
            builder().runtime(|runtime| runtime.recv_buffers(3).recv_buffer_bytes(4096)),
            "3 receive buffers of 4096 bytes were asked for; their number must be a power of two from 1 to 32768, \
             their size from 64 to 1048576 bytes",
        ),
        (
            builder().runtime(|runtime| runtime.recv_buffers(4).recv_buffer_bytes(10)),
            "4 receive buffers of 10 bytes were asked for; their number must be a power of two from 1 to 32768, \
             their size from 64 to 1048576 bytes",
        ),
    ];
    for (builder, says) in cases {
        let error = builder.start().unwrap_err();
        assert!(error.is_config() && error.shard().is_none(), "{error}");
        assert_eq!(error.to_string(), says);
        assert_eq!(format!("{error:?}"), says);
    }
}

#[test]
fn a_shard_whose_hook_panics() {
    let builder = System::builder().shards(2).pin(false);
    let hooked = builder.runtime(|runtime| {
        runtime.on_shard_start(|shard| assert_ne!(shard.index(), 1, "no second shard"))
    });
    let error = hooked.start().unwrap_err();
    assert!(error.is_panic() && error.shard() == Some(1.into()));
    let text = error.to_string();
    assert!(
        text.starts_with("shard 1 did not start: it panicked: ")
            && text.contains("no second shard"),
        "{text}"
    );
}
