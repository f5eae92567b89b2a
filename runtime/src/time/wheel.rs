//! A hierarchical timer wheel: insert, cancel and fire in constant time, with no clock of its own.
//!
//! Whoever owns the wheel tells it the time ([`Wheel::advance`]) and asks it how long to sleep
//! ([`Wheel::next_deadline`]); so it runs the same under a real and under a simulated clock. Times
//! are nanoseconds from an origin that only the owner knows. Inside, they are ticks: a deadline is
//! rounded up to a tick and the present down, so nothing fires early, and late by less than a tick.
//!
//! # How it works
//!
//! There are [`LEVELS`] levels of 64 slots, like the hands of a clock with 64 positions each. A slot
//! of the lowest level is one tick, a slot of the next level is a full turn of the one below. An
//! entry lies on the level of the highest base-64 digit in which its tick differs from the present
//! one. Hence, on each level, used slots lie ahead of the hand and within its present turn; all
//! entries of a level are due before all entries of the next; and one bitmap per level finds the
//! next used slot without a search.
//!
//! When the present reaches a slot of a higher level, its entries are spread over the levels below
//! (at most once per level and entry). Ticks beyond the present turn of the highest level, years
//! away, wait in one more list and are looked at again when that turn ends.
//!
//! Entries of the same tick fire in the order of their insertion: a slot is a queue, spreading keeps
//! the order, and nothing can be inserted into a lower slot before the higher one that covers it has
//! been spread.
//!
//! # Storage
//!
//! Entries live in a slab and are linked by index in both directions, so cancelling needs no search.
//! A key carries the generation of its entry: the key of a timer that has fired or was cancelled
//! finds nothing, also when its place is used again.

use std::num::NonZeroU64;

/// Bits of a tick that one level tells apart.
const LEVEL_BITS: u32 = 6;
/// Slots of one level: as many as a bitmap has bits.
const SLOTS: usize = 1 << LEVEL_BITS;
/// The part of a shifted tick that names the slot.
const SLOT_MASK: u64 = 63;
/// Levels of the wheel. With ticks of a millisecond they span more than two years.
const LEVELS: usize = 6;
/// How far a tick is shifted to bring a level's digit to the bottom, and what lies above them all.
const SHIFTS: [u32; LEVELS + 1] = [0, 6, 12, 18, 24, 30, 36];
/// The list of entries beyond the highest level's present turn.
const BEYOND: usize = LEVELS * SLOTS;
/// No entry.
const NONE: u32 = u32::MAX;

/// Names an entry of a wheel, for as long as it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TimerKey {
    index: u32,
    generation: u32,
}

/// Deadlines, each with a value to hand out when it has come.
#[derive(Debug)]
pub(crate) struct Wheel<T> {
    tick_ns: NonZeroU64,
    /// The present. All entries of earlier ticks have fired.
    now_tick: u64,
    /// For each level, the slots that are not empty.
    ///
    /// Invariant: a bit is set exactly if the list is not empty; on the lowest level no bit is set
    /// below the hand, on the others none below or at it.
    used: [u64; LEVELS],
    /// The slots, level by level, and `BEYOND`.
    lists: Box<[List; BEYOND + 1]>,
    entries: Vec<Entry<T>>,
    /// First entry of the free list, which runs through `next`.
    free: u32,
    len: usize,
}

#[derive(Debug, Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

#[derive(Debug)]
struct Entry<T> {
    /// Counts the uses of this place in the slab.
    generation: u32,
    previous: u32,
    next: u32,
    /// Which list the entry is in.
    list: u32,
    tick: u64,
    /// None while the place is free.
    value: Option<T>,
}

/// The next thing that happens in a wheel.
#[derive(Debug, Clone, Copy)]
struct Due {
    tick: u64,
    list: usize,
}

impl<T> Wheel<T> {
    /// Makes an empty wheel at the time `now_ns`, with ticks of the given length.
    pub(crate) fn new(now_ns: u64, tick_ns: NonZeroU64) -> Self {
        let empty = List {
            first: NONE,
            last: NONE,
        };
        Self {
            tick_ns,
            now_tick: now_ns / tick_ns,
            used: [0; LEVELS],
            lists: Box::new([empty; BEYOND + 1]),
            entries: Vec::new(),
            free: NONE,
            len: 0,
        }
    }

