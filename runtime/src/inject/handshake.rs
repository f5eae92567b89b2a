//! Who rings the doorbell: one word, on which both sides only do read-modify-writes.
//!
//! A shard that has nothing to do blocks in the kernel. Whoever gives it work meanwhile must wake
//! it, which costs the waker microseconds; so it must happen whenever it is needed, and never twice
//! for one sleep. The word has three bits, and this is its whole life:
//!
//! ```text
//!                 announce -> Seen                     announce -> Seen
//!                  +-----------+                        +-----------+
//!                  |           v                        |           v
//!  +------+  announce -> Seen  +---------+   finish_sleep   +--------------------+
//!  |  -   | -----------------> | PENDING | <--------------- | SLEEPING | PENDING |
//!  |      | <----------------- |         |   {rung: true}   |                    |
//!  +------+    take_pending    +---------+                  +--------------------+
//!   |    ^                                                            ^
//!   |    |   finish_sleep {rung: false}    +----------+               |
//!   |    +-------------------------------- | SLEEPING | --------------+
//!   +------------------------------------> |          |  announce -> Ring
//!                prepare_sleep             +----------+
//!
//!  CLOSED is added by close() in one of the two left states and taken away by reopen().
//! ```
//!
//! # Why one word
//!
//! With two words (`pending` and `sleeping`), each side writes one and then reads the other, the
//! store-buffering shape: it needs sequential consistency, or swaps in place of the loads, and an
//! argument about two orders at once. With one word there is one modification order, and it has
//! all the answers. Take any `announce`. Its read-modify-write stands in that order
//!
//! 1. before a `prepare_sleep`, with no `take_pending` between: `prepare_sleep` finds PENDING and
//!    refuses, or
//! 2. between a `prepare_sleep` and its `finish_sleep`: it finds SLEEPING, and the first one that
//!    does finds no PENDING beside it and rings, or
//! 3. after the `finish_sleep`: the shard is awake, and case 1 stands before its next sleep.
//!
//! There is no fourth place, so no wake-up is lost. In case 2 exactly one `announce` is the first,
//! because `prepare_sleep` succeeds only on a word without PENDING and only the shard takes that bit
//! away; so one sleep has at most one ring. And `finish_sleep` sees whether there was one.
//!
//! Every write is `AcqRel`, also where one half would do. Then the modification order is also an order
//! of happens-before: whoever writes the word comes after all that was done before the earlier
//! writes. That is one rule to remember instead of one for each pair of calls.
//!
//! # Who may call what
//!
//! `announce` and `is_asleep` are for any thread, at any time, also long after the system has
//! ended: the word lives in memory that is never freed. All else is for the shard that owns the
//! word, on its own thread. Nothing here is unsafe, so a call from the wrong thread costs a wake-up
//! but no soundness.
//!
//! # The doorbell's end
//!
//! A producer that was told to ring may be delayed for any time before it writes to the eventfd. If
//! the shard closed the descriptor meanwhile, the write would hit whatever has its number by then.
//! So the shard adds up its `finish_sleep().rung` (writes owed to it) and what it has read from the
//! eventfd (writes received). After its last sleep the first sum is final, because a ring needs a
//! sleeper; when the second one reaches it, nobody can write any more.

use crate::primitives::{
    CacheAligned,
    atomic::{
        AtomicU32,
        Ordering::{AcqRel, Relaxed},
    },
};

/// Something was published since the shard last looked.
const PENDING: u32 = 1;
/// The shard is blocked, or about to be; set and cleared by the shard only.
const SLEEPING: u32 = 2;
/// The shard has ended and will look no more; set and cleared by the shard only.
const CLOSED: u32 = 4;

/// The word between one shard and everybody else.
#[derive(Debug)]
pub(crate) struct Handshake {
    /// Invariant: SLEEPING and CLOSED are never set together, and PENDING is cleared by the shard
    /// alone, never while it sleeps.
    word: CacheAligned<AtomicU32>,
}

