//! Names: who has them, for how long, and who finds them.

use std::sync::mpsc;
use std::time::Duration;

use futures_channel::oneshot;
use greenroom::ShardNames;
use greenroom::prelude::*;
use greenroom::runtime::yield_now;
use greenroom_tests::{Ledger, PATIENCE, hear, last_shard, on_shards, poll_once};

const ALL: &[usize] = &[1, 2, 4];

/// Starts in the way it is told.
struct Starter {
    start: Start,
}

enum Start {
    Well,
    Badly,
    Panicking,
    /// When the gate opens.
    Late(Option<oneshot::Receiver<()>>),
    /// Under another name besides.
    Naming(&'static str),
}

#[actor]
impl Starter {
    #[on(started)]
    async fn started(&mut self, ctx: &mut Ctx<Self>) -> Result<(), String> {
        match &mut self.start {
            Start::Well => Ok(()),
            Start::Badly => Err("no".to_owned()),
            Start::Panicking => panic!("not today"),
            Start::Late(gate) => {
                gate.take().expect("started once").await.ok();
                Ok(())
            }
            Start::Naming(name) => ctx.register(name).map_err(|error| error.to_string()),
        }
    }

    pub(crate) fn ping(&self) -> u32 {
        7
    }

    pub(crate) fn take(
        &mut self,
        name: String,
        ctx: &mut Ctx<Self>,
    ) -> Result<(), greenroom::RegisterError> {
        ctx.register(&name)
    }

    pub(crate) fn give_up(&mut self, name: String, ctx: &mut Ctx<Self>) -> bool {
        ctx.unregister(&name)
    }

    pub(crate) fn fail(&mut self) {
        panic!("as told");
    }

