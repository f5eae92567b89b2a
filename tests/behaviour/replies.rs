//! Every ask resolves, and says truly whether its handler ran.

use std::sync::mpsc;
use std::time::Duration;

use futures_channel::oneshot;
use greenroom::HandlerRan;
use greenroom::prelude::*;
use greenroom::runtime::time::sleep;
use greenroom::runtime::{ShardCounts, yield_now};
use greenroom_tests::{
    Ledger, bounded, hear, last_shard, ledger, on_shards, poll_once, settle, start,
};

#[derive(Debug, PartialEq, Eq)]
struct Refusal(u32);

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "refused {}", self.0)
    }
}

impl std::error::Error for Refusal {}

#[derive(Default)]
struct Oracle {
    kept: Vec<Reply<u32>>,
}

#[actor(mailbox = 4)]
impl Oracle {
    pub(crate) fn value(&self, value: u64) -> u64 {
        value
    }

    pub(crate) fn big(&self, fill: u8) -> [u8; 100] {
        [fill; 100]
    }

    pub(crate) fn refuse(&self, code: u32) -> Result<u32, Refusal> {
        if code == 0 { Ok(0) } else { Err(Refusal(code)) }
    }

    pub(crate) async fn refuse_slowly(&self, code: u32) -> Result<u32, Refusal> {
        yield_now().await;
        Err(Refusal(code))
    }

    pub(crate) fn panic_now(&self) {
        panic!("oracle is {}", "drunk");
    }

    pub(crate) async fn panic_slowly(&self) -> u32 {
        yield_now().await;
        panic!("oracle fell asleep");
    }

    pub(crate) fn forget(&mut self, reply: Reply<u32>) {
        drop(reply);
    }

    pub(crate) fn keep(&mut self, reply: Reply<u32>) {
        self.kept.push(reply);
    }

    pub(crate) fn wanted(&self) -> usize {
        self.kept.iter().filter(|reply| reply.is_wanted()).count()
    }

    pub(crate) async fn wait(
        &mut self,
        begun: mpsc::Sender<()>,
        gate: oneshot::Receiver<()>,
    ) -> u32 {
        begun.send(()).unwrap();
        gate.await.ok();
        1
    }

    pub(crate) async fn late(&mut self, number: u64) -> u64 {
        sleep(Duration::from_millis(number % 4)).await;
        number
    }
}

