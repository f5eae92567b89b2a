//! Futures, streams and tasks that actors have begun.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::stream::{self, Stream};
use greenroom::Errand;
use greenroom::prelude::*;
use greenroom::runtime::time::sleep;
use greenroom::runtime::yield_now;
use greenroom_tests::{Homely, counts, hear, last_shard, on_shards};

/// Begins what it is told to begin.
#[derive(Default)]
struct Busy {
    log: Vec<String>,
    errand: Option<Errand>,
    source: Source,
    end: Option<Homely>,
}

#[actor(mailbox = 4)]
impl Busy {
    /// Answers with what was piped, when it has come.
    pub(crate) fn pipe(
        &mut self,
        output: oneshot::Receiver<u32>,
        reply: Reply<u32>,
        ctx: &mut Ctx<Self>,
    ) {
        // What comes out need not be `Send`.
        let future = async move { Rc::new(output.await.unwrap_or(0)) };
        self.errand = Some(ctx.pipe(future, move |me, output| {
            me.log.push(format!("piped {output}"));
            reply.send(*output);
        }));
    }

    pub(crate) fn pipe_and_stop(&mut self, ctx: &mut Ctx<Self>) {
        ctx.pipe_with(yield_now(), |_, (), ctx| ctx.stop());
    }

    pub(crate) fn pipe_at_once(&mut self, ctx: &mut Ctx<Self>) {
        ctx.pipe(std::future::ready(1), |me, output| {
            me.log.push(format!("piped {output}"));
        });
        ctx.addr().note("first".to_owned()).try_tell().unwrap();
        ctx.addr().note("second".to_owned()).try_tell().unwrap();
    }

    pub(crate) fn panic_in_future(&mut self, ctx: &mut Ctx<Self>) {
        ctx.pipe(async { panic!("in the future") }, |_, ()| {});
    }

    pub(crate) fn panic_after_future(&mut self, ctx: &mut Ctx<Self>) {
        ctx.pipe(yield_now(), |_, ()| panic!("after the future"));
    }

    pub(crate) fn panic_in_task(&mut self, ctx: &mut Ctx<Self>) {
        ctx.spawn(async {
            yield_now().await;
            panic!("in the task");
        });
    }

    pub(crate) fn panic_in_stream(&mut self, ctx: &mut Ctx<Self>) {
        let items = stream::iter(0..3).map_panic();
        ctx.forward(items, |me, item: u32| me.note(item.to_string()));
    }

    /// Forwards what is put into its source.
    pub(crate) fn forward(&mut self, ctx: &mut Ctx<Self>) {
        let source = self.source.clone();
        let errand = ctx
            .forward(source, |me, item| me.item(item))
            .on_end(|me| me.note("end".to_owned()));
        self.errand = Some(errand);
    }

    #[message(local)]
    pub(crate) fn item(&mut self, item: Rc<u32>) {
        self.log.push(format!("item {item}"));
    }

    pub(crate) fn forward_numbers(&mut self, count: u32, ctx: &mut Ctx<Self>) {
        ctx.forward(stream::iter(0..count), |me, item| me.note(item.to_string()))
            .on_end(|me| me.note("end".to_owned()));
    }

    pub(crate) fn forward_slowly(&mut self, count: u32, ctx: &mut Ctx<Self>) {
        let polled = Rc::new(Cell::new(0));
        let numbers = Counted {
            left: count,
            polled: polled.clone(),
        };
        self.errand = Some(
            ctx.forward(numbers, move |me, item| me.slow_item(item, polled.clone()))
                .into_errand(),
        );
    }

    /// Sees how far the stream is ahead of what is handled.
    #[message(local)]
    pub(crate) async fn slow_item(&mut self, item: u32, polled: Rc<Cell<u32>>) {
        for _ in 0..5 {
            yield_now().await;
            let ahead = polled.get() - item;
            assert!(ahead <= 2, "{ahead} items ahead");
        }
        self.log.push(item.to_string());
    }

