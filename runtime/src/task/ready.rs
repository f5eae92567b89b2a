//! The ready tasks of a shard, and whose turn it is.
//!
//! # The slot
//! A task that is woken by the one that runs goes into a slot and is run next: what it was woken for is still in the
//! cache, and who waits for an answer gets it before those who wait for nothing. Such a *chain* is at most four polls
//! long, so that two tasks that wake each other for ever keep nobody waiting; then the next one goes to the end of the
//! queue. Tasks that wake themselves, and new ones, go there at once.
//!
//! # Classes
//! While tasks of several classes are ready, each class has a credit of time for the round, and tasks run from the
//! highest class that has some left. What a poll took is subtracted, so a class may get into debt by one poll. When no
//! ready class has credit, a new round begins and each is given its quantum; what was not used is lost, debts are kept.
//! While one class alone is ready, which is always so where classes are not used, there are no rounds and nothing is
//! measured.

use std::collections::VecDeque;

/// Polls of a chain after its first.
const CHAINED_MAX: u8 = 3;

/// Who goes first when a shard has more to do than it can.
///
/// The classes of a shard that have tasks ready share its time: 8 parts for latency, 4 for default, 1 for background.
/// What one does not need, the others have. So a background task goes on however busy the shard is, and a task of the
/// class latency that is within its share waits for one poll at most: the one that runs when it becomes ready.
///
/// # Examples
/// ```
/// use greenroom_runtime::task::{Builder, Class};
/// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let sweep = Builder::new().class(Class::Background).spawn(async { "swept" });
///     assert_eq!(sweep.await.unwrap(), "swept");
/// });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// Short work that somebody waits for.
    Latency,
    /// What is not said to be anything else.
    #[default]
    Default,
    /// Work that may take its time.
    Background,
}

impl Class {
    const ALL: [Self; 3] = [Self::Latency, Self::Default, Self::Background];

    /// Time in one round.
    const fn quantum_ns(self) -> i64 {
        match self {
            Self::Latency => 80_000,
            Self::Default => 40_000,
            Self::Background => 10_000,
        }
    }
}

/// A task's slot, and the generation it had when it was queued.
pub(super) type Ready = (u32, u32);

/// How a task came to be the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    /// By its place in the queue.
    Queued,
    /// Woken by the task that ran just before, with whose budget it runs.
    Chained,
    /// Before tasks of other classes: what it takes is to be charged.
    Among(Class),
}

#[derive(Debug)]
pub(super) struct ReadyQueue {
    default: VecDeque<Ready>,
    latency: VecDeque<Ready>,
    background: VecDeque<Ready>,
    /// How many of the ready tasks are of a class other than default.
    classed: usize,
    /// Invariant: `Some` only while `chain_left` is not zero.
    next: Option<Ready>,
    /// So many more polls the chain may have; zero also while there is none.
    chain_left: u8,
    /// What a new chain begins with; zero for a shard that wants none.
    chain_max: u8,
    /// What is left of the round, in the order of [`Class::ALL`].
    credits_ns: [i64; 3],
    /// Chains that got as long as they may.
    capped: u64,
}

impl ReadyQueue {
    pub(super) fn new() -> Self {
        Self {
            default: VecDeque::with_capacity(64),
            latency: VecDeque::new(),
            background: VecDeque::new(),
            classed: 0,
            next: None,
            chain_left: 0,
            chain_max: CHAINED_MAX,
            credits_ns: Class::ALL.map(Class::quantum_ns),
            capped: 0,
        }
    }

    /// Lets every task take its place in the queue, for a shard that wants no chains.
    pub(super) fn forgo_slot(&mut self) {
        self.chain_max = 0;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.default.is_empty() && self.classed == 0 && self.next.is_none()
    }

    pub(super) fn capped(&self) -> u64 {
        self.capped
    }

    fn queue(&mut self, class: Class) -> &mut VecDeque<Ready> {
        match class {
            Class::Latency => &mut self.latency,
            Class::Default => &mut self.default,
            Class::Background => &mut self.background,
        }
    }

    /// Adds a task at the end of its queue.
    #[inline]
    pub(super) fn push(&mut self, ready: Ready, class: Class) {
        if class == Class::Default {
            self.default.push_back(ready);
        } else {
            self.classed += 1;
            self.queue(class).push_back(ready);
        }
    }

