//! Messages that actors send to themselves later.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;

use futures_channel::oneshot;
use greenroom::Errand;
use greenroom::prelude::*;
use greenroom::runtime::time::{Instant, MissedTicks, sleep};
use greenroom_tests::{Homely, counts, hear, last_shard, on_shards};

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Arms timers when it is told to, and notes what comes.
#[derive(Default)]
struct Watch {
    seen: Vec<u64>,
    began: Option<Instant>,
    errand: Option<Errand>,
    inside: bool,
}

#[actor(mailbox = 2)]
impl Watch {
    pub(crate) fn after(&mut self, delays: Vec<u64>, ctx: &mut Ctx<Self>) {
        for delay in delays {
            ctx.after(ms(delay)).note(delay);
        }
    }

    pub(crate) fn after_and_now(&mut self, ctx: &mut Ctx<Self>) {
        ctx.after(Duration::ZERO).note(0);
        ctx.addr().note(1).try_tell().unwrap();
        ctx.addr().note(2).try_tell().unwrap();
    }

    pub(crate) fn checked_after(&mut self, delay: u64, reply: Reply<bool>, ctx: &mut Ctx<Self>) {
        ctx.after(ms(delay))
            .compare(Instant::now() + ms(delay), Rc::new(Cell::new(Some(reply))));
    }

    #[message(local)]
    pub(crate) fn compare(&self, due: Instant, reply: Rc<Cell<Option<Reply<bool>>>>) {
        reply.take().unwrap().send(Instant::now() >= due);
    }

    pub(crate) fn every(&mut self, period: u64, missed: u8, ctx: &mut Ctx<Self>) {
        let missed = match missed {
            0 => MissedTicks::Skip,
            1 => MissedTicks::Burst,
            _ => MissedTicks::Delay,
        };
        self.began = Some(Instant::now());
        self.errand = Some(ctx.every_with(ms(period), missed).tick());
    }

    #[message]
    fn tick(&mut self) {
        assert!(!self.inside, "a handler runs already");
        let began = self.began.unwrap();
        self.seen
            .push(u64::try_from(began.elapsed().as_millis()).unwrap());
    }

    pub(crate) fn note(&mut self, what: u64) {
        assert!(!self.inside, "a handler runs already");
        self.seen.push(what);
    }

    /// Is busy for a time, then says how much has passed since `every`.
    pub(crate) async fn busy(&mut self, time: u64) -> u64 {
        self.inside = true;
        sleep(ms(time)).await;
        self.inside = false;
        let began = self.began.map_or(Duration::ZERO, Instant::elapsed);
        u64::try_from(began.as_millis()).unwrap()
    }

    /// Begins a timer, is busy until its first call stands in the mailbox, and cancels it.
    pub(crate) async fn begin_and_cancel(
        &mut self,
        time: u64,
        ctx: &mut Ctx<Self>,
    ) -> (bool, bool, bool) {
        self.every(time / 4, 0, ctx);
        self.inside = true;
        sleep(ms(time)).await;
        self.inside = false;
        self.cancel()
    }

    pub(crate) fn cancel(&mut self) -> (bool, bool, bool) {
        let errand = self.errand.take().unwrap();
        (errand.is_active(), errand.cancel(), errand.is_active())
    }

    pub(crate) fn arm_and_cancel(&mut self, count: u64, ctx: &mut Ctx<Self>) -> u64 {
        let armed: Vec<Errand> = (0..count).map(|n| ctx.after(ms(1)).note(n)).collect();
        armed.iter().filter(|errand| errand.cancel()).count() as u64
    }

    pub(crate) fn seen(&self) -> (Vec<u64>, u64) {
        let began = self.began.map_or(Duration::ZERO, Instant::elapsed);
        (self.seen.clone(), u64::try_from(began.as_millis()).unwrap())
    }

    pub(crate) async fn hold(&mut self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }

    pub(crate) fn stop(&mut self, ctx: &mut Ctx<Self>) {
        ctx.stop();
    }
}

fn watch(system: &System) -> Addr<Watch> {
    let shard = last_shard(system);
    system
        .block_on(system.spawn_on(shard, Watch::default))
        .unwrap()
}

/// Asks until enough was seen.
fn until_seen(system: &System, watch: Addr<Watch>, count: usize) -> (Vec<u64>, u64) {
    loop {
        let (seen, elapsed) = system.block_on(watch.seen().into_future()).unwrap();
        if seen.len() >= count {
            return (seen, elapsed);
        }
    }
}

