//! The end of a runtime: its phases, what tasks may do in each, what is reported, and that nothing is left.

use std::cell::RefCell;
use std::fs;
use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use greenroom_runtime::shutdown::{Phase, is_shutting_down, shutdown_signal, until_shutdown};
use greenroom_runtime::time::sleep;
use greenroom_runtime::{Builder, Handle, Runtime, spawn, yield_now};

/// Longer than any test takes that does what it should.
const LONG: Duration = Duration::from_secs(60);

fn runtime(shards: usize) -> Runtime {
    Builder::new().shards(shards).start().unwrap()
}

/// Counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Runs something when dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn tasks_that_heed_the_signal_finish_and_the_grace_is_not_used_up() {
    let runtime = runtime(2);
    let done = Arc::new(AtomicUsize::new(0));
    for shard in runtime.handle().shards() {
        let done = done.clone();
        runtime.run_on(shard, move || async move {
            for _ in 0..10 {
                let done = done.clone();
                spawn(async move {
                    shutdown_signal().await;
                    assert!(is_shutting_down());
                    // The last thing to do takes a while, and help.
                    spawn(sleep(Duration::from_millis(2))).await.unwrap();
                    done.fetch_add(1, Ordering::SeqCst);
                })
                .detach();
            }
            assert!(!is_shutting_down());
        });
    }
    let report = runtime.shutdown_within(LONG);
    assert_eq!(done.load(Ordering::SeqCst), 20);
    assert_eq!((report.dropped_tasks(), report.stuck().count()), (0, 0));
}

#[test]
fn tasks_that_do_not_are_dropped_when_the_grace_is_over() {
    let runtime = runtime(2);
    let dropped = Arc::new(AtomicUsize::new(0));
    for shard in runtime.handle().shards() {
        let dropped = dropped.clone();
        runtime.run_on(shard, move || async move {
            for _ in 0..=shard.index() {
                let counted = Counted(dropped.clone());
                spawn(async move {
                    let _counted = counted;
                    pending::<()>().await;
                })
                .detach();
            }
        });
    }
    let report = runtime.shutdown_within(Duration::from_millis(5));
    assert_eq!(dropped.load(Ordering::SeqCst), 3);
    let each: Vec<_> = report
        .shards()
        .iter()
        .map(|shard| (shard.shard().index(), shard.dropped_tasks()))
        .collect();
    assert_eq!(each, [(0, 1), (1, 2)]);
}

#[test]
fn a_busy_task_is_dropped_as_well_when_the_grace_is_over() {
    let runtime = runtime(1);
    runtime.run_on(0, || async {
        spawn(async {
            loop {
                yield_now().await;
            }
        })
        .detach();
    });
    assert_eq!(
        runtime
            .shutdown_within(Duration::from_millis(5))
            .dropped_tasks(),
        1
    );
}

#[test]
fn while_draining_tasks_may_spawn_anywhere_and_nobody_outside_may() {
    let runtime = runtime(2);
    let handle = runtime.handle().clone();
    let (draining, is_draining) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let finished = handle.spawn_on(0, move || async move {
        shutdown_signal().await;
        draining.send(()).unwrap();
        while may_go_on.try_recv() == Err(mpsc::TryRecvError::Empty) {
            yield_now().await;
        }
        let here = spawn(async { 1 }).await.unwrap();
        let there = Handle::current().unwrap().spawn_on(1, || async { 2 });
        here + there.await.unwrap()
    });
    let ending = thread::spawn(move || runtime.shutdown_within(LONG));
    is_draining.recv().unwrap();
    assert!(handle.is_shutting_down());
    let late = handle.spawn_on(0, || async { 3 });
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(late) = pin!(late).poll(&mut cx) else {
        panic!("a refused task has nothing to wait for");
    };
    assert!(late.unwrap_err().is_cancelled());
    drop(go_on);
    assert_eq!(ending.join().unwrap().dropped_tasks(), 0);
    let Poll::Ready(sum) = pin!(finished).poll(&mut cx) else {
        panic!("it ended with its shard");
    };
    assert_eq!(sum.unwrap(), 3);
}

