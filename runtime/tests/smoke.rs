//! The runtime's promises about tasks, timers, handles and its end, through the public API.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use greenroom_runtime::time::{Instant, MissedTicks, interval, sleep, timeout};
use greenroom_runtime::{Builder, Handle, Runtime, current_shard, random, spawn, yield_now};

fn runtime(shards: usize) -> Runtime {
    Builder::new().shards(shards).start().unwrap()
}

#[test]
fn spawned_tasks_run_and_join() {
    let sum = runtime(1).run_on(0, || async {
        let handles: Vec<_> = (0..1000_u64).map(|n| spawn(async move { n })).collect();
        let mut sum = 0;
        for handle in handles {
            sum += handle.await.unwrap();
        }
        sum
    });
    assert_eq!(sum, 499_500);
}

#[test]
fn a_panic_stays_in_its_task_and_carries_its_payload() {
    runtime(1).run_on(0, || async {
        let error = spawn(async { panic!("boom {}", current_shard().unwrap()) })
            .await
            .unwrap_err();
        assert!(error.is_panic());
        assert!(error.to_string().contains("boom shard 0"), "{error}");
        let payload = error.try_into_panic().unwrap();
        assert_eq!(payload.downcast_ref::<String>().unwrap(), "boom shard 0");
        assert_eq!(spawn(async { 5 }).await.unwrap(), 5, "the shard goes on");
    });
}

#[test]
fn an_aborted_task_drops_its_future_at_once_and_says_cancelled() {
    runtime(1).run_on(0, || async {
        struct OnDrop(Rc<Cell<bool>>);
        impl Drop for OnDrop {
            fn drop(&mut self) {
                self.0.set(true);
            }
        }
        let dropped = Rc::new(Cell::new(false));
        let guard = OnDrop(dropped.clone());
        let handle = spawn(async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        });
        yield_now().await;
        assert!(!dropped.get());
        handle.abort();
        assert!(dropped.get());
        assert!(handle.await.unwrap_err().is_cancelled());
    });
}

#[test]
fn a_task_may_abort_itself_and_ends_when_its_poll_returns() {
    runtime(1).run_on(0, || async {
        let slot = Rc::new(RefCell::new(None::<greenroom_runtime::JoinHandle<()>>));
        let own = slot.clone();
        let steps = Rc::new(Cell::new(0));
        let counted = steps.clone();
        let handle = spawn(async move {
            own.borrow().as_ref().unwrap().abort();
            counted.set(1);
            yield_now().await;
            counted.set(2);
        });
        *slot.borrow_mut() = Some(handle);
        yield_now().await;
        yield_now().await;
        assert_eq!(steps.get(), 1);
        let handle = slot.borrow_mut().take().unwrap();
        assert!(handle.await.unwrap_err().is_cancelled());
    });
}

#[test]
fn tasks_can_be_woken_from_any_thread_and_after_their_end() {
    let runtime = runtime(1);
    let wakes = runtime.run_on(0, || async {
        let (wakers, thread) = mpsc::channel::<std::task::Waker>();
        let waking = std::thread::spawn(move || {
            for waker in &thread {
                waker.wake_by_ref();
                waker.wake();
            }
        });
        let mut polls = 0;
        let value = std::future::poll_fn(move |cx| {
            polls += 1;
            if polls > 100 {
                return std::task::Poll::Ready(polls);
            }
            wakers.send(cx.waker().clone()).unwrap();
            std::task::Poll::Pending
        })
        .await;
        waking.join().unwrap();
        value
    });
    assert!(wakes > 100);
}

#[test]
fn a_waker_outlives_its_runtime() {
    let runtime = runtime(1);
    let waker = runtime.run_on(0, || async {
        std::future::poll_fn(|cx| std::task::Poll::Ready(cx.waker().clone())).await
    });
    runtime.shutdown();
    waker.wake_by_ref();
    let again = Builder::new().shards(1).start().unwrap();
    waker.wake_by_ref();
    assert_eq!(again.run_on(0, || async { 1 }), 1);
    drop(again);
    waker.wake();
}

