//! Errors of asks and tells.

use std::sync::mpsc;
use std::time::Duration;

use futures_channel::oneshot;
use greenroom::prelude::*;
use greenroom::{CallSite, HandlerRan, SendError};
use greenroom_tests::{hear, last_shard, on_shards, poll_once};

use super::{ALL, Home, from_everywhere};

/// Short, so that the tests need not wait long for it.
const SHORT: Duration = Duration::from_millis(20);

/// Answers in no way but those that fail.
#[derive(Default)]
struct Culprit {
    kept: Vec<Reply<u32>>,
}

#[actor(mailbox = 1)]
impl Culprit {
    pub(crate) fn nothing(&mut self) {}

    pub(crate) fn refuse(&mut self) -> Result<u32, String> {
        Err("not for you".to_owned())
    }

    pub(crate) async fn wait(&mut self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }

    pub(crate) async fn end(&mut self, ctx: &mut Ctx<Self>) {
        Addr::kill(ctx.addr());
        std::future::pending::<()>().await;
    }

    pub(crate) fn fail(&mut self) {
        panic!("as told");
    }

    pub(crate) fn keep(&mut self, reply: Reply<u32>) {
        self.kept.push(reply);
    }

    pub(crate) fn lose(&mut self, reply: Reply<u32>) {
        drop(reply);
    }

    /// Asks another one in the time that is left, and tells how that ended.
    pub(crate) async fn pass_on(&mut self, to: Addr<Culprit>, heard: mpsc::Sender<String>) {
        let error = to.keep().await.unwrap_err();
        heard.send(error.to_string()).ok();
    }

    pub(crate) async fn ask_itself(&mut self, ctx: &mut Ctx<Self>) -> (CallSite, String) {
        let error = ctx.addr().nothing().no_timeout().await.unwrap_err();
        assert!(error.cycle().is_some(), "{error}");
        (*error.site().unwrap(), error.to_string())
    }

    /// Tells the other one more than it has room for, once both are here.
    pub(crate) async fn flood(
        &mut self,
        to: Addr<Culprit>,
        begun: oneshot::Sender<()>,
        go: oneshot::Receiver<()>,
    ) -> Option<(CallSite, String)> {
        begun.send(()).ok();
        go.await.ok();
        for _ in 0..200 {
            if let Err(error) = to.nothing().tell().await {
                assert!(error.is_full() && error.cycle().is_some(), "{error}");
                return Some((*error.site(), error.to_string()));
            }
        }
        None
    }
}

/// Is busy until the gate is dropped, and has one message in its mailbox, which is full.
async fn fill(culprit: Addr<Culprit>) -> oneshot::Sender<()> {
    let (open, gate) = oneshot::channel();
    culprit.wait(gate).tell().await.unwrap();
    culprit.nothing().tell().await.unwrap();
    open
}

#[test]
fn the_handlers_own_error_is_shown_as_it_is() {
    on_shards(ALL, |system| {
        from_everywhere(
            system,
            Culprit::default,
            |culprit| culprit.refuse().into_future(),
            |answer, _| {
                let error = answer.unwrap_err();
                assert_eq!(error.to_string(), "not for you");
                assert!(error.site().is_none());
                assert!(matches!(error, CallError::Handler(_)));
            },
        );
    });
}

#[test]
fn an_ask_of_one_that_has_stopped() {
    on_shards(ALL, |system| {
        let call = |culprit: Addr<Culprit>| async move {
            Addr::stop(culprit);
            Addr::stopped(culprit).await;
            culprit.nothing().await
        };
        from_everywhere(system, Culprit::default, call, |answer, home| {
            assert!(matches!(answer, Err(CallError::Stopped(_))));
            home.check_call(answer, "nothing", "was not called: the actor has stopped");
        });
    });
}

/// Lets nobody wait for room.
struct Strict;

#[actor(name = "Culprit", mailbox = 1, overflow = reject)]
impl Strict {
    pub(crate) async fn wait(&mut self, begun: oneshot::Sender<()>, gate: oneshot::Receiver<()>) {
        begun.send(()).ok();
        gate.await.ok();
    }

    pub(crate) fn nothing(&mut self) {}
}

