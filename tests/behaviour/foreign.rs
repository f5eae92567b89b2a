//! Calls made by what is no shard of the system: plain threads, other executors, and shards of another system.
//!
//! They complete, and they may be dropped in any state: before they are sent, in line for room, in the mailbox, and
//! while their handler runs. Nothing is lost, doubled or left behind.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use futures_channel::oneshot;
use futures_util::future::{Either, join_all, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use greenroom::prelude::*;
use greenroom_tests::{
    Ledger, PATIENCE, bounded, counts, hear, last_shard, ledger, on_shards, poll_once, settle,
    start,
};

const ALL: &[usize] = &[1, 2, 4];

/// An executor of one future, which is its thread: it parks between two wakes.
fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        // A wake that was lost is found by the bound of the test.
        thread::park();
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Counts how many of it there are.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Self(alive.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Takes what is counted, when its gates open.
#[derive(Default)]
struct Taker {
    taken: u32,
    busy: bool,
}

#[actor(mailbox = 2)]
impl Taker {
    pub(crate) fn take(&mut self, what: Counted) -> u32 {
        assert!(!self.busy, "one handler at a time");
        drop(what);
        self.taken += 1;
        self.taken
    }

    /// Says that it runs, and waits.
    pub(crate) async fn hold(
        &mut self,
        what: Counted,
        begun: mpsc::Sender<()>,
        gate: oneshot::Receiver<()>,
    ) -> u32 {
        self.busy = true;
        begun.send(()).ok();
        gate.await.ok();
        self.busy = false;
        self.take(what)
    }
}

/// An actor on the last shard that is busy until what is returned is dropped.
fn busy_taker(system: &System, alive: &Arc<AtomicUsize>) -> (Addr<Taker>, oneshot::Sender<()>) {
    let spawned = system.spawn_on(last_shard(system), Taker::default);
    let taker = system.block_on(spawned).unwrap();
    let (open, gate) = oneshot::channel();
    let (begun, has_begun) = mpsc::channel();
    let held = taker.hold(Counted::new(alive), begun, gate).tell();
    system.block_on(held).unwrap();
    hear(&has_begun);
    (taker, open)
}

#[test]
fn asks_and_tells_complete_on_a_thread_that_parks() {
    on_shards(ALL, |system| {
        let ledger: Addr<Ledger<4>> = ledger(system, last_shard(system));
        block_on(async {
            for number in 0..200 {
                ledger.note(0, number).tell().await.unwrap();
                assert_eq!(ledger.note_slowly(1, number).await.unwrap(), number);
            }
        });
        let seen = block_on(ledger.seen().into_future()).unwrap();
        let expected: Vec<_> = (0..200).flat_map(|n| [(0, n), (1, n)]).collect();
        assert_eq!(seen, expected);
    });
}

#[test]
fn many_calls_at_once_complete_in_an_executor_of_their_own() {
    on_shards(ALL, |system| {
        let ledgers: Vec<Addr<Ledger<4>>> = system
            .shards()
            .map(|shard| ledger(system, u16::try_from(shard.index()).unwrap()))
            .collect();
        let mut answers = block_on(async {
            let mut asks: FuturesUnordered<_> = (0..300)
                .map(|n| {
                    ledgers[n % ledgers.len()]
                        .note_slowly(0, n as u64)
                        .into_future()
                })
                .collect();
            let mut answers = Vec::new();
            while let Some(answer) = asks.next().await {
                answers.push(answer.unwrap());
            }
            answers
        });
        answers.sort_unstable();
        assert_eq!(answers, (0..300).collect::<Vec<_>>());
    });
}

#[test]
fn a_call_goes_on_in_another_executor_than_where_it_began() {
    on_shards(ALL, |system| {
        let alive = Arc::default();
        let (taker, open) = busy_taker(system, &alive);
        let mut ask = taker.take(Counted::new(&alive)).into_future();
        let mut tell = Box::pin(taker.take(Counted::new(&alive)).tell());
        // The wakers of this poll wake nobody; those of the next one are to be woken.
        assert!(poll_once(&mut ask).is_pending());
        let told_at_once = poll_once(&mut tell).is_ready();
        let elsewhere = thread::spawn(move || {
            block_on(async move {
                if !told_at_once {
                    tell.await.unwrap();
                }
                ask.await.unwrap()
            })
        });
        system.block_on(settle(system, last_shard(system)));
        drop(open);
        assert!((2..=3).contains(&elsewhere.join().unwrap()));
        greenroom_tests::bounded_wait(|| alive.load(Ordering::SeqCst) == 0);
    });
}

#[test]
fn the_one_of_two_that_is_not_first_is_dropped_and_never_runs() {
    on_shards(ALL, |system| {
        let alive = Arc::default();
        let (busy, open) = busy_taker(system, &alive);
        let idle: Addr<Ledger<4>> = ledger(system, 0);
        for number in 0..20 {
            let slow = busy.take(Counted::new(&alive)).into_future();
            let quick = idle.note(0, number).into_future();
            match block_on(select(slow, quick)) {
                Either::Left(_) => panic!("the busy one has answered"),
                Either::Right((answer, slow)) => {
                    assert_eq!(answer.unwrap(), number);
                    // In the mailbox, or in line for it.
                    system.block_on(settle(system, last_shard(system)));
                    drop(slow);
                }
            }
            let told = Box::pin(busy.take(Counted::new(&alive)).tell());
            match block_on(select(told, idle.note(1, number).into_future())) {
                // What was accepted is sent, whatever becomes of the other one.
                Either::Left((told, _)) => told.unwrap(),
                Either::Right(_) => {}
            }
        }
        drop(open);
        let taken = block_on(busy.take(Counted::new(&alive)).into_future()).unwrap();
        // The held one, the told ones that found room, and the last one: no ask that was dropped.
        assert!((2..=23).contains(&taken), "{taken}");
        greenroom_tests::bounded_wait(|| alive.load(Ordering::SeqCst) == 0);
        assert_eq!(counts(system).dead_letters, 0);
    });
}

/// Where a call is when it is dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Unpolled,
    InLine,
    InMailbox,
    Running,
}

const STATES: [State; 4] = [
    State::Unpolled,
    State::InLine,
    State::InMailbox,
    State::Running,
];

/// Drops an ask and a tell half-way, and sees that everything else goes on. `settled` waits until the actor's shard has seen
/// what was sent.
async fn drop_half_way(
    taker: Addr<Taker>,
    state: State,
    alive: Arc<AtomicUsize>,
    open: oneshot::Sender<()>,
    settled: impl AsyncFn(),
) -> u32 {
    let mut open = open;
    let counted = || Counted::new(&alive);
    match state {
        State::Unpolled => {
            drop(taker.take(counted()).into_future());
            drop(taker.take(counted()).tell());
        }
        State::InMailbox | State::InLine => {
            if state == State::InLine {
                for _ in 0..2 {
                    taker.take(counted()).tell().await.unwrap();
                }
                settled().await;
            }
            let mut asks: Vec<_> = (0..3)
                .map(|_| taker.take(counted()).into_future())
                .collect();
            for ask in &mut asks {
                assert!(poll_once(ask).is_pending());
            }
            settled().await;
            drop(asks);
            let mut told = Box::pin(taker.take(counted()).tell());
            // It may be on its way at once.
            let _ = poll_once(&mut told);
            drop(told);
            settled().await;
        }
        State::Running => {
            let (begun, has_begun) = mpsc::channel();
            let (next, gate) = oneshot::channel();
            let mut ask = taker.hold(counted(), begun, gate).into_future();
            assert!(poll_once(&mut ask).is_pending());
            open = next;
            while has_begun.try_recv().is_err() {
                settled().await;
            }
            drop(ask);
        }
    }
    drop(open);
    taker.take(counted()).await.unwrap()
}

/// How many messages may have been handled in the end.
fn may_be_taken(state: State) -> std::ops::RangeInclusive<u32> {
    match state {
        // The held one, and the last one.
        State::Unpolled => 2..=2,
        // Those, and the told one if it was sent.
        State::InMailbox => 2..=3,
        // Those, and the two that filled the mailbox.
        State::InLine => 4..=5,
        // A handler that runs is not cut off.
        State::Running => 3..=3,
    }
}

#[test]
fn a_call_of_a_thread_is_dropped_in_any_state() {
    on_shards(ALL, |system| {
        for state in STATES {
            let alive = Arc::default();
            let (taker, open) = busy_taker(system, &alive);
            let settled = async || settle(system, last_shard(system)).await;
            let taken = block_on(drop_half_way(taker, state, alive.clone(), open, settled));
            assert!(may_be_taken(state).contains(&taken), "{state:?}: {taken}");
            greenroom_tests::bounded_wait(|| alive.load(Ordering::SeqCst) == 0);
        }
        assert_eq!(counts(system).dead_letters, 0);
    });
}

#[test]
fn calls_of_a_shard_of_another_system_complete() {
    on_shards(ALL, |system| {
        let other = start(2);
        let ledger: Addr<Ledger<4>> = ledger(system, last_shard(system));
        let asked: Vec<_> = (0..4_u32)
            .map(|task| {
                let shard = u16::try_from(task % 2).unwrap();
                other.runtime().spawn_on(shard, move || async move {
                    for number in 0..100 {
                        ledger.note(task, number).tell().await.unwrap();
                        let answer = ledger.note_slowly(task, number).await;
                        assert_eq!(answer.unwrap(), number);
                    }
                })
            })
            .collect();
        for asked in other.block_on(join_all(asked)) {
            asked.unwrap();
        }
        let seen = system.block_on(ledger.seen().into_future()).unwrap();
        assert_eq!(seen.len(), 4 * 200);
        for task in 0..4 {
            let of_task = seen.iter().filter(|(of, _)| *of == task);
            let numbers: Vec<_> = of_task.map(|(_, number)| *number).collect();
            assert_eq!(numbers, (0..100).flat_map(|n| [n, n]).collect::<Vec<_>>());
        }
    });
}

#[test]
fn an_actor_of_another_system_asks_and_is_asked_back() {
    struct Elsewhere {
        ledger: Addr<Ledger<4>>,
    }

    #[actor]
    impl Elsewhere {
        pub(crate) async fn pass_on(&mut self, number: u64) -> Result<u64, String> {
            let answer = self.ledger.note_slowly(0, number).await;
            answer.map_err(|error| error.to_string())
        }
    }

    on_shards(ALL, |system| {
        let other = start(1);
        let ledger: Addr<Ledger<4>> = ledger(system, last_shard(system));
        let elsewhere = other.block_on(other.spawn_on(0, move || Elsewhere { ledger }));
        let elsewhere = elsewhere.unwrap();
        for shard in system.shards() {
            let answer = system.run_on(shard, move || elsewhere.pass_on(7).into_future());
            assert_eq!(answer.unwrap(), 7);
        }
        Addr::kill(ledger);
        system.block_on(Addr::stopped(ledger));
        let error = system.block_on(elsewhere.pass_on(8).into_future());
        let text = error.unwrap_err().to_string();
        assert!(text.ends_with("the actor has stopped"), "{text}");
    });
}

#[test]
fn a_call_of_a_shard_of_another_system_is_dropped_in_any_state() {
    on_shards(ALL, |system| {
        let other = start(2);
        for state in STATES {
            let alive = Arc::default();
            let (taker, open) = busy_taker(system, &alive);
            let (handle, last) = (system.handle().clone(), last_shard(system));
            let left = alive.clone();
            let taken = other.run_on(1, move || async move {
                let settled = async || settle(&handle, last).await;
                drop_half_way(taker, state, left, open, settled).await
            });
            assert!(may_be_taken(state).contains(&taken), "{state:?}: {taken}");
            greenroom_tests::bounded_wait(|| alive.load(Ordering::SeqCst) == 0);
        }
        for system in [system, &other] {
            assert_eq!(counts(system).dead_letters, 0);
        }
    });
}

#[test]
fn the_end_of_the_asking_system_drops_its_calls_and_nothing_else() {
    on_shards(ALL, |system| {
        let alive = Arc::default();
        let (taker, open) = busy_taker(system, &alive);
        let other = start(2);
        let (sent, is_sent) = mpsc::channel();
        for shard in other.shards() {
            let (alive, sent) = (alive.clone(), sent.clone());
            let asks = other.runtime().spawn_on(shard, move || async move {
                let mut ask = taker.take(Counted::new(&alive)).into_future();
                assert!(poll_once(&mut ask).is_pending());
                sent.send(()).unwrap();
                ask.await.unwrap()
            });
            asks.detach();
            hear(&is_sent);
        }
        drop(other);
        drop(open);
        let taken = system.block_on(taker.take(Counted::new(&alive)).into_future());
        // Those of the other system may have been taken before they were given up.
        assert!((2..=4).contains(&taken.unwrap()));
        greenroom_tests::bounded_wait(|| alive.load(Ordering::SeqCst) == 0);
    });
}

#[test]
fn the_end_of_the_asked_system_is_heard_in_the_other_one() {
    for shards in ALL {
        bounded("the asks", || {
            let alive = Arc::default();
            let system = start(*shards);
            let (taker, open) = busy_taker(&system, &alive);
            let other = start(2);
            let (sent, is_sent) = mpsc::channel();
            let asks: Vec<_> = other
                .shards()
                .map(|shard| {
                    let (alive, sent) = (alive.clone(), sent.clone());
                    other.runtime().spawn_on(shard, move || async move {
                        let mut ask = taker.take(Counted::new(&alive)).into_future();
                        assert!(poll_once(&mut ask).is_pending());
                        sent.send(()).unwrap();
                        ask.await.map_err(|error| error.to_string())
                    })
                })
                .collect();
            for _ in &asks {
                hear(&is_sent);
            }
            drop(system);
            for asked in other.block_on(join_all(asks)) {
                let text = asked.unwrap().unwrap_err();
                assert!(text.contains("Taker::take of actor"), "{text}");
            }
            drop(open);
            greenroom_tests::bounded_wait(|| alive.load(Ordering::SeqCst) == 0);
        });
    }
}

/// Blocks on a call.
type Way = fn(Addr<Ledger<4>>);

#[test]
fn blocking_on_a_shard_is_a_panic_that_says_what_to_do() {
    on_shards(ALL, |system| {
        let ledger: Addr<Ledger<4>> = ledger(system, last_shard(system));
        for shard in system.shards() {
            let ways: [(Way, &str); 3] = [
                (|ledger| drop(ledger.note(0, 1).blocking()), "Ask"),
                (
                    |ledger| drop(ledger.note(0, 1).timeout(PATIENCE).blocking()),
                    "Ask",
                ),
                (|ledger| drop(ledger.note(0, 1).tell().blocking()), "Tell"),
            ];
            for (way, kind) in ways {
                let blocks = move || async move { way(ledger) };
                let error = system.block_on(system.runtime().spawn_on(shard, blocks));
                let text = error.unwrap_err().to_string();
                let home = last_shard(system);
                let says = format!(
                    "{kind}(Ledger::note on shard {home}) was made with `.blocking()` on {shard}, which it would block, and \
                     with it every actor there: `.await` it in an `async` handler or in a task, or send without waiting \
                     with `.try_tell()`"
                );
                assert!(text.contains(&says), "{text}");
            }
        }
        // Nothing was sent.
        assert_eq!(ledger.seen().blocking().unwrap(), []);
    });
}

#[test]
fn a_handler_that_blocks_on_a_call_ends_its_actor_and_blocks_nobody() {
    struct Blocker;

    #[actor]
    impl Blocker {
        pub(crate) fn block(&mut self, on: Addr<Ledger<4>>) -> u64 {
            on.note(0, 1).blocking().unwrap()
        }
    }

    on_shards(ALL, |system| {
        let last = last_shard(system);
        let ledger: Addr<Ledger<4>> = ledger(system, last);
        let blocker = system.block_on(system.spawn_on(last, || Blocker)).unwrap();
        let error = system.block_on(blocker.block(ledger).into_future());
        let error = error.unwrap_err();
        let text = error.panic().expect("it panicked").text();
        let says =
            format!("Ask(Ledger::note on shard {last}) was made with `.blocking()` on shard");
        assert!(text.starts_with(&says), "{text}");
        assert_eq!(ledger.note(0, 2).blocking().unwrap(), 2);
    });
}
