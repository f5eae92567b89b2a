//! What threads outside a runtime may do on its shards.

use super::link::Refusal;
use super::resident::{Resident, ResidentId};
use crate::shard::registry;

/// The most messages that threads outside the runtime may have on their way to one shard without waiting for them.
const OUTSIDE_MAX: usize = 4096;

impl<R: ?Sized + Resident> ResidentId<R> {
    /// Runs a closure on the resident's shard, from any thread.
    ///
    /// # Errors
    /// Gives the closure back when the shard is gone.
    pub fn run_there(self, job: Box<dyn FnOnce() + Send>) -> Result<(), Box<dyn FnOnce() + Send>> {
        match self.shared() {
            Some(shared) => shared.submit(job),
            None => Err(job),
        }
    }

    /// Takes one of the 4096 places for messages that threads outside the runtime do not wait for.
    ///
    /// # Errors
    /// When all are taken, or the shard is gone.
    pub fn enter_outside(self) -> Result<OutsidePass, Refusal> {
        let shared = self.shared().ok_or(Refusal::Gone)?;
        // A pass exists only once it is counted: its drop counts it out again.
        if shared.enter_outside(OUTSIDE_MAX) {
            Ok(OutsidePass { shared })
        } else {
            Err(Refusal::Full)
        }
    }
}

/// A place among the messages on their way from outside; given back when dropped, on any thread.
#[derive(Debug)]
pub struct OutsidePass {
    shared: &'static registry::SharedShard,
}

impl Drop for OutsidePass {
    fn drop(&mut self) {
        self.shared.leave_outside();
    }
}