    pub(crate) fn put(&mut self, items: Vec<u32>) {
        self.source.put(items.into_iter().map(Some));
    }

    pub(crate) fn close(&mut self) {
        self.source.put([None]);
    }

    pub(crate) fn note(&mut self, what: String) {
        self.log.push(what);
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.log.clone()
    }

    pub(crate) fn cancel(&mut self) -> bool {
        self.errand.take().unwrap().cancel()
    }

    pub(crate) fn is_active(&self) -> bool {
        self.errand.as_ref().unwrap().is_active()
    }

    /// Is busy, with a task that says when it is dropped, and state that says so as well.
    pub(crate) fn spawn(
        &mut self,
        task: mpsc::Sender<bool>,
        state: mpsc::Sender<bool>,
        ctx: &mut Ctx<Self>,
    ) {
        let held = Homely::new(task);
        self.end = Some(Homely::new(state));
        self.errand = Some(ctx.spawn(async move {
            let _held = held;
            std::future::pending::<()>().await;
        }));
    }

    pub(crate) fn spawn_and_kill(&mut self, dropped: mpsc::Sender<bool>, ctx: &mut Ctx<Self>) {
        let held = Homely::new(dropped);
        let me = ctx.addr();
        ctx.spawn(async move {
            let _held = held;
            Addr::kill(me);
            sleep(Duration::from_hours(1)).await;
        });
    }

    pub(crate) async fn hold(&mut self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }

    pub(crate) async fn hold_and_cancel(&mut self, gate: oneshot::Receiver<()>) -> bool {
        gate.await.ok();
        self.errand.take().unwrap().cancel()
    }

    pub(crate) fn stop(&mut self, ctx: &mut Ctx<Self>) {
        ctx.stop();
    }
}

/// A stream that is put together by hand.
#[derive(Clone, Default)]
struct Source(Rc<RefCell<Put>>);

/// What was put into a source, and who waits for more.
type Put = (VecDeque<Option<u32>>, Option<Waker>);

