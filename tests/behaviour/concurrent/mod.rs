//! Concurrent messages: readers run side by side, a writer alone, and nothing that was promised is given up for it.

mod next;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::mpsc;

use futures_channel::oneshot;
use greenroom::prelude::*;
use greenroom::runtime::yield_now;
use greenroom::{HandlerRan, ShardId};
use greenroom_tests::{Homely, bounded, hear, last_shard, on_shards, poll_once, settle, start};

/// What readers wait for, by their number: a gate that nobody has opened yet, or one that was opened before.
#[derive(Default)]
struct Gates {
    waiting: RefCell<HashMap<u32, oneshot::Sender<()>>>,
    open: RefCell<Vec<u32>>,
}

/// Notes what happens to it. Readers wait at gates, which other actors open: the gates of a shard are shared by all of
/// its actors.
struct Hall {
    log: Vec<String>,
    /// Readers log through this.
    heard: Rc<RefCell<Vec<String>>>,
    gates: Rc<Gates>,
    running: Cell<u32>,
    most: Cell<u32>,
    state_dropped: Option<Homely>,
}

thread_local! {
    static GATES: Rc<Gates> = Rc::default();
}

impl Default for Hall {
    fn default() -> Self {
        Self {
            log: Vec::new(),
            heard: Rc::default(),
            gates: GATES.with(Rc::clone),
            running: Cell::new(0),
            most: Cell::new(0),
            state_dropped: None,
        }
    }
}

struct Inside<'a>(&'a Hall, u32);

impl<'a> Inside<'a> {
    fn new(hall: &'a Hall, number: u32) -> Self {
        hall.note(format!("in {number}"));
        hall.running.set(hall.running.get() + 1);
        hall.most.set(hall.most.get().max(hall.running.get()));
        Self(hall, number)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.note(format!("out {}", self.1));
        self.0.running.set(self.0.running.get() - 1);
    }
}

#[actor(concurrent = 3, mailbox = 16)]
impl Hall {
    #[message(concurrent)]
    pub(crate) async fn read(&self, number: u32) -> u32 {
        let _inside = Inside::new(self, number);
        self.pass(number).await;
        number * 10
    }

    /// Like `read`, with values of its own that must be dropped at home.
    #[message(concurrent)]
    pub(crate) async fn hold(&self, number: u32, held: mpsc::Sender<bool>) -> u32 {
        let _inside = Inside::new(self, number);
        let _held = Homely::new(held);
        self.pass(number).await;
        number
    }

    #[message(concurrent)]
    pub(crate) async fn fail(&self, number: u32) {
        let _inside = Inside::new(self, number);
        self.pass(number).await;
        panic!("reader {number} fails");
    }

