//! Dumps and metrics: what they tell of shards that answer, and of those that do not.

use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use greenroom_runtime::net::TcpListener;
use greenroom_runtime::observe::{Dump, TaskDump, TaskState};
use greenroom_runtime::time::sleep;
use greenroom_runtime::{Builder, Handle, Runtime, offload, spawn, task, yield_now};

const LIMIT: Duration = Duration::from_secs(20);

fn runtime(shards: usize) -> Runtime {
    Builder::new().shards(shards).start().unwrap()
}

fn spawn_named(name: &'static str, future: impl Future<Output = ()> + 'static) {
    task::Builder::new().name(name).spawn(future).detach();
}

/// The task of this name, which must be there once.
fn find<'a>(dump: &'a Dump, shard: usize, name: &str) -> &'a TaskDump {
    let state = dump.shards[shard]
        .state
        .as_ref()
        .expect("the shard answers");
    let mut found = state
        .tasks
        .iter()
        .filter(|task| task.name.as_deref() == Some(name));
    let task = found
        .next()
        .unwrap_or_else(|| panic!("no {name} in:\n{dump}"));
    assert!(found.next().is_none());
    task
}

/// Holds a shard in the middle of a poll until the sender is dropped.
fn hold(runtime: &Runtime, shard: u16) -> mpsc::Sender<()> {
    let (release, released) = mpsc::channel::<()>();
    let (started, starts) = mpsc::channel();
    runtime
        .handle()
        .spawn_on(shard, move || async move {
            spawn_named("holder", async move {
                started.send(()).unwrap();
                assert!(released.recv_timeout(LIMIT).is_err(), "let go of");
            });
        })
        .detach();
    starts.recv_timeout(LIMIT).unwrap();
    release
}

#[test]
fn tasks_are_told_with_their_names_places_and_what_they_wait_for() {
    let runtime = runtime(2);
    let line = runtime.run_on(1, || async {
        spawn_named("sleeper", sleep(Duration::from_secs(1000)));
        spawn_named("accepter", async {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            drop(listener.accept().await);
        });
        let line = line!() + 1;
        spawn(std::future::pending::<()>()).detach();
        for _ in 0..3 {
            yield_now().await;
        }
        line
    });
    let dump = runtime.dump();
    assert_eq!(find(&dump, 1, "sleeper").waits_for, ["timer"]);
    assert_eq!(find(&dump, 1, "accepter").waits_for.len(), 1);
    let state = dump.shards[1].state.as_ref().unwrap();
    let place = format!("{}:{line}:", file!());
    let waiter = state
        .tasks
        .iter()
        .find(|task| task.spawned_at.starts_with(&place))
        .unwrap_or_else(|| panic!("nothing from {place} in:\n{dump}"));
    assert_eq!((waiter.state, &waiter.name), (TaskState::Waiting, &None));
    assert!(waiter.waits_for.is_empty());
    assert_eq!(state.timers, 1);
    let next_ns = state.next_timer_ns.unwrap();
    assert!((900_000_000_000..=1_001_000_000_000).contains(&next_ns));
    let text = dump.to_string();
    assert!(text.contains("\"sleeper\" waiting for timer"), "{text}");
    assert!(text.starts_with("shard 0: 0 tasks, 0 timers\n"), "{text}");
}

#[test]
fn a_task_that_always_yields_is_ready() {
    let runtime = runtime(1);
    runtime.run_on(0, || async {
        spawn_named("restless", async {
            loop {
                yield_now().await;
            }
        });
    });
    assert_eq!(find(&runtime.dump(), 0, "restless").state, TaskState::Ready);
}

#[test]
fn a_shard_that_does_not_answer_is_named_with_the_task_it_is_in() {
    let runtime = Builder::new()
        .shards(2)
        .watchdog(Duration::from_secs(1000))
        .start()
        .unwrap();
    let release = hold(&runtime, 0);
    let dump = runtime.dump();
    assert!(dump.shards[0].state.is_none());
    assert!(dump.shards[1].state.is_some());
    let stuck_in = dump.shards[0].stuck_in.as_ref().unwrap();
    assert_eq!(stuck_in.name.as_deref(), Some("holder"));
    assert!(stuck_in.spawned_at.file().ends_with("dump.rs"));
    let text = dump.to_string();
    assert!(
        text.contains("shard 0: does not answer; it is in task"),
        "{text}"
    );
    drop(release);
    assert!(runtime.dump().shards[0].state.is_some(), "it is back");
}

