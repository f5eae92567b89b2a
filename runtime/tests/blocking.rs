//! The blocking pool: where jobs run, how many at a time, what becomes of them when nobody waits, and of the pool.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use greenroom_runtime::blocking::{self, BlockingCounts};
use greenroom_runtime::{Builder, Handle, Runtime, current_shard, spawn, yield_now};

fn runtime(threads: usize) -> Runtime {
    Builder::new()
        .shards(2)
        .blocking_threads(threads)
        .thread_name("jobs")
        .start()
        .unwrap()
}

/// Looks at the pool until it is as wanted.
#[track_caller]
fn until(handle: &Handle, wanted: impl Fn(&BlockingCounts) -> bool) -> BlockingCounts {
    let (_never, nothing) = mpsc::channel::<()>();
    for _ in 0..10_000 {
        let counts = handle.blocking_counts();
        if wanted(&counts) {
            return counts;
        }
        nothing.recv_timeout(Duration::from_millis(1)).unwrap_err();
    }
    panic!("the pool never came to it: {:?}", handle.blocking_counts());
}

/// Keeps one thread of the pool busy until the sender is dropped; returns when it is.
fn occupy(handle: &Handle) -> (mpsc::Sender<()>, blocking::BlockingHandle<()>) {
    let (release, wait) = mpsc::channel::<()>();
    let (busy, is_busy) = mpsc::channel();
    let job = handle.run_blocking(move || {
        busy.send(()).unwrap();
        wait.recv().unwrap_err();
    });
    is_busy.recv().unwrap();
    (release, job)
}

struct Notes(Arc<AtomicUsize>);

