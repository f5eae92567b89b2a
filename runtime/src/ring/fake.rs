//! A scripted kernel: nothing completes until the test says so.

use std::collections::VecDeque;
use std::io;

use super::backend::{Backend, Entry, Wait};
use super::op::Completion;

/// A backend that runs on commands of the test.
#[derive(Debug, Default)]
pub(crate) struct FakeKernel {
    /// Entries pushed, not yet entered.
    pub(crate) queue: Vec<Entry>,
    /// Entries the "kernel" has.
    pub(crate) running: Vec<Entry>,
    pub(crate) completions: VecDeque<Completion>,
    pub(crate) queue_max: usize,
}

impl Backend for FakeKernel {
    fn push(&mut self, entry: &Entry) -> bool {
        let has_room = self.queue.len() < self.queue_max;
        if has_room {
            self.queue.push(*entry);
        }
        has_room
    }

    fn enter(&mut self, _wait: Wait) -> io::Result<()> {
        self.running.append(&mut self.queue);
        Ok(())
    }

    fn reap(&mut self, sink: impl FnMut(Completion)) {
        self.completions.drain(..).for_each(sink);
    }

    fn has_completions(&self) -> bool {
        !self.completions.is_empty()
    }

    fn wants_enter(&self) -> bool {
        !self.queue.is_empty()
    }

    fn name(&self) -> &'static str {
        "fake"
    }
}
