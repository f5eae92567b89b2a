//! Cancellations that cancel others.
//!
//! A task is cancelled by dropping its future, on the stack of whoever cancels it. What is dropped may cancel further tasks, each on
//! the stack of the one before, and a row of a few thousand such tasks would end the process. So only the first few are cancelled
//! inside each other. Whatever they cancel waits until the outermost is done, which then sees to it before it returns.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use super::Shard;
use crate::task::TaskRef;

/// How many tasks are cancelled inside each other.
const DEPTH_MAX: u32 = 32;

/// The cancellations on the stack, and those that are to follow.
#[derive(Default)]
pub(super) struct Cancels {
    depth: Cell<u32>,
    /// Lent tasks. Empty unless the depth is not zero.
    later: RefCell<VecDeque<TaskRef>>,
}

impl Cancels {
    fn next(&self) -> Option<TaskRef> {
        self.later.borrow_mut().pop_front()
    }
}

impl Shard {
    /// Drops the future of a lent task, and ends it; if it is deep inside of other cancellations, when the outermost is done.
    pub(super) fn cancel(&self, task: TaskRef) {
        let cancels = &self.cancels;
        let depth = cancels.depth.get();
        if depth == DEPTH_MAX {
            return cancels.later.borrow_mut().push_back(task);
        }
        // Nothing in between unwinds: what is dropped is contained.
        cancels.depth.set(depth + 1);
        self.cancel_now(task);
        if depth == 0 {
            while let Some(task) = cancels.next() {
                self.cancel_now(task);
            }
        }
        cancels.depth.set(depth);
    }

    fn cancel_now(&self, mut task: TaskRef) {
        self.drop_future(&mut task);
        self.end(task);
    }
}