    /// How many entries wait.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The entries, each with its deadline rounded up to a tick, in no order.
    pub(crate) fn each(&self) -> impl Iterator<Item = (u64, &T)> {
        self.entries.iter().filter_map(|entry| {
            let deadline_ns = entry.tick.saturating_mul(self.tick_ns.get());
            Some((deadline_ns, entry.value.as_ref()?))
        })
    }

    /// Adds an entry; one whose deadline has passed fires at the next [`Wheel::advance`].
    pub(crate) fn insert(&mut self, deadline_ns: u64, value: T) -> TimerKey {
        let tick = deadline_ns.div_ceil(self.tick_ns.get()).max(self.now_tick);
        let index = self.allocate(tick, value);
        self.link(index);
        self.len += 1;
        TimerKey {
            index,
            generation: self.entries[index as usize].generation,
        }
    }

    /// Takes an entry out; `None` if it has fired or was cancelled.
    pub(crate) fn cancel(&mut self, key: TimerKey) -> Option<T> {
        self.get_mut(key)?;
        self.unlink(key.index);
        self.release(key.index)
    }

    /// The value of an entry; `None` if it has fired or was cancelled.
    pub(crate) fn get_mut(&mut self, key: TimerKey) -> Option<&mut T> {
        self.entries
            .get_mut(key.index as usize)
            .filter(|entry| entry.generation == key.generation)?
            .value
            .as_mut()
    }

