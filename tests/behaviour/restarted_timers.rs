//! What an actor has begun ends with its incarnation: the next one hears of nothing that it has not begun itself.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures_channel::oneshot;
use greenroom::prelude::*;
use greenroom::runtime::time::sleep;
use greenroom::{Restart, SpawnError};
use greenroom_tests::{Homely, hear, last_shard, on_shards};

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// What a clock says: which incarnation of it, what came, and of which incarnation that was.
type Said = (u32, What, u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Started,
    Ticked,
    Rang,
    /// The last of all timers of its incarnation.
    LastRang,
    Periodic,
    Piped,
}

/// Arms timers of all kinds when it starts, and says what comes.
struct Clock {
    incarnation: u32,
    says: mpsc::Sender<Said>,
    homely: mpsc::Sender<bool>,
}

#[actor(mailbox = 2)]
impl Clock {
    #[on(started)]
    fn started(&mut self, ctx: &mut Ctx<Self>) {
        self.say(self.incarnation, What::Started);
        let own = self.incarnation;
        ctx.every(ms(1)).tick(own);
        for delay in [1, 3, 9] {
            ctx.after(ms(delay))
                .ring(own, Homely::new(self.homely.clone()));
        }
        ctx.pipe(sleep(ms(5)), move |clock: &mut Clock, ()| {
            clock.say(own, What::Piped);
        });
        // Later than all the others of this incarnation, and of the one before.
        ctx.after(ms(30)).ring_last(own);
    }

    fn say(&self, of: u32, what: What) {
        self.says.send((self.incarnation, what, of)).ok();
    }

    #[message(local)]
    fn tick(&mut self, of: u32) {
        self.say(of, What::Ticked);
    }

    #[message(local)]
    fn ring(&mut self, of: u32, _homely: Homely) {
        self.say(of, What::Rang);
    }

    #[message(local)]
    fn ring_last(&mut self, of: u32) {
        self.say(of, What::LastRang);
    }

    #[every(1ms)]
    fn periodic(&mut self) {
        self.say(self.incarnation, What::Periodic);
    }

    pub(crate) fn fail(&mut self) {
        panic!("as told");
    }

    /// Fails when timers that are due stand in the mailbox.
    pub(crate) async fn fail_late(&mut self) {
        sleep(ms(4)).await;
        panic!("as told");
    }
}

struct Owner {
    makes: Option<Box<dyn FnMut() -> Clock + Send>>,
}

#[actor]
impl Owner {
    pub(crate) async fn begin(
        &mut self,
        shard: u16,
        ctx: &mut Ctx<Self>,
    ) -> Result<Addr<Clock>, SpawnError> {
        let make = self.makes.take().expect("begun once");
        ctx.spawn_child(make)
            .restart(Restart::OnFailure)
            .intensity(1000, Duration::from_secs(600))
            .backoff(ms(1), ms(1))
            .on(shard)
            .await
    }
}

/// A clock that is restarted, what its incarnations say, and where what they held is dropped.
fn clock(system: &System) -> (Addr<Clock>, mpsc::Receiver<Said>, mpsc::Receiver<bool>) {
    let (says, said) = mpsc::channel();
    let (homely, dropped) = mpsc::channel();
    let made = Arc::new(AtomicU32::new(0));
    let makes: Box<dyn FnMut() -> Clock + Send> = Box::new(move || Clock {
        incarnation: made.fetch_add(1, Ordering::SeqCst),
        says: says.clone(),
        homely: homely.clone(),
    });
    let owner = system.spawn_on(0, || Owner { makes: Some(makes) });
    let owner = system.block_on(owner).unwrap();
    let begun = owner.begin(last_shard(system)).into_future();
    (system.block_on(begun).unwrap(), said, dropped)
}

/// Waits until an incarnation says this, and sees that it says nothing of another one.
#[track_caller]
fn until(said: &mpsc::Receiver<Said>, incarnation: u32, wanted: What) {
    loop {
        let (by, what, of) = hear(said);
        assert_eq!(by, of, "{what:?} of another incarnation");
        if (by, what) == (incarnation, wanted) {
            return;
        }
    }
}

fn check(system: &System, fail: fn(Addr<Clock>)) {
    let (clock, said, dropped) = clock(system);
    for incarnation in 0..4 {
        until(&said, incarnation, What::Started);
        fail(clock);
    }
    // Had a timer been left over, it would have come before this: timers come in the order in which they are due.
    until(&said, 4, What::LastRang);
    for _ in 0..4 * 3 {
        assert!(hear(&dropped), "dropped at home");
    }
    // The last one has all of its own.
    until(&said, 4, What::Ticked);
    until(&said, 4, What::Periodic);
    Addr::stop(clock);
    system.block_on(Addr::stopped(clock));
}

#[test]
fn timers_of_an_incarnation_that_failed_at_once_are_not_heard_of() {
    on_shards(&[1, 2, 4], |system| {
        check(system, |clock| {
            clock.fail().try_tell().unwrap();
        });
    });
}

#[test]
fn timers_that_stood_in_the_mailbox_when_an_incarnation_failed_are_not_heard_of() {
    on_shards(&[1, 2, 4], |system| {
        check(system, |clock| {
            let failed = clock.fail_late().blocking().unwrap_err();
            assert!(failed.panic().is_some(), "{failed}");
        });
    });
}

#[test]
fn what_an_incarnation_held_for_its_timers_is_dropped_before_the_next_one_is_made() {
    struct Holder {
        dropped: Arc<AtomicU32>,
    }

    struct Held(Arc<AtomicU32>);

    impl Drop for Held {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[actor]
    impl Holder {
        #[on(started)]
        fn started(&mut self, ctx: &mut Ctx<Self>) {
            for delay in [0, 1, 600_000] {
                ctx.after(ms(delay)).hold(Held(self.dropped.clone()));
            }
        }

        #[message(local)]
        fn hold(&mut self, _held: Held) {}

        pub(crate) async fn fail_late(&mut self, gate: oneshot::Receiver<()>) {
            gate.await.ok();
            panic!("as told");
        }

        pub(crate) fn ping(&self) {}
    }

    struct Parent;

    #[actor]
    impl Parent {
        pub(crate) async fn begin(
            &mut self,
            shard: u16,
            dropped: Arc<AtomicU32>,
            found: mpsc::Sender<u32>,
            ctx: &mut Ctx<Self>,
        ) -> Result<Addr<Holder>, SpawnError> {
            let make = move || {
                found.send(dropped.load(Ordering::SeqCst)).ok();
                Holder {
                    dropped: dropped.clone(),
                }
            };
            ctx.spawn_child(make)
                .restart(Restart::OnFailure)
                .backoff(ms(1), ms(1))
                .on(shard)
                .await
        }
    }

    on_shards(&[1, 2], |system| {
        let parent = system.block_on(system.spawn_on(0, || Parent)).unwrap();
        let (found, finds) = mpsc::channel();
        let dropped = Arc::default();
        let begun = parent.begin(last_shard(system), dropped, found);
        let holder = system.block_on(begun.into_future()).unwrap();
        assert_eq!(hear(&finds), 0);
        for round in 1..=2 {
            let (open, gate) = oneshot::channel();
            holder.fail_late(gate).tell().blocking().unwrap();
            drop(open);
            assert_eq!(hear(&finds), 3 * round);
        }
        holder.ping().blocking().unwrap();
    });
}
