//! Sections that block their shard, and say so.

use std::panic::catch_unwind;
use std::sync::mpsc;
use std::time::Duration;

use greenroom_runtime::task::{consume_budget, has_budget_remaining};
use greenroom_runtime::{Builder, Handle, ShardMetrics, blocking, mesh};

#[test]
fn a_section_that_blocks_its_shard_is_seen_from_outside_and_only_while_it_lasts() {
    let (stalls, report) = mpsc::channel();
    let runtime = Builder::new()
        .shards(1)
        .watchdog(Duration::from_millis(5))
        .on_stall(move |stall| {
            // Nobody listens once the test has what it wanted.
            stalls.send((stall.is_announced, stall.to_string())).ok();
        })
        .start()
        .unwrap();
    let text = runtime.run_on(0, || async move {
        blocking::shard_blocking(|| {
            // A busy machine may have held the shard up before, which is another report.
            for _ in 0..1000 {
                let (announced, text) = report.recv_timeout(Duration::from_secs(60)).unwrap();
                if announced {
                    return text;
                }
            }
            panic!("the section was not announced");
        })
    });
    assert!(text.contains("says it blocks"), "{text}");
    let metrics = runtime.run_on(0, || async { ShardMetrics::current().unwrap() });
    assert_eq!(metrics.blocking_sections, 1);
    assert!(metrics.blocked_ns >= 5_000_000, "{}", metrics.blocked_ns);
}

#[test]
fn a_blocking_section_has_no_budget_and_gives_back_what_there_was_also_after_a_panic() {
    let runtime = Builder::new().shards(1).start().unwrap();
    runtime.run_on(0, || async {
        while has_budget_remaining() {
            consume_budget().await;
            if !has_budget_remaining() {
                break;
            }
        }
        let panicked = catch_unwind(|| {
            blocking::shard_blocking(|| {
                assert!(has_budget_remaining(), "nothing counts in here");
                // Inside of another one it is only a call.
                blocking::shard_blocking(|| ());
                assert!(has_budget_remaining());
                panic!("on purpose");
            })
        });
        assert!(panicked.is_err());
        assert!(!has_budget_remaining(), "what was spent stays spent");
    });
    let sections = runtime.run_on(0, || async {
        blocking::shard_blocking(|| ());
        ShardMetrics::current().unwrap().blocking_sections
    });
    assert_eq!(sections, 2);
}

#[test]
fn what_was_sent_before_a_blocking_section_arrives_while_it_lasts() {
    let runtime = Builder::new().shards(2).start().unwrap();
    runtime.run_on(0, || async {
        let (heard, hears) = mpsc::channel();
        let (keys, key) = futures_channel::oneshot::channel();
        let handle = Handle::current().unwrap();
        // The answer is a record in the ring between the shards, which a turn publishes at its end.
        let waiting = handle.spawn_on(1, move || async move {
            let (slot, key) = mesh::open::<u32>(mesh::Due::NEVER).unwrap();
            keys.send(key).unwrap();
            heard.send(slot.await).unwrap();
        });
        key.await.unwrap().send(7);
        let answer = blocking::shard_blocking(|| hears.recv_timeout(Duration::from_secs(60)));
        assert_eq!(answer, Ok(Ok(7)));
        waiting.await.unwrap();
    });
}

#[test]
fn a_blocking_section_on_a_thread_that_is_no_shard_is_a_call() {
    assert_eq!(blocking::shard_blocking(|| 6 * 7), 42);
}
