//! Random interleavings of everything that can happen to operations, against the scripted kernel.
//!
//! Whatever the order: the kernel only touches living memory, no payload is dropped twice, each success is delivered
//! or orphaned exactly once, the count of live operations is exact, and nothing leaks that the kernel gave back.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::task::Waker;

use proptest::prelude::*;

use super::Ledger;
use super::records::TrackedRead;
use crate::ring::backend::Wait;
use crate::ring::driver::Driver;
use crate::ring::fake::{FakeKernel, memory};
use crate::ring::inflight::{Key, Polled};
use crate::ring::op::{Effects, Operation};

#[derive(Clone, Copy, Debug)]
enum Step {
    Start,
    Poll(usize),
    DropHandle(usize),
    ForgetHandle(usize),
    Detach(usize),
    Turn,
    /// The kernel ends an operation; bytes read, or an error.
    Complete(usize, Result<u8, ()>),
    CompleteMore(usize, Result<u8, ()>),
    AnswerCancel(usize, Answer),
    Teardown,
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Found,
    NotFound,
    Already,
}

fn step() -> impl Strategy<Value = Step> {
    let result = || prop_oneof![(0..=16_u8).prop_map(Ok), Just(Err(()))];
    let answer = prop_oneof![
        Just(Answer::Found),
        Just(Answer::NotFound),
        Just(Answer::Already)
    ];
    prop_oneof![
        6 => Just(Step::Start),
        4 => any::<usize>().prop_map(Step::Poll),
        3 => any::<usize>().prop_map(Step::DropHandle),
        1 => any::<usize>().prop_map(Step::ForgetHandle),
        2 => any::<usize>().prop_map(Step::Detach),
        6 => Just(Step::Turn),
        5 => (any::<usize>(), result()).prop_map(|(index, result)| Step::Complete(index, result)),
        1 => (any::<usize>(), result()).prop_map(|(index, result)| Step::CompleteMore(index, result)),
        2 => (any::<usize>(), answer).prop_map(|(index, answer)| Step::AnswerCancel(index, answer)),
        1 => Just(Step::Teardown),
    ]
}

/// The driver under test, and what is known about its operations.
struct World {
    driver: Driver,
    ledger: Rc<Ledger>,
    effects: Effects,
    handles: Vec<Key<TrackedRead>>,
    forgotten: usize,
    /// The first result of operations that the kernel reported on, by token. That is the one that counts.
    first_results: BTreeMap<u64, i32>,
    /// How many operations ended in success.
    granted: usize,
}