    pub(crate) fn stop(&mut self, ctx: &mut Ctx<Self>) {
        ctx.stop();
    }
}

fn starter(start: Start) -> impl FnOnce() -> Starter + Send {
    || Starter { start }
}

fn is_free(system: &System, name: &str) -> bool {
    let looked_up = system.names().lookup::<Starter>(name);
    looked_up.is_err_and(|error| error.is_not_found())
}

#[test]
fn a_name_leads_to_its_actor_from_every_shard_and_from_outside() {
    on_shards(ALL, |system| {
        let names = system.names();
        for shard in system.shards() {
            let name = format!("on {}", shard.index());
            let named = system.block_on(names.spawn_on(name.as_str(), shard, starter(Start::Well)));
            let named = named.unwrap();
            assert_eq!(names.lookup::<Starter>(&name).unwrap(), named);
            for asker in system.shards() {
                let name = name.clone();
                let found = system.run_on(asker, || async move {
                    let names = greenroom::Handle::current().unwrap().names();
                    let found = names.lookup::<Starter>(&name).unwrap();
                    found.ping().await.unwrap();
                    found
                });
                assert_eq!(found, named);
            }
        }
        assert_eq!(names.list().len(), system.shard_count());
    });
}

#[test]
fn an_actor_of_another_type_is_an_error_that_says_who_has_the_name() {
    on_shards(ALL, |system| {
        let names = system.names();
        let shard = last_shard(system);
        system
            .block_on(names.spawn_on("a", shard, starter(Start::Well)))
            .unwrap();
        let error = names.lookup::<Ledger<1>>("a").unwrap_err();
        assert!(error.is_wrong_type() && !error.is_not_found());
        assert_eq!(error.holder().unwrap().actor(), Some("Starter"));
        assert!(
            error.to_string().contains("\"a\" is not a Ledger"),
            "{error}"
        );
        assert!(error.to_string().contains("Starter"), "{error}");
        let waited = system.block_on(names.lookup_within::<Ledger<1>>("a", PATIENCE));
        assert!(waited.unwrap_err().is_wrong_type(), "waiting does not help");
        let error = names.lookup::<Starter>("b").unwrap_err();
        assert!(error.is_not_found());
        assert_eq!(error.to_string(), "no actor is named \"b\"");
    });
}

#[test]
fn two_types_of_one_name_are_told_apart_by_their_paths() {
    on_shards(&[1], |system| {
        let names = system.names();
        system
            .block_on(names.spawn_on("a", 0, Ledger::<1>::default))
            .unwrap();
        let error = names.lookup::<Ledger<2>>("a").unwrap_err().to_string();
        assert!(
            error.contains("Ledger<1>") && error.contains("Ledger<2>"),
            "{error}"
        );
    });
}

#[test]
fn of_two_spawns_with_one_name_one_wins_and_the_other_makes_nothing() {
    on_shards(ALL, |system| {
        let (made, makers) = mpsc::channel();
        for round in 0..50 {
            let name = format!("round {round}");
            let starting: Vec<_> = system
                .shards()
                .chain(system.shards())
                .map(|shard| {
                    let made = made.clone();
                    system.names().spawn_on(name.as_str(), shard, move || {
                        made.send(shard).unwrap();
                        starter(Start::Well)()
                    })
                })
                .collect();
            let outcomes = system.block_on(futures_util::future::join_all(starting));
            let (won, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
            assert_eq!(won.len(), 1, "{lost:?}");
            assert_eq!(makers.try_iter().count(), 1);
            for lost in lost {
                let error = lost.unwrap_err();
                assert!(error.is_name_taken() && error.holder().is_some());
                assert!(error.to_string().contains("did not start"), "{error}");
            }
        }
        assert_eq!(greenroom_tests::counts(system).actors, 50);
    });
}

#[test]
fn whatever_ends_an_actor_its_name_is_free_before_anybody_hears_of_it() {
    on_shards(ALL, |system| {
        let ends: [fn(Addr<Starter>); 4] = [
            Addr::stop,
            Addr::kill,
            |starter| starter.fail().try_tell().unwrap(),
            |starter| starter.stop().try_tell().unwrap(),
        ];
        for end in ends {
            let shard = last_shard(system);
            let named = system.names().spawn_on("a", shard, starter(Start::Well));
            let named = system.block_on(named).unwrap();
            system
                .block_on(named.take("b".to_owned()).into_future())
                .unwrap();
            let handle = system.handle().clone();
            // Whoever hears of the end takes the name at once, from another shard.
            let next = system.run_on(0, move || async move {
                end(named);
                Addr::stopped(named).await;
                let names = handle.names();
                assert!(names.list().is_empty());
                names.spawn_on("a", 0, starter(Start::Naming("b"))).await
            });
            let next = next.unwrap();
            Addr::kill(next);
            system.block_on(Addr::stopped(next));
        }
    });
}

#[test]
fn a_start_that_fails_or_is_cut_off_leaves_no_name() {
    on_shards(ALL, |system| {
        let (names, shard) = (system.names(), last_shard(system));
        let refused = system.block_on(names.spawn_on("a", shard, starter(Start::Badly)));
        assert!(refused.unwrap_err().to_string().ends_with("no"));
        assert!(is_free(system, "a"));
        let panicked = system.block_on(names.spawn_on("a", shard, starter(Start::Panicking)));
        assert!(panicked.unwrap_err().is_panic());
        assert!(is_free(system, "a"));
        let panicked =
            system.block_on(names.spawn_on("a", shard, || -> Starter { panic!("no actor") }));
        assert!(panicked.unwrap_err().is_panic());
        assert!(is_free(system, "a"));

        // Its name is found while it starts, and what is sent to it waits.
        let (open, gate) = oneshot::channel();
        let mut starting = Box::pin(names.spawn_on("a", shard, starter(Start::Late(Some(gate)))));
        assert!(poll_once(&mut starting).is_pending());
        let found = system
            .block_on(names.lookup_within::<Starter>("a", PATIENCE))
            .unwrap();
        drop(starting);
        Addr::kill(found);
        system.block_on(Addr::stopped(found));
        assert!(is_free(system, "a"));
        drop(open);
        system
            .block_on(names.spawn_on("a", shard, starter(Start::Well)))
            .unwrap();
    });
}

#[test]
fn a_name_is_claimed_before_its_actor_is_made() {
    on_shards(ALL, |system| {
        let (entered, has_entered) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let shard = last_shard(system);
        let starting = system.names().spawn_on("a", shard, move || {
            entered.send(()).unwrap();
            released.recv_timeout(PATIENCE).ok();
            starter(Start::Well)()
        });
        hear(&has_entered);
        let error = system.names().lookup::<Starter>("a").unwrap_err();
        assert!(error.is_not_found());
        assert_eq!(
            error.to_string(),
            "the actor named \"a\" is still being made: `lookup_within` waits for it"
        );
        assert_eq!(system.names().list()[0].actor(), None);
        drop(release);
        system.block_on(starting).unwrap();
        system.names().lookup::<Starter>("a").unwrap();
    });
}

#[test]
fn names_are_given_later_too_and_given_up() {
    on_shards(ALL, |system| {
        let names = system.names();
        let spawn = || {
            system
                .block_on(system.spawn_on(last_shard(system), starter(Start::Well)))
                .unwrap()
        };
        let (one, other) = (spawn(), spawn());
        system.block_on(names.register("a", one)).unwrap();
        system
            .block_on(names.register("a", one))
            .expect("it has the name");
        let error = system.block_on(names.register("a", other)).unwrap_err();
        assert!(error.is_taken() && !error.is_stopped());
        assert!(error.to_string().contains("held by Starter"), "{error}");
        assert_eq!(error.holder().unwrap().name(), "a");

        let given_up =
            |addr: Addr<Starter>| system.block_on(addr.give_up("a".to_owned()).into_future());
        assert!(!given_up(other).unwrap(), "it is not his");
        assert!(given_up(one).unwrap());
        assert!(!given_up(one).unwrap());
        system.block_on(names.register("a", other)).unwrap();
        // The end of the one who had it before takes nothing from the next.
        Addr::stop(one);
        system.block_on(Addr::stopped(one));
        assert_eq!(names.lookup::<Starter>("a").unwrap(), other);
        let error = system.block_on(names.register("b", one)).unwrap_err();
        assert!(error.is_stopped() && !error.is_taken());
        assert!(
            error.to_string().ends_with("the actor has stopped"),
            "{error}"
        );
        assert!(is_free(system, "b"));
    });
}

#[test]
fn a_lookup_waits_until_the_name_appears_or_the_limit_passes() {
    on_shards(ALL, |system| {
        let names = system.names();
        let mut waiting: Vec<_> = (0..3)
            .map(|_| Box::pin(names.lookup_within::<Starter>("a", PATIENCE)))
            .collect();
        for waiting in &mut waiting {
            assert!(poll_once(waiting).is_pending());
        }
        drop(waiting.pop());
        let handle = system.handle().clone();
        let on_shard = system.runtime().spawn_on(0, move || async move {
            let found = handle.names().lookup_within::<Starter>("a", PATIENCE).await;
            found.unwrap().ping().await.unwrap()
        });
        let failed = system.block_on(names.spawn_on("a", 0, starter(Start::Panicking)));
        failed.unwrap_err();
        let named = names.spawn_on("a", last_shard(system), starter(Start::Well));
        let named = system.block_on(named).unwrap();
        // A waiter may have met the one that failed, which was there for a moment.
        let found = system.block_on(names.lookup_within::<Starter>("a", PATIENCE));
        assert_eq!(found.unwrap(), named);
        drop(on_shard);
        for waiting in waiting {
            system.block_on(waiting).unwrap();
        }

        let late = system.block_on(names.lookup_within::<Starter>("b", Duration::from_millis(2)));
        let error = late.unwrap_err();
        assert!(error.is_timeout() && !error.is_not_found());
        assert!(error.to_string().contains("within 2ms"), "{error}");
    });
}

#[test]
fn each_shard_has_names_of_its_own() {
    on_shards(ALL, |system| {
        for shard in system.shards() {
            system.run_on(shard, || async {
                let names = ShardNames::current();
                let named = names.spawn("a", starter(Start::Well)()).unwrap();
                let error = names.spawn("a", starter(Start::Well)()).unwrap_err();
                assert!(error.is_taken(), "{error}");
                assert_eq!(
                    Addr::to_remote(names.lookup::<Starter>("a").unwrap()),
                    named
                );
                assert!(names.lookup::<Ledger<1>>("a").unwrap_err().is_wrong_type());
                let local = Addr::local(named).unwrap();
                names.register("b", local).unwrap();
                assert_eq!(names.list().len(), 2);
                assert!(names.unregister("b", local));
                assert!(!names.unregister("b", local));
            });
        }
        assert!(system.names().list().is_empty(), "the scopes do not mix");
        for shard in system.shards() {
            system.run_on(shard, || async {
                let names = ShardNames::current();
                let named = names.lookup::<Starter>("a").unwrap();
                let waiter = greenroom::runtime::spawn(async move {
                    ShardNames::current()
                        .lookup_within::<Ledger<1>>("b", PATIENCE)
                        .await
                        .map(|_| ())
                });
                yield_now().await;
                Addr::stop(named);
                Addr::stopped(named).await;
                assert!(names.lookup::<Starter>("a").unwrap_err().is_not_found());
                let error = names.register("a", named).unwrap_err();
                assert!(error.is_stopped());
                names.spawn("b", Ledger::<1>::default()).unwrap();
                waiter.await.unwrap().unwrap();
                let none = names
                    .lookup_within::<Starter>("c", Duration::from_millis(2))
                    .await;
                assert!(none.unwrap_err().is_timeout());
            });
        }
    });
}

#[test]
#[should_panic(expected = "a thread that is no shard")]
fn a_thread_that_is_no_shard_has_no_names_of_its_own() {
    drop(ShardNames::current());
}

#[test]
fn many_names_come_and_go_and_leave_nothing() {
    on_shards(ALL, |system| {
        let handle = system.handle().clone();
        system.run_on(0, move || async move {
            let keeper = greenroom::spawn(Ledger::<1>::default());
            let keeper = Addr::local(keeper).unwrap();
            for round in 0..2000_u32 {
                let name = format!("{round}");
                ShardNames::current().register(&name, keeper).unwrap();
                assert!(ShardNames::current().unregister(&name, keeper));
                if round % 20 == 0 {
                    let shard = handle.shard(round as usize);
                    let named = handle
                        .names()
                        .spawn_on(&name, shard, starter(Start::Well))
                        .await
                        .unwrap();
                    Addr::kill(named);
                    Addr::stopped(named).await;
                }
            }
            assert!(ShardNames::current().list().is_empty());
            assert!(handle.names().list().is_empty());
        });
    });
}
