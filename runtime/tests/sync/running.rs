//! The primitives in tasks: between shards, with threads that are no shards, and at the end of a runtime.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::thread;

use greenroom_runtime::sync::{self, cross};
use greenroom_runtime::task::JoinSet;
use greenroom_runtime::{Builder, Handle, Runtime, spawn, yield_now};

fn runtime(shards: usize) -> Runtime {
    Builder::new().shards(shards).start().unwrap()
}

#[test]
fn values_from_shards_and_threads_come_once_and_in_order() {
    const EACH: usize = 2000;
    let runtime = runtime(3);
    let (sender, mut receiver) = cross::mpsc::channel(4);
    let mut producers = Vec::new();
    for shard in 0..3_u16 {
        let sender = sender.clone();
        producers.push(runtime.handle().spawn_on(shard, move || async move {
            for number in 0..EACH {
                sender.send((usize::from(shard), number)).await.unwrap();
            }
        }));
    }
    let thread = thread::spawn({
        let other = Builder::new().shards(1).start().unwrap();
        move || {
            other.block_on(async {
                for number in 0..EACH {
                    sender.reserve().await.unwrap().send((3, number)).unwrap();
                }
            });
        }
    });
    let next = runtime.run_on(1, || async move {
        let mut next = [0; 4];
        let mut buffer = Vec::new();
        while receiver.recv_many(&mut buffer, 3).await > 0 {
            for (from, number) in buffer.drain(..) {
                assert_eq!(number, next[from]);
                next[from] += 1;
            }
        }
        next
    });
    assert_eq!(next, [EACH; 4]);
    thread.join().unwrap();
    for producer in producers {
        runtime.block_on(producer).unwrap();
    }
}

#[test]
fn senders_on_other_shards_hear_that_the_receiver_is_gone() {
    let runtime = runtime(2);
    let (sender, receiver) = cross::mpsc::channel(1);
    sender.try_send(0).unwrap();
    let waiting: Vec<_> = (0..10)
        .map(|number| {
            let sender = sender.clone();
            let send = move || async move { sender.send(number).await };
            runtime.handle().spawn_on(1, send)
        })
        .collect();
    let drops = runtime.handle().spawn_on(0, move || async move {
        yield_now().await;
        drop(receiver);
    });
    for (number, task) in (0..).zip(waiting) {
        let sent = runtime.block_on(task).unwrap();
        assert_eq!(sent, Err(cross::mpsc::SendError(number)));
    }
    runtime.block_on(drops).unwrap();
}

#[test]
fn a_runtime_that_ends_closes_what_its_tasks_held() {
    let first = runtime(2);
    let other = runtime(1);
    let (sender, mut values) = cross::mpsc::channel::<u8>(1);
    let (answer, question) = cross::oneshot::channel::<u8>();
    let gate = cross::Gate::new();
    let inside = gate.enter().unwrap();
    let (changes, mut watched) = cross::watch::channel(0);
    first
        .handle()
        .spawn_on(1, move || async move {
            let _held = (sender, answer, inside, changes);
            std::future::pending::<()>().await;
        })
        .detach();
    let thread = thread::spawn(move || first.shutdown());
    other.block_on(async {
        assert_eq!(values.recv().await, None);
        assert_eq!(question.await, Err(cross::oneshot::RecvError));
        gate.close().await;
        assert_eq!(watched.changed().await, Err(cross::watch::RecvError));
    });
    thread.join().unwrap();
}

const PERMITS: usize = 3;

/// How many permits are in use, counted until it is dropped.
struct Inside<'a> {
    counter: &'a AtomicUsize,
    permits: usize,
}

impl<'a> Inside<'a> {
    fn enter(counter: &'a AtomicUsize, permits: usize) -> Self {
        let before = counter.fetch_add(permits, Ordering::SeqCst);
        assert!(
            before + permits <= PERMITS,
            "{before} in use, {permits} more"
        );
        Self { counter, permits }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(self.permits, Ordering::SeqCst);
    }
}

#[test]
fn a_semaphore_between_shards_is_never_overdrawn() {
    let runtime = runtime(3);
    let semaphore = cross::Semaphore::new(PERMITS);
    let inside = Arc::new(AtomicUsize::new(0));
    runtime.run_on(0, {
        let semaphore = semaphore.clone();
        move || async move {
            let mut tasks = JoinSet::new();
            let runtime = Handle::current().unwrap();
            for index in 0..150_u16 {
                let (semaphore, inside) = (semaphore.clone(), inside.clone());
                let abort = tasks.spawn_on(&runtime, index % 3, move || async move {
                    for round in 0..10 {
                        let wanted = 1 + (round + usize::from(index)) % PERMITS;
                        let _permit = semaphore.acquire_many(wanted).await.unwrap();
                        // Goes before the permit does, also when the task is aborted.
                        let _counted = Inside::enter(&inside, wanted);
                        yield_now().await;
                    }
                });
                if index % 7 == 3 {
                    // Wherever it is: what it has or was given goes back.
                    yield_now().await;
                    abort.abort();
                }
            }
            while let Some(ended) = tasks.join_next().await {
                assert!(ended.is_ok() || ended.unwrap_err().is_cancelled());
                if tasks.is_empty() {
                    break;
                }
            }
        }
    });
    assert_eq!(semaphore.available_permits(), PERMITS);
}

