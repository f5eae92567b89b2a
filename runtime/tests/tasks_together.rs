//! Tasks in sets, values that belong to tasks, and waiting for several futures at once.

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn, ready};
use std::rc::Rc;
use std::task::Poll;

use greenroom_runtime::sync::{Notify, mpsc, oneshot};
use greenroom_runtime::task::{AccessError, JoinSet, join, try_join};
use greenroom_runtime::{
    Builder, Handle, Runtime, ShardCounts, current_shard, select, spawn, task, task_local,
    yield_now,
};

fn runtime(shards: usize) -> Runtime {
    Builder::new().shards(shards).start().unwrap()
}

struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn tasks_of_a_set_are_joined_in_the_order_they_end() {
    runtime(1).run_on(0, || async {
        let mut set = JoinSet::new();
        let gates: Vec<_> = (0..4).map(|_| Notify::new()).collect();
        for (number, gate) in gates.iter().cloned().enumerate() {
            set.spawn(async move {
                gate.notified().await;
                number
            });
        }
        assert_eq!(set.len(), 4);
        for number in [2, 0, 3, 1] {
            gates[number].notify_one();
            assert_eq!(set.join_next().await.unwrap().unwrap(), number);
        }
        assert!(set.is_empty());
        assert!(set.join_next().await.is_none());
    });
}

#[test]
fn a_set_tells_which_task_failed() {
    runtime(2).run_on(0, || async {
        let mut set = JoinSet::new();
        let panics = set.spawn(async { panic!("planned") }).id();
        let aborted = set.spawn(pending());
        let far = Handle::current().unwrap();
        set.spawn_on(&far, 1, || async { current_shard() });
        aborted.abort();
        let nowhere = set.spawn_on(&far, 9, || async { current_shard() });
        assert_eq!(nowhere.id(), None);
        let mut seen = [0; 4];
        while let Some((id, outcome)) = set.join_next_with_id().await {
            match outcome {
                Ok(shard) => {
                    assert_eq!(shard, Some(1.into()));
                    seen[0] += 1;
                }
                Err(error) if error.is_panic() => {
                    assert_eq!(id, panics);
                    seen[1] += 1;
                }
                Err(_) if id == aborted.id() => seen[2] += 1,
                Err(_) => {
                    assert_eq!(id, None);
                    seen[3] += 1;
                }
            }
        }
        assert_eq!(seen, [1, 1, 1, 1]);
    });
}

#[test]
fn dropping_a_set_aborts_its_tasks_and_detaching_does_not() {
    runtime(1).run_on(0, || async {
        let dropped = Rc::new(Cell::new(0));
        let mut set = JoinSet::new();
        for _ in 0..3 {
            let counts = dropped.clone();
            set.spawn(async move {
                let _guard = OnDrop(|| counts.set(counts.get() + 1));
                pending::<()>().await;
            });
        }
        yield_now().await;
        drop(set);
        assert_eq!(dropped.get(), 3);

        let mut set = JoinSet::new();
        let (sender, receiver) = oneshot::channel();
        set.spawn(async move { sender.send(5).unwrap() });
        set.detach_all();
        assert!(set.is_empty());
        drop(set);
        assert_eq!(receiver.await, Ok(5));
    });
}

#[test]
fn a_set_that_is_shut_down_waits_for_the_shards_of_its_tasks() {
    runtime(2).run_on(0, || async {
        let far = Handle::current().unwrap();
        let mut set = JoinSet::new();
        for shard in [0, 1, 1] {
            set.spawn_on(&far, shard, pending::<()>);
        }
        set.spawn(async {});
        set.shutdown().await;
        assert!(set.is_empty());
        let count = || async { ShardCounts::current().unwrap().tasks };
        assert_eq!(far.spawn_on(1, count).await.unwrap(), 1);
    });
}

#[test]
fn a_set_is_looked_at_without_waiting() {
    runtime(1).run_on(0, || async {
        let mut set = JoinSet::new();
        assert!(set.try_join_next().is_none());
        set.insert(task::Builder::new().name("named").spawn(async { 1 }));
        assert!(set.try_join_next().is_none());
        yield_now().await;
        assert_eq!(set.try_join_next().unwrap().unwrap(), 1);
        assert!(set.try_join_next().is_none());
    });
}

