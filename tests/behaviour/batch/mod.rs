//! Messages that are handled together: in order, each answered, and accounted for one by one.

mod turns;

use std::rc::Rc;
use std::sync::mpsc;

use futures_channel::oneshot;
use futures_util::future::join_all;
use greenroom::prelude::*;
use greenroom::runtime::{spawn, yield_now};
use greenroom::{Batch, tell_many};
use greenroom_tests::{counts, last_shard, on_shards, poll_once, settle};

/// What a journal has done.
#[derive(Clone, Debug, PartialEq)]
enum Entry {
    Lines(Vec<u32>),
    Pairs(Vec<(u32, u8)>),
    Marker(u32),
}

#[derive(Default)]
struct Journal {
    entries: Vec<Entry>,
    kept: Vec<Reply<u32>>,
}

#[actor(mailbox = 16)]
impl Journal {
    #[message(batch)]
    pub(crate) fn line(&mut self, lines: Batch<u32>) -> usize {
        let lines: Vec<u32> = lines.into_iter().collect();
        let count = lines.len();
        self.entries.push(Entry::Lines(lines));
        count
    }

    #[message(batch)]
    pub(crate) async fn line_slowly(&mut self, lines: Batch<u32>) -> Result<u32, String> {
        yield_now().await;
        let lines: Vec<u32> = lines.iter().copied().collect();
        let is_odd = |line: &u32| !line.is_multiple_of(2);
        if lines.iter().any(is_odd) {
            return Err("odd".to_owned());
        }
        let sum = lines.iter().sum();
        self.entries.push(Entry::Lines(lines));
        Ok(sum)
    }

    #[message(batch = 3)]
    pub(crate) fn pair(&mut self, pairs: Batch<(u32, u8, Reply<u32>)>) {
        let mut entry = Vec::new();
        for (number, byte, reply) in pairs {
            entry.push((number, byte));
            reply.send(number + u32::from(byte));
        }
        self.entries.push(Entry::Pairs(entry));
    }

    #[message(batch)]
    pub(crate) async fn keep(&mut self, replies: Batch<Reply<u32>>) {
        self.kept.extend(replies);
    }

    #[message(batch)]
    pub(crate) fn drop_every_second(&mut self, replies: Batch<(u32, Reply<Result<u32, String>>)>) {
        for (number, reply) in replies {
            match number % 3 {
                0 => reply.send(Ok(number)),
                1 => reply.send(Err("one".to_owned())),
                _ => drop(reply),
            }
        }
    }

    #[message(batch)]
    pub(crate) fn nothing(&mut self, batch: Batch<()>, ctx: &mut Ctx<Self>) {
        assert_eq!(ctx.shard(), greenroom::runtime::current_shard().unwrap());
        self.entries
            .push(Entry::Marker(u32::try_from(batch.len()).unwrap()));
    }

    #[message(batch)]
    pub(crate) fn explode(&mut self, lines: Batch<u32>) -> u32 {
        panic!("{} lines", lines.len());
    }

    #[message(batch)]
    pub(crate) async fn for_ever(&mut self, _lines: Batch<u32>) -> u32 {
        std::future::pending().await
    }

    #[message(batch, local)]
    pub(crate) fn share(&mut self, shared: Batch<Rc<u32>>) -> Rc<u32> {
        shared.into_iter().next().expect("at least one")
    }

    pub(crate) fn mark(&mut self, number: u32) {
        self.entries.push(Entry::Marker(number));
    }

    pub(crate) fn answer_kept(&mut self) -> usize {
        let kept = self.kept.drain(..).zip(0..);
        kept.map(|(reply, number)| reply.send(number)).count()
    }

    pub(crate) async fn wait(&mut self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.entries.clone()
    }
}

fn journal(system: &System, shard: u16) -> Addr<Journal> {
    system
        .block_on(system.spawn_on(shard, Journal::default))
        .unwrap()
}

/// Runs a body with a journal on the shard of its senders, and with one on another.
fn at_each_place(body: impl Fn(&System, Addr<Journal>, u16) + Send + Sync + 'static) {
    on_shards(&[1, 2], move |system| {
        for shard in [0, last_shard(system)] {
            body(system, journal(system, shard), shard);
        }
    });
}

/// A journal that is busy until the sender is used or dropped.
async fn busy(
    journal: Addr<Journal>,
    handle: &greenroom::Handle,
    shard: u16,
) -> oneshot::Sender<()> {
    let (open, gate) = oneshot::channel();
    journal.wait(gate).tell().await.unwrap();
    settle(handle, shard).await;
    open
}

