//! Work that is not bound to a shard: that it moves, that it runs once, and what becomes of it at the end.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use greenroom_runtime::time::sleep;
use greenroom_runtime::{
    Builder, FloatCounts, FloatHandle, Handle, Runtime, ShardId, current_shard, offload, spawn,
    spawn_anywhere, yield_now,
};

/// How long something may take that takes no time unless it never happens.
const LIMIT: Duration = Duration::from_secs(20);

fn runtime(shards: usize) -> Runtime {
    Builder::new().shards(shards).start().unwrap()
}

/// Two ends of which each waits until the other one is there: they meet on two shards, or never. Each computes for so
/// long that a shard which remembers it finds one such piece worth waking a sibling for.
fn meeting() -> [impl FnOnce() -> ShardId + Send + 'static; 2] {
    let (one, at_one) = mpsc::channel();
    let (other, at_other) = mpsc::channel();
    [(one, at_other), (other, at_one)].map(|(tell, hear)| {
        move || {
            tell.send(()).unwrap();
            hear.recv_timeout(LIMIT)
                .expect("the other half of the work does not run beside this one");
            let since = Instant::now();
            while since.elapsed() < Duration::from_micros(500) {
                std::hint::spin_loop();
            }
            current_shard().expect("work runs on a shard")
        }
    })
}

/// Resolves a handle that must be ready.
fn resolved<T>(mut handle: FloatHandle<T>) -> Result<T, greenroom_runtime::JoinError> {
    let polled = std::pin::Pin::new(&mut handle).poll(&mut Context::from_waker(Waker::noop()));
    match polled {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("a handle is left waiting for ever"),
    }
}

#[test]
fn siblings_take_what_a_shard_has_no_time_for() {
    runtime(2).run_on(0, || async {
        for _ in 0..200 {
            let shards = join_all(meeting().map(offload)).await;
            let shards: Vec<_> = shards.into_iter().map(Result::unwrap).collect();
            assert_ne!(shards[0], shards[1]);
        }
    });
}

#[test]
fn work_moves_away_from_a_shard_that_is_in_the_middle_of_a_poll() {
    let runtime = runtime(3);
    runtime.run_on(1, || async {
        // The first closure holds whoever takes it; those behind it must not wait for that.
        let (release, released) = mpsc::channel::<()>();
        let held = offload(move || released.recv_timeout(LIMIT).is_ok());
        let counted = Arc::new(AtomicUsize::new(0));
        for _ in 0..20 {
            let (counted, release) = (counted.clone(), release.clone());
            offload(move || {
                if counted.fetch_add(1, Ordering::AcqRel) == 19 {
                    release.send(()).unwrap();
                }
            })
            .detach();
        }
        drop(release);
        assert!(held.await.unwrap());
    });
}

#[test]
fn work_from_other_threads_reaches_every_shard() {
    let runtime = Builder::new().shards(2).float_lane(false).start().unwrap();
    let handles: Vec<_> = (0..4)
        .map(|_| {
            runtime
                .handle()
                .offload(|| current_shard().unwrap().index())
        })
        .collect();
    let shards = runtime.block_on(join_all(handles));
    let shards: Vec<_> = shards.into_iter().map(Result::unwrap).collect();
    assert_eq!(shards, [0, 1, 0, 1]);
}

#[test]
fn a_task_born_anywhere_stays_where_it_was_born() {
    runtime(2).run_on(0, || async {
        let tasks = (0..200_u64).map(|number| {
            spawn_anywhere(move || {
                let home = Rc::new(current_shard());
                async move {
                    for _ in 0..3 {
                        yield_now().await;
                        sleep(Duration::from_millis(number % 3)).await;
                        assert_eq!(current_shard(), *home);
                    }
                    number
                }
            })
        });
        let numbers = join_all(tasks).await;
        let sum: u64 = numbers.into_iter().map(Result::unwrap).sum();
        assert_eq!(sum, 199 * 100);
    });
}