    /// What it holds panics when it is dropped.
    #[message(concurrent)]
    pub(crate) async fn explode(&self, number: u32) {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("the drop of a reader fails");
            }
        }
        let _bomb = Bomb;
        self.pass(number).await;
    }

    #[message(concurrent)]
    pub(crate) async fn try_read(&self, number: u32) -> Result<u32, String> {
        if number == 0 {
            return Err("nothing is read".to_owned());
        }
        yield_now().await;
        Ok(number)
    }

    #[message(concurrent)]
    pub(crate) async fn answer_later(&self, number: u32, reply: Reply<u32>) {
        self.pass(number).await;
        reply.send(number);
    }

    /// Reads through its own address, and is not in its own way.
    #[message(concurrent)]
    pub(crate) async fn read_twice(&self, number: u32, ctx: &mut Ctx<Self>) -> u32 {
        ctx.addr().try_read(number).await.unwrap_or(0) + number
    }

    #[message(concurrent)]
    pub(crate) async fn kill_all(&self, number: u32, ctx: &mut Ctx<Self>) {
        self.pass(number).await;
        Addr::kill(ctx.addr());
    }

    #[message(concurrent)]
    pub(crate) async fn end_all(&self, number: u32, ctx: &mut Ctx<Self>) -> u32 {
        self.pass(number).await;
        ctx.stop_now();
        yield_now().await;
        number
    }

    #[message(concurrent, local)]
    pub(crate) async fn share(&self, number: u32) -> Rc<u32> {
        self.pass(number).await;
        Rc::new(number)
    }

    #[message(concurrent)]
    pub(crate) async fn spin(&self, rounds: Option<u32>) {
        let mut round = 0;
        while rounds.is_none_or(|rounds| round < rounds) {
            round += 1;
            yield_now().await;
        }
    }

    pub(crate) fn write(&mut self, number: u32) -> u32 {
        assert_eq!(self.running.get(), 0, "a writer is alone");
        self.note(format!("write {number}"));
        number
    }

    pub(crate) async fn write_slowly(&mut self, number: u32) {
        assert_eq!(self.running.get(), 0, "a writer is alone");
        self.note(format!("write {number}"));
        for _ in 0..5 {
            yield_now().await;
            assert_eq!(self.running.get(), 0, "a writer stays alone");
        }
    }

    /// An exclusive message that only looks.
    pub(crate) fn peek(&self) -> (u32, u32) {
        assert_eq!(self.running.get(), 0, "what is not concurrent is alone");
        (self.running.get(), self.most.get())
    }

    pub(crate) fn hold_state(&mut self, dropped: mpsc::Sender<bool>) {
        self.state_dropped = Some(Homely::new(dropped));
    }

    pub(crate) fn heard(&mut self) -> Vec<String> {
        self.log.append(&mut self.heard.borrow_mut());
        std::mem::take(&mut self.log)
    }

    #[on(stopping)]
    fn close(&mut self) {
        assert_eq!(self.running.get(), 0, "readers end before the stop");
    }

    async fn pass(&self, number: u32) {
        if self.gates.open.borrow().contains(&number) {
            return;
        }
        let (open, passed) = oneshot::channel();
        self.gates.waiting.borrow_mut().insert(number, open);
        passed.await.expect("a gate is opened, not closed");
    }

    fn note(&self, what: String) {
        self.heard.borrow_mut().push(what);
    }
}

/// Opens a gate of the shard for whoever waits there, or will.
async fn open(system: &System, shard: ShardId, number: u32) {
    let opened = system.runtime().spawn_on(shard, move || async move {
        let gates = GATES.with(Rc::clone);
        gates.open.borrow_mut().push(number);
        let waiting = gates.waiting.borrow_mut().remove(&number);
        if let Some(waiting) = waiting {
            waiting.send(()).ok();
        }
    });
    opened.await.expect("the shard runs");
}

/// Waits until as many readers wait at gates of the shard.
async fn waiting(system: &System, shard: ShardId, count: usize) {
    let arrived = system.runtime().spawn_on(shard, move || async move {
        while GATES.with(|gates| gates.waiting.borrow().len()) != count {
            yield_now().await;
        }
    });
    arrived.await.expect("the shard runs");
}

/// Runs a body with a hall on the last shard of systems of several sizes.
fn with_hall<F>(
    shards: &[usize],
    body: impl Fn(Rc<System>, Addr<Hall>, ShardId) -> F + Copy + Send + Sync + 'static,
) where
    F: Future<Output = ()>,
{
    for &count in shards {
        bounded(&format!("the body on {count} shards"), move || {
            let system = Rc::new(start(count));
            let shard = ShardId::from(last_shard(&system));
            system.block_on(async {
                let hall = system.spawn_on(shard, Hall::default).await.unwrap();
                body(system.clone(), hall, shard).await;
            });
        });
    }
}

#[test]
fn readers_overlap_and_answer_when_they_are_done() {
    with_hall(&[1, 2], |system, hall, shard| async move {
        let mut first = hall.read(1).into_future();
        let mut second = hall.read(2).into_future();
        assert!(poll_once(&mut first).is_pending());
        assert!(poll_once(&mut second).is_pending());
        waiting(&system, shard, 2).await;
        open(&system, shard, 2).await;
        assert_eq!(second.await.unwrap(), 20);
        assert!(poll_once(&mut first).is_pending());
        open(&system, shard, 1).await;
        assert_eq!(first.await.unwrap(), 10);
        assert_eq!(
            hall.heard().await.unwrap(),
            ["in 1", "in 2", "out 2", "out 1"]
        );
        assert_eq!(hall.peek().await.unwrap(), (0, 2));
    });
}

