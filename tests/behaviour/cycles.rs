//! Actors that wait for each other in a cycle are found, and others are not.

use std::collections::HashMap;
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::{Either, select};
use greenroom::prelude::*;
use greenroom::runtime::time::{sleep, timeout};
use greenroom_tests::{bounded, last_shard, on_shards, poll_once, settle};

/// Longer than any wait is left alone: a near-cycle has been asked about when it is over.
const LONG_ENOUGH: Duration = Duration::from_millis(300);

/// Asks the next one on a way, and the last one on it asks back.
#[derive(Default)]
struct Link {
    next: Option<Addr<Link>>,
    kept: Vec<Reply<u32>>,
}

/// How an ask ended: with a number, or with the cycle it closed, as names of methods.
type Outcome = Result<u32, Vec<String>>;

fn outcome(answer: Result<Outcome, CallError>) -> Outcome {
    let error = match answer {
        Ok(inner) => return inner,
        Err(error) => error,
    };
    let Some(cycle) = error.cycle() else {
        panic!("{error}")
    };
    assert_eq!(error.site(), cycle.path().first());
    let cure = match cycle.path() {
        [_] => "for its actor waits for itself: call the method on `self`, or tell it",
        _ => "let one of them tell, or answer later with a `Reply`",
    };
    assert!(error.to_string().ends_with(cure), "{error}");
    let methods = cycle.path().iter().map(|site| site.method().to_owned());
    Err(methods.collect())
}

#[actor(mailbox = 4)]
impl Link {
    pub(crate) fn lead_to(&mut self, next: Addr<Link>) {
        self.next = Some(next);
    }

    /// Asks round the ring.
    #[message(plain)]
    pub(crate) async fn round(&mut self) -> Outcome {
        let next = self.next.expect("a ring");
        outcome(next.round().no_timeout().await)
    }

    /// Asks the next one, but not for ever.
    #[message(plain)]
    pub(crate) async fn round_or(&mut self, limit: Duration) -> Outcome {
        let next = self.next.expect("a ring");
        match select(
            Box::pin(sleep(limit)),
            next.round_or(limit * 2).into_future(),
        )
        .await
        {
            Either::Left(_) => Ok(1),
            Either::Right((answer, _)) => outcome(answer),
        }
    }

    #[message(plain)]
    pub(crate) async fn round_within(&mut self, limit: Duration) -> Outcome {
        let next = self.next.expect("a ring");
        match timeout(limit, next.round_within(limit * 2).into_future()).await {
            Err(_) => Ok(2),
            Ok(answer) => outcome(answer),
        }
    }

    /// Fills a lane of the mailbox of the next one, which does the same.
    pub(crate) async fn flood(
        &mut self,
        urgent: bool,
        begun: oneshot::Sender<()>,
        go: oneshot::Receiver<()>,
    ) -> usize {
        begun.send(()).ok();
        go.await.ok();
        let next = self.next.expect("a ring");
        let mut refused = 0;
        for _ in 0..200 {
            let told = if urgent {
                next.nothing().urgent().tell().await
            } else {
                next.nothing().tell().await
            };
            if let Err(error) = told {
                assert!(error.is_full());
                let cycle = error.cycle().expect("a cycle").path().len();
                assert!(error.to_string().contains("in a cycle"), "{error}");
                assert!(cycle >= 2);
                refused += 1;
                break;
            }
        }
        refused
    }

    pub(crate) fn nothing(&mut self) -> u32 {
        3
    }

    /// Waits, and asks nobody.
    pub(crate) async fn slow(&mut self) -> u32 {
        sleep(LONG_ENOUGH).await;
        4
    }

    /// Asks one that is slow.
    #[message(plain)]
    pub(crate) async fn ask_slow(&mut self, hops: u32) -> Outcome {
        let next = self.next.expect("a chain");
        if hops == 0 {
            return Ok(next.slow().await.unwrap());
        }
        outcome(next.ask_slow(hops - 1).await)
    }

    /// Keeps the reply, to be given by another message.
    pub(crate) fn keep(&mut self, reply: Reply<u32>) {
        self.kept.push(reply);
    }

    pub(crate) fn give(&mut self) {
        self.kept.drain(..).for_each(|reply| reply.send(5));
    }

    /// Waits for an answer that the next one has put off.
    pub(crate) async fn ask_kept(&mut self) -> u32 {
        self.next.expect("a pair").keep().await.unwrap()
    }

    /// Answers at once, and then asks back whoever asked.
    pub(crate) async fn answer_and_ask_back(
        &mut self,
        reply: Reply<u32>,
        done: oneshot::Sender<u32>,
    ) {
        reply.send(6);
        let answer = self.next.expect("a pair").nothing().await.unwrap();
        done.send(answer).ok();
    }

    pub(crate) async fn ask_for_ask_back(&mut self, done: oneshot::Sender<u32>) -> u32 {
        let next = self.next.expect("a pair");
        let answer = next.answer_and_ask_back(done).await.unwrap();
        sleep(LONG_ENOUGH).await;
        answer
    }
}

/// A ring of so many actors, over all shards; a chain if it is left open.
fn ring(system: &System, count: usize) -> Vec<Addr<Link>> {
    let ring: Vec<Addr<Link>> = (0..count)
        .map(|place| {
            let shard = system.shard(place);
            system
                .block_on(system.spawn_on(shard, Link::default))
                .unwrap()
        })
        .collect();
    for (link, next) in ring.iter().zip(ring.iter().cycle().skip(1)) {
        link.lead_to(*next).blocking().unwrap();
    }
    ring
}

