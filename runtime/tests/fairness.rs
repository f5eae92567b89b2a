//! No task, however busy, keeps its shard from other tasks, timers and I/O.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use greenroom_runtime::net::{TcpListener, TcpStream};
use greenroom_runtime::task::{self, Class, consume_budget, has_budget_remaining, unconstrained};
use greenroom_runtime::time::{Instant, sleep, timeout};
use greenroom_runtime::{Builder, Handle, Runtime, ShardMetrics, spawn, yield_now};

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

/// The waker of a future in a task, for whoever polls several.
struct Inner {
    woken: AtomicBool,
    task: Waker,
}

impl Wake for Inner {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Relaxed);
        self.task.wake_by_ref();
    }
}

#[test]
fn what_polls_several_futures_hears_at_once_that_the_budget_is_spent() {
    runtime().run_on(0, || async {
        yield_now().await;
        let turns = || ShardMetrics::current().unwrap().turns;
        let mut spent_in = None;
        poll_fn(|cx| {
            if spent_in.is_some() {
                return Poll::Ready(());
            }
            let inner = Arc::new(Inner {
                woken: AtomicBool::new(false),
                task: cx.waker().clone(),
            });
            let waker = Waker::from(inner.clone());
            let mut cx = Context::from_waker(&waker);
            let mut units = 0;
            while pin!(consume_budget()).poll(&mut cx).is_ready() {
                units += 1;
                assert!(units <= 128);
            }
            assert!(inner.woken.load(Ordering::Relaxed));
            spent_in = Some(turns());
            Poll::Pending
        })
        .await;
        assert!(
            Some(turns()) > spent_in,
            "the task did not wait for the end of the turn"
        );
    });
}

/// Keeps the shard busy, as a long computation does.
fn compute(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

#[test]
fn a_yield_loop_lets_a_timer_fire_and_io_complete() {
    runtime().run_on(0, || async {
        let fired = Rc::new(Cell::new(false));
        set_after(&fired, sleep(Duration::from_millis(2)));
        let answered = Rc::new(Cell::new(false));
        set_after(&answered, one_exchange());
        until_set(&fired, yield_now).await;
        until_set(&answered, yield_now).await;
    });
}

/// A connection, and a byte each way, over the loopback interface.
async fn one_exchange() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (read, buffer) = stream.read(vec![0; 1]).await;
        assert_eq!(read.unwrap(), 1);
        stream.write_all(buffer).await.0.unwrap();
    });
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(vec![7]).await.0.unwrap();
    let (read, buffer) = stream.read(vec![0; 1]).await;
    assert_eq!((read.unwrap(), buffer), (1, vec![7]));
    server.await.unwrap();
}

