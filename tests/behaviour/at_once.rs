//! An ask of an idle actor on the same shard is answered on the spot, and nobody can tell but by the clock.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use greenroom::prelude::*;
use greenroom::runtime::{spawn, yield_now};
use greenroom_tests::{counts, on_shards, poll_once, settle};

/// Writes down what it handles.
#[derive(Default)]
struct Diary {
    seen: Vec<u32>,
    stopping: Option<Rc<Cell<bool>>>,
}

#[actor(mailbox = 2)]
impl Diary {
    pub(crate) fn note(&mut self, number: u32) -> usize {
        self.seen.push(number);
        self.seen.len()
    }

    pub(crate) async fn note_later(&mut self, number: u32) {
        self.seen.push(number);
    }

    pub(crate) fn seen(&self) -> Vec<u32> {
        self.seen.clone()
    }

    pub(crate) fn fail(&mut self) {
        panic!("torn out");
    }

    pub(crate) fn stop_after(&mut self, ctx: &mut Ctx<Self>) -> &'static str {
        ctx.stop();
        "the last entry"
    }

    pub(crate) fn kill_itself(&mut self, ctx: &mut Ctx<Self>) -> &'static str {
        Addr::kill(ctx.addr());
        "still said"
    }

    pub(crate) fn tell_itself(&mut self, ctx: &mut Ctx<Self>) -> usize {
        ctx.addr().note(7).try_tell().unwrap();
        self.seen.len()
    }

    /// Asks itself from inside of the handler; the ask must not run here.
    pub(crate) fn ask_itself(&mut self, ctx: &mut Ctx<Self>) -> bool {
        let mut ask = ctx.addr().note(9).into_future();
        poll_once(&mut ask).is_pending() && self.seen.is_empty()
    }

    #[message(local)]
    pub(crate) fn report_stop(&mut self, flag: Rc<Cell<bool>>) {
        self.stopping = Some(flag);
    }

    #[on(stopping)]
    fn stopping(&mut self) {
        if let Some(flag) = &self.stopping {
            flag.set(true);
        }
    }
}

fn diary_here() -> Addr<Diary> {
    greenroom::spawn(Diary::default())
}

/// Runs the body on shard 0 with an actor there that has started and waits.
fn with_idle(body: impl AsyncFn(Addr<Diary>) + Send + Sync + Clone + 'static) {
    on_shards(&[1], move |system| {
        let body = body.clone();
        system.run_on(0, move || async move {
            let diary = diary_here();
            assert_eq!(diary.seen().await.unwrap(), []);
            body(diary).await;
        });
    });
}

#[test]
fn an_ask_never_overtakes_what_its_sender_told_before() {
    with_idle(async |diary| {
        diary.note(1).tell().await.unwrap();
        diary.note(2).tell().await.unwrap();
        // The mailbox is full: this one waits in line, and the ask behind it.
        let mut third = diary.note(3).tell();
        assert!(poll_once(&mut third).is_pending());
        let mut ask = diary.note(4).into_future();
        assert!(poll_once(&mut ask).is_pending());
        third.await.unwrap();
        assert_eq!(ask.await.unwrap(), 4);
        assert_eq!(diary.seen().await.unwrap(), [1, 2, 3, 4]);
    });
}

#[test]
fn an_ask_of_an_idle_actor_does_not_overtake_a_sender_that_was_called_and_has_not_come() {
    with_idle(async |diary| {
        diary.note(1).tell().await.unwrap();
        diary.note(2).tell().await.unwrap();
        let mut third = diary.note(3).tell();
        assert!(poll_once(&mut third).is_pending());
        // The actor empties its mailbox and waits, while the front of the line does not come.
        for _ in 0..3 {
            yield_now().await;
        }
        let mut ask = diary.note(4).into_future();
        assert!(poll_once(&mut ask).is_pending());
        third.await.unwrap();
        assert_eq!(ask.await.unwrap(), 4);
        assert_eq!(diary.seen().await.unwrap(), [1, 2, 3, 4]);
    });
}

#[test]
fn an_ask_of_an_actor_in_the_middle_of_a_handler_waits() {
    with_idle(async |diary| {
        assert!(diary.ask_itself().await.unwrap());
        // The ask made inside was dropped before it was handled; it was accepted, so it may or may not be.
        diary.note(1).await.unwrap();
        assert_eq!(diary.seen().await.unwrap().last(), Some(&1));
    });
}