#[test]
fn a_cycle_of_asks_is_found_and_said() {
    for count in [1, 2, 3, 10] {
        on_shards(&[1, 2, 4], move |system| {
            let ring = ring(system, count);
            let path = ring[0].round().no_timeout().blocking().unwrap();
            assert_eq!(path, Err(vec!["round".to_owned(); count]));
            // Everyone is free again.
            for link in ring {
                assert_eq!(link.nothing().blocking().unwrap(), 3);
            }
        });
    }
}

#[test]
fn the_error_of_a_cycle_names_its_calls() {
    struct Asker {
        own: Option<Addr<Asker>>,
    }

    #[actor]
    impl Asker {
        pub(crate) async fn ask_itself(&mut self, ctx: &mut Ctx<Self>) -> String {
            self.own = Some(ctx.addr());
            let error = ctx.addr().nothing().await.unwrap_err();
            assert_eq!(error.site().unwrap().method(), "nothing");
            assert_eq!(error.handler_ran(), greenroom::HandlerRan::Unknown);
            error.to_string()
        }

        pub(crate) fn nothing(&mut self) {}
    }

    on_shards(&[1], |system| {
        let asker = system
            .block_on(system.spawn_on(0, || Asker { own: None }))
            .unwrap();
        let text = asker.ask_itself().blocking().unwrap();
        assert_eq!(
            text,
            "Asker::nothing on shard 0 would never have answered, for its actor waits for itself: \
             call the method on `self`, or tell it"
        );
        assert_eq!(
            greenroom_tests::counts(system).skipped,
            1,
            "what it asked itself"
        );
    });
}

#[test]
fn one_ask_of_a_cycle_fails_and_the_others_go_on() {
    // What fails is passed on as a value, so the one who began hears of one cycle from whoever closed it.
    on_shards(&[1, 2], |system| {
        let ring = ring(system, 3);
        let mut lengths = HashMap::new();
        for _ in 0..3 {
            let path = ring[1]
                .round()
                .no_timeout()
                .blocking()
                .unwrap()
                .unwrap_err();
            *lengths.entry(path.len()).or_insert(0) += 1;
        }
        assert_eq!(lengths, HashMap::from([(3, 3)]));
    });
}

#[test]
fn a_cycle_of_waits_for_room_is_found_in_either_lane() {
    on_shards(&[1, 2], |system| {
        for urgent in [false, true] {
            flood_each_other(system, urgent);
        }
    });
}

fn flood_each_other(system: &System, urgent: bool) {
    let ring = ring(system, 2);
    let mut waits = Vec::new();
    let mut goes = Vec::new();
    for link in &ring {
        let (begun, has_begun) = oneshot::channel();
        let (go, may_go) = oneshot::channel();
        let mut wait = link.flood(urgent, begun, may_go).no_timeout();
        assert!(poll_once(&mut wait).is_pending());
        system.block_on(has_begun).unwrap();
        waits.push(wait);
        goes.push(go);
    }
    drop(goes);
    let refused: usize = waits.into_iter().map(|wait| wait.blocking().unwrap()).sum();
    assert!(refused >= 1);
}

#[test]
fn a_slow_chain_is_no_cycle() {
    on_shards(&[1, 2, 4], |system| {
        let chain = ring(system, 6);
        assert_eq!(chain[0].ask_slow(4).blocking().unwrap(), Ok(4));
    });
}

#[test]
fn an_ask_raced_with_something_else_is_no_cycle() {
    on_shards(&[1, 2], |system| {
        let links = ring(system, 2);
        assert_eq!(links[0].round_or(LONG_ENOUGH).blocking().unwrap(), Ok(1));
        let links = ring(system, 2);
        assert_eq!(
            links[0].round_within(LONG_ENOUGH).blocking().unwrap(),
            Ok(2)
        );
    });
}

#[test]
fn an_answer_that_was_put_off_is_no_cycle() {
    on_shards(&[1, 2], |system| {
        let pair = ring(system, 2);
        let (first, second) = (pair[0], pair[1]);
        let mut asked = first.ask_kept().into_future();
        assert!(poll_once(&mut asked).is_pending());
        // What the first asks for is put off before the second one is busy: waiting in its mailbox it would close a cycle.
        for shard in [0, last_shard(system), 0, last_shard(system)] {
            system.block_on(settle(system, shard));
        }
        // The second one waits for the first, which waits for an answer that is put off.
        let mut back = second.ask_slow(0).into_future();
        assert!(poll_once(&mut back).is_pending());
        for shard in [0, last_shard(system)] {
            system.block_on(settle(system, shard));
        }
        std::thread::park_timeout(LONG_ENOUGH);
        let mut given = second.give().into_future();
        assert!(poll_once(&mut given).is_pending());
        drop(back);
        // The first one's slow message is handled when its answer has come, and that comes when the second is free: the
        // second gives up on nobody, so the answer is given from outside of it.
        Addr::kill(second);
        assert!(system.block_on(asked).is_err());
    });
}

#[test]
fn an_answer_that_was_given_ends_the_wait() {
    on_shards(&[1, 2], |system| {
        let pair = ring(system, 2);
        let (done, is_done) = oneshot::channel();
        assert_eq!(pair[0].ask_for_ask_back(done).blocking().unwrap(), 6);
        assert_eq!(system.block_on(is_done).unwrap(), 3);
    });
}

#[test]
fn tasks_and_threads_that_ask_are_no_part_of_a_cycle() {
    bounded("the tasks", || {
        let system = System::builder().shards(2).pin(false).start().unwrap();
        let pair = ring(&system, 2);
        let slow: Vec<_> = (0..4)
            .map(|task| {
                let link = pair[task % 2];
                let shard = system.shard(task);
                system
                    .runtime()
                    .spawn_on(shard, move || link.slow().into_future())
            })
            .collect();
        for task in slow {
            assert_eq!(system.block_on(task).unwrap().unwrap(), 4);
        }
    });
}
