//! The lanes of a resident's messages.

/// Which way into a resident a message takes.
///
/// Each lane has its own order and its own room: a choke is about one lane of one resident, and an urgent message waits
/// for urgent ones only. What must not wait at all is no message and takes no lane, see [`crate::mesh::ResidentId::post`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// The lane of almost every message.
    #[default]
    Normal,
    /// The lane of a few that are to be taken first.
    Urgent,
}

impl Lane {
    /// How many there are.
    pub const COUNT: usize = 2;

    /// Its place among as many values as there are lanes.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        match self {
            Self::Normal => 0,
            Self::Urgent => 1,
        }
    }
}