#[test]
fn a_message_sent_before_the_shutdown_begins_is_run_in_it() {
    for _ in 0..50 {
        let runtime = runtime(2);
        let ran = Arc::new(AtomicUsize::new(0));
        for shard in runtime.handle().shards() {
            let counted = Counted(ran.clone());
            runtime
                .handle()
                .spawn_on(shard, || async move { drop(counted) })
                .detach();
        }
        let report = runtime.shutdown_within(LONG);
        assert_eq!(ran.load(Ordering::SeqCst), 2);
        let refused: usize = report
            .shards()
            .iter()
            .map(|shard| shard.refused_jobs())
            .sum();
        assert_eq!((report.dropped_tasks(), refused), (0, 0));
    }
}

#[test]
fn a_shutdown_that_a_task_begins_ends_the_shards_without_help() {
    let runtime = runtime(2);
    let dropped = Arc::new(AtomicUsize::new(0));
    let (gone, all_gone) = mpsc::channel::<()>();
    for shard in runtime.handle().shards() {
        let counted = Counted(dropped.clone());
        let gone = gone.clone();
        runtime.run_on(shard, move || async move {
            spawn(async move {
                let _both = (counted, gone);
                pending::<()>().await;
            })
            .detach();
        });
    }
    drop(gone);
    runtime.run_on(0, || async {
        let handle = Handle::current().unwrap();
        handle.begin_shutdown(LONG);
        assert!(is_shutting_down());
        // A second one can only shorten it.
        handle.begin_shutdown(Duration::from_millis(5));
        handle.begin_shutdown(LONG);
    });
    all_gone.recv().unwrap_err();
    assert_eq!(dropped.load(Ordering::SeqCst), 2);
    assert_eq!(runtime.shutdown().dropped_tasks(), 2);
}

#[test]
fn the_signal_is_heard_outside_and_by_those_who_come_late() {
    let runtime = runtime(1);
    let mut early = runtime.handle().shutdown_signal();
    let forgotten = runtime.handle().shutdown_signal();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(pin!(&mut early).poll(&mut cx).is_pending());
    assert!(pin!(forgotten).poll(&mut cx).is_pending());
    runtime.handle().begin_shutdown(LONG);
    runtime.block_on(early);
    runtime.block_on(runtime.handle().shutdown_signal());
    // There is nothing to wait for, and a signal to end by is not needed any more.
    runtime.wait_for_termination().unwrap();
    runtime.shutdown();
}

#[test]
fn until_shutdown_drops_what_it_ran_and_prefers_the_end() {
    let runtime = runtime(1);
    let (begin, may_begin) = mpsc::channel();
    let done = runtime.handle().spawn_on(0, move || async move {
        assert_eq!(until_shutdown(async { 1 }).await, Some(1));
        begin.send(()).unwrap();
        let dropped = Arc::new(AtomicUsize::new(0));
        let counted = Counted(dropped.clone());
        let waited = until_shutdown(async move {
            let _counted = counted;
            pending::<()>().await;
        });
        assert_eq!(waited.await, None);
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
        assert_eq!(until_shutdown(async { 1 }).await, None);
    });
    may_begin.recv().unwrap();
    let report = runtime.shutdown_within(LONG);
    assert_eq!(report.dropped_tasks(), 0);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(matches!(pin!(done).poll(&mut cx), Poll::Ready(Ok(()))));
}

