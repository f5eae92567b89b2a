//! No task, however busy, keeps its shard from other tasks, timers and I/O.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use greenroom_runtime::task::{consume_budget, has_budget_remaining, unconstrained};
use greenroom_runtime::time::{sleep, timeout};
use greenroom_runtime::{Builder, Runtime, spawn, yield_now};

/// More steps than any of these tests needs, so that one that would never end fails.
const STEPS_MAX: usize = 10_000_000;

fn runtime() -> Runtime {
    Builder::new().shards(1).start().unwrap()
}

/// Repeats a step until the flag is set by somebody else.
async fn until_set(flag: &Cell<bool>, mut step: impl AsyncFnMut()) {
    for _ in 0..STEPS_MAX {
        if flag.get() {
            return;
        }
        step().await;
    }
    panic!("others were starved for {STEPS_MAX} steps");
}

/// Sets the flag in a task of its own when the future is done.
fn set_after(flag: &Rc<Cell<bool>>, future: impl Future + 'static) {
    let flag = flag.clone();
    spawn(async move {
        future.await;
        flag.set(true);
    })
    .detach();
}

#[test]
fn operations_that_are_always_ready_let_a_timer_fire() {
    runtime().run_on(0, || async {
        let fired = Rc::new(Cell::new(false));
        set_after(&fired, sleep(Duration::from_millis(2)));
        until_set(&fired, consume_budget).await;
    });
}

#[test]
fn operations_that_are_always_ready_let_another_task_run() {
    runtime().run_on(0, || async {
        let ran = Rc::new(Cell::new(false));
        set_after(&ran, async {});
        let mut steps = 0;
        until_set(&ran, async || {
            steps += 1;
            consume_budget().await;
        })
        .await;
        assert!(steps <= 129, "{steps} ready operations in one activation");
    });
}

#[test]
fn a_limit_ends_a_future_that_is_never_out_of_work() {
    runtime().run_on(0, || async {
        let forever = async {
            loop {
                consume_budget().await;
            }
        };
        assert!(timeout(Duration::from_millis(2), forever).await.is_err());
    });
}

#[test]
fn the_futures_of_a_task_share_its_budget() {
    runtime().run_on(0, || async {
        yield_now().await;
        let mut units = 0;
        while has_budget_remaining() {
            consume_budget().await;
            units += 1;
        }
        assert_eq!(units, 128);
        let spent = spawn(async { has_budget_remaining() });
        assert!(spent.await.unwrap(), "another task has a budget of its own");
    });
}

#[test]
fn an_unconstrained_future_does_not_give_way_and_leaves_the_budget_as_it_was() {
    runtime().run_on(0, || async {
        let ran = Rc::new(Cell::new(false));
        set_after(&ran, async {});
        unconstrained(async {
            for _ in 0..1000 {
                consume_budget().await;
            }
        })
        .await;
        assert!(!ran.get(), "the loop was interrupted");
        for _ in 0..128 {
            consume_budget().await;
        }
        assert!(!ran.get(), "the loop spent the budget of its task");
        consume_budget().await;
        assert!(ran.get());
    });
}
