//! A ring that grows, whose values are built where they will lie.
//!
//! What `VecDeque` cannot promise is the order of [`Fifo::push_with`]: first the place, then the value. Nothing that could
//! fail stands between the making of a value and its place in memory, so the compiler makes it there. With the order the
//! other way round the value is made on the stack, and copied in pieces other than those it was written in, which costs a
//! processor more than all the rest of a send.

#![expect(
    unsafe_code,
    reason = "keeps values in memory that is not always initialised"
)]

use std::fmt;
use std::mem::MaybeUninit;

/// Values in the order in which they came. Takes no memory before the first one.
pub struct Fifo<T> {
    /// As many places as a power of two, or none.
    places: Box<[MaybeUninit<T>]>,
    /// Where the first value is. Invariant: the `len` places from here on, around the end, hold values, and no other does.
    head: usize,
    /// Invariant: at most the number of places.
    len: usize,
}

impl<T> Fifo<T> {
    const FIRST: usize = 4;

    /// How many values there are.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many values there are places for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.places.len()
    }

    /// The place of the value that so many stand before.
    #[inline]
    fn index(&self, place: usize) -> usize {
        self.head.wrapping_add(place) & self.places.len().wrapping_sub(1)
    }

    /// Puts in, behind all others, the value that `make` makes. If it panics nothing is put in.
    ///
    /// # Panics
    /// If there is no memory for so many values.
    #[inline]
    pub fn push_with(&mut self, make: impl FnOnce() -> T) {
        if self.len == self.places.len() {
            self.grow();
        }
        let index = self.index(self.len);
        let place = &mut self.places[index];
        place.write(make());
        self.len += 1;
    }

    /// Puts a value in behind all others.
    ///
    /// # Panics
    /// As [`Fifo::push_with`].
    #[inline]
    pub fn push_back(&mut self, value: T) {
        self.push_with(|| value);
    }

    /// Puts a value in before all others.
    ///
    /// # Panics
    /// As [`Fifo::push_with`].
    pub fn push_front(&mut self, value: T) {
        if self.len == self.places.len() {
            self.grow();
        }
        let index = self.index(usize::MAX);
        self.places[index].write(value);
        self.head = index;
        self.len += 1;
    }

    /// Takes the first value out.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let place = &self.places[self.head];
        // SAFETY: there is a value, so the place `head` holds one; from the next line on it is not counted any more.
        let value = unsafe { place.assume_init_read() };
        self.head = self.index(1);
        self.len -= 1;
        Some(value)
    }

    /// The first value.
    #[must_use]
    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.get(0)
    }

    #[inline]
    fn get(&self, place: usize) -> Option<&T> {
        if place >= self.len {
            return None;
        }
        // SAFETY: fewer than `len` stand before it, so the place holds a value, and it is borrowed as the whole is.
        Some(unsafe { self.places[self.index(place)].assume_init_ref() })
    }

    /// All values, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len).filter_map(|place| self.get(place))
    }

    /// Takes the value out that so many stand before; those move back by one.
    pub fn remove(&mut self, place: usize) -> Option<T> {
        if place >= self.len {
            return None;
        }
        for place in (0..place).rev() {
            let (from, to) = (self.index(place), self.index(place + 1));
            self.places.swap(from, to);
        }
        self.pop_front()
    }

    /// Gives memory back, but for what `least` values need, and those that are there.
    pub fn shrink_to(&mut self, least: usize) {
        let wanted = self.len.max(least).max(1).next_power_of_two();
        if wanted < self.places.len() {
            self.move_to(wanted);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let places = self.places.len().checked_mul(2);
        self.move_to(places.expect("a capacity fits").max(Self::FIRST));
    }

    /// Moves the values to as many places, which are enough.
    fn move_to(&mut self, count: usize) {
        let mut places = Box::new_uninit_slice(count);
        for (place, to) in (0..self.len).zip(&mut places) {
            let from = self.index(place);
            // Swapped bit by bit: no value is in both.
            std::mem::swap(to, &mut self.places[from]);
        }
        self.places = places;
        self.head = 0;
    }
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self {
            places: Box::default(),
            head: 0,
            len: 0,
        }
    }
}