#[test]
fn what_destructors_spawn_wake_and_send_at_the_end_is_contained() {
    for round in 0..50_u16 {
        let runtime = runtime(2);
        let dropped = Arc::new(AtomicUsize::new(0));
        for shard in runtime.handle().shards() {
            let dropped = dropped.clone();
            runtime.run_on(shard, move || async move {
                let handle = Handle::current().unwrap();
                let wakers = Arc::new(Mutex::new(Vec::<Waker>::new()));
                for _ in 0..20 {
                    let (wakers, theirs) = (wakers.clone(), wakers.clone());
                    let (handle, dropped) = (handle.clone(), dropped.clone());
                    let at_end = OnDrop(move || {
                        // A task of this shard, which is dropped at once and says so.
                        let counted = Counted(dropped.clone());
                        let late = spawn(async move { drop(counted) });
                        let mut cx = Context::from_waker(Waker::noop());
                        let Poll::Ready(late) = pin!(late).poll(&mut cx) else {
                            panic!("nothing is spawned any more");
                        };
                        assert!(late.unwrap_err().is_cancelled());
                        // Tasks of this shard, some of them gone.
                        for waker in theirs.lock().unwrap().iter() {
                            waker.wake_by_ref();
                        }
                        // The other shard, which may be gone or not.
                        let counted = Counted(dropped.clone());
                        handle
                            .spawn_on(round % 2, || async move { drop(counted) })
                            .detach();
                    });
                    spawn(async move {
                        let _at_end = at_end;
                        poll_fn(|cx| {
                            wakers.lock().unwrap().push(cx.waker().clone());
                            Poll::<()>::Pending
                        })
                        .await;
                    })
                    .detach();
                }
                yield_now().await;
            });
        }
        let report = runtime.shutdown();
        // And those that reached the other shard in its last turn.
        assert!(report.dropped_tasks() >= 40);
        assert_eq!(report.leaked_operations(), 0);
        // Each of the 40 left two things to drop, wherever they got to.
        assert_eq!(dropped.load(Ordering::SeqCst), 80);
    }
}

#[test]
fn a_thousand_runtimes_leave_no_thread_and_no_descriptor() {
    // Alone in a process, as it counts what belongs to one.
    const TEST: &str = "a_thousand_runtimes_leave_no_thread_and_no_descriptor";
    if std::env::var("ALONE").as_deref() != Ok(TEST) {
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", TEST])
            .env("ALONE", TEST)
            .status();
        assert!(status.unwrap().success());
        return;
    }
    let start = |round: usize| {
        Builder::new()
            .shards(1 + round % 3)
            .thread_name("thousand")
            .start()
            .unwrap()
    };
    drop(start(0));
    let before = descriptors();
    for round in 0..1000 {
        let runtime = start(round);
        match round % 4 {
            0 => {
                runtime.shutdown();
            }
            1 => {
                runtime.run_on(0, || async { spawn(pending::<()>()).detach() });
                runtime.shutdown_within(Duration::from_nanos(1));
            }
            2 => drop(runtime.handle().run_blocking(|| ())),
            _ => drop(runtime),
        }
    }
    assert_eq!(threads("thousand"), 0);
    assert_eq!(descriptors(), before);
}

#[test]
fn a_runtime_dropped_by_one_of_its_own_tasks_ends_by_itself() {
    let (gone, is_gone) = mpsc::channel::<()>();
    let runtime = runtime(2);
    let handle = runtime.handle().clone();
    handle
        .spawn_on(1, move || async move {
            spawn(async move {
                let _gone = gone;
                pending::<()>().await;
            })
            .detach();
            yield_now().await;
            drop(runtime);
            pending::<()>().await;
        })
        .detach();
    is_gone.recv().unwrap_err();
    assert!(handle.is_shutting_down());
}

#[test]
fn a_runtime_on_the_shard_of_another_one_may_be_shut_down_there() {
    let outer = runtime(1);
    let sum = outer.run_on(0, || async {
        let handle = {
            let inner = runtime(1);
            let (tell, told) = mpsc::channel();
            let never = move || async move {
                tell.send(()).unwrap();
                pending::<()>().await;
            };
            inner.handle().spawn_on(0, never).detach();
            told.recv().unwrap();
            let handle = inner.handle().clone();
            assert_eq!(inner.shutdown().dropped_tasks(), 1);
            handle
        };
        assert!(handle.is_shutting_down());
        assert!(!is_shutting_down());
        spawn(async { 1 }).await.unwrap() + 1
    });
    assert_eq!(sum, 2);
}

#[test]
fn a_runtime_cannot_wait_for_itself() {
    let runtime = runtime(1);
    let handle = runtime.handle().clone();
    let (tell, told) = mpsc::channel();
    handle
        .spawn_on(0, move || async move {
            let refused = catch_unwind(AssertUnwindSafe(|| runtime.shutdown())).unwrap_err();
            let text = refused.downcast_ref::<&str>().copied().unwrap_or_default();
            tell.send(text).unwrap();
        })
        .detach();
    let text = told.recv().unwrap();
    assert!(text.contains("begin_shutdown"), "{text}");
    assert!(handle.is_shutting_down());
}

