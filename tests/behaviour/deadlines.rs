//! Every ask has a limit, which passes on to the asks it leads to.

use std::sync::mpsc;
use std::time::Duration;

use futures_channel::oneshot;
use greenroom::LimitSource;
use greenroom::prelude::*;
use greenroom::runtime::time::Instant;
use greenroom_tests::{bounded, hear, last_shard, on_shards};

/// Short, so that tests need not wait long for it.
const SHORT: Duration = Duration::from_millis(40);
/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(600);

/// Never answers, unless it is told to.
#[derive(Default)]
struct Silent {
    kept: Vec<Reply<u32>>,
}

#[actor]
impl Silent {
    pub(crate) fn keep(&mut self, reply: Reply<u32>) {
        self.kept.push(reply);
    }

    pub(crate) fn answer_all(&mut self) {
        for reply in self.kept.drain(..) {
            reply.send(7);
        }
    }

    /// What the first one who waits has left.
    pub(crate) fn left(&self) -> Option<Duration> {
        Some(self.kept.first()?.deadline()?.remaining())
    }
}

/// Passes what it is asked on.
struct Relay {
    to: Addr<Silent>,
    via: Option<Addr<Relay>>,
    heard: mpsc::Sender<Heard>,
}

/// How the ask of a relay ended: the limit and where it came from.
type Heard = (Duration, LimitSource);

#[actor]
impl Relay {
    pub(crate) async fn pass(&mut self) -> bool {
        let error = match self.via {
            Some(via) => via.pass().await.map(drop),
            None => self.to.keep().await.map(drop),
        };
        self.report(error.err())
    }

    pub(crate) async fn pass_within(&mut self, limit: Duration) -> bool {
        let error = self.to.keep().timeout(limit).await.err();
        self.report(error)
    }

    pub(crate) async fn pass_without_limit(&mut self) -> bool {
        let error = self.to.keep().no_timeout().await.err();
        self.report(error)
    }

    fn report(&self, error: Option<CallError>) -> bool {
        if let Some(CallError::Timeout(_, timeout)) = error {
            self.heard.send((timeout.limit(), timeout.source())).ok();
            return false;
        }
        true
    }
}

fn with_deadline(shards: usize, limit: impl Into<Option<Duration>>) -> System {
    let builder = System::builder().shards(shards).pin(false);
    builder.ask_deadline(limit).start().unwrap()
}

fn relays(system: &System, via: usize) -> (Addr<Relay>, Addr<Silent>, mpsc::Receiver<Heard>) {
    let (heard, hears) = mpsc::channel();
    let last = last_shard(system);
    let to = system
        .block_on(system.spawn_on(last, Silent::default))
        .unwrap();
    let mut first = None;
    for step in 0..=via {
        let heard = heard.clone();
        let shard = system.shard(step);
        let make = move || Relay {
            to,
            via: first,
            heard,
        };
        first = Some(system.block_on(system.spawn_on(shard, make)).unwrap());
    }
    (first.unwrap(), to, hears)
}

/// The time of an ask that led to another one is over: for itself, or, if it is looked at later, for the other one.
fn is_over(answer: Result<bool, CallError>) -> bool {
    match answer {
        Ok(in_time) => !in_time,
        Err(error) => error.is_timeout(),
    }
}

#[test]
fn an_ask_without_a_limit_has_the_systems() {
    for shards in [1, 2, 4] {
        bounded("the ask", move || {
            let system = with_deadline(shards, SHORT);
            let silent = system
                .block_on(system.spawn_on(last_shard(&system), Silent::default))
                .unwrap();
            let check = |error: CallError| {
                let CallError::Timeout(site, timeout) = &error else {
                    panic!("{error}")
                };
                assert_eq!(site.method(), "keep");
                assert_eq!(
                    (timeout.limit(), timeout.source()),
                    (SHORT, LimitSource::System)
                );
                let text = error.to_string();
                assert!(text.starts_with("Silent::keep "), "{text}");
                assert!(text.contains("the default deadline 40 ms"), "{text}");
                assert!(text.contains(".no_timeout()"), "{text}");
                assert!(text.contains("ask_deadline"), "{text}");
            };
            for shard in system.shards() {
                check(system.run_on(
                    shard,
                    move || async move { silent.keep().await.unwrap_err() },
                ));
            }
            check(system.block_on(silent.keep().into_future()).unwrap_err());
        });
    }
}