#[test]
fn a_change_reaches_watchers_on_every_shard() {
    let runtime = runtime(3);
    let (sender, receiver) = cross::watch::channel(0);
    let watchers: Vec<_> = (0..3_u16)
        .map(|shard| {
            let mut receiver = receiver.clone();
            runtime.handle().spawn_on(shard, move || async move {
                let mut last = 0;
                while last < 500 {
                    receiver.changed().await.unwrap();
                    let seen = *receiver.borrow_and_update();
                    assert!(seen > last, "changes are seen in order, and once");
                    last = seen;
                }
            })
        })
        .collect();
    for number in 1..=500 {
        sender.send(number).unwrap();
    }
    for watcher in watchers {
        runtime.block_on(watcher).unwrap();
    }
}

#[test]
fn notifications_go_to_and_fro_between_shards() {
    let runtime = runtime(2);
    let (ping, pong) = (cross::Notify::new(), cross::Notify::new());
    let (heard, answer) = (ping.clone(), pong.clone());
    let other = runtime.handle().spawn_on(1, move || async move {
        for _ in 0..1000 {
            heard.notified().await;
            answer.notify_one();
        }
    });
    runtime.run_on(0, move || async move {
        for _ in 0..1000 {
            ping.notify_one();
            pong.notified().await;
        }
    });
    runtime.block_on(other).unwrap();
}

#[test]
fn thousands_of_tasks_wait_and_all_go_on() {
    runtime(1).run_on(0, || async {
        let notify = sync::Notify::new();
        let mut tasks = JoinSet::new();
        for index in 0..5000 {
            let notify = notify.clone();
            let abort = tasks.spawn(async move { notify.notified().await });
            if index % 5 == 0 {
                yield_now().await;
                abort.abort();
            }
        }
        yield_now().await;
        notify.notify_waiters();
        let mut ended = [0, 0];
        while let Some(outcome) = tasks.join_next().await {
            ended[usize::from(outcome.is_err())] += 1;
        }
        assert_eq!(ended, [4000, 1000]);
    });
}

#[test]
fn a_permit_survives_every_abort_of_who_is_given_it() {
    runtime(1).run_on(0, || async {
        let semaphore = sync::Semaphore::new(1);
        for round in 0..50 {
            let held = semaphore.try_acquire().unwrap();
            let tasks: Vec<_> = (0..10)
                .map(|_| {
                    let semaphore = semaphore.clone();
                    spawn(async move { drop(semaphore.acquire().await) })
                })
                .collect();
            yield_now().await;
            // Given to the first, woken, and not polled yet.
            drop(held);
            for task in tasks.iter().take(round % 11) {
                task.abort();
            }
            for task in tasks {
                let _ended_or_aborted = task.await;
            }
            assert_eq!(semaphore.available_permits(), 1);
        }
    });
}

#[test]
fn a_channel_that_is_always_ready_does_not_starve_the_others() {
    runtime(1).run_on(0, || async {
        let (sender, mut receiver) = sync::mpsc::channel(1000);
        let is_done = Rc::new(Cell::new(false));
        let stop = is_done.clone();
        let busy = spawn(async move {
            let mut passes = 0_u64;
            while !stop.get() {
                sender.send(passes).await.unwrap();
                assert_eq!(receiver.recv().await, Some(passes));
                passes += 1;
            }
        });
        // Without a budget the busy task would hold the shard for ever.
        yield_now().await;
        yield_now().await;
        is_done.set(true);
        busy.await.unwrap();
    });
}

#[test]
fn what_was_granted_is_kept_while_the_budget_is_spent() {
    runtime(1).run_on(0, || async {
        let semaphore = sync::Semaphore::new(0);
        let mut acquire = semaphore.acquire();
        let polled = poll_fn(|cx| Poll::Ready(std::pin::Pin::new(&mut acquire).poll(cx))).await;
        assert!(polled.is_pending());
        semaphore.add_permits(1);
        while greenroom_runtime::task::has_budget_remaining() {
            greenroom_runtime::task::consume_budget().await;
        }
        let polled = poll_fn(|cx| Poll::Ready(std::pin::Pin::new(&mut acquire).poll(cx))).await;
        assert!(polled.is_pending(), "nothing is ready without a budget");
        drop(acquire);
        assert_eq!(semaphore.available_permits(), 1);
    });
}