#[test]
fn a_waiting_writer_stops_new_readers() {
    with_hall(&[1, 2], |system, hall, shard| async move {
        hall.read(1).tell().await.unwrap();
        waiting(&system, shard, 1).await;
        open(&system, shard, 2).await;
        hall.write(7).tell().await.unwrap();
        hall.read(2).tell().await.unwrap();
        hall.write_slowly(8).tell().await.unwrap();
        // Nobody has a reason to wait but the writer in front.
        settle(&system, last_shard(&system)).await;
        open(&system, shard, 1).await;
        assert_eq!(
            hall.heard().await.unwrap(),
            ["in 1", "out 1", "write 7", "in 2", "out 2", "write 8"]
        );
    });
}

#[test]
fn readers_start_in_the_order_sent_and_not_more_than_allowed() {
    with_hall(&[1, 2], |system, hall, shard| async move {
        let mut asks: Vec<_> = (0..10)
            .map(|number| hall.read(number).into_future())
            .collect();
        for ask in &mut asks {
            assert!(poll_once(ask).is_pending());
        }
        waiting(&system, shard, 3).await;
        // The last ones first, which the bound keeps out.
        for number in (0..10).rev() {
            open(&system, shard, number).await;
        }
        for (number, ask) in (0..).zip(asks) {
            assert_eq!(ask.await.unwrap(), number * 10);
        }
        let heard = hall.heard().await.unwrap();
        let starts: Vec<_> = heard.iter().filter(|line| line.starts_with("in")).collect();
        let expected: Vec<_> = (0..10).map(|number| format!("in {number}")).collect();
        assert!(starts.into_iter().eq(&expected), "{heard:?}");
        assert_eq!(hall.peek().await.unwrap(), (0, 3));
    });
}

#[test]
fn a_panic_of_a_reader_ends_the_actor_and_cuts_the_others_off() {
    with_hall(&[1, 2], |system, hall, shard| async move {
        let (dropped, at_home) = mpsc::channel();
        hall.hold_state(dropped.clone()).await.unwrap();
        let mut beside = hall.hold(1, dropped).into_future();
        let mut fails = hall.fail(2).into_future();
        let mut behind = hall.write(3).into_future();
        assert!(poll_once(&mut beside).is_pending());
        assert!(poll_once(&mut fails).is_pending());
        assert!(poll_once(&mut behind).is_pending());
        waiting(&system, shard, 2).await;
        open(&system, shard, 2).await;
        let error = fails.await.unwrap_err();
        assert_eq!(
            error.panic().map(|report| report.text()),
            Some("reader 2 fails")
        );
        let error = beside.await.unwrap_err();
        assert!(error.to_string().contains("cut off"), "{error}");
        assert_eq!(error.handler_ran(), HandlerRan::Yes);
        let error = behind.await.unwrap_err();
        assert!(error.is_stopped(), "{error}");
        Addr::stopped(hall).await;
        // What the reader held, and then the state.
        assert!(hear(&at_home) && hear(&at_home));
        assert!(hall.read(4).await.unwrap_err().is_stopped());
        let counts = system.counts().await;
        assert_eq!((counts.actors, counts.panics), (0, 1));
        assert!(counts.dead_letters >= 1, "{counts:?}");
    });
}

#[test]
fn a_kill_cuts_every_reader_off_and_drops_them_before_the_state() {
    with_hall(&[1, 2], |system, hall, shard| async move {
        let (dropped, at_home) = mpsc::channel();
        let (state_dropped, state_at_home) = mpsc::channel();
        hall.hold_state(state_dropped).await.unwrap();
        let mut readers: Vec<_> = (0..3)
            .map(|number| hall.hold(number, dropped.clone()).into_future())
            .collect();
        for reader in &mut readers {
            assert!(poll_once(reader).is_pending());
        }
        let mut not_begun = hall.read(3).into_future();
        assert!(poll_once(&mut not_begun).is_pending());
        waiting(&system, shard, 3).await;
        Addr::kill(hall);
        for reader in readers {
            let error = reader.await.unwrap_err();
            assert!(error.to_string().contains("cut off"), "{error}");
        }
        let error = not_begun.await.unwrap_err();
        assert_eq!(error.handler_ran(), HandlerRan::No, "{error}");
        assert!(hear(&state_at_home));
        // Everything a reader held went before.
        assert_eq!(at_home.try_iter().collect::<Vec<_>>(), [true; 3]);
    });
}

