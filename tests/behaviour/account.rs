//! Every accepted message is handled once, or its asker gets an error, or it is counted as a dead letter.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::runtime::{current_shard, yield_now};
use greenroom_tests::{Ledger, bounded, counts, hear, last_shard, ledger, on_shards, start};

/// Messages of each sender.
const EACH: usize = 300;

/// What a sender knows of a message in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Outcome {
    Unsent,
    Told,
    GivenBack,
    /// Told from outside, and lost at the actor's shard: counted there.
    Gone,
    Answered,
    CutOff,
    /// Asked, and refused on arrival: counted there.
    Refused,
    /// Asked on the actor's own shard, where it may have been refused before it was accepted.
    RefusedHere,
}

/// What is known of every message.
struct Tally {
    begun: Vec<AtomicU8>,
    outcomes: Vec<AtomicU8>,
    all_begun: AtomicUsize,
}

impl Tally {
    fn new(messages: usize) -> Arc<Self> {
        let zeros = || (0..messages).map(|_| AtomicU8::new(0)).collect();
        Arc::new(Self {
            begun: zeros(),
            outcomes: zeros(),
            all_begun: AtomicUsize::new(0),
        })
    }

    fn set(&self, id: usize, outcome: Outcome) {
        self.outcomes[id].store(outcome as u8, Ordering::Relaxed);
    }

    fn count(&self, outcome: Outcome, begun: bool) -> u64 {
        let each = self.outcomes.iter().zip(&self.begun);
        let matching = each.filter(|(known, times)| {
            known.load(Ordering::Relaxed) == outcome as u8
                && (times.load(Ordering::Relaxed) > 0) == begun
        });
        matching.count() as u64
    }

    /// Checks every message, and the dead letters against all of them.
    fn check(&self, dead_letters: u64) {
        assert!(
            self.begun
                .iter()
                .all(|times| times.load(Ordering::Relaxed) <= 1),
            "nothing is handled twice"
        );
        for outcome in [
            Outcome::GivenBack,
            Outcome::Gone,
            Outcome::Refused,
            Outcome::RefusedHere,
        ] {
            assert_eq!(
                self.count(outcome, true),
                0,
                "{outcome:?}, yet the handler ran"
            );
        }
        for outcome in [Outcome::Answered, Outcome::CutOff] {
            assert_eq!(
                self.count(outcome, false),
                0,
                "{outcome:?}, yet no handler ran"
            );
        }
        let least = self.count(Outcome::Told, false)
            + self.count(Outcome::Gone, false)
            + self.count(Outcome::Refused, false);
        let most = least + self.count(Outcome::RefusedHere, false);
        assert!(
            (least..=most).contains(&dead_letters),
            "{dead_letters} dead letters, expected {least} to {most}"
        );
    }
}

/// How a worker ends in the middle of the storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Stop,
    Kill,
    Panic,
}

struct Worker {
    tally: Arc<Tally>,
    middle: usize,
    panics: bool,
    in_the_middle: mpsc::Sender<()>,
}

#[actor(mailbox = 8)]
impl Worker {
    pub(crate) async fn work(&mut self, id: usize) -> usize {
        self.tally.begun[id].fetch_add(1, Ordering::Relaxed);
        if self.tally.all_begun.fetch_add(1, Ordering::Relaxed) == self.middle {
            self.in_the_middle.send(()).unwrap();
            assert!(!self.panics, "the middle of the storm");
        }
        if id.is_multiple_of(3) {
            yield_now().await;
        }
        id
    }
}

async fn send_all(worker: Addr<Worker>, tally: Arc<Tally>, sender: usize) {
    for id in sender * EACH..(sender + 1) * EACH {
        let outcome = match id % 3 {
            0 => tell(worker, id).await,
            1 => try_until_accepted(worker, id).await,
            _ => ask(worker, id).await,
        };
        tally.set(id, outcome);
    }
}

fn given_back(args: Option<(usize,)>, id: usize) -> Outcome {
    match args {
        Some(args) => {
            assert_eq!(args, (id,));
            Outcome::GivenBack
        }
        None => Outcome::Gone,
    }
}

async fn tell(worker: Addr<Worker>, id: usize) -> Outcome {
    match worker.work(id).tell().await {
        Ok(()) => Outcome::Told,
        Err(error) => given_back(error.into_args(), id),
    }
}

async fn try_until_accepted(worker: Addr<Worker>, id: usize) -> Outcome {
    loop {
        match worker.work(id).try_tell() {
            Ok(()) => return Outcome::Told,
            Err(error) if error.is_stopped() => return given_back(error.into_args(), id),
            Err(error) => assert_eq!(
                error.into_args(),
                Some((id,)),
                "a full mailbox gives the arguments back"
            ),
        }
        yield_now().await;
    }
}

async fn ask(worker: Addr<Worker>, id: usize) -> Outcome {
    match worker.work(id).await {
        Ok(answer) => {
            assert_eq!(answer, id);
            Outcome::Answered
        }
        Err(error) => match error.handler_ran() {
            greenroom::HandlerRan::Yes => Outcome::CutOff,
            greenroom::HandlerRan::No
                if current_shard().is_some() && current_shard() == Addr::shard(worker) =>
            {
                Outcome::RefusedHere
            }
            greenroom::HandlerRan::No => Outcome::Refused,
            greenroom::HandlerRan::Unknown => panic!("an ask without a limit knows: {error}"),
        },
    }
}

