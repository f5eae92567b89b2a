//! Actors that only seem to wait for each other in a cycle are left alone.

use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::join;
use greenroom::prelude::*;
use greenroom::runtime::time::sleep;
use greenroom_tests::on_shards;

const ALL: &[usize] = &[1, 2, 4];
/// Longer than any wait is left alone: a near-cycle has been asked about when it is over.
const LONG_ENOUGH: Duration = Duration::from_millis(200);

/// Talks with another one that talks back. Every call it makes is to succeed.
#[derive(Default)]
struct Node {
    other: Option<Addr<Node>>,
    third: Option<Addr<Node>>,
    kept: Vec<Reply<u32>>,
    noted: u32,
}

#[actor(mailbox = 16)]
impl Node {
    pub(crate) fn meet(&mut self, other: Addr<Node>, third: Addr<Node>) {
        self.other = Some(other);
        self.third = Some(third);
    }

    pub(crate) fn note(&mut self) -> u32 {
        self.noted += 1;
        self.noted
    }

    pub(crate) async fn slow(&mut self) -> u32 {
        sleep(LONG_ENOUGH).await;
        4
    }

    pub(crate) async fn ask_one_that_tells_back(&mut self) -> u32 {
        let other = self.other.expect("a pair");
        other.tell_back().no_timeout().await.unwrap()
    }

    pub(crate) async fn tell_back(&mut self) -> u32 {
        let other = self.other.expect("a pair");
        for _ in 0..8 {
            other.note().tell().await.unwrap();
        }
        sleep(LONG_ENOUGH).await;
        8
    }

    /// Asks what the other one puts off, and goes on for long when it has the answer.
    pub(crate) async fn ask_what_is_put_off(&mut self, done: oneshot::Sender<u32>) -> u32 {
        let other = self.other.expect("a pair");
        let put_off = other.keep().no_timeout().into_future();
        let (answer, told) = join(put_off, other.answer_and_ask(done).tell()).await;
        told.unwrap();
        sleep(LONG_ENOUGH).await;
        answer.unwrap()
    }

    pub(crate) fn keep(&mut self, reply: Reply<u32>) {
        self.kept.push(reply);
    }

    /// Answers late what was put off, and then waits for whoever got the answer.
    pub(crate) async fn answer_and_ask(&mut self, done: oneshot::Sender<u32>) {
        sleep(LONG_ENOUGH).await;
        self.kept.pop().expect("it was asked").send(5);
        let other = self.other.expect("a pair");
        done.send(other.note().no_timeout().await.unwrap()).ok();
    }

    pub(crate) async fn ask_what_is_given_away(&mut self, done: oneshot::Sender<u32>) -> u32 {
        let other = self.other.expect("a pair");
        other.give_away(done).no_timeout().await.unwrap()
    }

    /// Leaves the answer to a task, and waits for whoever waits for it.
    pub(crate) async fn give_away(&mut self, reply: Reply<u32>, done: oneshot::Sender<u32>) {
        greenroom::runtime::spawn(async move {
            sleep(LONG_ENOUGH).await;
            reply.send(6);
        })
        .detach();
        let other = self.other.expect("a pair");
        done.send(other.note().no_timeout().await.unwrap()).ok();
    }

    /// Asks one that is busy, but not for long, and then somebody else who takes long. The first ask is still in the mailbox
    /// of the one that asks back then.
    pub(crate) async fn ask_in_vain(&mut self, done: oneshot::Sender<u32>) -> u32 {
        let other = self.other.expect("a pair");
        let (open, gate) = oneshot::channel();
        // Told: what it asks then does not inherit the little time of an ask.
        other.ask_back_when(gate, done).tell().await.unwrap();
        let asked = other.note().timeout(Duration::from_millis(5));
        let error = asked.await.unwrap_err();
        assert!(error.is_timeout(), "{error}");
        drop(open);
        let third = self.third.expect("somebody else");
        third.slow().no_timeout().await.unwrap()
    }

    pub(crate) async fn ask_back_when(
        &mut self,
        gate: oneshot::Receiver<()>,
        done: oneshot::Sender<u32>,
    ) {
        gate.await.ok();
        let other = self.other.expect("a pair");
        done.send(other.note().no_timeout().await.unwrap()).ok();
    }
}

/// Two that know each other, on the first and the last of the shards, and one more.
fn pair(system: &System) -> [Addr<Node>; 2] {
    let shards = system.shard_count();
    let [first, second, third] = [0, shards - 1, shards / 2].map(|shard| {
        let shard = u16::try_from(shard).unwrap();
        system
            .block_on(system.spawn_on(shard, Node::default))
            .unwrap()
    });
    for (node, other) in [(first, second), (second, first)] {
        node.meet(other, third).blocking().unwrap();
    }
    [first, second]
}

/// Has both of a pair begin it, one after the other, from outside and from a shard.
fn check(system: &System, begin: impl Fn(&System, Addr<Node>) -> u32, answer: u32, noted: u32) {
    for place in [0, 1] {
        let pair = pair(system);
        assert_eq!(begin(system, pair[place]), answer);
        // What it was told or asked back has been handled.
        assert_eq!(pair[place].note().blocking().unwrap(), noted + 1);
    }
}

/// Begins what has a second end.
fn with_end(
    system: &System,
    call: impl FnOnce(oneshot::Sender<u32>) -> Result<u32, CallError>,
) -> u32 {
    let (done, is_done) = oneshot::channel();
    let answer = call(done).unwrap();
    assert_eq!(system.block_on(is_done), Ok(1), "what was asked back");
    answer
}

#[test]
fn one_that_is_told_something_by_whom_it_asks_is_in_no_cycle() {
    on_shards(ALL, |system| {
        let ask = |_: &System, node: Addr<Node>| node.ask_one_that_tells_back().blocking().unwrap();
        check(system, ask, 8, 8);
    });
}

#[test]
fn one_that_answers_late_and_then_asks_back_is_in_no_cycle() {
    on_shards(ALL, |system| {
        let ask = |system: &System, node: Addr<Node>| {
            with_end(system, |done| node.ask_what_is_put_off(done).blocking())
        };
        check(system, ask, 5, 1);
    });
}

#[test]
fn one_that_gives_its_answer_away_and_asks_back_is_in_no_cycle() {
    on_shards(ALL, |system| {
        let ask = |system: &System, node: Addr<Node>| {
            with_end(system, |done| node.ask_what_is_given_away(done).blocking())
        };
        check(system, ask, 6, 1);
    });
}

#[test]
fn an_ask_whose_time_was_over_before_it_was_asked_back_is_in_no_cycle() {
    on_shards(ALL, |system| {
        let ask = |system: &System, node: Addr<Node>| {
            with_end(system, |done| node.ask_in_vain(done).blocking())
        };
        check(system, ask, 4, 1);
    });
}