/// What a producer has to do after it announced.
#[must_use = "a `Ring` that is not acted on leaves the shard asleep"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Announce {
    /// The shard sleeps and this producer is the one to wake it: write to its doorbell once.
    Ring,
    /// Nothing: the shard is awake, or another producer rings.
    Seen,
    /// Nothing: the shard has ended. What was published stays for whoever closes the lane.
    Closed,
}

/// What a shard is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    Awake,
    /// It has news, or is being woken for some.
    HasNews,
    Asleep,
    Ended,
}

/// How a sleep ended.
#[must_use = "a ring that is not counted lets the doorbell be closed under its writer"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SleepEnd {
    /// A producer was told to ring during this sleep: exactly one write to the doorbell has come or
    /// will come.
    pub(crate) rung: bool,
}

impl Handshake {
    /// Makes the word of a shard that is awake and has no news.
    pub(crate) fn new() -> Self {
        Self {
            word: CacheAligned::new(AtomicU32::new(0)),
        }
    }

    /// Tells the shard that something was published before this call.
    ///
    /// This is a read-modify-write even when a look would show PENDING. A load could be satisfied
    /// before the item is visible, by a PENDING that the shard is just taking away: the shard would
    /// then see neither the item nor the news.
    #[inline]
    pub(crate) fn announce(&self) -> Announce {
        // ORDERING: AcqRel. Release pairs with the acquire in `take_pending` and `finish_sleep`: the
        // shard that clears this PENDING sees what was published before it, also when several
        // announcements met, as each one continues the release sequence of those before. Acquire
        // pairs with the release in `prepare_sleep`: a ringer comes after everything that the shard
        // did before it went to sleep, the arming of its doorbell included.
        let old = self.word.fetch_or(PENDING, AcqRel);
        if old & CLOSED != 0 {
            Announce::Closed
        } else if old & (SLEEPING | PENDING) == SLEEPING {
            Announce::Ring
        } else {
            Announce::Seen
        }
    }

    /// Takes the news away; true if there was any, and then every inbound lane is to be emptied.
    #[inline]
    pub(crate) fn take_pending(&self) -> bool {
        // ORDERING: Relaxed. This look keeps an idle turn from taking the line away from producers.
        // It may miss an announcement that has just been made. Nothing is lost then: the bit stays,
        // a later look finds it, and `prepare_sleep` cannot overlook it because a successful
        // compare-exchange acts on the newest value.
        if self.word.load(Relaxed) & PENDING == 0 {
            return false;
        }
        // ORDERING: AcqRel. Acquire pairs with the release of every `announce` whose news this
        // clears: the lanes, read after this, hold what those producers published. It must be a
        // read-modify-write: a plain store would swallow an announcement made since the look
        // without synchronising with it. Release is for the rule at the top only.
        let old = self.word.fetch_and(!PENDING, AcqRel);
        debug_assert_eq!(
            old & SLEEPING,
            0,
            "a sleeping shard took its news: {old:#b}"
        );
        true
    }

    /// Goes to sleep unless there is news; true if the shard may now block.
    ///
    /// After a true, the shard blocks only in a way that the doorbell ends, and calls
    /// [`Handshake::finish_sleep`] whatever woke it. After a false nothing has changed, and the
    /// shard goes round its loop once more.
    #[must_use = "blocking after a false sleeps through news"]
    pub(crate) fn prepare_sleep(&self) -> bool {
        // ORDERING: AcqRel on success, which is the sleeper's half of the argument at the top:
        // success means that the newest value had no PENDING, so every later `announce` finds
        // SLEEPING. Release pairs with the acquire in that `announce`. Relaxed on failure: the
        // value that refused was set by an `announce` (only the shard itself clears bits, so what
        // it reads is not older than its own last clear), and `take_pending` will synchronise.
        let slept = self.word.compare_exchange(0, SLEEPING, AcqRel, Relaxed);
        debug_assert!(
            !matches!(slept, Err(word) if word & SLEEPING != 0),
            "a shard went to sleep twice: {slept:?}"
        );
        slept.is_ok()
    }