#[test]
fn the_systems_limit_is_half_a_minute_if_nobody_says_otherwise() {
    on_shards(&[1, 2], |system| {
        let silent = system
            .block_on(system.spawn_on(0, Silent::default))
            .unwrap();
        system
            .runtime()
            .spawn_on(last_shard(system), move || silent.keep().into_future())
            .detach();
        let left = loop {
            if let Some(left) = system.block_on(silent.left().into_future()).unwrap() {
                break left;
            }
        };
        let default = Duration::from_secs(30);
        assert!(left <= default + Duration::from_secs(2), "{left:?}");
        assert!(left > default - Duration::from_secs(20), "{left:?}");
    });
}

#[test]
fn an_ask_that_wants_no_limit_outlives_the_systems() {
    for shards in [1, 2] {
        bounded("the asks", move || {
            let system = with_deadline(shards, SHORT);
            let silent = system
                .block_on(system.spawn_on(last_shard(&system), Silent::default))
                .unwrap();
            let lasting = system
                .runtime()
                .spawn_on(0, move || silent.keep().no_timeout());
            let outside = std::thread::spawn(move || silent.keep().no_timeout().blocking());
            for _ in 0..3 {
                let error = system.run_on(0, move || async move { silent.keep().await });
                assert!(error.unwrap_err().is_timeout());
            }
            silent.answer_all().blocking().unwrap();
            assert_eq!(system.block_on(lasting).unwrap().unwrap(), 7);
            assert_eq!(outside.join().unwrap().unwrap(), 7);
        });
    }
}

#[test]
fn a_system_may_have_no_limit_at_all() {
    bounded("the ask", || {
        let system = with_deadline(1, None);
        let silent = system
            .block_on(system.spawn_on(0, Silent::default))
            .unwrap();
        let asked = system
            .runtime()
            .spawn_on(0, move || silent.keep().into_future());
        system.run_on(0, move || async move {
            assert_eq!(silent.left().await.unwrap(), None);
        });
        silent.answer_all().blocking().unwrap();
        assert_eq!(system.block_on(asked).unwrap().unwrap(), 7);
    });
}

#[test]
fn a_deadline_is_a_moment_of_either_clock() {
    on_shards(&[1, 2], |system| {
        let silent = system
            .block_on(system.spawn_on(0, Silent::default))
            .unwrap();
        let error = system.run_on(last_shard(system), move || async move {
            let at = Instant::now() + Duration::from_millis(5);
            let first = silent.keep().deadline(at).await.unwrap_err();
            let second = silent.keep().deadline(at).await.unwrap_err();
            assert!(second.is_timeout(), "it has passed");
            first
        });
        assert!(error.is_timeout(), "{error}");
        let at = std::time::Instant::now() + Duration::from_millis(5);
        let error = silent.keep().deadline(at).blocking().unwrap_err();
        assert!(error.is_timeout(), "{error}");
        assert!(std::time::Instant::now() >= at);
        let at = std::time::Instant::now();
        let error = silent.keep().deadline(at).blocking().unwrap_err();
        assert!(error.is_timeout(), "{error}");
    });
}

#[test]
fn of_several_limits_the_last_one_holds() {
    on_shards(&[1], |system| {
        let silent = system
            .block_on(system.spawn_on(0, Silent::default))
            .unwrap();
        let ask = silent.keep().timeout(LONG).no_timeout().timeout(SHORT);
        let error = system.block_on(ask).unwrap_err();
        assert!(error.to_string().ends_with("within 40ms"), "{error}");
    });
}