/// Waits for a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    runtime(1).block_on(future)
}

#[test]
fn wakes_from_destructors_of_a_shards_thread_locals_do_nothing() {
    type AtEnd = OnDrop<Box<dyn FnMut()>>;
    thread_local! {
        static LAST: RefCell<Option<AtEnd>> = const { RefCell::new(None) };
    }
    let ran = Arc::new(AtomicUsize::new(0));
    let runtime = runtime(1);
    let counted = ran.clone();
    runtime.run_on(0, move || async move {
        let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
        let handle = Handle::current().unwrap();
        LAST.set(Some(OnDrop(Box::new(move || {
            waker.wake_by_ref();
            assert!(!is_shutting_down(), "no shard is current any more");
            handle.spawn_on(0, || async {}).detach();
            counted.fetch_add(1, Ordering::SeqCst);
        }))));
    });
    runtime.shutdown();
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[test]
fn a_task_that_blocks_its_shard_is_named_and_left_behind() {
    let runtime = short(2);
    let (release, blocked) = mpsc::channel::<()>();
    let (started, has_started) = mpsc::channel();
    let dropped = Arc::new(AtomicUsize::new(0));
    let counted = Counted(dropped.clone());
    runtime
        .handle()
        .spawn_on(1, move || async move {
            started.send(()).unwrap();
            blocked.recv().unwrap_err();
        })
        .detach();
    runtime.run_on(0, move || async move {
        spawn(async move {
            let _counted = counted;
            pending::<()>().await;
        })
        .detach();
    });
    has_started.recv().unwrap();
    let report = runtime.shutdown();
    let stuck: Vec<_> = report.stuck().collect();
    assert_eq!(stuck.len(), 1);
    assert_eq!(
        (stuck[0].shard().index(), stuck[0].phase()),
        (1, Phase::Running)
    );
    assert!(stuck[0].since() >= SHORT);
    assert!(
        stuck[0].to_string().starts_with("shard 1 did not answer"),
        "{}",
        stuck[0]
    );
    // The other one went all the way.
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    assert_eq!(report.shards()[0].stuck(), None);
    drop(release);
}

#[test]
fn a_destructor_that_never_returns_is_named_and_left_behind() {
    let runtime = short(2);
    let (release, blocked) = mpsc::channel::<()>();
    runtime.run_on(0, move || async move {
        let never = OnDrop(move || {
            blocked.recv().unwrap_err();
        });
        spawn(async move {
            let _never = never;
            pending::<()>().await;
        })
        .detach();
        yield_now().await;
    });
    let report = runtime.shutdown();
    let stuck: Vec<_> = report.stuck().collect();
    assert_eq!(
        (stuck[0].shard().index(), stuck[0].phase()),
        (0, Phase::Cancelling)
    );
    assert_eq!(stuck.len(), 1);
    drop(release);
}

#[test]
fn a_job_of_the_pool_that_never_ends_is_counted_and_left_behind() {
    let runtime = short(1);
    let (release, blocked) = mpsc::channel::<()>();
    let (started, has_started) = mpsc::channel();
    let job = runtime.handle().run_blocking(move || {
        started.send(()).unwrap();
        blocked.recv().unwrap_err();
    });
    has_started.recv().unwrap();
    let report = runtime.shutdown();
    assert_eq!((report.stuck_jobs(), report.stuck().count()), (1, 0));
    drop(release);
    block_on(job).unwrap();
}

/// A runtime that gives up soon.
fn short(shards: usize) -> Runtime {
    Builder::new()
        .shards(shards)
        .shutdown_limit(SHORT)
        .start()
        .unwrap()
}

const SHORT: Duration = Duration::from_millis(200);

/// How many threads of this process have such a name.
fn threads(name: &str) -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    tasks
        .filter(|task| {
            let comm = task.as_ref().unwrap().path().join("comm");
            fs::read_to_string(comm).is_ok_and(|comm| comm.starts_with(name))
        })
        .count()
}

/// How many descriptors this process has open.
fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}
