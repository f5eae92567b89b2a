//! Each message reaches its own handler, however many of them wait.

use std::rc::Rc;

use greenroom::Batch;
use greenroom::prelude::*;
use greenroom::runtime::yield_now;
use greenroom_tests::{last_shard, on_shards};

/// Declares an actor of asynchronous handlers, and a test that each answers for itself: asked, and told before.
macro_rules! handlers {
    ($test:ident $actor:ident $concurrent:ident [$($name:ident)+]) => {
        #[derive(Default)]
        struct $actor {
            told: Vec<&'static str>,
        }

        #[actor]
        impl $actor {
            $(
                pub(crate) async fn $name(&mut self, word: Word, #[into] rest: String) -> String {
                    yield_now().await;
                    self.told.push(stringify!($name));
                    format!("{}{}{rest}", stringify!($name), word.0)
                }
            )+

            pub(crate) fn take(&mut self) -> Vec<&'static str> {
                std::mem::take(&mut self.told)
            }
        }

        #[derive(Default)]
        struct $concurrent;

        #[actor]
        impl $concurrent {
            $(
                #[message(concurrent)]
                pub(crate) async fn $name(&self, word: Word) -> Result<String, String> {
                    yield_now().await;
                    Err(format!("{}{}", stringify!($name), word.0))
                }
            )+
        }

        #[test]
        fn $test() {
            on_shards(&[1, 2], |system| {
                let last = last_shard(system);
                system.block_on(async {
                    let actor = system.spawn_on(last, $actor::default).await.unwrap();
                    let beside = system.spawn_on(last, $concurrent::default).await.unwrap();
                    $(
                        actor.$name(Word("-"), "told").tell().await.unwrap();
                        let answer = actor.$name(Word("+"), "asked").await.unwrap();
                        assert_eq!(answer, concat!(stringify!($name), "+asked"));
                        assert_eq!(actor.take().await.unwrap(), [stringify!($name); 2]);
                        match beside.$name(Word("!")).await {
                            Err(CallError::Handler(error)) => {
                                assert_eq!(error, concat!(stringify!($name), "!"));
                            }
                            other => panic!("{other:?}"),
                        }
                    )+
                });
            });
        }
    };
}

/// Of a type that the attribute knows nothing of.
struct Word(&'static str);

handlers!(one_handler_that_waits_answers_for_itself One OneBeside [a]);
handlers!(two_handlers_that_wait_answer_for_themselves Two TwoBeside [a b]);
handlers!(eight_handlers_that_wait_answer_for_themselves Eight EightBeside [a b c d e f g h]);
handlers!(nine_handlers_that_wait_answer_for_themselves Nine NineBeside [a b c d e f g h i]);
handlers!(seventeen_handlers_that_wait_answer_for_themselves Seventeen SeventeenBeside [
    a b c d e f g h i j k l m n o p q
]);
handlers!(sixty_six_handlers_that_wait_answer_for_themselves SixtySix SixtySixBeside [
    aa ab ac ad ae af ag ah ai aj ak al am an ao ap aq ar as_ at au av
    ba bb bc bd be bf bg bh bi bj bk bl bm bn bo bp bq br bs bt bu bv
    ca cb cc cd ce cf cg ch ci cj ck cl cm cn co cp cq cr cs ct cu cv
]);

/// Of every kind at once, and some that are not there.
struct Mixed {
    seen: Vec<String>,
}

#[actor]
impl Mixed {
    #[cfg(any())]
    pub(crate) async fn never(&mut self, missing: Missing) -> Missing {
        missing
    }

    #[cfg(test)]
    pub(crate) async fn plain(&mut self, text: String) -> usize {
        yield_now().await;
        self.seen.push(text);
        self.seen.len()
    }

    #[cfg_attr(test, doc = "Not there either.", cfg(any()))]
    pub(crate) async fn nowhere(&mut self) -> Result<Missing, Missing> {
        Err(Missing)
    }

    #[cfg_attr(any(), cfg(any()))]
    pub(crate) async fn fallible(&mut self, fails: bool) -> Result<u64, &'static str> {
        yield_now().await;
        if fails { Err("it fails") } else { Ok(1) }
    }

    #[message(boxed)]
    pub(crate) async fn boxed(&mut self, page: [u8; 200], last: u8) -> u8 {
        yield_now().await;
        page[199] + last
    }

    #[message(local)]
    pub(crate) async fn here(&mut self, text: Rc<str>) -> Rc<str> {
        yield_now().await;
        text
    }

    pub(crate) async fn later(&mut self, reply: Reply<&'static str>, ctx: &mut Ctx<Self>) {
        yield_now().await;
        let _own = ctx.local();
        reply.send("late");
    }

    #[message(batch = 8)]
    pub(crate) async fn gathered(&mut self, texts: Batch<String>) -> u64 {
        yield_now().await;
        self.seen.extend(texts);
        7
    }

    #[cfg(any())]
    #[message(concurrent)]
    pub(crate) async fn missing_beside(&self) -> Missing {
        Missing
    }

    #[message(concurrent)]
    pub(crate) async fn beside(&self) -> usize {
        yield_now().await;
        self.seen.len()
    }

    pub(crate) fn now(&self) -> Vec<String> {
        self.seen.clone()
    }
}

