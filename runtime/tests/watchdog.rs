//! The watchdog: which shards it reports, how often, and with what.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use greenroom_runtime::observe::Stall;
use greenroom_runtime::{Builder, ShardId, task};

const LIMIT: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(5);
/// More than a busy machine keeps a thread from running.
const LONG: Duration = Duration::from_millis(150);

/// A builder whose stalls arrive at the receiver.
fn watched(limit: Duration) -> (Builder, mpsc::Receiver<Stall>) {
    let (report, stalls) = mpsc::channel();
    let builder = Builder::new()
        .shards(2)
        .watchdog(limit)
        .on_stall(move |stall| drop(report.send(stall.clone())));
    (builder, stalls)
}

/// The next stall of a shard. A busy machine may well stall others for as long.
fn of_shard(stalls: &mpsc::Receiver<Stall>, shard: u16) -> Stall {
    std::iter::repeat_with(|| stalls.recv_timeout(LIMIT).expect("the stall is reported"))
        .find(|stall| stall.shard == ShardId::from(shard))
        .expect("an iterator without an end")
}

#[test]
fn a_stalled_shard_is_reported_with_its_task_and_thread() {
    let (builder, stalls) = watched(SHORT);
    let runtime = builder.start().unwrap();
    let line = line!() + 5;
    let (stall, id) = runtime.run_on(1, || async move {
        // It blocks its shard until it is found out.
        let culprit = task::Builder::new()
            .name("culprit")
            .spawn(async move { of_shard(&stalls, 1) });
        let id = culprit.id();
        (culprit.await.unwrap(), id)
    });
    assert_eq!(stall.shard, ShardId::from(1));
    assert!(stall.lasted >= SHORT);
    let found = stall.task.as_ref().unwrap();
    assert_eq!(found.id, id);
    assert_eq!(found.name.as_deref(), Some("culprit"));
    assert_eq!(found.spawned_at.line(), line);
    assert!(stall.thread > 0);
    assert!(stall.thread_state.is_some_and(char::is_alphabetic));
    let text = stall.to_string();
    assert!(text.starts_with("shard 1 is stalled for "), "{text}");
    assert!(text.contains("\"culprit\", spawned at "), "{text}");
}

#[test]
fn a_long_stall_is_reported_ever_more_rarely_and_sleepers_never() {
    for spin in [Duration::ZERO, LIMIT] {
        let (builder, stalls) = watched(LONG);
        let runtime = builder.spin(spin).start().unwrap();
        let found: Vec<_> = runtime.run_on(0, || async move {
            (0..3)
                .map(|_| stalls.recv_timeout(LIMIT).expect("the stall is reported"))
                .collect()
        });
        // The other shard had nothing to do all the time: it slept, or spun.
        assert!(
            found.iter().all(|stall| stall.shard.index() == 0),
            "{found:?}"
        );
        for pair in found.windows(2) {
            assert!(pair[1].lasted >= 2 * pair[0].lasted, "{pair:?}");
        }
    }
}

#[test]
fn a_stall_outside_of_tasks_names_none() {
    let (builder, stalls) = watched(SHORT);
    let runtime = builder.start().unwrap();
    let stall = runtime
        .block_on(runtime.handle().offload(move || stalls.recv_timeout(LIMIT)))
        .unwrap()
        .expect("the stall is reported");
    assert!(stall.task.is_none(), "{stall}");
    assert!(stall.to_string().contains("code that is no task"));
}

#[test]
fn a_hook_that_panics_is_called_again() {
    let (report, stalls) = mpsc::channel();
    let report = Mutex::new(report);
    let runtime = Builder::new()
        .shards(1)
        .watchdog(SHORT)
        .on_stall(move |_| {
            report
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .send(())
                .unwrap();
            panic!("in the hook");
        })
        .start()
        .unwrap();
    runtime.run_on(0, || async move {
        for _ in 0..2 {
            stalls.recv_timeout(LIMIT).expect("it is called again");
        }
    });
}

#[test]
fn the_end_of_a_runtime_ends_its_watchdog() {
    let (builder, stalls) = watched(SHORT);
    builder.start().unwrap().shutdown();
    // The hook is dropped with the thread that held it, and the builder is gone.
    assert_eq!(
        stalls.recv_timeout(LIMIT).unwrap_err(),
        mpsc::RecvTimeoutError::Disconnected
    );
}