impl Source {
    fn put(&self, items: impl IntoIterator<Item = Option<u32>>) {
        let mut inner = self.0.borrow_mut();
        inner.0.extend(items);
        let waker = inner.1.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Stream for Source {
    type Item = Rc<u32>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Rc<u32>>> {
        let mut inner = self.0.borrow_mut();
        match inner.0.pop_front() {
            Some(item) => Poll::Ready(item.map(Rc::new)),
            None => {
                inner.1 = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Counts how often it gave something.
struct Counted {
    left: u32,
    polled: Rc<Cell<u32>>,
}

impl Stream for Counted {
    type Item = u32;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<u32>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        let item = self.polled.get();
        self.polled.set(item + 1);
        Poll::Ready(Some(item))
    }
}

trait MapPanic: Stream<Item = u32> + Sized + 'static {
    fn map_panic(self) -> impl Stream<Item = u32> + 'static {
        futures_util::StreamExt::map(self, |item| {
            assert!(item < 2, "in the stream");
            item
        })
    }
}

impl<S: Stream<Item = u32> + 'static> MapPanic for S {}

fn busy(system: &System) -> Addr<Busy> {
    let shard = last_shard(system);
    system
        .block_on(system.spawn_on(shard, Busy::default))
        .unwrap()
}

fn until_logged(system: &System, busy: Addr<Busy>, count: usize) -> Vec<String> {
    loop {
        let log = system.block_on(busy.log().into_future()).unwrap();
        if log.len() >= count {
            return log;
        }
    }
}

#[test]
fn a_piped_output_comes_while_the_actor_goes_on() {
    on_shards(&[1, 2, 4], |system| {
        let busy = busy(system);
        let (output, piped) = oneshot::channel();
        let answer = system.block_on(async {
            let asked = busy.pipe(piped).into_future();
            let others = async {
                busy.note("other".to_owned()).await.unwrap();
                assert!(busy.is_active().await.unwrap());
                output.send(7).unwrap();
            };
            futures_util::join!(asked, others).0
        });
        assert_eq!(answer.unwrap(), 7);
        let log = until_logged(system, busy, 2);
        assert_eq!(log, ["other", "piped 7"]);
        assert!(!system.block_on(busy.is_active().into_future()).unwrap());
    });
}

#[test]
fn a_piped_output_stands_behind_what_was_accepted_before() {
    on_shards(&[1, 2], |system| {
        let busy = busy(system);
        system.block_on(busy.pipe_at_once().into_future()).unwrap();
        let log = until_logged(system, busy, 3);
        assert_eq!(log, ["first", "second", "piped 1"]);
        system.block_on(busy.pipe_and_stop().into_future()).unwrap();
        system.block_on(Addr::stopped(busy));
    });
}

#[test]
fn a_cancelled_pipe_is_dropped_and_says_so_to_whoever_waits() {
    on_shards(&[1, 2], |system| {
        let busy = busy(system);
        let (output, piped) = oneshot::channel::<u32>();
        let answer = system.block_on(async {
            let asked = busy.pipe(piped).into_future();
            let cancelled = async { assert!(busy.cancel().await.unwrap()) };
            futures_util::join!(asked, cancelled).0
        });
        let error = answer.unwrap_err();
        assert!(matches!(error, CallError::NoReply(_)), "{error}");
        assert!(output.is_canceled());
        assert!(
            system
                .block_on(busy.log().into_future())
                .unwrap()
                .is_empty()
        );
    });
}

#[test]
fn a_pipe_ends_with_its_actor_and_whoever_waits_hears_why() {
    on_shards(&[1, 2], |system| {
        for kill in [false, true] {
            let busy = busy(system);
            let (output, piped) = oneshot::channel::<u32>();
            let answer = system.block_on(async {
                let asked = busy.pipe(piped).into_future();
                let end = async {
                    busy.log().await.unwrap();
                    if kill {
                        Addr::kill(busy);
                    } else {
                        Addr::stop(busy);
                    }
                };
                futures_util::join!(asked, end).0
            });
            let error = answer.unwrap_err();
            assert_eq!(matches!(error, CallError::Killed(_)), kill, "{error}");
            assert_eq!(error.is_stopped(), !kill, "{error}");
            system.block_on(Addr::stopped(busy));
            assert!(output.is_canceled());
        }
        assert_eq!(counts(system).dead_letters, 0);
    });
}

#[test]
fn a_panic_in_what_an_actor_has_begun_ends_the_actor_and_nothing_else() {
    on_shards(&[1, 2], |system| {
        let other = busy(system);
        let begins: [fn(Addr<Busy>) -> bool; 4] = [
            |busy| busy.panic_in_future().try_tell().is_ok(),
            |busy| busy.panic_after_future().try_tell().is_ok(),
            |busy| busy.panic_in_task().try_tell().is_ok(),
            |busy| busy.panic_in_stream().try_tell().is_ok(),
        ];
        for (count, begin) in (1..).zip(begins) {
            let busy = busy(system);
            assert!(begin(busy));
            system.block_on(Addr::stopped(busy));
            assert_eq!(counts(system).panics, count);
        }
        assert!(system.block_on(other.log().into_future()).is_ok());
    });
}

#[test]
fn a_stream_becomes_messages_in_order_and_its_end_one_more() {
    on_shards(&[1, 2, 4], |system| {
        let busy = busy(system);
        system.block_on(busy.forward().into_future()).unwrap();
        system.block_on(busy.put(vec![1, 2]).into_future()).unwrap();
        assert_eq!(until_logged(system, busy, 2), ["item 1", "item 2"]);
        system.block_on(busy.put(vec![3]).into_future()).unwrap();
        system.block_on(busy.close().into_future()).unwrap();
        let log = until_logged(system, busy, 4);
        assert_eq!(log, ["item 1", "item 2", "item 3", "end"]);
        while system.block_on(busy.is_active().into_future()).unwrap() {}

        let many = self::busy(system);
        system
            .block_on(many.forward_numbers(1000).into_future())
            .unwrap();
        let log = until_logged(system, many, 1001);
        let numbers = (0..1000).map(|number| number.to_string());
        assert!(log.iter().cloned().eq(numbers.chain(["end".to_owned()])));
    });
}

#[test]
fn a_stream_never_runs_ahead_of_its_actor() {
    on_shards(&[1, 2], |system| {
        let busy = busy(system);
        system
            .block_on(busy.forward_slowly(50).into_future())
            .unwrap();
        assert_eq!(until_logged(system, busy, 50).len(), 50);
        assert_eq!(counts(system).panics, 0);
    });
}

#[test]
fn a_stream_that_is_cancelled_brings_nothing_more_not_even_what_stands_in_the_mailbox() {
    on_shards(&[1, 2], |system| {
        let busy = busy(system);
        let (open, gate) = oneshot::channel();
        system.block_on(busy.forward().into_future()).unwrap();
        let cancelled = system.block_on(async {
            // The item is put in front of the handler that cancels, and is forwarded while that one waits.
            busy.put(vec![1]).tell().await.unwrap();
            let cancels = busy.hold_and_cancel(gate).into_future();
            let opens = async {
                system
                    .runtime()
                    .spawn_on(last_shard(system), || async {
                        for _ in 0..20 {
                            yield_now().await;
                        }
                    })
                    .await
                    .unwrap();
                open.send(()).ok();
            };
            futures_util::join!(cancels, opens).0
        });
        assert!(cancelled.unwrap());
        system.block_on(busy.put(vec![2]).into_future()).unwrap();
        system
            .block_on(busy.note("last".to_owned()).into_future())
            .unwrap();
        let log = until_logged(system, busy, 1);
        assert!(log == ["last"] || log == ["item 1", "last"], "{log:?}");
    });
}

#[test]
fn an_item_that_its_actor_does_not_take_is_a_dead_letter() {
    on_shards(&[1, 2], |system| {
        let busy = busy(system);
        let (open, gate) = oneshot::channel();
        system.block_on(busy.forward().into_future()).unwrap();
        system.block_on(busy.put(vec![]).into_future()).unwrap();
        system.block_on(async {
            busy.hold(gate).tell().await.unwrap();
            busy.stop().tell().await.unwrap();
        });
        let source = system
            .runtime()
            .spawn_on(last_shard(system), move || async move {
                for _ in 0..20 {
                    yield_now().await;
                }
            });
        system.block_on(source).unwrap();
        Addr::kill(busy);
        system.block_on(Addr::stopped(busy));
        // The message that was not handled; the stream has brought nothing.
        assert_eq!(counts(system).dead_letters, 1);
        drop(open);
    });
}

#[test]
fn a_task_ends_with_its_actor_before_the_state_is_dropped() {
    on_shards(&[1, 2], |system| {
        for kill in [false, true] {
            let busy = busy(system);
            let (task_done, task_dropped) = mpsc::channel();
            let (state_done, state_dropped) = mpsc::channel();
            system
                .block_on(busy.spawn(task_done, state_done).into_future())
                .unwrap();
            if kill {
                Addr::kill(busy);
            } else {
                Addr::stop(busy);
            }
            assert!(hear(&state_dropped), "at home");
            // It was dropped before: nothing is to be waited for.
            assert_eq!(task_dropped.try_recv(), Ok(true));
        }
    });
}

#[test]
fn a_task_is_cancelled_at_once_and_one_that_kills_its_actor_ends_too() {
    on_shards(&[1, 2], |system| {
        let busy = busy(system);
        let (task, task_dropped) = mpsc::channel();
        let (state, _state_dropped) = mpsc::channel();
        system
            .block_on(busy.spawn(task, state).into_future())
            .unwrap();
        assert!(system.block_on(busy.cancel().into_future()).unwrap());
        assert_eq!(task_dropped.try_recv(), Ok(true));
        let (task, task_dropped) = mpsc::channel();
        system.block_on(busy.spawn_and_kill(task).tell()).unwrap();
        system.block_on(Addr::stopped(busy));
        assert!(hear(&task_dropped));
    });
}