/// Waits until everything that is on its way to a shard, from all others, has arrived.
fn flush(system: &System, shard: u16) {
    let ledger: Addr<Ledger<256>> = ledger(system, shard);
    for from in system.shards() {
        system.run_on(
            from,
            move || async move { ledger.note(0, 0).await.unwrap() },
        );
    }
    system.block_on(ledger.note(0, 0).into_future()).unwrap();
}

fn check(system: &System, end: End) {
    let senders = system.shard_count() + 2;
    let tally = Tally::new(senders * EACH);
    let (in_the_middle, middle) = mpsc::channel();
    let theirs = tally.clone();
    let shard = last_shard(system);
    let worker = system.spawn_on(shard, move || Worker {
        tally: theirs,
        middle: EACH,
        panics: end == End::Panic,
        in_the_middle,
    });
    let worker = system.block_on(worker).unwrap();
    let inside: Vec<_> = system
        .shards()
        .map(|shard| {
            let tally = tally.clone();
            system
                .runtime()
                .spawn_on(shard, move || send_all(worker, tally, shard.index()))
        })
        .collect();
    std::thread::scope(|scope| {
        for outsider in [senders - 1, senders - 2] {
            let tally = tally.clone();
            scope.spawn(move || system.block_on(send_all(worker, tally, outsider)));
        }
        hear(&middle);
        match end {
            End::Stop => Addr::stop(worker),
            End::Kill => Addr::kill(worker),
            End::Panic => {}
        }
    });
    for sender in inside {
        system.block_on(sender).unwrap();
    }
    system.block_on(Addr::stopped(worker));
    flush(system, shard);
    let counts = counts(system);
    assert_eq!(counts.panics, u64::from(end == End::Panic));
    assert_eq!(
        tally.count(Outcome::Unsent, false) + tally.count(Outcome::Unsent, true),
        0
    );
    tally.check(counts.dead_letters);
}

#[test]
fn nothing_is_lost_when_an_actor_stops_in_a_storm() {
    on_shards(&[1, 2, 4], |system| check(system, End::Stop));
}

#[test]
fn nothing_is_lost_when_an_actor_is_killed_in_a_storm() {
    on_shards(&[1, 2, 4], |system| check(system, End::Kill));
}

#[test]
fn nothing_is_lost_when_an_actor_panics_in_a_storm() {
    on_shards(&[1, 2, 4], |system| check(system, End::Panic));
}

#[test]
fn what_was_sent_before_a_shutdown_is_handled_or_counted_in_its_report() {
    bounded("the shutdowns", || {
        for shards in [1, 2, 4] {
            for grace in [Duration::ZERO, Duration::from_secs(20)] {
                let system = start(shards);
                let tally = Tally::new(EACH);
                let theirs = tally.clone();
                let (in_the_middle, _middle) = mpsc::channel();
                let worker = system.spawn_on(last_shard(&system), || Worker {
                    tally: theirs,
                    middle: usize::MAX,
                    panics: false,
                    in_the_middle,
                });
                let worker = system.block_on(worker).unwrap();
                for id in 0..EACH {
                    worker.work(id).try_tell().unwrap();
                    tally.set(id, Outcome::Told);
                }
                let report = system.shutdown(grace);
                tally.check(report.counts().dead_letters);
                assert_eq!(report.stopped() + report.killed().len(), 1);
            }
        }
    });
}

#[test]
fn every_ask_resolves_when_the_system_is_shut_down_in_a_storm() {
    bounded("the shutdowns", || {
        for shards in [1, 2, 4] {
            let system = start(shards);
            let tally = Tally::new(4 * EACH);
            let theirs = tally.clone();
            let (in_the_middle, middle) = mpsc::channel();
            let worker = system.spawn_on(last_shard(&system), || Worker {
                tally: theirs,
                middle: EACH,
                panics: false,
                in_the_middle,
            });
            let worker = system.block_on(worker).unwrap();
            let outside: Vec<_> = (0..4)
                .map(|sender| {
                    let tally = tally.clone();
                    std::thread::spawn(move || {
                        let other = start(1);
                        other.block_on(async {
                            for id in sender * EACH..(sender + 1) * EACH {
                                tally.set(id, ask(worker, id).await);
                            }
                        });
                    })
                })
                .collect();
            hear(&middle);
            system.shutdown(Duration::from_millis(1));
            for sender in outside {
                sender.join().unwrap();
            }
            assert!(
                tally.count(Outcome::Refused, false) > 0,
                "it was in the middle"
            );
            tally.check(tally.count(Outcome::Refused, false));
        }
    });
}

#[test]
fn calls_to_actors_of_an_earlier_system_are_no_dead_letters_of_a_later_one() {
    bounded("the calls", || {
        // Other tests take numbers of shards too: in many rounds some later shard has the number of an earlier one.
        for _ in 0..20 {
            let earlier = start(2);
            let ledgers: [Addr<Ledger<4>>; 2] = [ledger(&earlier, 0), ledger(&earlier, 1)];
            drop(earlier);
            let later = start(2);
            for ledger in ledgers {
                assert!(
                    later
                        .block_on(ledger.note(0, 0).into_future())
                        .unwrap_err()
                        .is_stopped()
                );
                assert!(
                    later
                        .block_on(ledger.note(0, 0).tell())
                        .unwrap_err()
                        .is_stopped()
                );
            }
            assert_eq!(counts(&later).dead_letters, 0);
        }
    });
}
