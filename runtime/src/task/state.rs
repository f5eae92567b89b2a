//! The bits of a task's life, without pointers.
//!
//! ```text
//!  spawn ──► Live ──► Finished
//!             │
//!             └─────► Cancelled          (aborted, or its shard shut down)
//! ```
//! Beside the stage two owners are tracked: the table (`listed`) and the join handle (`handled`). The cell is freed by
//! the transition that clears the last of the two.

/// What the cell behind the header holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The future.
    Live,
    /// The output, or the panic that ended the future.
    Finished,
    /// Nothing: the future was dropped before it finished, or the output was taken.
    Empty,
}

/// Who may still reach the cell, and what is in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub(crate) stage: Stage,
    listed: bool,
    handled: bool,
}

/// Says whether a transition let go of the cell's last owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the last owner frees the cell"]
pub(crate) enum Release {
    Kept,
    Last,
}

impl State {
    pub(crate) fn new() -> Self {
        Self {
            stage: Stage::Live,
            listed: true,
            handled: true,
        }
    }

    /// The table lets go: the task has ended.
    pub(crate) fn unlist(&mut self) -> Release {
        debug_assert!(self.listed, "a task leaves the table once");
        self.listed = false;
        if self.handled {
            Release::Kept
        } else {
            Release::Last
        }
    }

    /// The join handle lets go.
    pub(crate) fn detach(&mut self) -> Release {
        debug_assert!(self.handled, "a task has one join handle");
        self.handled = false;
        if self.listed {
            Release::Kept
        } else {
            Release::Last
        }
    }

    pub(crate) fn has_handle(&self) -> bool {
        self.handled
    }

    pub(crate) fn is_listed(&self) -> bool {
        self.listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_owner_is_told_in_either_order() {
        let mut first = State::new();
        assert_eq!(first.unlist(), Release::Kept);
        assert_eq!(first.detach(), Release::Last);
        let mut second = State::new();
        assert_eq!(second.detach(), Release::Kept);
        assert_eq!(second.unlist(), Release::Last);
    }
}