#[test]
fn handlers_of_every_kind_stand_beside_each_other() {
    on_shards(&[1, 2], |system| {
        let seen = system.run_on(0, || async {
            let mixed = greenroom::spawn(Mixed { seen: Vec::new() });
            assert_eq!(mixed.plain("a".to_owned()).await.unwrap(), 1);
            assert_eq!(mixed.fallible(false).await.unwrap(), 1);
            assert!(matches!(
                mixed.fallible(true).await,
                Err(CallError::Handler("it fails"))
            ));
            assert_eq!(mixed.boxed([3; 200], 4).await.unwrap(), 7);
            let here = Addr::local(mixed).unwrap();
            assert_eq!(&*here.here("b".into()).await.unwrap(), "b");
            assert_eq!(mixed.later().await.unwrap(), "late");
            assert_eq!(mixed.gathered("c".to_owned()).await.unwrap(), 7);
            assert_eq!(mixed.beside().await.unwrap(), 2);
            mixed.now().await.unwrap()
        });
        assert_eq!(seen, ["a", "c"]);
    });
}

/// The only handler that waits is not there.
struct Bare;

#[actor]
impl Bare {
    #[cfg(any())]
    pub(crate) async fn never(&mut self) -> Missing {
        Missing
    }

    pub(crate) fn number(&self) -> u64 {
        5
    }
}

#[test]
fn an_actor_whose_only_waiting_handler_is_compiled_out_handles_the_rest() {
    on_shards(&[1], |system| {
        let bare = system.block_on(system.spawn_on(0, || Bare)).unwrap();
        assert_eq!(system.block_on(bare.number().into_future()).unwrap(), 5);
    });
}

/// A handler that returns what it was given, or panics, before its first wait or after it.
struct Fragile;

#[actor]
impl Fragile {
    pub(crate) async fn panics(&mut self, at_once: bool) -> Result<u64, String> {
        if at_once {
            panic!("at once");
        }
        yield_now().await;
        panic!("later")
    }

    pub(crate) async fn other(&mut self) -> u64 {
        1
    }
}

#[test]
fn the_asker_of_a_handler_that_panics_hears_of_it_wherever_it_happens() {
    on_shards(&[1, 2], |system| {
        for at_once in [true, false] {
            let last = last_shard(system);
            let fragile = system.block_on(system.spawn_on(last, || Fragile)).unwrap();
            match system.block_on(fragile.panics(at_once).into_future()) {
                Err(CallError::Panicked(_, report)) => {
                    assert_eq!(report.text(), if at_once { "at once" } else { "later" });
                }
                other => panic!("{other:?}"),
            }
            assert!(system.block_on(fragile.other().into_future()).is_err());
        }
    });
}