impl World {
    fn new(queue_max: usize) -> World {
        World {
            driver: FakeKernel::driver(queue_max),
            ledger: Rc::default(),
            effects: Effects::default(),
            handles: Vec::new(),
            forgotten: 0,
            first_results: BTreeMap::new(),
            granted: 0,
        }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Start => {
                let operation = TrackedRead::new(&self.ledger);
                self.handles
                    .push(self.driver.start(operation, Waker::noop().clone()));
            }
            Step::Poll(index) => self.poll(index),
            Step::DropHandle(index) => {
                if let Some(key) = self.take_handle(index) {
                    drop(self.driver.drop_handle(key));
                }
            }
            Step::ForgetHandle(index) => {
                self.forgotten += usize::from(self.take_handle(index).is_some());
            }
            Step::Detach(index) => {
                if let Some(key) = self.take_handle(index) {
                    drop(self.driver.detach(key));
                }
            }
            Step::Turn => self.turn(),
            Step::Complete(index, result) => self.complete(index, result),
            Step::CompleteMore(index, result) => self.complete_more(index, result),
            Step::AnswerCancel(index, answer) => self.answer(index, answer),
            Step::Teardown => self.driver.begin_teardown(),
        }
        self.check();
    }

    fn check(&mut self) {
        let live = self.driver.live_ops();
        let has_backlog = self.driver.has_unsubmitted();
        let kernel = FakeKernel::of(&mut self.driver);
        kernel.check_memory();
        let held = kernel.held_count();
        assert!(
            held == live || (held < live && has_backlog),
            "the kernel holds {held} of {live} live operations"
        );
    }

    fn take_handle(&mut self, index: usize) -> Option<Key<TrackedRead>> {
        (!self.handles.is_empty()).then(|| self.handles.swap_remove(index % self.handles.len()))
    }

    fn poll(&mut self, index: usize) {
        let Some(key) = self.take_handle(index) else {
            return;
        };
        match self.driver.poll(key, Waker::noop()) {
            Polled::Ready(operation, outcome) => {
                operation.complete(Ok(outcome)).ok();
            }
            Polled::Waiting(key) | Polled::NewWaker(key) => self.handles.push(key),
        }
    }

    fn turn(&mut self) {
        self.driver.turn(Wait::Poll, &mut self.effects).unwrap();
        self.effects.run();
    }

    fn complete(&mut self, index: usize, result: Result<u8, ()>) {
        let kernel = FakeKernel::of(&mut self.driver);
        if kernel.running_count() > 0 {
            let result = result.map_or(-libc::ECANCELED, i32::from);
            let token = kernel.complete(index % kernel.running_count(), result);
            let first = self.first_results.remove(&token).unwrap_or(result);
            self.granted += usize::from(first >= 0);
        }
    }

    fn complete_more(&mut self, index: usize, result: Result<u8, ()>) {
        let kernel = FakeKernel::of(&mut self.driver);
        if kernel.running_count() > 0 {
            let result = result.map_or(-libc::EIO, i32::from);
            let token = kernel.complete_more(index % kernel.running_count(), result);
            self.first_results.entry(token).or_insert(result);
        }
    }

    fn answer(&mut self, index: usize, answer: Answer) {
        let kernel = FakeKernel::of(&mut self.driver);
        if kernel.cancel_count() > 0 {
            let result = match answer {
                Answer::Found => 0,
                Answer::NotFound => -libc::ENOENT,
                Answer::Already => -libc::EALREADY,
            };
            kernel.answer_cancel(index % kernel.cancel_count(), result);
        }
    }

    /// Tears down with a kernel that ends everything.
    fn quiesce(&mut self) {
        self.driver.begin_teardown();
        for round in 0.. {
            assert!(round < 1000, "teardown does not end: {:?}", self.driver);
            self.turn();
            self.check();
            if self.driver.live_ops() == 0 {
                return;
            }
            while FakeKernel::of(&mut self.driver).running_count() > 0 {
                self.complete(round, Err(()));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn operations_survive_every_interleaving(
        queue_max in 1..6_usize,
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let alive_before = memory::alive_count();
        let mut world = World::new(queue_max);
        for step in steps {
            world.run(step);
        }
        world.quiesce();
        prop_assert_eq!(world.driver.leak_remaining().operations, 0);
        prop_assert_eq!(world.driver.stale_completions(), 0);
        while let Some(key) = world.handles.pop() {
            drop(world.driver.drop_handle(key));
        }
        // What is left are the results of forgotten handles: they go with the driver.
        prop_assert!(memory::alive_count() - alive_before <= world.forgotten);
        drop(world.driver);
        prop_assert_eq!(memory::alive_count(), alive_before);
        prop_assert_eq!(world.ledger.delivered.get() + world.ledger.orphaned.get(), world.granted);
    }

    #[test]
    fn a_driver_dropped_at_any_point_leaks_exactly_what_the_kernel_has(
        queue_max in 1..6_usize,
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let alive_before = memory::alive_count();
        let mut world = World::new(queue_max);
        for step in steps {
            world.run(step);
        }
        let leaked = world.driver.leak_remaining().operations;
        prop_assert_eq!(leaked, FakeKernel::of(&mut world.driver).held_count());
        drop(world.driver);
        prop_assert_eq!(memory::alive_count() - alive_before, leaked);
    }
}
