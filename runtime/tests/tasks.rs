//! Tasks, through the public API: their names, their ids, and aborting them from anywhere.

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::thread;

use greenroom_runtime::task::{self, AbortHandle, FirstPoll, Id};
use greenroom_runtime::{Builder, Handle, Runtime, ShardCounts, spawn, yield_now};

fn runtime(shards: usize) -> Runtime {
    Builder::new().shards(shards).start().unwrap()
}

/// Runs its closure when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn a_task_has_an_id_of_its_own_that_its_handle_knows() {
    runtime(1).run_on(0, || async {
        let mut seen: Vec<Id> = Vec::new();
        for _ in 0..100 {
            let task = spawn(async { task::id() });
            let id = task.id();
            assert_eq!(task.await.unwrap(), Some(id));
            assert!(!seen.contains(&id), "slots are used again, ids are not");
            seen.push(id);
        }
        assert!(seen.is_sorted());
    });
    assert_eq!(task::id(), None, "this thread is no shard");
}

#[test]
fn the_id_during_a_drop_is_that_of_the_task_whose_future_is_dropped() {
    runtime(1).run_on(0, || async {
        let seen = Rc::new(Cell::new(None));
        let sets = seen.clone();
        let victim = spawn(async move {
            let _guard = OnDrop(move || sets.set(task::id()));
            pending::<()>().await;
        });
        yield_now().await;
        let mine = task::id();
        victim.abort();
        assert_eq!(seen.get(), Some(victim.id()));
        assert_eq!(
            task::id(),
            mine,
            "the aborting task is the running one again"
        );
    });
}

#[test]
fn a_name_is_kept_and_most_tasks_have_none() {
    runtime(1).run_on(0, || async {
        let fixed = task::Builder::new().name("sweeper").spawn(async {});
        let made = task::Builder::new()
            .name(format!("peer {}", 7))
            .spawn(async {});
        assert_eq!(fixed.name(), Some("sweeper"));
        assert_eq!(made.name(), Some("peer 7"));
        assert_eq!(spawn(async {}).name(), None);
        fixed.await.unwrap();
        made.await.unwrap();
    });
}

#[test]
fn an_abort_from_another_thread_drops_the_future_on_its_shard() {
    runtime(1).run_on(0, || async {
        let home = thread::current().id();
        let dropped = Rc::new(Cell::new(false));
        let sets = dropped.clone();
        let victim = spawn(async move {
            let _guard = OnDrop(move || {
                assert_eq!(thread::current().id(), home);
                sets.set(true);
            });
            pending::<()>().await;
        });
        yield_now().await;
        let abort = victim.abort_handle();
        thread::spawn(move || abort.abort());
        assert!(victim.await.unwrap_err().is_cancelled());
        assert!(dropped.get());
    });
}

#[test]
fn an_abort_from_another_shard_arrives() {
    runtime(2).run_on(0, || async {
        let victim = spawn(pending::<()>());
        let abort = victim.abort_handle();
        let there = Handle::current()
            .unwrap()
            .spawn_on(1, move || async move { abort.abort() });
        assert!(victim.await.unwrap_err().is_cancelled());
        there.await.unwrap();
    });
}

#[test]
fn a_late_abort_hits_nobody() {
    runtime(1).run_on(0, || async {
        let ended = spawn(async {});
        let late = ended.abort_handle();
        ended.await.unwrap();
        // The slot of the one that ended is the first to be used again.
        let neighbours: Vec<_> = (0..4).map(|n| spawn(async move { n })).collect();
        late.abort();
        let from_outside = late.clone();
        let thread = thread::spawn(move || from_outside.abort());
        for (n, neighbour) in neighbours.into_iter().enumerate() {
            assert_eq!(neighbour.await.unwrap(), n);
        }
        thread.join().unwrap();
    });
}

#[test]
fn an_abort_handle_outlives_its_runtime() {
    let abort = {
        let runtime = runtime(1);
        runtime.run_on(0, || async { spawn(pending::<()>()).abort_handle() })
    };
    abort.abort();
    let again = runtime(1);
    let survivor = again.run_on(0, move || async move {
        let survivor = spawn(async { 5 });
        abort.abort();
        survivor.await.unwrap()
    });
    assert_eq!(survivor, 5);
}

#[test]
fn a_task_that_aborts_itself_ends_when_its_poll_returns() {
    runtime(1).run_on(0, || async {
        let polls = Rc::new(Cell::new(0));
        let slot: Rc<RefCell<Option<AbortHandle>>> = Rc::default();
        let (counts, own) = (polls.clone(), slot.clone());
        let task = spawn(poll_fn(move |cx| {
            counts.set(counts.get() + 1);
            own.borrow().as_ref().unwrap().abort();
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        }));
        *slot.borrow_mut() = Some(task.abort_handle());
        assert!(task.await.unwrap_err().is_cancelled());
        assert_eq!(polls.get(), 1);
    });
}

#[test]
fn an_abort_of_the_task_that_aborts_us_takes_both() {
    // The victim's destructor aborts the task in whose poll it is dropped.
    runtime(1).run_on(0, || async {
        let outer_abort: Rc<RefCell<Option<AbortHandle>>> = Rc::default();
        let theirs = outer_abort.clone();
        let victim = spawn(async move {
            let _guard = OnDrop(move || theirs.borrow().as_ref().unwrap().abort());
            pending::<()>().await;
        });
        yield_now().await;
        let outer = spawn(async move {
            victim.abort();
            pending::<()>().await;
        });
        *outer_abort.borrow_mut() = Some(outer.abort_handle());
        assert!(outer.await.unwrap_err().is_cancelled());
    });
}