#[test]
fn shards_talk_to_each_other_and_stay_apart() {
    let runtime = runtime(4);
    let visited = runtime.run_on(0, || async {
        let mut visited = Vec::new();
        let handle = Handle::current().unwrap();
        for shard in handle.shards() {
            visited.push(
                handle
                    .spawn_on(shard, || async { current_shard().unwrap().index() })
                    .await
                    .unwrap(),
            );
        }
        visited
    });
    assert_eq!(visited, [0, 1, 2, 3]);
}

#[test]
fn a_panic_on_another_shard_comes_home_to_who_awaits() {
    let runtime = runtime(2);
    runtime.run_on(0, || async {
        let handle = Handle::current().unwrap();
        let error = handle
            .spawn_on(1, || async { panic!("over there") })
            .await
            .unwrap_err();
        assert!(error.to_string().contains("over there"));
        let missing = handle.spawn_on(9, || async {}).await.unwrap_err();
        assert!(missing.is_cancelled());
    });
}

#[test]
fn timers_fire_in_order_and_never_early() {
    runtime(1).run_on(0, || async {
        let order = Rc::new(RefCell::new(Vec::new()));
        let start = Instant::now();
        let handles: Vec<_> = [30_u64, 5, 20, 1, 10]
            .into_iter()
            .map(|ms| {
                let order = order.clone();
                spawn(async move {
                    sleep(Duration::from_millis(ms)).await;
                    assert!(start.elapsed() >= Duration::from_millis(ms));
                    order.borrow_mut().push(ms);
                })
            })
            .collect();
        for handle in handles {
            handle.await.unwrap();
        }
        assert_eq!(*order.borrow(), [1, 5, 10, 20, 30]);
    });
}

#[test]
fn a_dropped_sleep_leaves_nothing_behind_and_a_ready_future_beats_its_timeout() {
    runtime(1).run_on(0, || async {
        for _ in 0..10_000 {
            let mut long = Box::pin(sleep(Duration::from_secs(3600)));
            let polled =
                std::future::poll_fn(|cx| std::task::Poll::Ready(long.as_mut().poll(cx))).await;
            assert!(polled.is_pending());
        }
        assert_eq!(timeout(Duration::ZERO, async { 3 }).await, Ok(3));
        let error = timeout(Duration::from_millis(3), std::future::pending::<()>())
            .await
            .unwrap_err();
        assert_eq!(error.limit(), Duration::from_millis(3));
    });
}

#[test]
fn an_interval_makes_up_for_missed_ticks_as_it_is_told() {
    runtime(1).run_on(0, || async {
        let period = Duration::from_millis(4);
        for (policy, grid) in [
            (MissedTicks::Burst, true),
            (MissedTicks::Skip, true),
            (MissedTicks::Delay, false),
        ] {
            let mut ticks = interval(period).on_missed(policy);
            let first = ticks.tick().await;
            sleep(Duration::from_millis(13)).await;
            let second = ticks.tick().await;
            let third = ticks.tick().await;
            assert!(second > first && third > second);
            if grid {
                assert_eq!((second - first).as_nanos() % period.as_nanos(), 0);
                assert_eq!((third - first).as_nanos() % period.as_nanos(), 0);
            }
            match policy {
                MissedTicks::Burst => assert_eq!(third - second, period, "every tick is given"),
                MissedTicks::Skip | MissedTicks::Delay => {
                    assert!(
                        third - first > period * 3,
                        "ticks that passed during the sleep are left out"
                    );
                }
            }
        }
    });
}

