//! One call to every shard: all answers, in order, each with its own error.

use std::time::Duration;

use futures_channel::oneshot;
use greenroom::prelude::*;
use greenroom::{Caller, Handle, ShardId};
use greenroom_tests::{Ledger, last_shard, ledger, on_shards, poll_once, settle};

struct Part {
    shard: ShardId,
    asked: u32,
}

#[actor(mailbox = 4)]
impl Part {
    pub(crate) fn index(&mut self) -> usize {
        self.asked += 1;
        self.shard.index()
    }

    pub(crate) async fn slowly(&mut self, gate: Option<oneshot::Receiver<()>>) -> usize {
        if let Some(gate) = gate {
            gate.await.ok();
        }
        self.asked += 1;
        self.shard.index()
    }

    pub(crate) fn even(&self) -> Result<usize, String> {
        let index = self.shard.index();
        if index.is_multiple_of(2) {
            Ok(index)
        } else {
            Err(format!("{index} is odd"))
        }
    }

    pub(crate) fn add(&mut self, more: u32) {
        self.asked += more;
    }

    pub(crate) fn asked(&self) -> u32 {
        self.asked
    }
}

fn parts(system: &System) -> Sharded<Part> {
    system
        .block_on(system.spawn_sharded(|shard| Part { shard, asked: 0 }))
        .unwrap()
}

#[test]
fn every_instance_answers_in_the_order_of_the_shards() {
    on_shards(&[1, 2, 4], |system| {
        let parts = parts(system);
        let all: Vec<usize> = (0..system.shard_count()).collect();
        let outside = system.block_on(parts.map(|part| part.index()));
        let here = parts.clone();
        let inside = system.run_on(last_shard(system), move || async move {
            here.map(|part| part.index()).await
        });
        for answers in [outside, inside] {
            let answers: Vec<usize> = answers.into_iter().map(Result::unwrap).collect();
            assert_eq!(answers, all);
        }
        let sum =
            system.block_on(parts.map_reduce(|part| part.index(), 0, |sum, index| sum + index));
        assert_eq!(sum.unwrap(), all.iter().sum());
        let asked = system.block_on(parts.map(|part| part.asked()));
        assert!(asked.into_iter().all(|asked| asked.unwrap() == 3));
    });
}

#[test]
fn each_shard_keeps_its_own_error() {
    on_shards(&[2, 4], |system| {
        let parts = parts(system);
        let answers = system.block_on(parts.map(|part| part.even()));
        for (index, answer) in answers.into_iter().enumerate() {
            match answer {
                Ok(even) => assert_eq!(even, index),
                Err(error) => assert_eq!(error.into_handler().unwrap(), format!("{index} is odd")),
            }
        }
        Addr::kill(parts.on(0));
        system.block_on(Addr::stopped(parts.on(0)));
        let answers = system.block_on(parts.map(|part| part.index()));
        assert!(answers[0].as_ref().unwrap_err().is_stopped());
        assert!(answers[1..].iter().all(Result::is_ok));
        let first =
            system.block_on(parts.map_reduce(|part| part.even(), 0, |sum, even| sum + even));
        assert!(first.unwrap_err().is_stopped(), "the first in order");
    });
}

#[test]
fn all_calls_are_on_their_way_before_the_first_answer() {
    on_shards(&[1, 2, 4], |system| {
        let parts = parts(system);
        let handle = system.handle().clone();
        let last = last_shard(system);
        system.run_on(0, move || async move {
            let (open, gate) = oneshot::channel();
            let mut gate = Some(gate);
            // The first instance waits, the others go on meanwhile.
            let mut answers = parts.map(|part| part.slowly(gate.take()));
            assert!(poll_once(&mut answers).is_pending());
            settle(&handle, last).await;
            if last > 0 {
                assert_eq!(parts.on(last).asked().await.unwrap(), 1);
            }
            open.send(()).unwrap();
            assert_eq!(answers.await.len(), usize::from(last) + 1);
        });
    });
}

#[test]
fn a_scatter_that_is_dropped_leaves_the_handlers_alone() {
    on_shards(&[1, 2], |system| {
        let parts = parts(system);
        let handle = system.handle().clone();
        let last = last_shard(system);
        system.run_on(0, move || async move {
            let first = parts.on(0);
            drop(parts.map(|part| part.slowly(None)));
            assert_eq!(first.asked().await.unwrap(), 0, "nothing was sent");
            let mut answers = parts.map(|part| part.slowly(None));
            assert!(poll_once(&mut answers).is_pending());
            // Given up before its handler begins, a call would be skipped.
            settle(&handle, 0).await;
            settle(&handle, last).await;
            drop(answers);
            assert_eq!(first.asked().await.unwrap(), 1);
            assert_eq!(parts.on(last).asked().await.unwrap(), 1);
        });
    });
}