#[test]
fn an_ask_made_by_a_handler_inherits_what_is_left() {
    for (shards, via) in [(1, 0), (2, 0), (2, 1), (4, 3), (1, 3)] {
        bounded("the chain", move || {
            let system = with_deadline(shards, LONG);
            let (relay, _, heard) = relays(&system, via);
            for ask in 0..3 {
                let asked = relay.pass().timeout(SHORT);
                let answer = if ask == 0 {
                    system.block_on(asked)
                } else {
                    system.run_on(0, move || asked)
                };
                // After a stall both limits are over, and the handler may be the first to hear of it.
                assert!(matches!(answer, Ok(false)) || is_over(answer));
                let (limit, source) = hear(&heard);
                assert_eq!(source, LimitSource::Inherited);
                // Rounded up, on each way.
                let slack = Duration::from_millis(20) * u32::try_from(via + 1).unwrap();
                assert!(limit <= SHORT + slack, "{limit:?}");
            }
        });
    }
}

#[test]
fn the_smaller_limit_holds() {
    for shards in [1, 2] {
        bounded("the asks", move || {
            let system = with_deadline(shards, LONG);
            let (relay, _, heard) = relays(&system, 0);
            let ask = relay.pass_within(SHORT).timeout(LONG);
            assert!(!system.block_on(ask).unwrap());
            assert_eq!(hear(&heard), (SHORT, LimitSource::Call));
            let ask = relay.pass_within(LONG).timeout(SHORT);
            assert!(is_over(system.block_on(ask)));
            assert_eq!(hear(&heard).1, LimitSource::Inherited);
            let ask = relay.pass_without_limit().timeout(SHORT);
            assert!(is_over(system.block_on(ask)));
            assert_eq!(hear(&heard).1, LimitSource::Inherited);
        });
    }
}

#[test]
fn a_told_handler_inherits_nothing() {
    for shards in [1, 2] {
        bounded("the tells", move || {
            let system = with_deadline(shards, SHORT);
            let (relay, ..) = relays(&system, 0);
            let (outer, _, heard) = relays(&system, 0);
            // A handler that was asked tells another one.
            system.block_on(outer.pass().tell()).unwrap();
            assert_eq!(hear(&heard), (SHORT, LimitSource::System));
            system.block_on(relay.pass().tell()).unwrap();
        });
    }
}

#[test]
fn a_systems_limit_is_inherited_too() {
    for shards in [1, 2] {
        bounded("the chain", move || {
            let system = with_deadline(shards, SHORT);
            let (relay, _, heard) = relays(&system, 0);
            let answer = system.run_on(0, move || relay.pass().into_future());
            assert!(is_over(answer));
            assert!(hear(&heard).0 <= SHORT + Duration::from_millis(20));
        });
    }
}

#[test]
fn a_limit_holds_in_line_for_room_too() {
    for shards in [1, 2] {
        bounded("the line", move || {
            let system = with_deadline(shards, SHORT);
            let (heard, _hears) = mpsc::channel();
            let to = system
                .block_on(system.spawn_on(0, Silent::default))
                .unwrap();
            let make = move || Narrow { heard };
            let narrow = system.block_on(system.spawn_on(0, make)).unwrap();
            let (open, gate) = oneshot::channel::<()>();
            system.block_on(narrow.wait(gate).tell()).unwrap();
            system.block_on(narrow.nothing().tell()).unwrap();
            for error in [
                system.run_on(0, move || narrow.nothing().into_future()),
                system.block_on(narrow.nothing().into_future()),
                system.run_on(0, move || narrow.nothing().timeout(SHORT)),
            ] {
                let error = error.unwrap_err();
                assert_eq!(error.handler_ran(), greenroom::HandlerRan::No, "{error}");
                assert!(error.to_string().contains("had no room within"), "{error}");
            }
            drop(open);
            system.block_on(narrow.nothing().into_future()).unwrap();
            Addr::stop(to);
        });
    }
}

/// Its mailbox has one place.
struct Narrow {
    heard: mpsc::Sender<()>,
}

#[actor(mailbox = 1)]
impl Narrow {
    pub(crate) fn nothing(&mut self) {
        self.heard.send(()).ok();
    }

    pub(crate) async fn wait(&mut self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }
}