    /// Adds a task that was woken: if a chain lasts and the slot is free, it is the next.
    #[inline]
    pub(super) fn push_woken(&mut self, ready: Ready, class: Class) {
        if self.chain_left > 0 && self.next.is_none() && class == Class::Default {
            self.next = Some(ready);
        } else {
            self.push(ready, class);
        }
    }

    /// Takes the next task. `Chained` ones only while the budget they would run with is not spent.
    #[inline]
    pub(super) fn pop(&mut self, budget: ChainBudget) -> Option<(Ready, Pick)> {
        if self.classed > 0 {
            return self.pop_by_class();
        }
        if let Some(next) = self.next.take() {
            if budget == ChainBudget::Left {
                self.chain_left -= 1;
                self.capped += u64::from(self.chain_left == 0);
                return Some((next, Pick::Chained));
            }
            self.default.push_back(next);
        }
        self.chain_left = self.chain_max;
        Some((self.default.pop_front()?, Pick::Queued))
    }

    /// No task of this turn runs any more: who is woken now was not woken by one.
    pub(super) fn end_chain(&mut self) {
        self.default.extend(self.next.take());
        self.chain_left = 0;
    }

    #[cold]
    fn pop_by_class(&mut self) -> Option<(Ready, Pick)> {
        // A chain would be a way round the classes.
        self.end_chain();
        let rivals = Class::ALL
            .into_iter()
            .filter(|&class| !self.queue(class).is_empty())
            .count();
        let class = self.class_in_credit();
        let ready = self.queue(class).pop_front()?;
        self.classed -= usize::from(class != Class::Default);
        let pick = if rivals > 1 {
            Pick::Among(class)
        } else {
            Pick::Queued
        };
        Some((ready, pick))
    }

    /// The highest class with ready tasks and credit, in this round or in the first one in which there is one.
    fn class_in_credit(&mut self) -> Class {
        let mut best = (i64::MAX, Class::Default);
        for class in Class::ALL {
            if !self.queue(class).is_empty() {
                let rounds = rounds_to_credit(self.credits_ns[class as usize], class);
                if rounds < best.0 {
                    best = (rounds, class);
                }
            }
        }
        let (rounds, class) = best;
        if rounds > 0 {
            for class in Class::ALL {
                let credit = &mut self.credits_ns[class as usize];
                let given = class.quantum_ns().saturating_mul(rounds);
                *credit = credit.saturating_add(given).min(class.quantum_ns());
            }
        }
        class
    }

    /// Subtracts what a poll of the class took.
    pub(super) fn charge(&mut self, class: Class, elapsed_ns: u64) {
        let credit = &mut self.credits_ns[class as usize];
        let elapsed_ns = i64::try_from(elapsed_ns).unwrap_or(i64::MAX);
        *credit = credit.saturating_sub(elapsed_ns);
    }
}

/// What is left of the budget that a chain shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChainBudget {
    Left,
    Spent,
}