#[test]
fn an_ask_that_finds_no_room_and_may_not_wait() {
    on_shards(ALL, |system| {
        let call = |strict: Addr<Strict>| async move {
            let (begun, has_begun) = oneshot::channel();
            let (_open, gate) = oneshot::channel();
            strict.wait(begun, gate).tell().await.unwrap();
            has_begun.await.unwrap();
            strict.nothing().tell().await.unwrap();
            strict.nothing().await
        };
        from_everywhere(
            system,
            || Strict,
            call,
            |answer, home| {
                assert!(matches!(answer, Err(CallError::Overflowed(_))));
                let says = "was not called: the mailbox was full, and its `overflow` policy lets nobody wait";
                home.check_call(answer, "nothing", says);
            },
        );
    });
}

#[test]
fn an_ask_whose_handler_is_cut_off() {
    on_shards(ALL, |system| {
        let call = |culprit: Addr<Culprit>| culprit.end().into_future();
        from_everywhere(system, Culprit::default, call, |answer, home| {
            assert!(matches!(answer, Err(CallError::Killed(_))));
            home.check_call(
                answer,
                "end",
                "was cut off: the actor was killed while it ran",
            );
        });
    });
}

#[test]
fn an_ask_whose_handler_panics() {
    on_shards(ALL, |system| {
        let call = |culprit: Addr<Culprit>| culprit.fail().into_future();
        from_everywhere(system, Culprit::default, call, |answer, home| {
            assert!(matches!(answer, Err(CallError::Panicked(..))));
            home.check_call(
                answer,
                "fail",
                "panicked: as told (at tests/behaviour/errors/calls.rs:",
            );
        });
    });
}

#[test]
fn an_ask_that_is_not_answered_in_time() {
    on_shards(ALL, |system| {
        let call = |culprit: Addr<Culprit>| culprit.keep().timeout(SHORT).into_future();
        from_everywhere(system, Culprit::default, call, |answer, home| {
            assert!(matches!(answer, Err(CallError::Timeout(..))));
            home.check_call(answer, "keep", "gave no answer within 20ms");
        });
    });
}

#[test]
fn an_ask_that_has_no_room_in_time() {
    on_shards(ALL, |system| {
        let call = |culprit: Addr<Culprit>| async move {
            let _open = fill(culprit).await;
            // On another shard a few find room on the way there, and wait in the mailbox's line.
            culprit.nothing().timeout(SHORT).await
        };
        from_everywhere(system, Culprit::default, call, |answer, home| {
            let error = answer.as_ref().unwrap_err();
            assert!(error.is_timeout(), "{error}");
            if error.handler_ran() == HandlerRan::No {
                home.check_call(
                    answer,
                    "nothing",
                    "was not called: its mailbox had no room within 20ms",
                );
            } else {
                home.check_call(answer, "nothing", "gave no answer within 20ms");
            }
        });
    });
}

#[test]
fn an_ask_that_has_the_time_of_another_one() {
    on_shards(ALL, |system| {
        let last = last_shard(system);
        let spawn = |shard| {
            let spawned = system.spawn_on(shard, Culprit::default);
            system.block_on(spawned).unwrap()
        };
        for shard in system.shards() {
            let (first, second) = (spawn(0), spawn(last));
            let (heard, hears) = mpsc::channel();
            let ask = move || first.pass_on(second, heard).timeout(SHORT);
            // The time of both is over: this one may hear of it first, or hear of the other one.
            drop(system.run_on(shard, ask));
            let text = hear(&hears);
            let says = format!("Culprit::keep on shard {last} gave no answer within ");
            assert!(text.starts_with(&says), "{text}");
            assert!(
                text.ends_with(", which was left to the ask that its caller was handling"),
                "{text}"
            );
        }
    });
}

#[test]
fn an_ask_whose_reply_is_dropped() {
    on_shards(ALL, |system| {
        let call = |culprit: Addr<Culprit>| culprit.lose().into_future();
        from_everywhere(system, Culprit::default, call, |answer, home| {
            assert!(matches!(answer, Err(CallError::NoReply(_))));
            home.check_call(answer, "lose", "dropped its reply without an answer");
        });
    });
}