impl Drop for Notes {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_job_runs_off_the_shard_while_its_tasks_go_on() {
    runtime(4).run_on(0, || async {
        let (release, wait) = mpsc::channel::<()>();
        let job = blocking::run(move || {
            wait.recv().unwrap_err();
            (current_shard(), thread::current().name().map(str::to_owned))
        });
        // The shard runs this, while the job blocks.
        for _ in 0..100 {
            yield_now().await;
        }
        drop(release);
        let (shard, name) = job.await.unwrap();
        assert_eq!(shard, None);
        assert_eq!(name.as_deref(), Some("jobs-pool-0"));
    });
}

#[test]
fn every_shard_reaches_the_same_pool() {
    let runtime = runtime(8);
    let both = Arc::new(Barrier::new(2));
    // Each job waits for the other one, so they run at the same time.
    let jobs: Vec<_> = runtime
        .handle()
        .shards()
        .map(|shard| {
            let both = both.clone();
            runtime.handle().spawn_on(shard, || async move {
                blocking::run(move || both.wait().is_leader())
                    .await
                    .unwrap()
            })
        })
        .collect();
    let leaders: Vec<bool> = jobs
        .into_iter()
        .map(|job| runtime.block_on(job).unwrap())
        .collect();
    assert_eq!(leaders.iter().filter(|leads| **leads).count(), 1);
    assert_eq!(
        until(runtime.handle(), |counts| counts.done == 2).threads,
        2
    );
}

#[test]
fn a_panic_in_a_job_reaches_its_awaiter_and_costs_no_thread() {
    let runtime = runtime(1);
    runtime.run_on(0, || async {
        let number = current_shard().unwrap().index() + 7;
        let error = blocking::run(move || -> u32 { panic!("job {number}") })
            .await
            .unwrap_err();
        assert!(error.is_panic());
        let payload = error.try_into_panic().unwrap();
        assert_eq!(payload.downcast_ref::<String>().unwrap(), "job 7");
        assert_eq!(blocking::run(|| 8).await.unwrap(), 8);
    });
    assert_eq!(runtime.handle().blocking_counts().threads, 1);
}

#[test]
fn threads_are_made_when_needed_and_never_more_than_allowed() {
    let runtime = runtime(3);
    let handle = runtime.handle();
    assert_eq!(handle.blocking_counts().threads, 0);
    let most = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let jobs: Vec<_> = (0..50)
        .map(|_| {
            let most = most.clone();
            handle.run_blocking(move || {
                let now = most.0.fetch_add(1, Ordering::SeqCst) + 1;
                most.1.fetch_max(now, Ordering::SeqCst);
                thread::yield_now();
                most.0.fetch_sub(1, Ordering::SeqCst);
            })
        })
        .collect();
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
    assert!(most.1.load(Ordering::SeqCst) <= 3);
    assert!(handle.blocking_counts().threads <= 3);
}

#[test]
fn a_pool_of_no_threads_is_refused() {
    let error = Builder::new().blocking_threads(0).start().unwrap_err();
    assert!(error.is_config());
    assert!(error.to_string().contains("blocking_threads"), "{error}");
}

#[test]
fn jobs_wait_in_the_order_they_came_when_every_thread_is_busy() {
    let runtime = runtime(1);
    let (release, busy) = occupy(runtime.handle());
    let (note, notes) = mpsc::channel();
    let jobs: Vec<_> = (0..20)
        .map(|number| {
            let note = note.clone();
            runtime
                .handle()
                .run_blocking(move || note.send(number).unwrap())
        })
        .collect();
    assert_eq!(runtime.handle().blocking_counts().queued, 20);
    drop((release, note));
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
    runtime.block_on(busy).unwrap();
    assert_eq!(
        notes.iter().collect::<Vec<_>>(),
        (0..20).collect::<Vec<_>>()
    );
}

#[test]
fn a_full_line_gives_the_closure_back_until_there_is_room() {
    let runtime = Builder::new()
        .shards(1)
        .blocking_threads(1)
        .blocking_queue(2)
        .start()
        .unwrap();
    let (release, busy) = occupy(runtime.handle());
    runtime.run_on(0, move || async move {
        let first = blocking::try_run(|| 1).unwrap();
        let second = blocking::try_run(|| 2).unwrap();
        let value = String::from("kept");
        let Err(full) = blocking::try_run(move || value) else {
            panic!("the line held more than two");
        };
        assert!(full.to_string().contains("blocking_queue"), "{full}");
        assert_eq!(full.into_inner()(), "kept");
        // A place is free again when a job is taken out; one that waits is not refused.
        drop(second);
        let third = blocking::try_run(|| 3).unwrap();
        let fourth = blocking::run(|| 4);
        drop(release);
        assert_eq!(first.await.unwrap(), 1);
        assert_eq!(third.await.unwrap(), 3);
        assert_eq!(fourth.await.unwrap(), 4);
        busy.await.unwrap();
    });
}

#[test]
fn a_job_that_has_not_started_is_taken_out_by_the_drop_of_its_handle() {
    let runtime = runtime(1);
    let (release, busy) = occupy(runtime.handle());
    let dropped = Arc::new(AtomicUsize::new(0));
    let notes = Notes(dropped.clone());
    let job = runtime.handle().run_blocking(move || {
        let _notes = notes;
        panic!("a cancelled job ran");
    });
    assert_eq!(runtime.handle().blocking_counts().queued, 1);
    drop(job);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    assert_eq!(runtime.handle().blocking_counts().queued, 0);
    drop(release);
    runtime.block_on(busy).unwrap();
    assert_eq!(
        until(runtime.handle(), |counts| counts.running == 0).done,
        1
    );
}

#[test]
fn the_result_of_a_job_that_nobody_awaits_is_dropped_on_the_pool() {
    let runtime = runtime(1);
    let (release, wait) = mpsc::channel::<()>();
    let (started, has_started) = mpsc::channel();
    let (told, tells) = mpsc::channel();
    struct Tells(mpsc::Sender<Option<String>>);
    impl Drop for Tells {
        fn drop(&mut self) {
            let name = thread::current().name().map(str::to_owned);
            self.0.send(name).unwrap();
            panic!("a drop that panics costs no thread");
        }
    }
    let job = runtime.handle().run_blocking(move || {
        started.send(()).unwrap();
        wait.recv().unwrap_err();
        Tells(told)
    });
    has_started.recv().unwrap();
    drop(job);
    drop(release);
    assert_eq!(tells.recv().unwrap().as_deref(), Some("jobs-pool-0"));
    assert_eq!(
        runtime
            .block_on(runtime.handle().run_blocking(|| 1))
            .unwrap(),
        1
    );
    assert_eq!(
        until(runtime.handle(), |counts| counts.done == 2).threads,
        1
    );
}

#[test]
fn a_thread_of_the_pool_may_use_every_cpu_its_runtime_may() {
    let here = allowed();
    let runtime = Builder::new().shards(1).pin(true).start().unwrap();
    let (on_shard, on_pool) = runtime.run_on(0, || async {
        (allowed(), blocking::run(allowed).await.unwrap())
    });
    assert_eq!(on_shard.len(), 1);
    assert_eq!(on_pool, here);
}

/// What the kernel lets the calling thread run on, as it prints it.
fn allowed() -> BTreeSet<u32> {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .unwrap();
    line.trim()
        .split(',')
        .flat_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            first.parse::<u32>().unwrap()..=last.parse().unwrap()
        })
        .collect()
}

