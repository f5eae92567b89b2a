//! Work for many workers, who may find more of it on the way.
//!
//! Workers *ask* for work rather than being sent it. So none has more than it can do, and nothing that waits for room waits
//! in a circle, however much work they find.

use greenroom::prelude::*;

/// Keeps the work that nobody does yet.
pub struct Farm<T: 'static> {
    work: Vec<T>,
    workers: usize,
    idle: Vec<Reply<Option<T>>>,
    is_closed: bool,
}

impl<T: 'static> Farm<T> {
    pub fn new(first: T, workers: usize) -> Self {
        Self {
            work: vec![first],
            workers,
            idle: Vec::new(),
            is_closed: false,
        }
    }
}

#[actor]
impl<T: Send + 'static> Farm<T> {
    /// More work that was found.
    pub fn add(&mut self, found: Vec<T>) {
        if self.is_closed {
            return;
        }
        self.work.extend(found);
        while !self.work.is_empty()
            && let Some(idle) = self.idle.pop()
        {
            idle.send(self.work.pop());
        }
    }

    /// Gives up the work that nobody does yet, and takes no more.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.work.clear();
    }

    /// Answers with some work when there is some, the latest first; with none when all workers ask, for then there never
    /// will be.
    pub fn next(&mut self, reply: Reply<Option<T>>) {
        if let Some(work) = self.work.pop() {
            return reply.send(Some(work));
        }
        self.idle.push(reply);
        if self.idle.len() == self.workers {
            for idle in self.idle.drain(..) {
                idle.send(None);
            }
        }
    }
}