#[test]
fn a_scatter_takes_calls_with_a_limit() {
    on_shards(&[2], |system| {
        let parts = parts(system);
        let (open, gate) = oneshot::channel();
        let mut gate = Some(gate);
        let answers = system.block_on(parts.map(|part| {
            let gate = gate.take();
            let limit = Duration::from_millis(if gate.is_some() { 20 } else { 60_000 });
            part.slowly(gate).timeout(limit)
        }));
        assert!(answers[0].as_ref().unwrap_err().is_timeout());
        assert_eq!(*answers[1].as_ref().unwrap(), 1);
        drop(open);
    });
}

#[test]
fn a_broadcast_reaches_all_and_names_those_it_does_not() {
    on_shards(&[1, 2, 4], |system| {
        let parts = parts(system);
        let here = parts.clone();
        let asked = system.run_on(0, move || async move {
            here.broadcast(|part| part.add(5)).await.unwrap();
            here.map(|part| part.asked()).await
        });
        assert!(asked.into_iter().all(|asked| asked.unwrap() == 5));
        Addr::stop(parts.on(0));
        system.block_on(Addr::stopped(parts.on(0)));
        let error = system
            .run_on(0, move || async move {
                parts.broadcast(|part| part.add(1)).await
            })
            .unwrap_err();
        assert_eq!(error.told(), system.shard_count() - 1);
        assert!(
            error
                .to_string()
                .contains("the first that was not is shard 0: Part::add on shard 0")
        );
        let refused = error.into_refused();
        assert_eq!(refused.len(), 1);
        let (shard, error) = refused.into_iter().next().unwrap();
        assert_eq!((shard.index(), error.into_args()), (0, Some((1,))));
    });
}

// Callers.

#[test]
fn callers_of_different_actors_answer_the_same_question() {
    on_shards(&[1, 2], |system| {
        let parts = parts(system);
        let ledger: Addr<Ledger<4>> = ledger(system, last_shard(system));
        let callers: Vec<Caller<u64, u64>> = vec![
            Caller::new(ledger, |ledger, number| ledger.note(1, number)),
            Caller::new(ledger, |ledger, number| {
                ledger
                    .note_slowly(2, number)
                    .timeout(Duration::from_secs(60))
            }),
        ];
        let here = callers.clone();
        let inside = system.run_on(0, move || async move {
            let mut answers = Vec::new();
            for caller in &here {
                answers.push(caller.ask(9).await.unwrap());
            }
            answers
        });
        assert_eq!(inside, [9, 9]);
        for caller in &callers {
            assert_eq!(system.block_on(caller.ask(3)).unwrap(), 3);
            assert_eq!(*caller, caller.clone());
        }
        assert_ne!(callers[0], callers[1]);
        let seen = system.block_on(ledger.seen().into_future()).unwrap();
        assert_eq!(seen, [(1, 9), (2, 9), (1, 3), (2, 3)]);

        let fallible: Caller<(), usize, String> =
            Caller::new(parts.on(last_shard(system)), |part, ()| part.even());
        match system.block_on(fallible.ask(())) {
            Ok(index) => assert_eq!(index, 0),
            Err(error) => assert_eq!(error.into_handler().unwrap(), "1 is odd"),
        }
        Addr::kill(ledger);
        system.block_on(Addr::stopped(ledger));
        let error = system.block_on(callers[0].ask(1)).unwrap_err();
        assert!(error.is_stopped());
    });
}

#[test]
fn an_ask_of_a_caller_that_is_dropped_is_like_any_other() {
    on_shards(&[1, 2], |system| {
        let ledger: Addr<Ledger<4>> = ledger(system, last_shard(system));
        system.run_on(0, move || async move {
            let caller = Caller::new(ledger, |ledger, number| ledger.note_slowly(0, number));
            drop(caller.ask(1));
            let mut ask = caller.ask(2);
            assert!(poll_once(&mut ask).is_pending());
            let handle = Handle::current().unwrap();
            settle(&handle, last_shard(&handle)).await;
            drop(ask);
            assert_eq!(ledger.seen().await.unwrap(), [(0, 2)]);
        });
    });
}