    /// When to call [`Wheel::advance`] next; `None` if the wheel is empty.
    ///
    /// This is not later than the first deadline, rounded up to a tick. It can be earlier when that
    /// is far away: the call then fires nothing, but brings the entry at least one level down, so
    /// there are at most [`LEVELS`] such calls on the way to a deadline.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.due()
            .map(|due| due.tick.saturating_mul(self.tick_ns.get()))
    }

    /// Moves the present to `now_ns` and fires what is due by then, tick by tick.
    ///
    /// Time does not run backwards: an earlier `now_ns` is taken as the present. If `fire` panics,
    /// its entry is gone and the rest fires at the next call.
    pub(crate) fn advance(&mut self, now_ns: u64, mut fire: impl FnMut(TimerKey, T)) {
        let target = (now_ns / self.tick_ns).max(self.now_tick);
        while let Some(due) = self.due()
            && due.tick <= target
        {
            self.now_tick = due.tick;
            if due.list < SLOTS {
                self.fire(due.list, &mut fire);
            } else {
                self.spread(due.list);
            }
        }
        self.now_tick = target;
    }

    /// The list that is due first: the first used slot of the lowest used level.
    fn due(&self) -> Option<Due> {
        if let Some(level) = self.used.iter().position(|used| *used != 0) {
            let slot = self.used[level].trailing_zeros();
            let shift = SHIFTS[level];
            let turn = self.now_tick >> shift >> LEVEL_BITS << LEVEL_BITS;
            return Some(Due {
                tick: (turn | u64::from(slot)) << shift,
                list: level * SLOTS + slot as usize,
            });
        }
        let shift = SHIFTS[LEVELS];
        (self.lists[BEYOND].first != NONE).then(|| Due {
            tick: ((self.now_tick >> shift) + 1) << shift,
            list: BEYOND,
        })
    }

    /// Empties a slot of the lowest level.
    fn fire(&mut self, list: usize, fire: &mut impl FnMut(TimerKey, T)) {
        loop {
            let index = self.lists[list].first;
            if index == NONE {
                return;
            }
            let generation = self.entries[index as usize].generation;
            self.unlink(index);
            let value = self.release(index).expect("a linked entry has a value");
            fire(TimerKey { index, generation }, value);
        }
    }

    /// Distributes a list over the levels below, now that the present has reached it.
    fn spread(&mut self, list: usize) {
        let mut index = self.lists[list].first;
        self.clear(list);
        while index != NONE {
            let next = self.entries[index as usize].next;
            self.link(index);
            index = next;
        }
    }

    /// Appends an entry to the list of its tick.
    fn link(&mut self, index: u32) {
        let tick = self.entries[index as usize].tick;
        let list = self.list_of(tick);
        let last = self.lists[list].last;
        let entry = &mut self.entries[index as usize];
        entry.list = u32::try_from(list).expect("there are some hundred lists");
        entry.previous = last;
        entry.next = NONE;
        match self.entries.get_mut(last as usize) {
            Some(before) => before.next = index,
            None => self.lists[list].first = index,
        }
        self.lists[list].last = index;
        if let Some(used) = self.used.get_mut(list / SLOTS) {
            *used |= 1 << (list % SLOTS);
        }
    }

    /// Takes an entry out of its list.
    fn unlink(&mut self, index: u32) {
        let Entry {
            previous,
            next,
            list,
            ..
        } = self.entries[index as usize];
        let list = list as usize;
        match self.entries.get_mut(previous as usize) {
            Some(before) => before.next = next,
            None => self.lists[list].first = next,
        }
        match self.entries.get_mut(next as usize) {
            Some(after) => after.previous = previous,
            None => self.lists[list].last = previous,
        }
        if self.lists[list].first == NONE {
            self.clear(list);
        }
    }

    /// Makes a list empty, whatever its entries say.
    fn clear(&mut self, list: usize) {
        self.lists[list] = List {
            first: NONE,
            last: NONE,
        };
        if let Some(used) = self.used.get_mut(list / SLOTS) {
            *used &= !(1 << (list % SLOTS));
        }
    }

    /// The list for a tick that is not in the past.
    fn list_of(&self, tick: u64) -> usize {
        debug_assert!(tick >= self.now_tick);
        let differing = (tick ^ self.now_tick) | 1;
        let level = (differing.ilog2() / LEVEL_BITS) as usize;
        if level >= LEVELS {
            return BEYOND;
        }
        let slot = (tick >> SHIFTS[level]) & SLOT_MASK;
        level * SLOTS + slot as usize
    }

    /// Puts a value into a free place of the slab.
    fn allocate(&mut self, tick: u64, value: T) -> u32 {
        if let Some(entry) = self.entries.get_mut(self.free as usize) {
            let index = self.free;
            self.free = entry.next;
            entry.tick = tick;
            entry.value = Some(value);
            return index;
        }
        let index = u32::try_from(self.entries.len()).unwrap_or(NONE);
        assert_ne!(index, NONE, "a wheel has room for 2^32 - 1 timers");
        self.entries.push(Entry {
            generation: 0,
            previous: NONE,
            next: NONE,
            list: 0,
            tick,
            value: Some(value),
        });
        index
    }

    /// Takes the value out of an unlinked entry and frees its place.
    fn release(&mut self, index: u32) -> Option<T> {
        self.len -= 1;
        let entry = &mut self.entries[index as usize];
        // A place whose generations are used up is never used again: better four bytes of a
        // billion lost than one key that names two timers.
        if let Some(generation) = entry.generation.checked_add(1) {
            entry.generation = generation;
            entry.next = self.free;
            self.free = index;
        }
        entry.value.take()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{
        collections::BTreeMap,
        num::NonZeroU64,
        panic::{AssertUnwindSafe, catch_unwind},
    };

    use proptest::prelude::*;

    use super::{TimerKey, Wheel};

    const MS: u64 = 1_000_000;
    const TICK_NS: NonZeroU64 = NonZeroU64::new(MS).unwrap();

    fn fired<T>(wheel: &mut Wheel<T>, now_ns: u64) -> Vec<T> {
        let mut values = Vec::new();
        wheel.advance(now_ns, |_, value| values.push(value));
        values
    }

    #[test]
    fn a_timer_fires_at_its_tick_and_not_before() {
        let mut wheel = Wheel::new(0, TICK_NS);
        wheel.insert(5 * MS + 1, 'a');
        assert_eq!(wheel.next_deadline(), Some(6 * MS));
        assert_eq!(fired(&mut wheel, 6 * MS - 1), []);
        assert_eq!(wheel.len(), 1);
        assert_eq!(fired(&mut wheel, 6 * MS), ['a']);
        assert_eq!(wheel.len(), 0);
        assert_eq!(wheel.next_deadline(), None);
    }

    #[test]
    fn a_deadline_in_the_past_fires_at_the_next_turn() {
        let mut wheel = Wheel::new(100 * MS, TICK_NS);
        wheel.insert(3, 'a');
        wheel.insert(100 * MS, 'b');
        assert_eq!(wheel.next_deadline(), Some(100 * MS));
        assert_eq!(fired(&mut wheel, 100 * MS), ['a', 'b']);
    }

    #[test]
    fn timers_fire_tick_by_tick_and_in_a_tick_as_inserted() {
        let mut wheel = Wheel::new(0, TICK_NS);
        for (deadline, value) in [
            (70_000, 4),
            (3, 1),
            (4096, 2),
            (70_000, 5),
            (5000, 3),
            (0, 0),
        ] {
            wheel.insert(deadline * MS, value);
        }
        assert_eq!(fired(&mut wheel, 69_999 * MS), [0, 1, 2, 3]);
        wheel.insert(70_000 * MS, 6);
        assert_eq!(fired(&mut wheel, 70_000 * MS), [4, 5, 6]);
    }

    #[test]
    fn a_key_finds_its_timer_and_no_other() {
        let mut wheel = Wheel::new(0, TICK_NS);
        let first = wheel.insert(MS, 'a');
        *wheel.get_mut(first).unwrap() = 'b';
        assert_eq!(wheel.cancel(first), Some('b'));
        assert_eq!(wheel.cancel(first), None);
        let second = wheel.insert(MS, 'c');
        assert_eq!(second.index, first.index);
        assert_eq!(wheel.get_mut(first), None);
        assert_eq!(wheel.cancel(first), None);
        let mut keys = Vec::new();
        wheel.advance(MS, |key, _| keys.push(key));
        assert_eq!(keys, [second]);
        assert_eq!(wheel.cancel(second), None);
    }

    #[test]
    fn a_far_timer_takes_few_wake_ups() {
        for deadline_ms in [63, 64, 4095, 1 << 18, 1 << 30, 1 << 36, (1 << 40) + 12_345] {
            let mut wheel = Wheel::new(0, TICK_NS);
            wheel.insert(deadline_ms * MS, ());
            let mut turns = 0;
            let mut last = 0;
            while let Some(next) = wheel.next_deadline() {
                assert!(next > last && next <= deadline_ms * MS);
                last = next;
                turns += 1;
                wheel.advance(next, |_, ()| ());
            }
            assert_eq!(last, deadline_ms * MS);
            assert!(
                turns <= 6 + (deadline_ms >> 36) + 1,
                "{turns} turns for {deadline_ms} ms"
            );
        }
    }

    #[test]
    fn the_end_of_time_is_far_away() {
        let mut wheel = Wheel::new(0, TICK_NS);
        wheel.insert(u64::MAX, 'z');
        assert_eq!(fired(&mut wheel, u64::MAX - MS), []);
        assert!(wheel.next_deadline() > Some(u64::MAX - MS));
        assert_eq!(wheel.len(), 1);
    }

    #[test]
    fn a_panic_while_firing_keeps_the_rest() {
        let mut wheel = Wheel::new(0, TICK_NS);
        for value in 0..3 {
            wheel.insert(MS, value);
        }
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            wheel.advance(9 * MS, |_, value| assert_ne!(value, 1, "boom"));
        }));
        assert!(panicked.is_err());
        assert_eq!(wheel.len(), 1);
        assert_eq!(wheel.next_deadline(), Some(MS));
        assert_eq!(fired(&mut wheel, 9 * MS), [2]);
    }

    #[test]
    fn a_used_up_place_is_not_used_again() {
        let mut wheel = Wheel::new(0, TICK_NS);
        let key = wheel.insert(MS, 'a');
        assert_eq!(wheel.cancel(key), Some('a'));
        wheel.entries[0].generation = u32::MAX;
        let last = wheel.insert(MS, 'b');
        assert_eq!((last.index, last.generation), (0, u32::MAX));
        assert_eq!(wheel.cancel(last), Some('b'));
        assert_eq!(wheel.cancel(last), None);
        assert_eq!(wheel.insert(MS, 'c').index, 1);
    }

    /// What the wheel is compared with: deadlines in ticks and in the order of their insertion.
    type Model = BTreeMap<(u64, u32), TimerKey>;

    #[derive(Debug, Clone)]
    enum Step {
        /// Inserts a timer this many nanoseconds from now, or before it.
        Insert(i64),
        /// Cancels the timer that was inserted as the nth.
        Cancel(usize),
        /// Lets this time pass.
        Advance(u64),
        /// Sleeps as the wheel says, or this long if that is shorter.
        Park(u64),
    }

    /// Spans of every magnitude, so that each level and each edge between two is reached.
    fn span(bits_max: u32) -> impl Strategy<Value = u64> {
        (0..=bits_max, any::<u64>()).prop_map(|(bits, random)| random & ((1 << bits) - 1))
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => span(60).prop_map(|span| Step::Insert(span.cast_signed())),
            1 => span(30).prop_map(|span| Step::Insert(-span.cast_signed())),
            2 => any::<prop::sample::Index>().prop_map(|index| Step::Cancel(index.index(64))),
            3 => span(58).prop_map(Step::Advance),
            4 => span(58).prop_map(Step::Park),
        ]
    }

    /// Advances both, and checks that the wheel fires what the model holds and nothing else.
    fn advance(wheel: &mut Wheel<u32>, model: &mut Model, now_ns: u64, tick_ns: u64) {
        let later = model.split_off(&(now_ns / tick_ns + 1, 0));
        let expected = std::mem::replace(model, later).into_iter();
        let mut fired = Vec::new();
        wheel.advance(now_ns, |key, value| fired.push((value, key)));
        let expected: Vec<_> = expected.map(|((_, value), key)| (value, key)).collect();
        assert_eq!(fired, expected);
        assert_eq!(wheel.len(), model.len());
        // Whatever it says, sleeping until then sleeps past nothing, and is no busy loop.
        let first = model.keys().next().map(|(tick, _)| *tick);
        match (wheel.next_deadline(), first) {
            (Some(next), Some(first)) => {
                assert!(next > now_ns, "{next} is not after {now_ns}");
                assert!(
                    next <= first.saturating_mul(tick_ns),
                    "{next} is after tick {first}"
                );
            }
            (next, first) => assert_eq!((next, first), (None, None)),
        }
    }

    proptest! {
        #[test]
        fn the_wheel_does_what_an_ordered_map_does(
            start_ns in span(62),
            tick_ns in prop_oneof![Just(MS), 1..2000_u64],
            steps in prop::collection::vec(step(), 1..120),
        ) {
            let mut now_ns = start_ns;
            let mut wheel = Wheel::new(now_ns, NonZeroU64::new(tick_ns).unwrap());
            let mut model = Model::new();
            let mut inserted = Vec::new();
            for step in steps {
                match step {
                    Step::Insert(after_ns) => {
                        let deadline_ns = now_ns.saturating_add_signed(after_ns);
                        let value = u32::try_from(inserted.len()).unwrap();
                        let key = wheel.insert(deadline_ns, value);
                        let tick = deadline_ns.div_ceil(tick_ns).max(now_ns / tick_ns);
                        prop_assert_eq!(wheel.get_mut(key).copied(), Some(value));
                        prop_assert!(model.insert((tick, value), key).is_none());
                        inserted.push((tick, value, key));
                    }
                    Step::Cancel(index) => {
                        if let Some((tick, value, key)) = inserted.get(index) {
                            let waits = model.remove(&(*tick, *value)).map(|_| *value);
                            prop_assert_eq!(wheel.get_mut(*key).copied(), waits);
                            prop_assert_eq!(wheel.cancel(*key), waits);
                        }
                    }
                    Step::Advance(by_ns) => {
                        // Jumps over many turns of a wheel with tiny ticks would visit each turn.
                        now_ns = now_ns.saturating_add(by_ns.min(tick_ns << 40));
                        advance(&mut wheel, &mut model, now_ns, tick_ns);
                    }
                    Step::Park(at_most_ns) => {
                        let until_ns = wheel.next_deadline().unwrap_or(now_ns).max(now_ns);
                        now_ns = until_ns.min(now_ns.saturating_add(at_most_ns));
                        advance(&mut wheel, &mut model, now_ns, tick_ns);
                    }
                }
            }
        }
    }
}
