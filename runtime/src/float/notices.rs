//! Who has work to give, and how a sibling that goes to sleep cannot miss it.
//!
//! The lanes themselves are a library's. What is told here is all that shards have to tell each other about them: one bit
//! for each lane that may hold work, and the number of shards that search.
//!
//! # No sleep beside a backlog
//!
//! A shard never sleeps on work of its own, so nothing is ever lost by what follows. It is about time: a shard that is in
//! the middle of a long closure must not have a backlog while its siblings sleep. Both sides write one thing and then
//! look at the other's, the store-buffering shape:
//!
//! ```text
//!  who has work                              who goes to sleep
//!  ------------                              -----------------
//!  push to the lane, raise the bit           Handshake::prepare_sleep
//!  fence                 before_calling      fence                    before_sleeping
//!  is a sibling asleep?  -> announce, ring   is there work?           -> do not sleep
//! ```
//!
//! The two fences have an order, as all sequentially consistent ones have. Either the left one comes first, and the
//! sleeper sees the work; or the right one does, and the caller sees the sleeper. Both may happen, neither cannot.
//!
//! No shard keeps a bit for being idle: the handshake's SLEEPING is that bit, and to be the one whose announcement is
//! answered with `Ring` is to win it. So two callers never wake one shard twice, and a shard that sleeps without any
//! work about writes nothing that others share.
//!
//! # The throttle
//!
//! No more shards search than there are lanes with work. As those who search and those who have work are different
//! shards, and awake, at most half of the shards that are awake search. One that is turned away sleeps without the last
//! look: whoever searches finds the work, and calls the next one if there is more.

use crate::primitives::{
    CacheAligned,
    atomic::{
        AtomicU64, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, SeqCst},
        fence,
    },
};

/// Lanes told of in one word.
const LANES_PER_WORD: usize = u64::BITS as usize;

/// What the shards of a runtime tell each other about their lanes.
#[derive(Debug)]
pub(crate) struct Notices {
    /// One bit for each lane. Invariant: set and cleared by the lane's own shard alone, and set while its lane, or what
    /// it added to the overflow, may hold work.
    lanes: Box<[CacheAligned<AtomicU64>]>,
    /// Shards that search. Invariant: as many as there are [`Search`]es.
    searchers: CacheAligned<AtomicUsize>,
}

/// The permission to search, until it is dropped.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    notices: &'a Notices,
}

impl Notices {
    /// Makes the notices of so many lanes, all empty.
    pub(crate) fn new(lanes: usize) -> Self {
        let words = lanes.div_ceil(LANES_PER_WORD);
        Self {
            lanes: (0..words)
                .map(|_| CacheAligned::new(AtomicU64::new(0)))
                .collect(),
            searchers: CacheAligned::new(AtomicUsize::new(0)),
        }
    }

    /// Says that a lane has work. For the lane's shard, after the push.
    pub(crate) fn raise(&self, lane: usize) {
        let (word, bit) = place(lane);
        // ORDERING: Relaxed. A hint by itself; what makes it seen in time are the fences, as told at the top.
        self.lanes[word].fetch_or(bit, Relaxed);
    }

    /// Says that a lane has no more work. For the lane's shard.
    pub(crate) fn lower(&self, lane: usize) {
        let (word, bit) = place(lane);
        // ORDERING: Relaxed. A searcher that still sees the bit looks into the lane and finds nothing.
        self.lanes[word].fetch_and(!bit, Relaxed);
    }