#[test]
fn panics_are_the_handles_and_the_shards_go_on() {
    runtime(2).run_on(0, || async {
        let closure = offload(|| -> () { panic!("in the closure") });
        let factory = spawn_anywhere(|| -> std::future::Ready<()> { panic!("in the factory") });
        let future = spawn_anywhere(|| async { panic!("in the future") });
        for (handle, text) in [
            (closure, "in the closure"),
            (factory, "in the factory"),
            (future, "in the future"),
        ] {
            let error = handle.await.unwrap_err();
            assert!(error.is_panic());
            assert!(error.to_string().contains(text), "{error}");
        }
        assert_eq!(offload(|| 7).await.unwrap(), 7);
    });
}

#[test]
fn a_detached_piece_of_work_is_done() {
    let (done, ended) = mpsc::channel();
    let runtime = runtime(2);
    let tell = done.clone();
    runtime
        .handle()
        .offload(move || tell.send("closure").unwrap())
        .detach();
    drop(runtime.handle().spawn_anywhere(move || async move {
        done.send("task").unwrap();
    }));
    let mut told = [(); 2].map(|()| ended.recv_timeout(LIMIT).unwrap());
    told.sort_unstable();
    assert_eq!(told, ["closure", "task"]);
}

#[test]
fn a_switched_off_lane_keeps_work_where_it_was_submitted() {
    let runtime = Builder::new().shards(2).float_lane(false).start().unwrap();
    runtime.run_on(1, || async {
        let closures = (0..100).map(|_| offload(|| current_shard().unwrap()));
        let tasks = (0..100).map(|_| spawn_anywhere(|| async { current_shard().unwrap() }));
        for shard in join_all(closures.chain(tasks)).await {
            assert_eq!(shard.unwrap().index(), 1);
        }
        assert_eq!(FloatCounts::current().unwrap().run, 200);
    });
}

#[test]
fn a_lane_and_an_overflow_that_are_full_lose_nothing() {
    const PIECES: usize = 70_000;
    let runtime = runtime(2);
    // The sibling is held meanwhile, or it would make room.
    let (release, released) = mpsc::channel::<()>();
    let (hold, held) = mpsc::channel();
    drop(runtime.handle().spawn_on(1, move || async move {
        hold.send(()).unwrap();
        assert!(released.recv_timeout(LIMIT).is_err(), "let go of");
    }));
    held.recv_timeout(LIMIT).unwrap();
    runtime.run_on(0, move || async move {
        let ran = Arc::new(AtomicUsize::new(0));
        let handles: Vec<_> = (0..PIECES)
            .map(|number| {
                let ran = ran.clone();
                offload(move || {
                    ran.fetch_add(1, Ordering::Relaxed);
                    number
                })
            })
            .collect();
        let counts = FloatCounts::current().unwrap();
        assert_eq!(counts.submitted, PIECES as u64);
        assert_eq!(counts.overflowed, 65_536);
        assert_eq!(counts.bound, PIECES as u64 - 65_536 - 256);
        drop(release);
        for (number, handle) in handles.into_iter().enumerate() {
            assert_eq!(handle.await.unwrap(), number);
        }
        assert_eq!(ran.load(Ordering::Relaxed), PIECES);
    });
}

#[test]
fn neither_bound_nor_unbound_work_starves_the_other() {
    fn forever(go: Arc<AtomicBool>, ran: Arc<AtomicUsize>) {
        if go.load(Ordering::Relaxed) {
            ran.fetch_add(1, Ordering::Relaxed);
            offload(move || forever(go, ran)).detach();
        }
    }
    runtime(2).run_on(0, || async {
        let go = Arc::new(AtomicBool::new(true));
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..300 {
            forever(go.clone(), ran.clone());
        }
        let yields = Rc::new(Cell::new(0_u32));
        let (going, yielded) = (go.clone(), yields.clone());
        let bound = spawn(async move {
            while going.load(Ordering::Relaxed) {
                yielded.set(yielded.get() + 1);
                yield_now().await;
            }
        });
        let mut seen = (0, 0);
        for _ in 0..20 {
            // A timer, unbound work and bound work: each goes on beside the others.
            sleep(Duration::from_millis(1)).await;
            while ran.load(Ordering::Relaxed) == seen.0 || yields.get() == seen.1 {
                yield_now().await;
            }
            seen = (ran.load(Ordering::Relaxed), yields.get());
        }
        go.store(false, Ordering::Relaxed);
        bound.await.unwrap();
    });
}