#[test]
fn what_waits_together_is_handled_together_and_nothing_is_overtaken() {
    at_each_place(|system, journal, shard| {
        let handle = system.handle().clone();
        let entries = system.run_on(0, move || async move {
            let open = busy(journal, &handle, shard).await;
            for number in 0..3 {
                journal.line(number).tell().await.unwrap();
            }
            journal.mark(7).tell().await.unwrap();
            journal.line(3).tell().await.unwrap();
            journal.pair(4, 1).tell().await.unwrap();
            journal.pair(5, 2).tell().await.unwrap();
            journal.line(6).tell().await.unwrap();
            settle(&handle, shard).await;
            open.send(()).unwrap();
            journal.entries().await.unwrap()
        });
        assert_eq!(
            entries,
            [
                Entry::Lines(vec![0, 1, 2]),
                Entry::Marker(7),
                Entry::Lines(vec![3]),
                Entry::Pairs(vec![(4, 1), (5, 2)]),
                Entry::Lines(vec![6]),
            ]
        );
    });
}

#[test]
fn every_asker_is_answered_with_its_own_answer_or_with_that_of_the_batch() {
    at_each_place(|system, journal, shard| {
        let handle = system.handle().clone();
        system.run_on(0, move || async move {
            let open = busy(journal, &handle, shard).await;
            let lines: Vec<_> = (0..4)
                .map(|number| spawn(journal.line(number).into_future()))
                .collect();
            let pairs: Vec<_> = (0..4_u8)
                .map(|byte| spawn(journal.pair(100, byte).into_future()))
                .collect();
            settle(&handle, 0).await;
            settle(&handle, shard).await;
            open.send(()).unwrap();
            for line in lines {
                assert_eq!(line.await.unwrap().unwrap(), 4, "all of them");
            }
            for (byte, pair) in (0..).zip(pairs) {
                assert_eq!(pair.await.unwrap().unwrap(), 100 + byte);
            }
            let entries = journal.entries().await.unwrap();
            let three = Entry::Pairs(vec![(100, 0), (100, 1), (100, 2)]);
            assert_eq!(
                entries[1..],
                [three, Entry::Pairs(vec![(100, 3)])],
                "at most three"
            );
        });
    });
}

#[test]
fn a_batch_of_results_gives_everyone_the_value_or_the_error() {
    at_each_place(|system, journal, shard| {
        let handle = system.handle().clone();
        let errors = counts(system).told_errors;
        system.run_on(0, move || async move {
            for (numbers, sum) in [([2, 4, 6], Some(12)), ([2, 3, 4], None)] {
                let open = busy(journal, &handle, shard).await;
                let asks = numbers.map(|number| spawn(journal.line_slowly(number).into_future()));
                settle(&handle, 0).await;
                journal.line_slowly(0).tell().await.unwrap();
                settle(&handle, shard).await;
                open.send(()).unwrap();
                for ask in asks {
                    match ask.await.unwrap() {
                        Ok(found) => assert_eq!(Some(found), sum),
                        Err(error) => {
                            assert_eq!(sum, None);
                            assert_eq!(error.into_handler().unwrap(), "odd");
                        }
                    }
                }
            }
        });
        assert_eq!(
            counts(system).told_errors,
            errors + 1,
            "the told one of the failed batch"
        );
    });
}

#[test]
fn replies_of_a_batch_may_be_kept_dropped_and_answered_one_by_one() {
    at_each_place(|system, journal, shard| {
        let handle = system.handle().clone();
        system.run_on(0, move || async move {
            let asks: Vec<_> = (0..5)
                .map(|_| spawn(journal.keep().into_future()))
                .collect();
            settle(&handle, 0).await;
            settle(&handle, shard).await;
            assert_eq!(journal.answer_kept().await.unwrap(), 5);
            let answers = join_all(asks).await;
            let answers: Vec<u32> = answers
                .into_iter()
                .map(|answer| answer.unwrap().unwrap())
                .collect();
            assert_eq!(answers, [0, 1, 2, 3, 4]);

            let asks = (0..6).map(|number| journal.drop_every_second(number).into_future());
            for (number, answer) in (0..).zip(join_all(asks).await) {
                match (number % 3, answer) {
                    (0, answer) => assert_eq!(answer.unwrap(), number),
                    (1, answer) => {
                        assert_eq!(answer.unwrap_err().into_handler().unwrap(), "one");
                    }
                    (_, answer) => assert!(matches!(answer, Err(CallError::NoReply(_)))),
                }
            }
        });
    });
}

#[test]
fn a_panic_in_a_batch_is_told_to_all_in_it_and_the_others_hear_of_a_stop() {
    at_each_place(|system, journal, shard| {
        let handle = system.handle().clone();
        let before = counts(system).dead_letters;
        system.run_on(0, move || async move {
            let open = busy(journal, &handle, shard).await;
            let inside: Vec<_> = (0..3)
                .map(|number| spawn(journal.explode(number).into_future()))
                .collect();
            settle(&handle, 0).await;
            let after = spawn(journal.line(9).into_future());
            settle(&handle, 0).await;
            settle(&handle, shard).await;
            open.send(()).unwrap();
            for ask in inside {
                let error = ask.await.unwrap().unwrap_err();
                assert_eq!(error.panic().expect("a panic").text(), "3 lines");
            }
            assert!(after.await.unwrap().unwrap_err().is_stopped());
            Addr::stopped(journal).await;
        });
        assert_eq!(counts(system).dead_letters - before, 1);
    });
}