#[test]
fn timers_come_once_in_the_order_in_which_they_are_due() {
    on_shards(&[1, 2], |system| {
        let watch = watch(system);
        let delays = vec![9, 3, 6, 3, 0, 12];
        system
            .block_on(watch.after(delays.clone()).into_future())
            .unwrap();
        let mut sorted = delays;
        sorted.sort_unstable();
        assert_eq!(until_seen(system, watch, 6).0, sorted);
        system
            .block_on(watch.after(vec![15]).into_future())
            .unwrap();
        sorted.push(15);
        assert_eq!(until_seen(system, watch, 7).0, sorted);
    });
}

#[test]
fn a_timer_never_comes_early_and_takes_what_is_not_send() {
    on_shards(&[1, 2], |system| {
        let watch = watch(system);
        for delay in 0..10 {
            let in_time = system.block_on(watch.checked_after(delay).into_future());
            assert!(in_time.unwrap());
        }
    });
}

#[test]
fn a_timer_stands_behind_what_was_accepted_before_and_enters_a_full_mailbox() {
    on_shards(&[1, 2, 4], |system| {
        let watch = watch(system);
        system
            .block_on(watch.after_and_now().into_future())
            .unwrap();
        assert_eq!(until_seen(system, watch, 3).0, [1, 2, 0]);
    });
}

#[test]
fn a_timer_has_at_most_one_call_in_the_mailbox() {
    on_shards(&[1, 2], |system| {
        let watch = watch(system);
        system.block_on(watch.every(1, 0).into_future()).unwrap();
        let mark = 1_000_000;
        let busy = watch.busy(30).into_future();
        let (busy, told) = system.block_on(async {
            futures_util::join!(busy, async {
                // Told while it is busy: behind whatever stands in the mailbox, which is full now.
                watch.note(mark).tell().await.unwrap();
                watch.note(mark).tell().await
            })
        });
        told.unwrap();
        let held_until = busy.unwrap();
        let (seen, elapsed) = until_seen(system, watch, 40);
        let marks: Vec<usize> = (0..seen.len()).filter(|&at| seen[at] == mark).collect();
        // Between the two marks there is room for one tick only.
        assert!(marks[1] - marks[0] <= 2, "{seen:?}");
        // Those that were missed were left out.
        let after: usize = seen
            .iter()
            .filter(|&&at| at != mark && at >= held_until)
            .count();
        assert!(
            after as u64 <= elapsed - held_until + 2,
            "{after} ticks from {held_until} ms to {elapsed} ms: {seen:?}"
        );
    });
}

#[test]
fn a_burst_catches_up_with_what_was_missed() {
    on_shards(&[1], |system| {
        let watch = watch(system);
        system.block_on(watch.every(1, 1).into_future()).unwrap();
        system.block_on(watch.busy(30).into_future()).unwrap();
        loop {
            let (seen, elapsed) = system.block_on(watch.seen().into_future()).unwrap();
            assert!(seen.len() as u64 <= elapsed, "never early: {seen:?}");
            if elapsed >= 40 && seen.len() as u64 + 3 >= elapsed {
                break;
            }
        }
    });
}

#[test]
fn a_delayed_timer_keeps_its_distance() {
    on_shards(&[1], |system| {
        let watch = watch(system);
        system.block_on(watch.every(6, 2).into_future()).unwrap();
        for _ in 0..3 {
            system.block_on(watch.busy(20).into_future()).unwrap();
        }
        let (seen, _) = until_seen(system, watch, 8);
        for pair in seen.windows(2) {
            // Both are rounded down to a millisecond.
            assert!(pair[1] - pair[0] >= 5, "{seen:?}");
        }
    });
}

#[test]
fn a_cancelled_timer_is_not_heard_of_again_not_even_from_the_mailbox() {
    on_shards(&[1, 2], |system| {
        let watch = watch(system);
        let cancelled = system.block_on(watch.begin_and_cancel(20).into_future());
        assert_eq!(cancelled.unwrap(), (true, true, false));
        system
            .block_on(watch.after(vec![20]).into_future())
            .unwrap();
        assert_eq!(until_seen(system, watch, 1).0, [20]);

        system.block_on(watch.every(1, 0).into_future()).unwrap();
        until_seen(system, watch, 4);
        let cancelled = system.block_on(watch.cancel().into_future());
        assert_eq!(cancelled.unwrap(), (true, true, false));
        let count = until_seen(system, watch, 0).0.len();
        system
            .block_on(watch.after(vec![10]).into_future())
            .unwrap();
        assert_eq!(until_seen(system, watch, count + 1).0.len(), count + 1);
    });
}