    /// Whether any lane may have work: a load for every 64 shards.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        // ORDERING: Relaxed. A look that misses something is followed by the one after `before_sleeping`.
        self.lanes.iter().any(|word| word.load(Relaxed) != 0)
    }

    /// The lanes that may have work, those after `start` first.
    pub(crate) fn lanes_from(&self, start: usize) -> impl Iterator<Item = usize> {
        let words = self.lanes.len();
        let (first, bit) = (start / LANES_PER_WORD % words, start % LANES_PER_WORD);
        // The word of the start is visited twice: first what is at or above the start, at the end what is below.
        (0..=words).flat_map(move |step| {
            let word = (first + step) % words;
            let above = u64::MAX << bit;
            let mask = match step {
                0 => above,
                last if last == words => !above,
                _ => u64::MAX,
            };
            // ORDERING: Relaxed, as in `any`. Values come from the lane, which synchronises by itself.
            let mut bits = self.lanes[word].load(Relaxed) & mask;
            std::iter::from_fn(move || {
                let lane =
                    (bits != 0).then(|| word * LANES_PER_WORD + bits.trailing_zeros() as usize);
                bits &= bits.wrapping_sub(1);
                lane
            })
        })
    }

    /// Begins a search, unless as many shards search as there are lanes with work.
    pub(crate) fn begin_search(&self) -> Option<Search<'_>> {
        // ORDERING: Relaxed, as in `any`: the limit need not be exact.
        let with_work = self
            .lanes
            .iter()
            .map(|word| word.load(Relaxed).count_ones());
        let limit = with_work.sum::<u32>() as usize;
        // ORDERING: Acquire on success; pairs with the release in `Search::drop`, so that a search comes after the ones
        // that made room for it. Relaxed on failure: nothing is done then.
        self.searchers
            .fetch_update(Acquire, Relaxed, |searchers| {
                (searchers < limit).then_some(searchers + 1)
            })
            .ok()?;
        Some(Search { notices: self })
    }

    /// Whether somebody searches. After [`Notices::before_calling`], "yes" is a reason not to call: the searcher looks
    /// once more before it sleeps.
    pub(crate) fn has_searchers(&self) -> bool {
        // ORDERING: Relaxed, after the fence of `before_calling`. If this still sees a searcher, the end of its search is
        // later than the fence, so the look before its sleep sees the work.
        self.searchers.load(Relaxed) != 0
    }

    /// Between making work visible and looking for a sibling that sleeps.
    pub(crate) fn before_calling(&self) {
        // ORDERING: SeqCst; pairs with the fence in `before_sleeping`, as told at the top.
        fence(SeqCst);
    }

    /// Between announcing a sleep and the last look for work.
    pub(crate) fn before_sleeping(&self) {
        // ORDERING: SeqCst; pairs with the fence in `before_calling`, as told at the top.
        fence(SeqCst);
    }
}

impl Drop for Search<'_> {
    fn drop(&mut self) {
        // ORDERING: AcqRel; pairs with `begin_search` of the next one. A read-modify-write, so that none is lost.
        self.notices.searchers.fetch_sub(1, AcqRel);
    }
}

/// The word of a lane, and its bit there.
fn place(lane: usize) -> (usize, u64) {
    (lane / LANES_PER_WORD, 1 << (lane % LANES_PER_WORD))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Notices;

    #[test]
    fn every_lane_with_work_is_met_once_from_any_start() {
        let notices = Notices::new(200);
        for lane in [0, 5, 63, 64, 130, 199] {
            notices.raise(lane);
        }
        notices.lower(5);
        for start in 0..200 {
            let found: Vec<_> = notices.lanes_from(start).collect();
            let mut expected = vec![0, 63, 64, 130, 199];
            expected.sort_by_key(|&lane| (lane < start, lane));
            assert_eq!(found, expected, "from {start}");
        }
    }

    #[test]
    fn as_many_may_search_as_there_are_lanes_with_work() {
        let notices = Notices::new(3);
        assert!(!notices.any());
        assert!(notices.begin_search().is_none());
        notices.raise(1);
        let one = notices.begin_search();
        assert!(one.is_some() && notices.has_searchers());
        assert!(notices.begin_search().is_none());
        notices.raise(2);
        let two = notices.begin_search();
        assert!(two.is_some());
        drop((one, two));
        assert!(!notices.has_searchers());
    }
}

#[cfg(test)]
mod races {
    use std::sync::Mutex;