#[test]
fn a_kill_cuts_a_batch_off_for_all_in_it() {
    at_each_place(|system, journal, shard| {
        let handle = system.handle().clone();
        system.run_on(0, move || async move {
            let open = busy(journal, &handle, shard).await;
            let inside: Vec<_> = (0..3)
                .map(|number| spawn(journal.for_ever(number).into_future()))
                .collect();
            settle(&handle, 0).await;
            settle(&handle, shard).await;
            open.send(()).unwrap();
            for _ in 0..5 {
                settle(&handle, 0).await;
                settle(&handle, shard).await;
            }
            let late = spawn(journal.for_ever(3).into_future());
            settle(&handle, 0).await;
            settle(&handle, shard).await;
            Addr::kill(journal);
            for ask in inside {
                let error = ask.await.unwrap().unwrap_err();
                assert!(matches!(error, CallError::Killed(_)), "{error:?}");
            }
            assert!(
                late.await.unwrap().unwrap_err().is_stopped(),
                "it was not begun"
            );
        });
    });
}

#[test]
fn a_batch_makes_room_for_as_many_as_it_takes() {
    at_each_place(|system, journal, shard| {
        let handle = system.handle().clone();
        let (sent, entries) = system.run_on(0, move || async move {
            let open = busy(journal, &handle, shard).await;
            let mut bulk = tell_many((0..500).map(|number| journal.line(number)));
            for _ in 0..5 {
                assert!(poll_once(&mut bulk).is_pending());
                settle(&handle, shard).await;
            }
            open.send(()).unwrap();
            (bulk.await.unwrap(), journal.entries().await.unwrap())
        });
        assert_eq!(sent, 500);
        let mut all = Vec::new();
        for entry in entries {
            let Entry::Lines(lines) = entry else {
                panic!("{entry:?}")
            };
            assert!(lines.len() <= 64);
            all.extend(lines);
        }
        assert_eq!(all, (0..500).collect::<Vec<_>>());
    });
}

#[test]
fn a_stop_ends_a_batch() {
    at_each_place(|system, journal, shard| {
        let handle = system.handle().clone();
        system.run_on(0, move || async move {
            let open = busy(journal, &handle, shard).await;
            let asks: Vec<_> = (0..2)
                .map(|number| spawn(journal.line(number).into_future()))
                .collect();
            settle(&handle, 0).await;
            Addr::stop(journal);
            settle(&handle, shard).await;
            open.send(()).unwrap();
            for ask in asks {
                assert_eq!(ask.await.unwrap().unwrap(), 2);
            }
            assert!(journal.line(3).await.unwrap_err().is_stopped());
        });
    });
}

#[test]
fn batches_without_arguments_and_of_local_messages_work_too() {
    on_shards(&[1], |system| {
        let journal = journal(system, 0);
        system.run_on(0, move || async move {
            let local = Addr::local(journal).unwrap();
            for _ in 0..3 {
                journal.nothing().tell().await.unwrap();
            }
            assert_eq!(journal.entries().await.unwrap(), [Entry::Marker(3)]);
            let shared = Rc::new(5);
            let again = local.share(shared.clone()).await.unwrap();
            assert!(Rc::ptr_eq(&shared, &again));
        });
    });
}

/// A value that cannot be cloned twice.
struct Fragile(u32, mpsc::Sender<&'static str>);

impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert_eq!(self.0, 0, "no second clone");
        Self(1, self.1.clone())
    }
}

struct Giver(mpsc::Sender<&'static str>);

#[actor]
impl Giver {
    #[message(batch)]
    pub(crate) fn give(&mut self, batch: Batch<()>) -> Fragile {
        Fragile(u32::try_from(batch.len() - 1).unwrap(), self.0.clone())
    }
}

#[test]
fn a_clone_that_panics_is_a_panic_of_the_handler() {
    on_shards(&[1], |system| {
        let (sender, heard) = mpsc::channel();
        let giver = system
            .block_on(system.spawn_on(0, move || Giver(sender)))
            .unwrap();
        system.run_on(0, move || async move {
            assert_eq!(giver.give().await.unwrap().0, 0, "alone it needs no clone");
            let asks = (0..2).map(|_| giver.give().into_future());
            for answer in join_all(asks).await {
                let error = answer.map(|fragile| fragile.0).unwrap_err();
                assert!(error.panic().is_some(), "{error}");
            }
        });
        system.block_on(Addr::stopped(giver));
        assert!(heard.recv().is_err(), "its sender is gone");
    });
}