/// Runs tasks that compute for long; returns how many of them ran before the shard had counted one more.
async fn long_polls_before(count: impl Fn(ShardMetrics) -> u64 + Copy + 'static) -> usize {
    let count = move || count(ShardMetrics::current().unwrap());
    let (start, before) = (count(), Rc::new(Cell::new(0)));
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let before = before.clone();
            spawn(async move {
                compute(Duration::from_micros(500));
                if count() == start {
                    before.set(before.get() + 1);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    before.get()
}

#[test]
fn long_polls_let_a_timer_fire_between_them() {
    let before = runtime().run_on(0, || async {
        spawn(sleep(Duration::from_millis(1))).detach();
        yield_now().await;
        long_polls_before(|metrics| metrics.timers_fired).await
    });
    assert!(before < 8, "{before} long polls went before the timer");
}

#[test]
fn long_polls_let_a_job_in_between_them() {
    let before = runtime().run_on(0, || async {
        drop(Handle::current().unwrap().spawn_on(0, || async {}));
        long_polls_before(|metrics| metrics.jobs).await
    });
    assert!(before < 8, "{before} long polls went before the job");
}

/// Two tasks that wake each other until the flag is set; returns how many polls they took.
async fn ping_pong(stop: &Rc<Cell<bool>>) -> usize {
    let polls = Rc::new(Cell::new(0));
    let wakers: Rc<[Cell<Option<Waker>>; 2]> = Rc::default();
    let players: Vec<_> = [0, 1]
        .into_iter()
        .map(|me| {
            let (stop, polls, wakers) = (stop.clone(), polls.clone(), wakers.clone());
            spawn(poll_fn(move |cx| {
                polls.set(polls.get() + 1);
                assert!(polls.get() < STEPS_MAX, "others were starved");
                if let Some(other) = wakers[1 - me].take() {
                    other.wake();
                }
                wakers[me].set(Some(cx.waker().clone()));
                if stop.get() {
                    return Poll::Ready(());
                }
                Poll::Pending
            }))
        })
        .collect();
    for player in players {
        player.await.unwrap();
    }
    polls.get()
}

#[test]
fn two_tasks_that_wake_each_other_do_not_starve_a_third_nor_a_timer() {
    runtime().run_on(0, || async {
        let ran = Rc::new(Cell::new(false));
        let pair = spawn({
            let ran = ran.clone();
            async move { ping_pong(&ran).await }
        });
        yield_now().await;
        set_after(&ran, async {});
        let polls = pair.await.unwrap();
        assert!(polls < 1000, "{polls} polls went before a ready task");

        let fired = Rc::new(Cell::new(false));
        set_after(&fired, sleep(Duration::from_millis(2)));
        ping_pong(&fired).await;
    });
}

#[test]
fn a_task_that_spawns_its_successor_for_ever_does_not_starve_others() {
    fn chain(stop: Rc<Cell<bool>>, links: usize) {
        if !stop.get() {
            assert!(links < STEPS_MAX, "others were starved");
            spawn(async move { chain(stop, links + 1) }).detach();
        }
    }
    runtime().run_on(0, || async {
        let fired = Rc::new(Cell::new(false));
        chain(fired.clone(), 0);
        sleep(Duration::from_millis(2)).await;
        yield_now().await;
        fired.set(true);
    });
}

/// The order in which a task that is woken by another one runs, with others ready before it.
fn order_of_a_woken_task(runtime: &Runtime) -> Vec<&'static str> {
    runtime.run_on(0, || async {
        let order = Rc::new(RefCell::new(Vec::new()));
        let note = |what: &'static str| {
            let order = order.clone();
            async move { order.borrow_mut().push(what) }
        };
        let (wake, woken) = futures_channel::oneshot::channel::<()>();
        let noted = note("woken");
        let waits = spawn(async move {
            woken.await.unwrap();
            noted.await;
        });
        yield_now().await;
        let noted = note("waking");
        spawn(async move {
            wake.send(()).unwrap();
            noted.await;
        })
        .detach();
        spawn(note("ready before")).detach();
        waits.await.unwrap();
        yield_now().await;
        order.take()
    })
}

#[test]
fn a_task_woken_by_another_goes_next_unless_the_slot_is_switched_off() {
    // A turn that ends between the two, because the machine is busy, puts the woken task back in line.
    let with = runtime();
    let goes_next = |_| order_of_a_woken_task(&with) == ["waking", "woken", "ready before"];
    assert!((0..100).any(goes_next), "never run next");
    let without = Builder::new().shards(1).lifo_slot(false).start().unwrap();
    let order = order_of_a_woken_task(&without);
    assert_eq!(order, ["waking", "ready before", "woken"]);
}

#[test]
fn a_background_task_goes_on_beside_tasks_that_are_never_done() {
    runtime().run_on(0, || async {
        let done = Rc::new(Cell::new(false));
        let busy: Vec<_> = [Class::Latency, Class::Default]
            .into_iter()
            .map(|class| {
                let done = done.clone();
                task::Builder::new()
                    .class(class)
                    .spawn(async move { until_set(&done, yield_now).await })
            })
            .collect();
        let sweep = task::Builder::new().class(Class::Background).spawn(async {
            for _ in 0..100 {
                yield_now().await;
            }
        });
        sweep.await.unwrap();
        done.set(true);
        for task in busy {
            task.await.unwrap();
        }
    });
}

#[test]
fn a_latency_task_goes_before_background_tasks_that_were_ready_earlier() {
    let before = runtime().run_on(0, || async {
        let ran = Rc::new(Cell::new(0));
        for _ in 0..64 {
            let ran = ran.clone();
            let sweep = async move { ran.set(ran.get() + 1) };
            task::Builder::new()
                .class(Class::Background)
                .spawn(sweep)
                .detach();
        }
        let seen = ran.clone();
        task::Builder::new()
            .class(Class::Latency)
            .spawn(async move { seen.get() })
            .await
            .unwrap()
    });
    assert_eq!(before, 0);
}

#[test]
fn a_shard_counts_what_it_does() {
    let runtime = Builder::new().shards(2).start().unwrap();
    let metrics = || async { ShardMetrics::current().unwrap() };
    let before = runtime.run_on(0, metrics);
    runtime.run_on(0, || async {
        for _ in 0..3 {
            sleep(Duration::from_millis(1)).await;
        }
        for _ in 0..=128 {
            consume_budget().await;
        }
        let handle = Handle::current().unwrap();
        handle.spawn_on(1, || async {}).await.unwrap();
    });
    let after = runtime.run_on(0, metrics);
    assert!(after.turns > before.turns);
    assert!(after.polls >= before.polls + 5);
    assert!(after.jobs > before.jobs);
    assert!(after.parks > before.parks);
    assert!(after.parked_ns > before.parked_ns);
    assert_eq!(after.timers_fired, before.timers_fired + 3);
    assert_eq!(after.budget_yields, before.budget_yields + 1);
    let told = |metrics: ShardMetrics| metrics.doorbells_sent + metrics.doorbells_elided;
    assert!(told(after) > told(before));
}

#[test]
fn a_shard_that_was_told_to_spin_stops_when_news_is_rare() {
    let runtime = Builder::new()
        .shards(1)
        .spin(Duration::from_micros(20))
        .start()
        .unwrap();
    let missed = || async { ShardMetrics::current().unwrap().spins_missed };
    // Each of these calls is news, and far from the one before it.
    let call = || {
        let start = std::time::Instant::now();
        while start.elapsed() < Duration::from_millis(1) {
            std::hint::spin_loop();
        }
        runtime.run_on(0, missed)
    };
    for _ in 0..32 {
        call();
    }
    let before = call();
    let after = (0..64).fold(before, |_, _| call());
    assert!(
        after - before < 32,
        "{} spins in 64 long pauses",
        after - before
    );
}

#[test]
fn a_flood_of_jobs_from_outside_keeps_no_ready_task_waiting_for_its_end() {
    const JOBS: u64 = 2000;
    let runtime = runtime();
    let (entered, enters) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let blocked = runtime.handle().spawn_on(0, move || async move {
        entered.send(()).unwrap();
        released.recv().unwrap();
        yield_now().await;
        ShardMetrics::current().unwrap().jobs
    });
    enters.recv().unwrap();
    for _ in 0..JOBS {
        runtime.handle().spawn_on(0, || async {}).detach();
    }
    release.send(()).unwrap();
    let done_before = runtime.block_on(blocked).unwrap();
    assert!(done_before < JOBS, "all {JOBS} jobs ran first");
}

#[test]
fn a_job_that_comes_while_a_flood_is_worked_off_is_run_too() {
    let runtime = runtime();
    let (entered, enters) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let blocked = runtime.handle().spawn_on(0, move || async move {
        entered.send(()).unwrap();
        released.recv().unwrap();
    });
    enters.recv().unwrap();
    // It is polled when its turn has run a share of the flood, and the rest is still there.
    let late = runtime.handle().spawn_on(0, || async {
        let handle = Handle::current().unwrap();
        handle.spawn_on(0, || async { 42 }).await.unwrap()
    });
    for _ in 0..300 {
        runtime.handle().spawn_on(0, || async {}).detach();
    }
    release.send(()).unwrap();
    // Waited for outside, so that nothing else wakes the shard.
    let (heard, hears) = mpsc::channel();
    std::thread::spawn(move || heard.send(runtime.block_on(late)).unwrap());
    let late = hears.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(late.unwrap(), 42);
    drop(blocked);
}