    use super::Notices;
    use crate::inject::handshake::{Announce, Handshake, model::explore};
    use crate::primitives::{
        Arc,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{AcqRel, Relaxed},
        },
        mpsc::{Receiver, Sender, channel},
        thread,
    };

    /// Shards that give work and never do any, and siblings that must come for it. A lane is a number without any
    /// order of its own, so only the notices make it seen.
    struct Team {
        notices: Notices,
        lanes: Vec<AtomicUsize>,
        siblings: Vec<Sibling>,
        left: AtomicUsize,
        over: AtomicBool,
    }

    struct Sibling {
        handshake: Handshake,
        bell: Sender<()>,
        inside: Mutex<Option<Receiver<()>>>,
    }

    impl Team {
        fn new(givers: usize, siblings: usize) -> Self {
            let sibling = || {
                let (bell, inside) = channel();
                Sibling {
                    handshake: Handshake::new(),
                    bell,
                    inside: Mutex::new(Some(inside)),
                }
            };
            Self {
                notices: Notices::new(givers),
                lanes: (0..givers).map(|_| AtomicUsize::new(0)).collect(),
                siblings: (0..siblings).map(|_| sibling()).collect(),
                left: AtomicUsize::new(givers),
                over: AtomicBool::new(false),
            }
        }

        fn call(&self, sibling: &Sibling) -> bool {
            let claimed = sibling.handshake.announce() == Announce::Ring;
            if claimed {
                sibling.bell.send(()).unwrap();
            }
            claimed
        }

        /// One piece of work, then the long closure in which the giver looks at nothing.
        fn give(&self, lane: usize) {
            self.lanes[lane].store(1, Relaxed);
            self.notices.raise(lane);
            self.notices.before_calling();
            if self.notices.has_searchers() {
                return;
            }
            for sibling in &self.siblings {
                if sibling.handshake.is_asleep() && self.call(sibling) {
                    return;
                }
            }
        }

        fn has_work(&self) -> bool {
            self.notices
                .lanes_from(0)
                .any(|lane| self.lanes[lane].load(Relaxed) != 0)
        }

        /// What a search found; `None` if it was turned away.
        fn search(&self) -> Option<usize> {
            if !self.notices.any() {
                return Some(0);
            }
            let search = self.notices.begin_search()?;
            let found = self
                .notices
                .lanes_from(0)
                .map(|lane| self.lanes[lane].swap(0, AcqRel))
                .sum();
            drop(search);
            Some(found)
        }

        /// Comes for work until none will come any more. A sleep beside work is never ended, which loom reports.
        fn come(&self, index: usize) {
            let own = &self.siblings[index];
            let inside = own.inside.lock().unwrap().take().unwrap();
            let (mut owed, mut received) = (0, 0);
            loop {
                // News first: the end is announced like everything else.
                let _news: bool = own.handshake.take_pending();
                if self.over.load(Relaxed) {
                    break;
                }
                let found = self.search();
                if let Some(found @ 1..) = found {
                    if self.left.fetch_sub(found, AcqRel) == found {
                        self.over.store(true, Relaxed);
                        for sibling in &self.siblings {
                            let _claimed: bool = self.call(sibling);
                        }
                    }
                    continue;
                }
                if own.handshake.prepare_sleep() {
                    self.notices.before_sleeping();
                    if found.is_none() || !self.has_work() {
                        inside.recv().unwrap();
                        received += 1;
                    }
                    owed += u32::from(own.handshake.finish_sleep().rung);
                }
            }
            while received < owed {
                inside.recv().unwrap();
                received += 1;
            }
            assert_eq!(received, owed, "two callers woke one sibling");
        }
    }

    fn model(givers: usize, siblings: usize, preemptions: usize) {
        explore(preemptions, move || {
            let team = Arc::new(Team::new(givers, siblings));
            let mut threads = Vec::new();
            for lane in 1..givers {
                let team = Arc::clone(&team);
                threads.push(thread::spawn(move || team.give(lane)));
            }
            for index in 0..siblings {
                let team = Arc::clone(&team);
                threads.push(thread::spawn(move || team.come(index)));
            }
            team.give(0);
            for thread in threads {
                thread.join().unwrap();
            }
            assert!(!team.notices.has_searchers());
        });
    }

    #[test]
    fn a_sibling_does_not_sleep_beside_work() {
        model(1, 1, 4);
    }

    #[test]
    fn two_siblings_do_not_sleep_beside_work() {
        model(1, 2, 3);
    }

    #[test]
    fn a_sibling_does_not_sleep_beside_two_who_have_work() {
        model(2, 1, 3);
    }
}