#[test]
fn a_waiting_join_wakes_for_a_task_that_is_added_by_another() {
    runtime(1).run_on(0, || async {
        let mut set = JoinSet::new();
        let released = Notify::new();
        let waits = released.clone();
        set.spawn(async move { waits.notified().await });
        let other = spawn(async move {
            yield_now().await;
            released.notify_one();
        });
        set.join_next().await.unwrap().unwrap();
        other.await.unwrap();
    });
}

#[test]
fn thousands_of_tasks_of_a_set_are_all_joined() {
    let sum: u64 = runtime(2).run_on(0, || async {
        let far = Handle::current().unwrap();
        let mut set = JoinSet::new();
        for number in 0..5000_u64 {
            if number % 2 == 0 {
                set.spawn(async move { number });
            } else {
                set.spawn_on(&far, 1, move || async move { number });
            }
        }
        let mut sum = 0;
        while let Some(number) = set.join_next().await {
            sum += number.unwrap();
        }
        sum
    });
    assert_eq!(sum, 4999 * 5000 / 2);
}

task_local! {
    static NAME: String;
    static LEVEL: Cell<u32>;
}

#[test]
fn a_task_local_value_is_there_in_its_scope_alone() {
    runtime(1).run_on(0, || async {
        let scoped = spawn(NAME.scope("inner".to_owned(), async {
            assert_eq!(NAME.get(), "inner");
            yield_now().await;
            assert_eq!(NAME.with(String::len), 5);
            let nested = NAME.scope("nested".to_owned(), async {
                yield_now().await;
                NAME.get()
            });
            assert_eq!(nested.await, "nested");
            assert_eq!(NAME.sync_scope("sync".to_owned(), || NAME.get()), "sync");
            assert_eq!(NAME.get(), "inner");
            let child = spawn(async { NAME.try_with(|_| ()) });
            assert_eq!(
                child.await.unwrap(),
                Err(AccessError),
                "nothing is inherited"
            );
        }));
        let between = spawn(async {
            for _ in 0..5 {
                assert_eq!(NAME.try_with(|_| ()), Err(AccessError));
                yield_now().await;
            }
        });
        scoped.await.unwrap();
        between.await.unwrap();
    });
}

#[test]
fn two_tasks_with_one_key_have_values_of_their_own() {
    runtime(1).run_on(0, || async {
        let count = |start| {
            LEVEL.scope(Cell::new(start), async {
                for _ in 0..3 {
                    LEVEL.with(|level| level.set(level.get() + 1));
                    yield_now().await;
                }
                LEVEL.with(Cell::get)
            })
        };
        let (first, second) = (spawn(count(0)), spawn(count(100)));
        assert_eq!(first.await.unwrap(), 3);
        assert_eq!(second.await.unwrap(), 103);
    });
}

#[test]
fn a_task_local_value_is_gone_after_a_panic_in_its_scope() {
    runtime(1).run_on(0, || async {
        let scoped = spawn(NAME.scope("doomed".to_owned(), async {
            yield_now().await;
            std::panic::resume_unwind(Box::new("planned"));
        }));
        assert!(scoped.await.unwrap_err().is_panic());
        assert_eq!(NAME.try_with(|_| ()), Err(AccessError));
    });
}

#[test]
fn a_task_local_value_is_there_when_its_future_is_dropped() {
    runtime(1).run_on(0, || async {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let start = |notes: Rc<RefCell<Vec<String>>>| {
            NAME.scope("owner".to_owned(), async move {
                let _guard = OnDrop(|| notes.borrow_mut().push(NAME.get()));
                yield_now().await;
            })
        };
        let aborted = spawn(start(seen.clone()));
        yield_now().await;
        aborted.abort();
        NAME.scope("outer".to_owned(), start(seen.clone())).await;
        assert_eq!(*seen.borrow(), ["owner", "owner"]);
    });
}