    /// Ends the sleep that [`Handshake::prepare_sleep`] began, whatever the reason for waking up.
    pub(crate) fn finish_sleep(&self) -> SleepEnd {
        // ORDERING: AcqRel, by the rule at the top; pairs with `announce`. What matters here is that
        // it is a read-modify-write, so that the two have an order: either this one comes first, and
        // the announcer sees a shard that is awake, or the announcer comes first, and this one sees
        // that the bell was claimed. With a plain store an announcement between could be
        // overwritten, news and claim together.
        let old = self.word.fetch_and(!SLEEPING, AcqRel);
        debug_assert_eq!(
            old & (SLEEPING | CLOSED),
            SLEEPING,
            "a shard woke up without having slept: {old:#b}"
        );
        // The word had no PENDING when the sleep began, so the bit says that somebody found
        // SLEEPING alone, and that is who rings.
        SleepEnd {
            rung: old & PENDING != 0,
        }
    }

    /// True if there is news, which stays; for a shard that watches the word before it sleeps.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        // ORDERING: Relaxed; a miss is caught by the next look, or by `prepare_sleep`.
        self.word.load(Relaxed) & PENDING != 0
    }

    /// What the shard is at, as far as the word tells; a hint, out of date as soon as it is returned.
    #[inline]
    pub(crate) fn activity(&self) -> Activity {
        // ORDERING: Relaxed. Nothing may be decided on it that has to be right.
        match self.word.load(Relaxed) {
            word if word & CLOSED != 0 => Activity::Ended,
            // Also one that sleeps is about to work then.
            word if word & PENDING != 0 => Activity::HasNews,
            word if word & SLEEPING != 0 => Activity::Asleep,
            _ => Activity::Awake,
        }
    }

    /// True while the shard sleeps; a hint, out of date as soon as it is returned.
    #[inline]
    pub(crate) fn is_asleep(&self) -> bool {
        // ORDERING: Relaxed. Nothing may be decided on it that has to be right.
        self.word.load(Relaxed) & SLEEPING != 0
    }

    /// Ends the dialogue: from now on every `announce` answers [`Announce::Closed`].
    ///
    /// Called by the shard, awake, before it closes its lanes. What is published before a lane
    /// closes is found by that closing, so a producer that hears `Closed` has nothing to do.
    pub(crate) fn close(&self) {
        // ORDERING: AcqRel, as all writes to this word: it pairs with `announce`, so that what was
        // announced before this is seen by the closing of the lanes after it.
        let old = self.word.fetch_or(CLOSED, AcqRel);
        debug_assert_eq!(old & SLEEPING, 0, "a shard was closed asleep: {old:#b}");
    }

    /// Begins the dialogue anew for a later shard in the same memory.
    ///
    /// Handles of the earlier shard may still be about and announce at any time, so the word starts
    /// with PENDING: the new shard looks into every lane once before it first sleeps.
    pub(crate) fn reopen(&self) {
        // ORDERING: AcqRel; pairs with `announce`. Late announcements to the earlier shard are
        // acquired here; those that come after find a shard that is awake.
        let old = self.word.swap(PENDING, AcqRel);
        debug_assert_eq!(
            old & (CLOSED | SLEEPING),
            CLOSED,
            "reopened an open word: {old:#b}"
        );
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Announce, Handshake, SleepEnd};

    #[test]
    fn news_keeps_the_shard_awake_until_it_is_taken() {
        let handshake = Handshake::new();
        assert!(!handshake.take_pending());
        assert_eq!(handshake.announce(), Announce::Seen);
        assert!(!handshake.prepare_sleep());
        assert!(!handshake.is_asleep());
        assert!(handshake.take_pending());
        assert!(!handshake.take_pending());
        assert!(handshake.prepare_sleep());
        assert!(handshake.is_asleep());
        assert_eq!(handshake.finish_sleep(), SleepEnd { rung: false });
        assert!(!handshake.is_asleep());
    }

    #[test]
    fn only_the_first_producer_of_a_sleep_rings() {
        let handshake = Handshake::new();
        for _ in 0..2 {
            assert!(handshake.prepare_sleep());
            assert_eq!(handshake.announce(), Announce::Ring);
            assert_eq!(handshake.announce(), Announce::Seen);
            assert_eq!(handshake.finish_sleep(), SleepEnd { rung: true });
            assert_eq!(handshake.announce(), Announce::Seen);
            assert!(handshake.take_pending());
        }
    }

    #[test]
    fn a_closed_word_never_rings_and_never_sleeps() {
        let handshake = Handshake::new();
        handshake.close();
        assert_eq!(handshake.announce(), Announce::Closed);
        assert!(!handshake.prepare_sleep());
        assert!(handshake.take_pending());
        assert!(!handshake.prepare_sleep());
        assert_eq!(handshake.announce(), Announce::Closed);
    }

    #[test]
    fn a_reopened_word_starts_with_news() {
        let handshake = Handshake::new();
        handshake.close();
        handshake.reopen();
        assert!(!handshake.prepare_sleep());
        assert!(handshake.take_pending());
        assert!(handshake.prepare_sleep());
        assert_eq!(handshake.announce(), Announce::Ring);
        assert_eq!(handshake.finish_sleep(), SleepEnd { rung: true });
    }
}