#[test]
fn an_idle_thread_ends_when_its_time_is_over_and_a_later_job_gets_another() {
    let runtime = Builder::new()
        .shards(1)
        .blocking_keep_alive(Duration::from_millis(1))
        .start()
        .unwrap();
    for round in 0..5 {
        let job = runtime.handle().run_blocking(move || round);
        assert_eq!(runtime.block_on(job).unwrap(), round);
        until(runtime.handle(), |counts| counts.threads == 0);
    }
}

#[test]
fn a_shutdown_drops_jobs_in_line_and_tells_their_awaiters() {
    let runtime = runtime(1);
    let handle = runtime.handle().clone();
    let (release, busy) = occupy(&handle);
    let waiting = handle.run_blocking(|| panic!("it ran after the shutdown"));
    let releases = thread::spawn(move || {
        // The line is empty when the pool has closed; what runs may then finish.
        until(&handle, |counts| counts.queued == 0);
        drop(release);
        handle
    });
    let report = runtime.shutdown();
    assert_eq!((report.dropped_jobs(), report.stuck_jobs()), (1, 0));
    let handle = releases.join().unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(waited) = pin!(waiting).poll(&mut cx) else {
        panic!("nobody will ever finish that job");
    };
    assert!(waited.unwrap_err().is_cancelled());
    let Poll::Ready(ran) = pin!(busy).poll(&mut cx) else {
        panic!("the job had finished");
    };
    ran.unwrap();
    let Poll::Ready(late) = pin!(handle.run_blocking(|| 1)).poll(&mut cx) else {
        panic!("a closed pool takes no job");
    };
    assert!(late.unwrap_err().is_cancelled());
    assert_eq!(handle.blocking_counts().threads, 0);
}

#[test]
fn a_task_that_is_dropped_by_the_shutdown_takes_its_job_along() {
    let runtime = runtime(1);
    let (release, busy) = occupy(runtime.handle());
    let dropped = Arc::new(AtomicUsize::new(0));
    let notes = Notes(dropped.clone());
    runtime.run_on(1, || async move {
        spawn(async move {
            blocking::run(move || drop(notes)).await.unwrap();
            pending::<()>().await;
        })
        .detach();
        yield_now().await;
    });
    assert_eq!(runtime.handle().blocking_counts().queued, 1);
    let handle = runtime.handle().clone();
    let releases = thread::spawn(move || {
        until(&handle, |counts| counts.queued == 0);
        drop(release);
    });
    assert_eq!(runtime.shutdown().dropped_jobs(), 0);
    releases.join().unwrap();
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    drop(busy);
}

#[test]
fn a_job_may_hand_over_a_job_and_wait_for_it() {
    let runtime = runtime(2);
    let handle = runtime.handle().clone();
    let outer = runtime.handle().run_blocking(move || {
        let (tell, told) = mpsc::channel();
        let inner = handle.run_blocking(move || tell.send(20).unwrap());
        let value: u32 = told.recv().unwrap();
        drop(inner);
        value + 2
    });
    assert_eq!(runtime.block_on(outer).unwrap(), 22);
}

#[test]
fn a_thread_that_is_no_shard_is_told_where_to_go() {
    let refused = catch_unwind(AssertUnwindSafe(|| drop(blocking::run(|| ())))).unwrap_err();
    let text = refused.downcast_ref::<String>().unwrap();
    assert!(text.contains("Handle::run_blocking"), "{text}");
}

#[test]
fn a_handle_is_send_whatever_waits_for_it() {
    fn is_send<T: Send>(_: &T) {}
    let runtime = runtime(1);
    let job = runtime.handle().run_blocking(|| Cell::new(3));
    is_send(&job);
    let there = runtime
        .handle()
        .spawn_on(1, move || async move { job.await.unwrap().get() });
    assert_eq!(runtime.block_on(there).unwrap(), 3);
}