#[test]
fn a_stop_waits_for_readers_and_a_stop_now_starts_no_more() {
    with_hall(&[1, 2], |system, hall, shard| async move {
        let mut first = hall.read(1).into_future();
        let mut second = hall.read(2).into_future();
        assert!(poll_once(&mut first).is_pending());
        assert!(poll_once(&mut second).is_pending());
        waiting(&system, shard, 2).await;
        Addr::stop(hall);
        settle(&system, last_shard(&system)).await;
        assert!(hall.read(3).await.unwrap_err().is_stopped());
        for number in 1..3 {
            open(&system, shard, number).await;
        }
        assert_eq!((first.await.unwrap(), second.await.unwrap()), (10, 20));
        Addr::stopped(hall).await;
        assert_eq!(system.counts().await.panics, 0);

        let hall = system.spawn_on(shard, Hall::default).await.unwrap();
        let mut ends = hall.end_all(4).into_future();
        let mut reads = hall.read(5).into_future();
        let mut behind = hall.write(6).into_future();
        assert!(poll_once(&mut ends).is_pending());
        assert!(poll_once(&mut reads).is_pending());
        assert!(poll_once(&mut behind).is_pending());
        waiting(&system, shard, 2).await;
        open(&system, shard, 4).await;
        assert_eq!(ends.await.unwrap(), 4);
        // The one that was handled when the stop came is a current message too.
        open(&system, shard, 5).await;
        assert_eq!(reads.await.unwrap(), 50);
        assert!(behind.await.unwrap_err().is_stopped());
    });
}

#[test]
fn a_message_that_could_be_answered_at_once_waits_for_readers() {
    on_shards(&[1, 2], |system| {
        let shard = ShardId::from(last_shard(system));
        let (heard, most) = system.run_on(shard, || async {
            let hall = greenroom::spawn(Hall::default());
            assert_eq!(hall.peek().await.unwrap(), (0, 0));
            let mut reads = hall.read(1).into_future();
            assert!(poll_once(&mut reads).is_pending());
            while GATES.with(|gates| gates.waiting.borrow().is_empty()) {
                yield_now().await;
            }
            // The reader waits, the queue is empty, the actor's task sleeps: an idle actor, but for the reader.
            let mut writes = hall.write(2).into_future();
            assert!(poll_once(&mut writes).is_pending());
            let opened = GATES.with(|gates| gates.waiting.borrow_mut().remove(&1));
            opened.expect("the reader waits").send(()).unwrap();
            assert_eq!(reads.await.unwrap(), 10);
            assert_eq!(writes.await.unwrap(), 2);
            // Idle again.
            let mut peek = hall.peek().into_future();
            let most = match poll_once(&mut peek) {
                std::task::Poll::Ready(Ok((_, most))) => most,
                other => panic!("an idle actor answers at once, not {other:?}"),
            };
            (hall.heard().await.unwrap(), most)
        });
        assert_eq!(heard, ["in 1", "out 1", "write 2"]);
        assert_eq!(most, 1);
    });
}

#[test]
fn readers_that_never_wait_starve_nobody() {
    with_hall(&[1, 2], |system, hall, shard| async move {
        let other = system.spawn_on(shard, Hall::default).await.unwrap();
        for _ in 0..3 {
            hall.spin(None).tell().await.unwrap();
        }
        hall.spin(Some(1)).tell().await.unwrap();
        for number in 0..20 {
            assert_eq!(other.write(number).await.unwrap(), number);
        }
        // They end at an await point.
        Addr::kill(hall);
        Addr::stopped(hall).await;
    });
}

#[test]
fn a_stream_of_readers_lets_other_actors_and_writers_in() {
    with_hall(&[1, 2], |system, hall, shard| async move {
        let other = system.spawn_on(shard, Hall::default).await.unwrap();
        let reading = system.runtime().spawn_on(shard, move || async move {
            for number in 1..500 {
                hall.try_read(number).tell().await.unwrap();
            }
        });
        for number in 0..10 {
            assert_eq!(hall.write(number).await.unwrap(), number);
            assert_eq!(other.write(number).await.unwrap(), number);
        }
        reading.await.unwrap();
    });
}