#[test]
fn a_hundred_thousand_timers_come_and_as_many_are_cancelled() {
    on_shards(&[1], |system| {
        let watch = watch(system);
        let delays: Vec<u64> = (0..100_000).map(|n| n % 40).collect();
        system
            .block_on(watch.after(delays.clone()).into_future())
            .unwrap();
        let cancelled = system.block_on(watch.arm_and_cancel(100_000).into_future());
        assert_eq!(cancelled.unwrap(), 100_000);
        let mut seen = loop {
            let (seen, _) = system.block_on(watch.seen().into_future()).unwrap();
            if seen.len() >= 100_000 {
                break seen;
            }
        };
        let mut delays = delays;
        seen.sort_unstable();
        delays.sort_unstable();
        assert!(seen == delays, "each once");
    });
}

struct Guest {
    value: Option<Homely>,
}

#[actor]
impl Guest {
    #[on(started)]
    fn begin(&mut self, ctx: &mut Ctx<Self>) {
        let value = self.value.take().unwrap();
        ctx.after(Duration::from_hours(1)).keep(value);
        ctx.every(Duration::from_hours(1)).remind();
    }

    #[message(local)]
    pub(crate) fn keep(&mut self, value: Homely) {
        self.value = Some(value);
    }

    pub(crate) fn remind(&self) {}

    pub(crate) async fn wait_for_ever(&self) {
        std::future::pending::<()>().await;
    }
}

#[test]
fn timers_keep_no_actor_alive_and_end_with_it_at_home() {
    on_shards(&[1, 2], |system| {
        for end in [Addr::<Guest>::stop, Addr::<Guest>::kill] {
            let (dropped, drops) = mpsc::channel();
            let guest = system.block_on(system.spawn_on(last_shard(system), move || Guest {
                value: Some(Homely::new(dropped)),
            }));
            let guest = guest.unwrap();
            end(guest);
            system.block_on(Addr::stopped(guest));
            assert!(hear(&drops), "at home");
        }
        assert_eq!(counts(system).dead_letters, 0, "nobody had sent anything");
    });
}

#[test]
fn a_timer_that_waits_in_a_mailbox_is_no_dead_letter_and_from_a_stop_on_none_comes() {
    on_shards(&[1, 2], |system| {
        let first = watch(system);
        system.block_on(first.every(1, 0).into_future()).unwrap();
        system.block_on(first.busy(5).tell()).unwrap();
        system.block_on(first.stop().tell()).unwrap();
        system.block_on(Addr::stopped(first));
        assert_eq!(counts(system).dead_letters, 0);

        let (open, gate) = oneshot::channel();
        let other = watch(system);
        system.block_on(other.every(1, 0).into_future()).unwrap();
        system.block_on(other.hold(gate).tell()).unwrap();
        system.block_on(other.busy(3).tell()).unwrap();
        Addr::kill(other);
        system.block_on(Addr::stopped(other));
        drop(open);
        assert_eq!(
            counts(system).dead_letters,
            1,
            "the message, and not the tick"
        );
    });
}

/// Panics when it is cloned for the third time.
struct Fragile(Rc<Cell<u32>>);

impl Clone for Fragile {
    fn clone(&self) -> Self {
        self.0.set(self.0.get() + 1);
        assert!(self.0.get() < 3, "cloned too often");
        Self(self.0.clone())
    }
}

struct Owner;

#[actor]
impl Owner {
    pub(crate) fn begin(&self, ctx: &mut Ctx<Self>) {
        ctx.every(ms(1)).take(Fragile(Rc::default()));
    }

    #[message(local)]
    pub(crate) fn take(&self, fragile: Fragile) {
        assert!(fragile.0.get() < 3);
    }

    pub(crate) fn too_often(&self, ctx: &mut Ctx<Self>) {
        ctx.every(Duration::from_micros(999)).unused();
    }

    pub(crate) fn unused(&self) {}
}

#[test]
fn a_panic_in_the_clone_of_an_argument_ends_the_actor() {
    on_shards(&[1, 2], |system| {
        let spawn = || system.block_on(system.spawn_on(last_shard(system), || Owner));
        let owner = spawn().unwrap();
        system.block_on(owner.begin().into_future()).unwrap();
        system.block_on(Addr::stopped(owner));
        assert_eq!(counts(system).panics, 1);

        let owner = spawn().unwrap();
        let refused = system.block_on(owner.too_often().into_future());
        let text = refused.unwrap_err().to_string();
        assert!(
            text.contains("at least 1 ms, not 999µs") && text.contains("timers.rs"),
            "{text}"
        );
    });
}