#[test]
fn an_ask_that_closes_a_cycle() {
    on_shards(ALL, |system| {
        let last = last_shard(system);
        let culprit = system
            .block_on(system.spawn_on(last, Culprit::default))
            .unwrap();
        let asked = system.block_on(culprit.ask_itself().into_future());
        let (site, text) = asked.unwrap();
        let home = Home(Some(last.into()), Addr::actor_id(culprit));
        home.check(&text, &site, "nothing", "would never have answered, for");
        let alone = "its actor waits for itself: call the method on `self`, or tell it";
        assert!(text.ends_with(alone), "{text}");
    });
}

/// Does not want to start.
struct Unwilling;

#[actor(name = "Culprit")]
impl Unwilling {
    #[on(started)]
    fn started(&mut self) -> Result<(), &'static str> {
        Err("not in the mood")
    }

    pub(crate) fn nothing(&self) {}
}

#[test]
fn an_ask_of_one_that_does_not_start() {
    on_shards(ALL, |system| {
        for shard in system.shards() {
            let (error, id) = system.run_on(shard, || async {
                let unwilling = greenroom::spawn(Unwilling);
                let answer = unwilling.nothing().await;
                (answer, Addr::actor_id(unwilling))
            });
            assert!(matches!(error, Err(CallError::NotStarted(..))));
            Home(Some(shard), id).check_call(
                error,
                "nothing",
                "was not called: the actor did not start: not in the mood",
            );
        }
    });
}

#[track_caller]
fn check_send<T>(home: &Home, told: Result<(), SendError<T>>, says: &str) {
    let error = told.unwrap_err();
    home.check(&error, error.site(), "nothing", says);
    assert_eq!(format!("{error:?}"), error.to_string());
}

#[test]
fn a_tell_to_one_that_has_stopped() {
    on_shards(ALL, |system| {
        let last = last_shard(system);
        let call = |culprit: Addr<Culprit>| async move {
            Addr::stop(culprit);
            Addr::stopped(culprit).await;
            (
                greenroom::runtime::current_shard(),
                culprit.nothing().tell().await,
            )
        };
        from_everywhere(system, Culprit::default, call, |(shard, told), home| {
            // On another shard it is found out on arrival.
            if shard.is_none_or(|shard| shard == last.into()) {
                assert!(told.as_ref().unwrap_err().is_stopped());
                check_send(&home, told, "was not sent: the actor has stopped");
            }
        });
    });
}

#[test]
fn a_tell_that_finds_no_room_and_does_not_wait() {
    on_shards(ALL, |system| {
        let call = |culprit: Addr<Culprit>| async move {
            let _open = fill(culprit).await;
            // There is room on the way too, but not for so many.
            let mut told = (0..100_000).map(|_| culprit.nothing().try_tell());
            told.find(Result::is_err).expect("no room for ever")
        };
        from_everywhere(system, Culprit::default, call, |told, home| {
            assert!(told.as_ref().unwrap_err().is_full());
            check_send(
                &home,
                told,
                "was not sent: the mailbox is full, or the link to its shard",
            );
        });
    });
}

#[test]
fn a_tell_that_closes_a_cycle() {
    on_shards(&[1, 2], |system| {
        let spawn = |shard| {
            let spawned = system.spawn_on(shard, Culprit::default);
            system.block_on(spawned).unwrap()
        };
        let pair = [spawn(0), spawn(last_shard(system))];
        let mut asks = Vec::new();
        let mut goes = Vec::new();
        for (culprit, other) in [(pair[0], pair[1]), (pair[1], pair[0])] {
            let (begun, has_begun) = oneshot::channel();
            let (go, may_go) = oneshot::channel();
            let mut ask = culprit.flood(other, begun, may_go).no_timeout();
            assert!(poll_once(&mut ask).is_pending());
            system.block_on(has_begun).unwrap();
            asks.push(ask);
            goes.push(go);
        }
        drop(goes);
        let mut refused = 0;
        for (ask, place) in asks.into_iter().zip([1, 0]) {
            let Some((site, text)) = system.block_on(ask).unwrap() else {
                continue;
            };
            refused += 1;
            let shard = [0, last_shard(system)][place];
            let home = Home(Some(shard.into()), Addr::actor_id(pair[place]));
            home.check(
                &text,
                &site,
                "nothing",
                "was not sent: there would never have been room, for actors wait for each other in a cycle: \
                 Culprit::nothing on shard ",
            );
        }
        assert!(refused >= 1);
    });
}