/// A shard's side of the dialogue with a doorbell, for the tests of races in this crate.
///
/// These tests run twice: under loom, which explores what the memory model allows, and with the
/// threads of the system, with more values and whatever the machine comes up with.
#[cfg(test)]
pub(crate) mod model {
    use std::sync::Mutex;

    use super::{Announce, Handshake};
    use crate::primitives::{
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{Receiver, Sender, channel},
    };

    /// How often a producer does its part.
    pub(crate) const MANY: usize = if cfg!(loom) { 1 } else { 2000 };

    /// How many preemptions a model of one shard and this many other threads can afford.
    ///
    /// Three find every mistake that was planted in these protocols, and most show with two.
    pub(crate) fn preemptions(threads: usize) -> usize {
        if threads < 3 { 3 } else { 2 }
    }

    /// Runs `run` under every interleaving with at most this many preemptions, or as few as `LOOM_MAX_PREEMPTIONS` says.
    #[cfg(loom)]
    pub(crate) fn explore(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
        use std::sync::atomic::AtomicUsize;

        static EXPLORED: AtomicUsize = AtomicUsize::new(0);
        let mut builder = loom::model::Builder::new();
        let cap = builder.preemption_bound.unwrap_or(usize::MAX);
        builder.preemption_bound = Some(preemptions.min(cap));
        builder.check(move || {
            EXPLORED.fetch_add(1, Relaxed);
            run();
        });
        println!("{EXPLORED:?} interleavings so far");
    }

    /// Runs `run` a few times, with real threads.
    #[cfg(not(loom))]
    pub(crate) fn explore(_preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
        for _ in 0..20 {
            run();
        }
    }

    /// The handshake with a channel of unit values for its eventfd: sending one is a write, and
    /// sending after the receiver has gone is a write to a closed descriptor.
    pub(crate) struct Shard {
        pub(crate) handshake: Handshake,
        doorbell: Sender<()>,
        /// What the shard has done before it sleeps, and a ringer counts on.
        armed: AtomicBool,
        inside: Mutex<Option<Receiver<()>>>,
    }

    impl Shard {
        pub(crate) fn new() -> Self {
            let (doorbell, inside) = channel();
            Self {
                handshake: Handshake::new(),
                doorbell,
                armed: AtomicBool::new(false),
                inside: Mutex::new(Some(inside)),
            }
        }