#[test]
fn a_yielding_loop_starves_neither_timers_nor_other_tasks() {
    runtime(1).run_on(0, || async {
        let stop = Rc::new(Cell::new(false));
        let seen = stop.clone();
        let spinner = spawn(async move {
            while !seen.get() {
                yield_now().await;
            }
        });
        sleep(Duration::from_millis(5)).await;
        stop.set(true);
        spinner.await.unwrap();
    });
}

#[test]
fn shutdown_drops_every_future_on_its_own_shard() {
    struct Home(usize, Arc<AtomicUsize>);
    impl Drop for Home {
        fn drop(&mut self) {
            assert_eq!(current_shard().unwrap().index(), self.0);
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let runtime = runtime(3);
    for shard in 0..3 {
        let dropped = dropped.clone();
        runtime.run_on(u16::try_from(shard).unwrap(), move || async move {
            for _ in 0..100 {
                let home = Home(shard, dropped.clone());
                spawn(async move {
                    let _home = home;
                    std::future::pending::<()>().await;
                })
                .detach();
            }
        });
    }
    let report = runtime.shutdown();
    assert_eq!(report.leaked_operations(), 0);
    assert_eq!(dropped.load(Ordering::Relaxed), 300);
}

#[test]
fn a_panicking_drop_at_shutdown_hurts_nobody_else() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("a bomb in a drop");
            }
        }
    }
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let count = Arc::new(AtomicUsize::new(0));
    let runtime = runtime(2);
    let counted = count.clone();
    runtime.run_on(0, move || async move {
        for _ in 0..10 {
            let (bomb, counted) = (Bomb, Counted(counted.clone()));
            spawn(async move {
                let _both = (counted, bomb);
                std::future::pending::<()>().await;
            })
            .detach();
        }
    });
    runtime.shutdown();
    assert_eq!(count.load(Ordering::Relaxed), 10);
}

#[test]
fn a_start_hook_that_panics_on_one_shard_starts_none() {
    let up = AtomicUsize::new(0);
    let error = Builder::new()
        .shards(3)
        .on_shard_start(move |shard| {
            up.fetch_add(1, Ordering::Relaxed);
            assert_ne!(shard.index(), 1, "not this one");
        })
        .start()
        .unwrap_err();
    assert!(error.is_panic());
    assert_eq!(error.shard(), Some(1.into()));
    assert!(error.to_string().contains("not this one"), "{error}");
}