#[test]
fn a_waiter_whose_waker_panics_does_not_take_the_shard_along() {
    use std::sync::Arc;
    use std::task::{Context, Wake};
    struct Bomb;
    impl Wake for Bomb {
        fn wake(self: Arc<Self>) {
            panic!("this waker cannot be woken");
        }
    }
    runtime(1).run_on(0, || async {
        let mut task = spawn(async { 3 });
        let bomb = Waker::from(Arc::new(Bomb));
        let polled = Box::pin(&mut task)
            .as_mut()
            .poll(&mut Context::from_waker(&bomb));
        assert!(polled.is_pending());
        let before = ShardCounts::current().unwrap().stray_panics;
        yield_now().await;
        assert!(task.is_finished());
        assert_eq!(ShardCounts::current().unwrap().stray_panics, before + 1);
        assert_eq!(task.await.unwrap(), 3);
    });
}

#[test]
fn a_remote_task_is_aborted_though_the_message_that_spawns_it_is_on_its_way() {
    runtime(1).run_on(0, || async {
        // To our own shard: nothing is taken from the injector before we give way.
        let made = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let sets = made.clone();
        let task = Handle::current().unwrap().spawn_on(0, move || async move {
            sets.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        assert_eq!(task.id(), None);
        assert_eq!(task.abort_handle().id(), None);
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        assert!(!made.load(std::sync::atomic::Ordering::SeqCst));
    });
}

#[test]
fn a_remote_task_is_known_and_aborted_from_any_thread() {
    let runtime = runtime(2);
    let task = task::Builder::new()
        .name("far")
        .spawn_on(runtime.handle(), 1, || async {
            yield_now().await;
            pending::<()>().await;
        });
    assert_eq!(task.shard(), 1.into());
    let abort = task.abort_handle();
    thread::spawn(move || abort.abort()).join().unwrap();
    assert!(runtime.block_on(task).unwrap_err().is_cancelled());
}

#[test]
fn a_remote_task_goes_on_when_its_handle_is_dropped() {
    let runtime = runtime(2);
    let (sender, done) = std::sync::mpsc::channel();
    let task = runtime.handle().spawn_on(1, move || async move {
        yield_now().await;
        sender.send(task::id()).unwrap();
    });
    task.detach();
    assert!(done.recv().unwrap().is_some());
}

#[test]
fn a_remote_task_resolves_when_its_shard_is_gone_or_never_was() {
    let other = runtime(1);
    let first = runtime(2);
    let handle = first.handle().clone();
    let pending = handle.spawn_on(1, pending::<()>);
    let nowhere = handle.spawn_on(7, || async {});
    first.shutdown();
    let late = handle.spawn_on(1, || async {});
    late.abort();
    for task in [pending, nowhere, late] {
        assert!(other.block_on(task).unwrap_err().is_cancelled());
    }
}

#[test]
fn a_factory_that_panics_is_the_failure_of_its_task() {
    let runtime = runtime(1);
    let task = runtime
        .handle()
        .spawn_on(0, || -> std::future::Ready<()> { panic!("no future") });
    let error = runtime.block_on(task).unwrap_err();
    assert!(error.to_string().ends_with("no future"), "{error}");
}

#[test]
fn a_task_that_starts_asleep_is_polled_when_it_is_woken_from_anywhere() {
    runtime(2).run_on(0, || async {
        let polls = Rc::new(Cell::new(0));
        let counts = polls.clone();
        let future = async move { counts.set(counts.get() + 1) };
        let (task, waker) = task::spawn_with_waker(FirstPoll::WhenWoken, future);
        for _ in 0..10 {
            yield_now().await;
        }
        assert_eq!((polls.get(), task.is_finished()), (0, false));
        thread::spawn(move || {
            waker.wake_by_ref();
            waker.wake();
        });
        task.await.unwrap();
        assert_eq!(polls.get(), 1);
    });
}

#[test]
fn a_task_that_is_never_woken_is_dropped_by_its_abort_or_with_its_shard() {
    let (dropped, drops) = std::sync::mpsc::channel();
    let system = runtime(1);
    let waker = system.run_on(0, move || async move {
        let sleeper = |name: &'static str| {
            let dropped = dropped.clone();
            let on_drop = OnDrop(move || dropped.send((name, task::id().is_some())).unwrap());
            let future = async move {
                let _on_drop = on_drop;
            };
            task::spawn_with_waker(FirstPoll::WhenWoken, future)
        };
        let (aborted, _) = sleeper("aborted");
        aborted.abort();
        assert!(aborted.await.unwrap_err().is_cancelled());
        let (left, waker) = sleeper("left");
        left.detach();
        waker
    });
    assert_eq!(drops.recv().unwrap(), ("aborted", true));
    assert!(drops.try_recv().is_err(), "it sleeps");
    drop(system);
    assert_eq!(drops.recv().unwrap(), ("left", true));
    // Keeps nothing alive, and outlives the shard.
    waker.wake();
}

#[test]
fn an_abort_may_go_through_more_tasks_than_the_stack_holds() {
    runtime(1).run_on(0, || async {
        let ended = Rc::new(Cell::new(0));
        let mut last: Option<AbortHandle> = None;
        let mut tasks = Vec::new();
        for _ in 0..20_000 {
            let (ended, before) = (ended.clone(), last.take());
            let task = spawn(async move {
                let _guard = OnDrop(move || {
                    ended.set(ended.get() + 1);
                    if let Some(before) = &before {
                        before.abort();
                    }
                });
                pending::<()>().await;
            });
            last = Some(task.abort_handle());
            tasks.push(task);
        }
        yield_now().await;
        last.unwrap().abort();
        assert_eq!(ended.get(), 20_000, "all of them within the first abort");
        for task in tasks {
            assert!(task.await.unwrap_err().is_cancelled());
        }
    });
}