#[test]
fn without_a_watchdog_a_shard_that_does_not_answer_is_still_named() {
    let runtime = runtime(2);
    let release = hold(&runtime, 1);
    let dump = runtime.dump();
    assert!(dump.shards[1].state.is_none() && dump.shards[1].stuck_in.is_none());
    assert!(dump.to_string().contains("shard 1: does not answer\n"));
    let metrics = runtime.metrics();
    assert!(metrics.shards[0].numbers.is_some());
    assert!(metrics.shards[1].numbers.is_none());
    drop(release);
}

#[test]
fn a_shard_may_ask_all_shards_itself_included() {
    runtime(3).run_on(1, || async {
        let handle = Handle::current().unwrap();
        let (dump, metrics) = (handle.dump().await, handle.metrics().await);
        assert!(dump.shards.iter().all(|shard| shard.state.is_some()));
        assert!(metrics.shards.iter().all(|shard| shard.numbers.is_some()));
    });
}

#[test]
fn metrics_count_what_happened() {
    let runtime = runtime(2);
    runtime.run_on(0, || async {
        offload(|| ()).await.unwrap();
        sleep(Duration::from_millis(2)).await;
        spawn_named("sleeper", sleep(Duration::from_secs(1000)));
        yield_now().await;
    });
    let metrics = runtime.metrics();
    let [first, second] = [0, 1].map(|shard| metrics.shards[shard].numbers.as_ref().unwrap());
    assert_eq!(first.float.submitted, 1);
    assert_eq!(first.float.run + second.float.run, 1);
    assert_eq!((first.counts.tasks, first.counts.timers), (1, 1));
    assert!(first.turns.polls >= 3 && first.turns.timers_fired >= 1);
    assert_eq!(
        first.operations.values().sum::<usize>(),
        first.counts.live_operations
    );
    assert_eq!(first.backend, runtime.backend());
}

#[test]
fn a_question_of_ones_own_is_answered_by_every_shard_but_a_stuck_one_which_is_named() {
    let runtime = Builder::new()
        .shards(2)
        .pin(false)
        .watchdog(Duration::from_secs(60))
        .start()
        .unwrap();
    let hold = hold(&runtime, 1);
    let found = runtime.survey(greenroom_runtime::current_shard);
    assert_eq!(found[0].answer, Some(Some(found[0].shard)));
    assert!(found[0].stuck_in.is_none());
    assert!(found[1].answer.is_none());
    assert!(found[1].stuck_in.is_some());
    drop(hold);
    let handle = runtime.handle().clone();
    let found = runtime.run_on(0, move || async move {
        handle.survey(greenroom_runtime::current_shard).await
    });
    assert!(
        found
            .iter()
            .all(|found| found.answer == Some(Some(found.shard)))
    );
}

#[test]
fn a_runtime_that_has_ended_answers_with_nothing() {
    let runtime = runtime(2);
    let handle = runtime.handle().clone();
    runtime.shutdown();
    let mut dump = pin!(handle.dump());
    let polled = dump.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    let Poll::Ready(dump) = polled else {
        panic!("nobody is there to be waited for");
    };
    assert_eq!(dump.shards.len(), 2);
    assert!(dump.shards.iter().all(|shard| shard.state.is_none()));
}

#[test]
fn a_shard_is_told_not_to_block() {
    let runtime = runtime(1);
    let handle = std::sync::Arc::new(runtime);
    let inside = handle.clone();
    let error = handle
        .block_on(handle.handle().spawn_on(0, move || async move {
            drop(inside.dump());
        }))
        .unwrap_err();
    assert!(
        error.to_string().contains("await `Handle::dump`"),
        "{error}"
    );
}

#[cfg(feature = "json")]
#[test]
fn dumps_and_metrics_are_json() {
    let runtime = runtime(1);
    runtime.run_on(0, || async {
        spawn_named("a \"quoted\" name", std::future::pending());
    });
    let dump: serde_json::Value = serde_json::from_str(&runtime.dump().to_json()).unwrap();
    let task = &dump["shards"][0]["state"]["tasks"][0];
    assert_eq!(task["name"], "a \"quoted\" name");
    assert_eq!(dump["shards"][0]["shard"], 0);
    let metrics = serde_json::to_value(runtime.metrics()).unwrap();
    assert_eq!(metrics["shards"][0]["numbers"]["counts"]["tasks"], 1);
}