#[test]
fn what_a_handler_sends_to_its_own_actor_is_handled_after_it() {
    with_idle(async |diary| {
        assert_eq!(diary.tell_itself().await.unwrap(), 0);
        diary.note_later(8).await.unwrap();
        assert_eq!(diary.seen().await.unwrap(), [7, 8]);
    });
}

#[test]
fn a_panic_ends_the_actor_and_not_its_asker() {
    on_shards(&[1], |system| {
        let before = counts(system).panics;
        system.run_on(0, || async {
            let diary = diary_here();
            diary.note(1).await.unwrap();
            let error = diary.fail().await.unwrap_err();
            assert!(error.to_string().contains("torn out"), "{error}");
            // Nothing more is handled, not even before the actor's own task has run.
            assert!(diary.note(2).await.unwrap_err().is_stopped());
            Addr::stopped(diary).await;
        });
        assert_eq!(counts(system).panics, before + 1);
    });
}

#[test]
fn a_panic_skips_the_stopping_hook() {
    with_idle(async |diary| {
        let stopping = Rc::new(Cell::new(false));
        let local = Addr::local(diary).unwrap();
        local.report_stop(stopping.clone()).await.unwrap();
        diary.fail().await.unwrap_err();
        Addr::stopped(diary).await;
        assert!(!stopping.get());
    });
}

#[test]
fn a_stop_from_inside_ends_the_actor_with_its_hook() {
    with_idle(async |diary| {
        let stopping = Rc::new(Cell::new(false));
        let local = Addr::local(diary).unwrap();
        local.report_stop(stopping.clone()).await.unwrap();
        assert_eq!(diary.stop_after().await.unwrap(), "the last entry");
        assert!(diary.note(1).await.unwrap_err().is_stopped());
        Addr::stopped(diary).await;
        assert!(stopping.get());
    });
}

#[test]
fn a_kill_from_inside_lets_the_handler_answer_and_nothing_follow() {
    with_idle(async |diary| {
        assert_eq!(diary.kill_itself().await.unwrap(), "still said");
        assert!(diary.note(1).await.unwrap_err().is_stopped());
        Addr::stopped(diary).await;
    });
}

#[test]
fn a_stream_of_asks_gives_way_to_other_tasks() {
    with_idle(async |diary| {
        let ran = Rc::new(Cell::new(false));
        let seen = ran.clone();
        let other = spawn(async move { seen.set(true) });
        let mut asks = 0;
        while !ran.get() {
            diary.note(0).await.unwrap();
            asks += 1;
            assert!(asks < 10_000, "a task that was ready never ran");
        }
        other.await.unwrap();
    });
}

#[test]
fn messages_of_another_shard_keep_their_order_whoever_handles_them() {
    on_shards(&[2], |system| {
        let diary = system.block_on(system.spawn_on(1, Diary::default)).unwrap();
        let seen = system.run_on(0, move || async move {
            for number in 0..500 {
                if number % 3 == 0 {
                    diary.note_later(number).tell().await.unwrap();
                } else {
                    diary.note(number).tell().await.unwrap();
                }
            }
            diary.seen().await.unwrap()
        });
        assert_eq!(seen, (0..500).collect::<Vec<_>>());
        system.block_on(settle(system, 1));
    });
}

/// Asks an actor when it is woken, and notes whether it heard that the actor has stopped.
struct AsksWhenWoken {
    diary: Addr<Diary>,
    heard: AtomicBool,
}

impl Wake for AsksWhenWoken {
    fn wake(self: Arc<Self>) {
        let asked = poll_once(&mut self.diary.seen().into_future());
        let refused = matches!(asked, Poll::Ready(Err(error)) if error.is_stopped());
        self.heard.store(refused, Ordering::Relaxed);
    }
}

#[test]
fn an_actor_that_is_gone_answers_nobody_who_hears_of_its_end() {
    for end in [Addr::stop, Addr::kill] {
        with_idle(async move |diary| {
            let asks = Arc::new(AsksWhenWoken {
                diary,
                heard: AtomicBool::new(false),
            });
            let waker = Waker::from(asks.clone());
            let mut stopped = pin!(Addr::stopped(diary));
            let polled = stopped.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
            end(diary);
            Addr::stopped(diary).await;
            assert!(asks.heard.load(Ordering::Relaxed));
        });
    }
}