/// Rounds until a class has credit again; none if it has some.
fn rounds_to_credit(credit_ns: i64, class: Class) -> i64 {
    if credit_ns > 0 {
        0
    } else {
        // Both are negative or zero.
        credit_ns / -class.quantum_ns() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pop(queue: &mut ReadyQueue) -> Option<u32> {
        queue.pop(ChainBudget::Left).map(|((slot, _), _)| slot)
    }

    #[test]
    fn a_task_that_was_woken_by_the_running_one_is_next() {
        let mut queue = ReadyQueue::new();
        for slot in [1, 2, 3] {
            queue.push((slot, 1), Class::Default);
        }
        assert_eq!(pop(&mut queue), Some(1));
        queue.push_woken((8, 1), Class::Default);
        queue.push_woken((9, 1), Class::Default);
        assert_eq!(
            queue.pop(ChainBudget::Left),
            Some(((8, 1), Pick::Chained)),
            "the first of two"
        );
        let rest: Vec<_> = std::iter::from_fn(|| pop(&mut queue)).collect();
        assert_eq!(rest, [2, 3, 9]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_chain_ends_after_three_and_with_its_budget_and_with_the_turn() {
        let mut queue = ReadyQueue::new();
        queue.push((1, 1), Class::Default);
        queue.push((2, 1), Class::Default);
        assert_eq!(pop(&mut queue), Some(1));
        for _ in 0..3 {
            queue.push_woken((9, 1), Class::Default);
            assert_eq!(pop(&mut queue), Some(9));
        }
        queue.push_woken((9, 1), Class::Default);
        assert_eq!((pop(&mut queue), queue.capped()), (Some(2), 1));
        queue.push_woken((8, 1), Class::Default);
        let spent = queue.pop(ChainBudget::Spent);
        assert_eq!(spent, Some(((9, 1), Pick::Queued)));
        queue.push_woken((7, 1), Class::Default);
        queue.end_chain();
        queue.push_woken((6, 1), Class::Default);
        let rest: Vec<_> = std::iter::from_fn(|| pop(&mut queue)).collect();
        assert_eq!(rest, [8, 7, 6]);
    }

    #[test]
    fn without_the_slot_tasks_run_as_they_became_ready() {
        let mut queue = ReadyQueue::new();
        queue.forgo_slot();
        queue.push((1, 1), Class::Default);
        queue.push((2, 1), Class::Default);
        assert_eq!(pop(&mut queue), Some(1));
        queue.push_woken((3, 1), Class::Default);
        queue.end_chain();
        assert_eq!(pop(&mut queue), Some(2));
        assert_eq!(pop(&mut queue), Some(3));
    }

    /// Runs one task of each class for ever, with polls of these lengths; returns the time each class got.
    fn shares(polls_ns: [u64; 3], total_ns: u64) -> [u64; 3] {
        let mut queue = ReadyQueue::new();
        for class in Class::ALL {
            queue.push((class as u32, 1), class);
        }
        let mut got = [0; 3];
        while got.iter().sum::<u64>() < total_ns {
            let (ready, pick) = queue.pop(ChainBudget::Left).unwrap();
            let class = Class::ALL[ready.0 as usize];
            assert_eq!(pick, Pick::Among(class));
            let elapsed_ns = polls_ns[class as usize];
            queue.charge(class, elapsed_ns);
            got[class as usize] += elapsed_ns;
            queue.push_woken(ready, class);
        }
        got
    }

    #[test]
    fn busy_classes_share_the_time_by_their_weights_whatever_the_length_of_their_polls() {
        for polls_ns in [
            [1000, 1000, 1000],
            [1000, 500, 1_000_000],
            [3_000_000, 100_000, 10_000],
        ] {
            let got = shares(polls_ns, 1_000_000_000);
            let part = got.iter().sum::<u64>() / 13;
            for (got, weight) in got.into_iter().zip([8, 4, 1]) {
                let fair = part * weight;
                assert!(
                    got.abs_diff(fair) <= fair / 50,
                    "{polls_ns:?}: {got} of {fair}"
                );
            }
        }
    }

    #[test]
    fn a_latency_task_within_its_share_waits_for_one_poll_at_most() {
        let mut queue = ReadyQueue::new();
        for slot in 0..8 {
            queue.push((slot, 1), Class::Background);
            queue.push((slot + 8, 1), Class::Default);
        }
        for _ in 0..1000 {
            // Whatever runs now is the one poll.
            let (ready, pick) = queue.pop(ChainBudget::Left).unwrap();
            let Pick::Among(class) = pick else {
                panic!("two classes are ready: {pick:?}")
            };
            queue.charge(class, 30_000);
            queue.push_woken((99, 1), Class::Latency);
            queue.push(ready, class);
            let next = queue.pop(ChainBudget::Left);
            assert_eq!(next, Some(((99, 1), Pick::Among(Class::Latency))));
            queue.charge(Class::Latency, 100);
        }
    }

    #[test]
    fn a_class_that_is_alone_is_not_measured() {
        for class in Class::ALL {
            let mut queue = ReadyQueue::new();
            queue.push((1, 1), class);
            assert_eq!(queue.pop(ChainBudget::Left), Some(((1, 1), Pick::Queued)));
            assert!(queue.is_empty());
        }
    }
}