        /// The producer's part after publishing.
        pub(crate) fn announce(&self) {
            match self.handshake.announce() {
                Announce::Ring => {
                    assert!(
                        self.armed.load(Relaxed),
                        "rang a bell that was not there yet"
                    );
                    self.doorbell.send(()).expect("the doorbell is still there");
                }
                Announce::Seen | Announce::Closed => {}
            }
        }

        /// The shard's loop: empties the lanes when there is news, until that returns true; and then
        /// the end of its doorbell. The first `naps` sleeps end by something else than the bell.
        ///
        /// A lost wake-up, or a write that was counted and never comes, leaves it blocked for ever,
        /// which loom reports as a deadlock.
        pub(crate) fn run(&self, mut naps: u32, mut empty_lanes: impl FnMut() -> bool) {
            let inside = self.inside.lock().unwrap().take();
            let inside = inside.expect("a shard runs once");
            self.armed.store(true, Relaxed);
            let (mut owed, mut received) = (0, 0);
            loop {
                if self.handshake.take_pending() && empty_lanes() {
                    break;
                }
                if self.handshake.prepare_sleep() {
                    if naps == 0 {
                        inside.recv().unwrap();
                        received += 1;
                    }
                    naps = naps.saturating_sub(1);
                    owed += u32::from(self.handshake.finish_sleep().rung);
                }
            }
            self.handshake.close();
            while received < owed {
                inside.recv().unwrap();
                received += 1;
            }
            assert_eq!(received, owed, "two rings in one sleep");
        }
    }
}

#[cfg(test)]
mod races {
    use super::{
        Announce, Handshake,
        model::{MANY, Shard, explore},
    };
    use crate::primitives::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
        thread,
    };

    /// Each producer counts up, relaxed, so that only the handshake makes the shard see it.
    fn producers(count: usize, naps: u32) {
        explore(3, move || {
            let shard = Arc::new(Shard::new());
            let items: Arc<Vec<_>> = Arc::new((0..count).map(|_| AtomicUsize::new(0)).collect());
            let threads: Vec<_> = (0..count)
                .map(|index| {
                    let (shard, items) = (Arc::clone(&shard), Arc::clone(&items));
                    thread::spawn(move || {
                        for item in 1..=MANY {
                            items[index].store(item, Relaxed);
                            shard.announce();
                        }
                    })
                })
                .collect();
            shard.run(naps, || items.iter().all(|item| item.load(Relaxed) == MANY));
            for thread in threads {
                thread.join().unwrap();
            }
        });
    }

    #[test]
    fn one_producer_never_leaves_the_shard_asleep() {
        producers(1, 0);
        producers(1, 2);
    }

    #[test]
    fn two_producers_never_leave_the_shard_asleep() {
        producers(2, 0);
        producers(2, 1);
    }

    #[test]
    fn three_producers_never_leave_the_shard_asleep() {
        producers(3, 0);
    }

    #[test]
    fn a_late_announcement_meets_a_reopening() {
        explore(3, || {
            let handshake = Arc::new(Handshake::new());
            let item = Arc::new(AtomicBool::new(false));
            handshake.close();
            let late = {
                let (handshake, item) = (Arc::clone(&handshake), Arc::clone(&item));
                thread::spawn(move || {
                    item.store(true, Relaxed);
                    handshake.announce()
                })
            };
            handshake.reopen();
            assert!(handshake.take_pending());
            let seen = item.load(Relaxed);
            let slept = handshake.prepare_sleep();
            let rung = slept && handshake.finish_sleep().rung;
            let answer = late.join().unwrap();
            // The item was found in the first look, or there is news, or the bell rings.
            assert!(seen || handshake.take_pending());
            assert_eq!(rung, answer == Announce::Ring);
        });
    }
}