#[test]
fn readers_may_answer_in_every_way() {
    with_hall(&[1, 2], |system, hall, shard| async move {
        assert_eq!(hall.try_read(3).await.unwrap(), 3);
        let error = hall.try_read(0).await.unwrap_err();
        assert_eq!(error.to_string(), "nothing is read");
        open(&system, shard, 4).await;
        assert_eq!(hall.answer_later(4).await.unwrap(), 4);
        assert_eq!(hall.read_twice(5).await.unwrap(), 10);
        let shared = system.runtime().spawn_on(shard, move || async move {
            let here = Addr::local(hall).expect("the hall's shard");
            *here.share(4).await.unwrap()
        });
        assert_eq!(shared.await.unwrap(), 4);
        hall.try_read(0).tell().await.unwrap();
        assert_eq!(hall.write(1).await.unwrap(), 1);
        assert_eq!(system.counts().await.told_errors, 1);
    });
}

#[test]
fn a_reader_may_kill_its_actor_and_the_others_with_it() {
    with_hall(&[1, 2], |system, hall, shard| async move {
        let mut kills = hall.kill_all(1).into_future();
        let mut reads = hall.read(2).into_future();
        assert!(poll_once(&mut kills).is_pending());
        assert!(poll_once(&mut reads).is_pending());
        waiting(&system, shard, 2).await;
        open(&system, shard, 1).await;
        // It has answered when it returned.
        kills.await.unwrap();
        let error = reads.await.unwrap_err();
        assert!(error.to_string().contains("cut off"), "{error}");
        Addr::stopped(hall).await;
    });
}

#[test]
fn a_reader_whose_drop_panics_keeps_no_other_from_being_dropped() {
    with_hall(&[1, 2], |system, hall, shard| async move {
        let (dropped, at_home) = mpsc::channel();
        let mut first = hall.explode(1).into_future();
        let mut second = hall.hold(2, dropped.clone()).into_future();
        let mut third = hall.explode(3).into_future();
        assert!(poll_once(&mut first).is_pending());
        assert!(poll_once(&mut second).is_pending());
        assert!(poll_once(&mut third).is_pending());
        waiting(&system, shard, 3).await;
        Addr::kill(hall);
        assert!(hear(&at_home));
        for error in [first.await.unwrap_err(), third.await.unwrap_err()] {
            assert_eq!(error.handler_ran(), HandlerRan::Yes, "{error}");
        }
        assert!(second.await.is_err());
        Addr::stopped(hall).await;
        // The shard goes on.
        let next = system.spawn_on(shard, Hall::default).await.unwrap();
        assert_eq!(next.write(1).await.unwrap(), 1);
    });
}

#[test]
fn the_end_of_a_system_with_readers_accounts_for_all_of_them() {
    for shards in [1, 2] {
        bounded("a shutdown with readers", move || {
            let system = start(shards);
            let shard = ShardId::from(last_shard(&system));
            let (dropped, at_home) = mpsc::channel();
            let asks = system.block_on(async {
                let hall = system.spawn_on(shard, Hall::default).await.unwrap();
                let mut asks: Vec<_> = (0..8)
                    .map(|number| hall.hold(number, dropped.clone()).into_future())
                    .collect();
                for ask in &mut asks {
                    assert!(poll_once(ask).is_pending());
                }
                waiting(&system, shard, 3).await;
                asks
            });
            drop(dropped);
            let report = system.shutdown(std::time::Duration::from_millis(10));
            assert_eq!(report.killed().len(), 1);
            assert_eq!(at_home.iter().collect::<Vec<_>>(), [true; 3]);
            let errors: Vec<_> = asks
                .into_iter()
                .map(|ask| {
                    futures_util::future::FutureExt::now_or_never(ask)
                        .expect("answered")
                        .unwrap_err()
                })
                .collect();
            let ran = errors
                .iter()
                .filter(|error| error.handler_ran() == HandlerRan::Yes)
                .count();
            assert_eq!(ran, 3, "{errors:?}");
        });
    }
}