/// Runs a check with an oracle, from outside and from each shard.
fn from_everywhere<Fut>(check: impl Fn(Addr<Oracle>) -> Fut + Send + Sync + Copy + 'static)
where
    Fut: Future<Output = ()> + 'static,
{
    on_shards(&[1, 2, 4], move |system| {
        for sender in system.shards().map(Some).chain([None]) {
            let oracle = system
                .block_on(system.spawn_on(last_shard(system), Oracle::default))
                .unwrap();
            match sender {
                Some(shard) => system.run_on(shard, move || check(oracle)),
                None => system.block_on(check(oracle)),
            }
        }
    });
}

#[test]
fn an_ask_resolves_to_the_value() {
    from_everywhere(|oracle| async move {
        assert_eq!(oracle.value(5).await.unwrap(), 5);
        assert_eq!(oracle.big(7).await.unwrap(), [7; 100]);
        assert_eq!(
            oracle
                .value(6)
                .timeout(Duration::from_secs(60))
                .await
                .unwrap(),
            6
        );
    });
}

#[test]
fn the_handlers_own_error_is_flattened() {
    from_everywhere(|oracle| async move {
        assert_eq!(oracle.refuse(0).await.unwrap(), 0);
        for error in [
            oracle.refuse(3).await.unwrap_err(),
            oracle.refuse_slowly(3).await.unwrap_err(),
        ] {
            assert_eq!(error.to_string(), "refused 3");
            assert!(error.site().is_none());
            assert_eq!(error.handler_ran(), HandlerRan::Yes);
            assert_eq!(error.into_handler().unwrap(), Refusal(3));
        }
    });
}

#[test]
fn a_panic_comes_with_its_text_and_place() {
    from_everywhere(|oracle| async move {
        let error = oracle.panic_now().await.unwrap_err();
        let report = error.panic().expect("it panicked");
        assert_eq!(report.text(), "oracle is drunk");
        assert!(
            report
                .place()
                .unwrap()
                .starts_with("tests/behaviour/replies.rs:"),
            "{report}"
        );
        assert_eq!(error.handler_ran(), HandlerRan::Yes);
        assert_eq!(error.site().unwrap().method(), "panic_now");
        let error = oracle.value(1).await.unwrap_err();
        assert!(error.is_stopped(), "{error}");
        assert_eq!(error.handler_ran(), HandlerRan::No);
    });
}

#[test]
fn a_panic_after_a_wait_comes_with_its_text_and_place() {
    from_everywhere(|oracle| async move {
        let error = oracle.panic_slowly().await.unwrap_err();
        let report = error.panic().expect("it panicked");
        assert_eq!(report.text(), "oracle fell asleep");
        assert!(
            report
                .place()
                .unwrap()
                .starts_with("tests/behaviour/replies.rs:"),
            "{report}"
        );
    });
}

#[test]
fn a_reply_that_is_dropped_unanswered_says_so_at_once() {
    from_everywhere(|oracle| async move {
        let error = oracle.forget().await.unwrap_err();
        assert!(matches!(error, CallError::NoReply(_)), "{error}");
        assert_eq!(error.handler_ran(), HandlerRan::Yes);
        assert_eq!(oracle.value(1).await.unwrap(), 1, "the actor goes on");
    });
}

#[test]
fn an_ask_of_an_actor_that_has_stopped_says_that_its_handler_did_not_run() {
    from_everywhere(|oracle| async move {
        Addr::stop(oracle);
        Addr::stopped(oracle).await;
        let error = oracle.value(1).await.unwrap_err();
        assert!(error.is_stopped(), "{error}");
        assert_eq!(error.handler_ran(), HandlerRan::No);
        assert!(error.to_string().contains("Oracle::value"), "{error}");
    });
}

#[test]
fn a_timeout_says_whether_the_handler_can_have_run() {
    on_shards(&[1, 2], |system| {
        let oracle = system
            .block_on(system.spawn_on(0, Oracle::default))
            .unwrap();
        let (open, gate) = oneshot::channel();
        let (begun, has_begun) = mpsc::channel();
        let runs = system
            .runtime()
            .spawn_on(0, move || oracle.wait(begun, gate).into_future());
        hear(&has_begun);
        system.run_on(0, move || async move {
            let error = oracle
                .value(1)
                .timeout(Duration::from_millis(2))
                .await
                .unwrap_err();
            assert!(error.is_timeout());
            assert_eq!(
                error.handler_ran(),
                HandlerRan::Unknown,
                "it stands in the mailbox"
            );
            while oracle.value(2).try_tell().is_ok() {}
            let error = oracle
                .value(3)
                .timeout(Duration::from_millis(2))
                .await
                .unwrap_err();
            assert!(error.is_timeout());
            assert_eq!(
                error.handler_ran(),
                HandlerRan::No,
                "there was no room for it"
            );
            assert!(
                error.to_string().contains("had no room within 2ms"),
                "{error}"
            );
        });
        let ask = oracle.value(4).timeout(Duration::from_millis(2));
        let error = system.block_on(ask).unwrap_err();
        assert_eq!(error.handler_ran(), HandlerRan::Unknown, "it is on its way");
        open.send(()).unwrap();
        assert_eq!(system.block_on(runs).unwrap().unwrap(), 1);
        assert_eq!(system.block_on(oracle.value(5).into_future()).unwrap(), 5);
    });
}

#[test]
fn an_actor_that_keeps_its_replies_and_ends_resolves_them() {
    from_everywhere(|oracle| async move {
        let end = |how: fn(Addr<Oracle>)| async move {
            how(oracle);
            std::future::pending::<()>().await;
        };
        let asked =
            futures_util::future::select(oracle.keep().into_future(), Box::pin(end(Addr::stop)));
        let futures_util::future::Either::Left((answer, _)) = asked.await else {
            unreachable!("the end is pending")
        };
        let error = answer.unwrap_err();
        assert!(matches!(error, CallError::NoReply(_)), "{error}");
    });
}

#[test]
fn a_late_answer_never_reaches_a_later_ask() {
    from_everywhere(|oracle| async move {
        let mut timeouts = 0;
        for number in 0..100 {
            match oracle.late(number).timeout(Duration::from_millis(1)).await {
                Ok(answer) => assert_eq!(answer, number),
                Err(error) => {
                    assert!(error.is_timeout(), "{error}");
                    timeouts += 1;
                }
            }
        }
        assert!(timeouts > 0);
        assert_eq!(oracle.value(1000).await.unwrap(), 1000);
    });
}

#[test]
fn a_dropped_ask_is_not_wanted_any_more() {
    on_shards(&[1], |system| {
        let oracle = system
            .block_on(system.spawn_on(0, Oracle::default))
            .unwrap();
        system.run_on(0, move || async move {
            for _ in 0..100 {
                let mut ask = oracle.keep().into_future();
                assert!(poll_once(&mut ask).is_pending());
                oracle.wanted().await.unwrap();
                assert_eq!(oracle.wanted().await.unwrap(), 1);
                drop(ask);
                assert_eq!(oracle.wanted().await.unwrap(), 0);
            }
        });
    });
}

#[test]
#[expect(
    clippy::async_yields_async,
    reason = "the future is begun here and goes on elsewhere"
)]
fn an_ask_with_a_timeout_that_moves_between_threads_keeps_its_limit() {
    on_shards(&[1, 2], |system| {
        let oracle = system
            .block_on(system.spawn_on(0, Oracle::default))
            .unwrap();
        let mut ask = system.run_on(0, move || async move {
            let mut ask = oracle.keep().timeout(Duration::from_millis(20));
            assert!(poll_once(&mut ask).is_pending());
            ask
        });
        assert!(poll_once(&mut ask).is_pending());
        let error = system.block_on(ask).unwrap_err();
        assert!(error.is_timeout(), "{error}");
    });
}