impl<T> Drop for Fifo<T> {
    fn drop(&mut self) {
        /// Goes on with the rest when a drop panics.
        struct Rest<'a, T>(&'a mut Fifo<T>);

        impl<T> Drop for Rest<'_, T> {
            fn drop(&mut self) {
                while let Some(value) = self.0.pop_front() {
                    drop(value);
                }
            }
        }

        let rest = Rest(self);
        while let Some(value) = rest.0.pop_front() {
            drop(value);
        }
    }
}

impl<T> fmt::Debug for Fifo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fifo")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::VecDeque;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::rc::Rc;

    use proptest::prelude::*;

    use super::Fifo;

    #[derive(Clone, Debug)]
    enum Step {
        PushBack,
        PushFront,
        PopFront,
        Remove(usize),
        Shrink(usize),
        Fail,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => Just(Step::PushBack),
            1 => Just(Step::PushFront),
            4 => Just(Step::PopFront),
            1 => (0..12_usize).prop_map(Step::Remove),
            1 => (0..12_usize).prop_map(Step::Shrink),
            1 => Just(Step::Fail),
        ]
    }

    proptest! {
        #[test]
        fn it_does_what_a_deque_does_and_drops_each_value_once(steps in prop::collection::vec(step(), 0..200)) {
            let (mut fifo, mut model) = (Fifo::default(), VecDeque::new());
            // Counts the values by their references.
            let alive = Rc::new(());
            for (number, step) in steps.into_iter().enumerate() {
                let value = || (number, alive.clone());
                match step {
                    Step::PushBack => {
                        fifo.push_with(value);
                        model.push_back(number);
                    }
                    Step::PushFront => {
                        fifo.push_front(value());
                        model.push_front(number);
                    }
                    Step::PopFront => prop_assert_eq!(fifo.pop_front().map(|it| it.0), model.pop_front()),
                    Step::Remove(place) => {
                        prop_assert_eq!(fifo.remove(place).map(|it| it.0), model.remove(place));
                    }
                    Step::Shrink(least) => fifo.shrink_to(least),
                    Step::Fail => {
                        let failed = catch_unwind(AssertUnwindSafe(|| {
                            fifo.push_with(|| std::panic::resume_unwind(Box::new(())));
                        }));
                        prop_assert!(failed.is_err());
                    }
                }
                prop_assert_eq!(fifo.len(), model.len());
                prop_assert_eq!(fifo.is_empty(), model.is_empty());
                prop_assert_eq!(fifo.front().map(|it| it.0), model.front().copied());
                prop_assert!(fifo.iter().map(|it| it.0).eq(model.iter().copied()));
                prop_assert_eq!(Rc::strong_count(&alive), model.len() + 1);
            }
            drop(fifo);
            prop_assert_eq!(Rc::strong_count(&alive), 1);
        }
    }

    #[test]
    fn nothing_is_allocated_before_the_first_value() {
        assert_eq!(Fifo::<u64>::default().capacity(), 0);
    }

    #[test]
    fn a_drop_that_panics_keeps_no_other_from_being_dropped() {
        struct Bomb(Rc<Cell<usize>>);

        impl Drop for Bomb {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
                if self.0.get() == 2 {
                    std::panic::resume_unwind(Box::new(()));
                }
            }
        }

        let drops = Rc::new(Cell::new(0));
        let mut fifo = Fifo::default();
        for _ in 0..5 {
            fifo.push_back(Bomb(drops.clone()));
        }
        assert!(catch_unwind(AssertUnwindSafe(|| drop(fifo))).is_err());
        assert_eq!(drops.get(), 5);
    }
}