/// Counts its drops, and that they happen on a shard.
struct Witness {
    dropped: Arc<AtomicUsize>,
}

impl Drop for Witness {
    fn drop(&mut self) {
        assert!(current_shard().is_some(), "dropped away from the shards");
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn work_that_waits_at_the_end_is_dropped_once_on_a_shard_and_its_handle_says_so() {
    const PIECES: usize = 500;
    let runtime = runtime(2);
    let dropped = Arc::new(AtomicUsize::new(0));
    let (started, starts) = mpsc::channel();
    // Both shards are held, so that what is submitted meanwhile is still there when they end.
    let releases: Vec<_> = (0..2_u16)
        .map(|shard| {
            let (release, released) = mpsc::channel::<()>();
            let (started, dropped) = (started.clone(), dropped.clone());
            let held = runtime.handle().spawn_on(shard, move || async move {
                let handles: Vec<_> = (0..PIECES)
                    .map(|_| {
                        let witness = Witness {
                            dropped: dropped.clone(),
                        };
                        offload(move || drop(witness))
                    })
                    .collect();
                started.send(handles).unwrap();
                assert!(released.recv_timeout(LIMIT).is_err(), "let go of");
            });
            drop(held);
            release
        })
        .collect();
    let handles: Vec<_> = (0..2)
        .flat_map(|_| starts.recv_timeout(LIMIT).unwrap())
        .collect();
    let handle = runtime.handle().clone();
    let ending = std::thread::spawn(move || runtime.shutdown());
    while !handle.is_shutting_down() {
        std::thread::yield_now();
    }
    drop(releases);
    ending.join().unwrap();
    assert_eq!(dropped.load(Ordering::Relaxed), 2 * PIECES);
    for handle in handles {
        assert!(resolved(handle).unwrap_err().is_cancelled());
    }
}

#[test]
fn work_for_a_runtime_that_has_ended_is_cancelled_at_once() {
    let runtime = runtime(2);
    let handle = runtime.handle().clone();
    runtime.shutdown();
    let closure = handle.offload(|| ());
    let task = handle.spawn_anywhere(|| async {});
    assert!(resolved(closure).unwrap_err().is_cancelled());
    assert!(resolved(task).unwrap_err().is_cancelled());
}

#[test]
fn what_a_destructor_submits_at_the_end_is_cancelled() {
    struct Submits(mpsc::Sender<FloatHandle<()>>);
    impl Drop for Submits {
        fn drop(&mut self) {
            self.0.send(offload(|| ())).unwrap();
        }
    }
    let runtime = runtime(2);
    let (sender, handles) = mpsc::channel();
    runtime.run_on(0, move || async move {
        spawn(async move {
            let _submits = Submits(sender);
            std::future::pending::<()>().await;
        })
        .detach();
        yield_now().await;
    });
    runtime.shutdown();
    let handle = handles.recv_timeout(LIMIT).unwrap();
    assert!(resolved(handle).unwrap_err().is_cancelled());
}

#[test]
fn a_shard_of_another_runtime_submits_like_any_thread() {
    let (near, far) = (runtime(1), runtime(2));
    let handle = far.handle().clone();
    near.run_on(0, move || async move {
        let count = handle
            .spawn_anywhere(|| async { Handle::current().unwrap().shard_count() })
            .await
            .unwrap();
        assert_eq!(count, 2);
    });
}

#[test]
#[should_panic(expected = "use `Handle::offload` from outside")]
fn a_thread_that_is_no_shard_is_told_what_to_call() {
    drop(offload(|| ()));
}

#[test]
fn handles_cross_threads_and_tasks_need_not() {
    fn is_send<T: Send + Unpin>(_: &T) {}
    runtime(1).run_on(0, || async {
        let handle = spawn_anywhere(|| async {
            let not_send = Rc::new(1);
            yield_now().await;
            *not_send
        });
        is_send(&handle);
        assert_eq!(handle.await.unwrap(), 1);
    });
}