#[test]
fn calls_to_an_actor_of_a_system_that_is_gone_give_errors() {
    bounded("calls into the void", || {
        let system = start(2);
        let ledger: Addr<Ledger<1>> = ledger(&system, 1);
        let local = system.run_on(1, move || async move { Addr::local(ledger).is_some() });
        assert!(local);
        drop(system);
        let check = |system: &System| {
            let error = system
                .block_on(ledger.note(0, 0).into_future())
                .unwrap_err();
            assert_eq!(error.handler_ran(), HandlerRan::No, "{error}");
            let error = system
                .block_on(ledger.note(0, 0).timeout(Duration::from_secs(60)))
                .unwrap_err();
            assert_eq!(error.handler_ran(), HandlerRan::No, "{error}");
            assert!(
                system
                    .block_on(ledger.note(0, 0).tell())
                    .unwrap_err()
                    .is_stopped()
            );
            Addr::stop(ledger);
            Addr::kill(ledger);
            system.block_on(Addr::stopped(ledger));
            assert!(Addr::local(ledger).is_none());
            let error = system.run_on(
                0,
                move || async move { ledger.note(0, 0).await.unwrap_err() },
            );
            assert!(error.is_stopped(), "{error}");
        };
        // Once with no shard under the number of the actor's shard, once with one.
        check(&start(1));
        check(&start(4));
    });
}

#[test]
fn an_answered_ask_from_outside_leaves_no_timer_behind() {
    on_shards(&[1, 2], |system| {
        let oracle = system
            .block_on(system.spawn_on(0, Oracle::default))
            .unwrap();
        let timers = || system.run_on(0, || async { ShardCounts::current().unwrap().timers });
        for value in 0..20 {
            let ask = oracle.value(value).timeout(Duration::from_secs(60));
            assert_eq!(system.block_on(ask).unwrap(), value);
        }
        for _ in 0..10_000 {
            if timers() == 0 {
                return;
            }
        }
        panic!("{} timers are left", timers());
    });
}

#[test]
fn an_ask_from_outside_that_is_given_up_while_it_waits_is_not_sent() {
    on_shards(&[1, 2], |system| {
        let ledger: Addr<Ledger<1>> = ledger(system, 0);
        let (open, gate) = oneshot::channel();
        system.block_on(ledger.wait(gate).tell()).unwrap();
        // In the mailbox behind the handler that waits: no room for more.
        system.block_on(ledger.note(0, 0).tell()).unwrap();
        let mut given_up = ledger.note(1, 1).into_future();
        assert!(poll_once(&mut given_up).is_pending());
        system.block_on(settle(system, 0));
        drop(given_up);
        system.block_on(settle(system, 0));
        drop(open);
        system.block_on(ledger.note(2, 2).into_future()).unwrap();
        let seen = system.block_on(ledger.seen().into_future()).unwrap();
        assert_eq!(seen, [(0, 0), (2, 2)]);
    });
}