#[test]
fn the_first_future_that_is_ready_is_selected_and_the_others_are_dropped() {
    runtime(1).run_on(0, || async {
        let dropped = Rc::new(Cell::new(false));
        let sets = dropped.clone();
        let loser = async move {
            let _guard = OnDrop(|| sets.set(true));
            pending::<u8>().await
        };
        let found = select! {
            number = loser => u32::from(number),
            () = yield_now() => {
                assert!(dropped.get(), "losers are gone when the winner is handled");
                7
            }
        };
        assert_eq!(found, 7);
    });
}

#[test]
fn a_selection_loses_no_value_of_a_channel() {
    runtime(1).run_on(0, || async {
        let (left, mut from_left) = mpsc::channel(1);
        let (right, mut from_right) = mpsc::channel(1);
        for (sender, start) in [(left, 0), (right, 1)] {
            spawn(async move {
                for number in 0..500_u64 {
                    sender.send(2 * number + start).await.unwrap();
                }
            })
            .detach();
        }
        let mut seen = vec![false; 1000];
        let mut open = 2;
        while open > 0 {
            let found = select! {
                found = from_left.recv() => found,
                found = from_right.recv() => found,
            };
            match found {
                Some(number) => {
                    let index = usize::try_from(number).unwrap();
                    assert!(!std::mem::replace(&mut seen[index], true));
                }
                None => {
                    // One is finished, and is ready for ever: the rest comes from the other.
                    open = 0;
                    while let Some(number) = from_left.recv().await {
                        seen[usize::try_from(number).unwrap()] = true;
                    }
                    while let Some(number) = from_right.recv().await {
                        seen[usize::try_from(number).unwrap()] = true;
                    }
                }
            }
        }
        assert!(seen.into_iter().all(|seen| seen));
    });
}

#[test]
fn a_selection_starves_none_of_its_branches_unless_it_is_biased() {
    runtime(1).run_on(0, || async {
        let mut counts = [0; 3];
        for _ in 0..300 {
            let index = select! {
                () = ready(()) => 0,
                () = ready(()) => 1,
                () = ready(()) => 2
            };
            counts[index] += 1;
        }
        assert!(counts.iter().all(|&count| count > 30), "{counts:?}");
        for _ in 0..100 {
            select! {
                biased;
                () = ready(()) => {}
                () = ready(()) => unreachable!("the first one is ready"),
            }
        }
    });
}

#[test]
fn a_selected_branch_may_leave_the_function_and_the_loop() {
    async fn first_error(results: [Result<u8, &'static str>; 2]) -> Result<u8, &'static str> {
        let mut sum = 0;
        for result in results {
            select! {
                result = ready(result) => sum += result?,
                () = pending() => return Err("never"),
            }
        }
        for _ in 0..3 {
            select! {
                () = ready(()) => break,
                () = pending() => continue,
            }
        }
        Ok(sum)
    }
    runtime(1).run_on(0, || async {
        assert_eq!(first_error([Ok(1), Ok(2)]).await, Ok(3));
        assert_eq!(first_error([Ok(1), Err("second")]).await, Err("second"));
    });
}

#[test]
fn joined_futures_run_at_the_same_time() {
    runtime(1).run_on(0, || async {
        let (sender, receiver) = oneshot::channel();
        let (received, ()) = join!(receiver, async { sender.send(3).unwrap() });
        assert_eq!(received, Ok(3));
        let never = pending::<Result<(), &str>>();
        let failed: Result<((), ()), &str> = try_join!(never, ready(Err("at once")));
        assert_eq!(failed, Err("at once"));
    });
}

#[test]
fn a_selection_of_a_mutable_reference_goes_on_later() {
    runtime(1).run_on(0, || async {
        let mut polls = 0;
        let mut slow = std::pin::pin!(poll_fn(|cx| {
            polls += 1;
            cx.waker().wake_by_ref();
            if polls < 3 {
                Poll::Pending
            } else {
                Poll::Ready(polls)
            }
        }));
        let mut passes = 0;
        let polls = loop {
            select! {
                biased;
                polls = &mut slow => break polls,
                () = ready(()) => passes += 1,
            }
        };
        assert_eq!((polls, passes), (3, 2));
    });
}