#[test]
fn values_out_of_range_are_named_with_their_cure() {
    let none = Builder::new().shards(0).start().unwrap_err();
    assert!(
        none.is_config() && none.to_string().contains("at least one"),
        "{none}"
    );
    let many = Builder::new().shards(5000).start().unwrap_err();
    assert!(many.to_string().contains("5000"), "{many}");
    let odd = Builder::new()
        .shards(1)
        .link_bytes(5000)
        .start()
        .unwrap_err();
    assert!(odd.to_string().contains("power of two"), "{odd}");
    let slow = Builder::new().gather(Duration::from_secs(1)).start();
    let slow = slow.unwrap_err();
    assert!(
        slow.is_config() && slow.to_string().contains("at most 10ms"),
        "{slow}"
    );
    let name = Builder::new().thread_name("a\0b").start().unwrap_err();
    assert!(
        name.is_config() && name.to_string().contains(r#""a\0b""#),
        "{name}"
    );
    for bytes in [0, 1 << 40, usize::MAX] {
        let stack = Builder::new().stack_bytes(bytes).start().unwrap_err();
        let text = stack.to_string();
        assert!(
            stack.is_config() && text.contains(&bytes.to_string()),
            "{text}"
        );
    }
}

#[test]
fn a_shard_has_the_stack_that_was_asked_for() {
    fn dig(depth: u32) -> u32 {
        let earth = std::hint::black_box([depth; 16 * 1024]);
        let below = if depth == 0 { 0 } else { dig(depth - 1) };
        std::hint::black_box(earth)[0].max(below)
    }
    let builder = Builder::new().shards(1).stack_bytes(64 << 20);
    let runtime = builder.start().unwrap();
    // At least 6 MiB, which the default has not.
    assert_eq!(runtime.run_on(0, || async { dig(100) }), 100);
    let least = Builder::new().shards(1).stack_bytes(64 << 10).start();
    assert_eq!(least.unwrap().run_on(0, || async { 7 }), 7);
}

#[test]
fn a_thread_without_timers_is_told_where_they_are() {
    fn said(call: impl FnOnce() + std::panic::UnwindSafe) -> String {
        let payload = std::panic::catch_unwind(call).unwrap_err();
        *payload.downcast::<String>().unwrap()
    }
    let limit = Duration::from_millis(1);
    for (name, text) in [
        ("`sleep`", said(move || drop(sleep(limit)))),
        ("`timeout`", said(move || drop(timeout(limit, async {})))),
        ("`interval`", said(move || drop(interval(limit)))),
    ] {
        assert!(
            text.starts_with(name) && text.contains("`run_on`"),
            "{text}"
        );
    }
}

#[test]
fn runtimes_may_be_many_repeated_and_nested() {
    for _ in 0..20 {
        let outer = runtime(2);
        let inner = runtime(2);
        let handle = inner.handle().clone();
        let value = outer.run_on(1, move || async move {
            handle.spawn_on(0, || async { 9 }).await.unwrap()
        });
        assert_eq!(value, 9);
    }
}

#[test]
fn an_idle_runtime_uses_no_cpu() {
    let runtime = runtime(2);
    runtime.run_on(0, || async { sleep(Duration::from_millis(1)).await });
    let cpu = || {
        let mut total = Duration::ZERO;
        for task in std::fs::read_dir("/proc/self/task").unwrap() {
            let path = task.unwrap().path();
            let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
            if name.starts_with("shard-") {
                let stat = std::fs::read_to_string(path.join("schedstat")).unwrap_or_default();
                let ns = stat
                    .split(' ')
                    .next()
                    .and_then(|ns| ns.parse().ok())
                    .unwrap_or(0);
                total += Duration::from_nanos(ns);
            }
        }
        total
    };
    let before = cpu();
    let (_keep, wait) = mpsc::channel::<()>();
    assert!(wait.recv_timeout(Duration::from_millis(300)).is_err());
    let used = cpu().saturating_sub(before);
    // Other tests of this binary run shards too; alone it is well under a millisecond.
    println!("shards used {used:?} in 300 ms");
    drop(runtime);
}

#[test]
fn a_loop_of_sleeps_that_are_over_starves_nobody() {
    runtime(1).run_on(0, || async {
        let stop = Rc::new(Cell::new(false));
        let seen = stop.clone();
        let spinner = spawn(async move {
            while !seen.get() {
                sleep(Duration::ZERO).await;
            }
        });
        sleep(Duration::from_millis(3)).await;
        stop.set(true);
        spinner.await.unwrap();
    });
}

#[test]
fn tasks_start_in_the_order_of_their_spawns_after_an_abort() {
    runtime(1).run_on(0, || async {
        let order = Rc::new(RefCell::new(Vec::new()));
        let start = |name: u32| {
            let order = order.clone();
            spawn(async move { order.borrow_mut().push(name) })
        };
        let first = start(0);
        let second = start(1);
        first.abort();
        // Takes the slot of the aborted task, not its place in the queue.
        let third = start(2);
        second.await.unwrap();
        third.await.unwrap();
        assert_eq!(*order.borrow(), [1, 2]);
    });
}

#[test]
fn a_panic_payload_that_panics_when_it_is_dropped_ends_nothing_else() {
    struct Spiteful;
    impl Drop for Spiteful {
        fn drop(&mut self) {
            panic!("dropped a payload");
        }
    }
    struct Waker;
    impl std::task::Wake for Waker {
        fn wake(self: Arc<Self>) {
            std::panic::panic_any(Spiteful);
        }
    }
    let runtime = runtime(1);
    runtime.run_on(0, || async {
        // A timer wakes through a waker that panics with such a payload, in the middle of the shard's loop.
        let waker = std::task::Waker::from(Arc::new(Waker));
        let mut timer = Box::pin(sleep(Duration::from_millis(1)));
        let mut cx = std::task::Context::from_waker(&waker);
        assert!(timer.as_mut().poll(&mut cx).is_pending());
        sleep(Duration::from_millis(5)).await;
    });
    assert_eq!(runtime.run_on(0, || async { 1 }), 1);
    runtime.shutdown();
}

#[test]
fn a_seed_gives_each_shard_the_same_numbers_in_every_runtime() {
    let numbers = |runtime: &Runtime| {
        let of_shard = |shard| runtime.run_on(shard, || async { [random(), random()] });
        [of_shard(0), of_shard(1)]
    };
    // Work that moves draws from the same generator.
    let seeded = |seed| {
        let builder = Builder::new().shards(2).float_lane(false);
        builder.seed(seed).start().unwrap()
    };
    let (first, again, other) = (seeded(7), seeded(7), seeded(8));
    let found = numbers(&first);
    assert_eq!(numbers(&again), found);
    assert_ne!(numbers(&other), found);
    assert_ne!(found[0], found[1]);
}

#[test]
fn what_a_destructor_sends_at_the_end_of_a_turn_leaves_with_that_turn() {
    use greenroom_runtime::mesh::{Due, Origin, ReplyKey, Resident, evict, open, settle};

    /// Answers when it is dropped, which for an evicted resident is at the end of the turn.
    struct Keeper(Option<ReplyKey<u32>>);
    impl Resident for Keeper {
        type Message = ();
        fn deliver(&self, (): (), _: Origin) {}
        fn undeliverable((): ()) {}
    }
    impl Drop for Keeper {
        fn drop(&mut self) {
            self.0.take().unwrap().send(7);
        }
    }
    runtime(2).run_on(0, || async {
        let (answer, key) = open::<u32>(Due::NEVER).unwrap();
        let keep = move || async move { evict(settle(Rc::new(Keeper(Some(key))))) };
        Handle::current().unwrap().spawn_on(1, keep).await.unwrap();
        let answered = timeout(Duration::from_secs(30), answer).await;
        assert_eq!(answered, Ok(Ok(7)));
    });
}

#[test]
fn what_needs_a_shard_says_on_other_threads_where_it_runs() {
    let check_panic = |name: &str, call: fn()| {
        let payload = std::panic::catch_unwind(call).unwrap_err();
        let text = greenroom_runtime::task::panic_text(&*payload).to_owned();
        assert!(text.starts_with(&format!("`{name}` was called")), "{text}");
        assert!(text.contains("`run_on`"), "{text}");
    };
    check_panic("sleep", || drop(sleep(Duration::from_secs(1))));
    check_panic("interval", || drop(interval(Duration::from_secs(1))));
    check_panic("timeout", || {
        drop(timeout(Duration::from_secs(1), std::future::ready(())));
    });

    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let read = std::pin::pin!(greenroom_runtime::fs::read("any")).poll(&mut cx);
    let command = greenroom_runtime::process::Command::new("any");
    let spawned = std::pin::pin!(command.spawn()).poll(&mut cx);
    let connected = std::pin::pin!(greenroom_runtime::net::TcpStream::connect("any:80"));
    let connected = connected.poll(&mut cx);
    let outcomes = [
        read.map(|done| done.err()),
        spawned.map(|done| done.err()),
        connected.map(|done| done.err()),
    ];
    for outcome in outcomes {
        let std::task::Poll::Ready(Some(error)) = outcome else {
            panic!("refused at once");
        };
        let text = error.to_string();
        assert!(text.contains("no shard on this thread"), "{text}");
        assert!(text.contains("`run_on`"), "{text}");
    }
}
