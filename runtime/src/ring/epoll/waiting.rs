//! Who waits for what: operations in line, by descriptor and direction.
//!
//! Plain bookkeeping without system calls. Lines are linked through a table that is indexed like the records of the
//! driver, so that a cancel finds its target without a search, and neither a wait nor its end allocates once the tables
//! have grown to what is in flight.

use std::os::fd::RawFd;

use super::work::Work;
use crate::ring::op::Token;

/// No operation: the end of a line.
const NONE: u32 = u32::MAX;

/// All operations that wait for their descriptor.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// By the slot of the operation's record.
    nodes: Vec<Node>,
    /// By descriptor.
    lines: Vec<Lines>,
    count: usize,
}

/// Which of a descriptor's lines an operation stands in.
///
/// Transfers of one direction pass in the order in which they came. Polls take nothing, so none holds up another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Receives, reads, accepts.
    Read,
    /// Sends, writes, connects.
    Write,
    /// Waits for readability.
    PollRead,
    /// Waits for writability.
    PollWrite,
}

impl Lane {
    /// Whether its operations take nothing, so that they need no order.
    pub(super) fn is_poll(self) -> bool {
        matches!(self, Lane::PollRead | Lane::PollWrite)
    }
}

/// The right to name an operation in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

#[derive(Debug)]
struct Node {
    work: Option<Work>,
    lane: Lane,
    previous: u32,
    next: u32,
}

impl Node {
    const EMPTY: Node = Node {
        work: None,
        lane: Lane::Read,
        previous: NONE,
        next: NONE,
    };
}

#[derive(Clone, Copy, Debug)]
struct Line {
    head: u32,
    tail: u32,
}

#[derive(Clone, Copy, Debug)]
struct Lines {
    lanes: [Line; 4],
    /// Lanes that did not finish their share, see [`Waiting::note_unfinished`].
    unfinished: [bool; 4],
}

impl Lines {
    const EMPTY: Lines = Lines {
        lanes: [Line {
            head: NONE,
            tail: NONE,
        }; 4],
        unfinished: [false; 4],
    };
}

impl Waiting {
    /// How many operations wait.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Whether nobody stands in a line.
    pub(super) fn is_free(&self, fd: RawFd, lane: Lane) -> bool {
        self.first(fd, lane).is_none()
    }

    /// Puts an operation at the end of its line.
    pub(super) fn push(&mut self, fd: RawFd, lane: Lane, work: Work) {
        let index = slot(work.token);
        let row = usize::try_from(fd).expect("only open descriptors are waited for");
        if self.lines.len() <= row {
            self.lines.resize(row + 1, Lines::EMPTY);
        }
        let at = index as usize;
        while self.nodes.len() <= at {
            self.nodes.push(Node::EMPTY);
        }
        let line = &mut self.lines[row].lanes[lane as usize];
        let tail = std::mem::replace(&mut line.tail, index);
        match tail {
            NONE => line.head = index,
            tail => self.nodes[tail as usize].next = index,
        }
        debug_assert!(self.nodes[at].work.is_none(), "slot {index} waits twice");
        self.nodes[at] = Node {
            work: Some(work),
            lane,
            previous: tail,
            next: NONE,
        };
        self.count += 1;
    }

    /// The first in a line.
    pub(super) fn first(&self, fd: RawFd, lane: Lane) -> Option<Place> {
        let row = usize::try_from(fd).ok()?;
        place(self.lines.get(row)?.lanes[lane as usize].head)
    }

    /// Who stands behind.
    pub(super) fn next(&self, at: Place) -> Option<Place> {
        place(self.nodes[at.0 as usize].next)
    }

    /// The operation with this token, if it waits.
    pub(super) fn find(&self, token: u64) -> Option<Place> {
        let index = slot(token);
        let work = self.nodes.get(index as usize)?.work.as_ref()?;
        (work.token == token).then_some(Place(index))
    }

    /// The operation at a place.
    pub(super) fn work(&mut self, at: Place) -> &mut Work {
        let work = self.nodes[at.0 as usize].work.as_mut();
        work.expect("a place in line is taken")
    }

    /// Takes an operation out of its line.
    pub(super) fn remove(&mut self, at: Place) -> Work {
        let node = std::mem::replace(&mut self.nodes[at.0 as usize], Node::EMPTY);
        let work = node.work.expect("a place in line is taken");
        let row = usize::try_from(work.fd()).expect("only open descriptors are waited for");
        let line = &mut self.lines[row].lanes[node.lane as usize];
        match node.previous {
            NONE => line.head = node.next,
            previous => self.nodes[previous as usize].next = node.next,
        }
        match node.next {
            NONE => line.tail = node.previous,
            next => self.nodes[next as usize].previous = node.previous,
        }
        self.count -= 1;
        work
    }

    /// Notes that a lane has more to do right away. Returns whether that is news.
    pub(super) fn note_unfinished(&mut self, fd: RawFd, lane: Lane) -> bool {
        let row = usize::try_from(fd).expect("only open descriptors are waited for");
        !std::mem::replace(&mut self.lines[row].unfinished[lane as usize], true)
    }

    /// Takes the note back: the lane is being looked at.
    pub(super) fn clear_unfinished(&mut self, fd: RawFd, lane: Lane) {
        let row = usize::try_from(fd).expect("only open descriptors are waited for");
        self.lines[row].unfinished[lane as usize] = false;
    }

    /// Every descriptor that somebody waits for.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        let is_taken = |lines: &Lines| lines.lanes.iter().any(|line| line.head != NONE);
        let rows = self.lines.iter().enumerate();
        rows.filter(move |(_, lines)| is_taken(lines))
            .map(|(row, _)| RawFd::try_from(row).expect("came from a descriptor"))
    }
}

fn place(index: u32) -> Option<Place> {
    (index != NONE).then_some(Place(index))
}

/// The slot of the record a token stands for.
fn slot(token: u64) -> u32 {
    match Token::decode(token) {
        Token::Operation(id) | Token::Cancel(id) => id.index,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::backend::EntryKind;

    fn work(fd: RawFd, slot: u64, generation: u64) -> Work {
        Work::new(generation << 32 | slot, EntryKind::PollReadable { fd })
    }

    fn slots(waiting: &Waiting, fd: RawFd, lane: Lane) -> Vec<u32> {
        let mut found = Vec::new();
        let mut next = waiting.first(fd, lane);
        while let Some(at) = next {
            found.push(at.0);
            next = waiting.next(at);
        }
        found
    }

    #[test]
    fn a_line_keeps_its_order_whoever_leaves() {
        for leaver in 0..4 {
            let mut waiting = Waiting::default();
            for slot in 0..4 {
                waiting.push(7, Lane::Read, work(7, slot, 0));
            }
            let at = waiting.find(leaver).unwrap();
            waiting.remove(at);
            let mut left = vec![0, 1, 2, 3];
            left.retain(|&slot| u64::from(slot) != leaver);
            assert_eq!(slots(&waiting, 7, Lane::Read), left);
            waiting.push(7, Lane::Read, work(7, leaver, 1));
            left.push(u32::try_from(leaver).unwrap());
            assert_eq!(slots(&waiting, 7, Lane::Read), left);
            assert_eq!(waiting.len(), 4);
        }
    }

    #[test]
    fn lanes_and_descriptors_are_apart() {
        let mut waiting = Waiting::default();
        waiting.push(3, Lane::Read, work(3, 0, 0));
        waiting.push(3, Lane::Write, work(3, 1, 0));
        waiting.push(900, Lane::Read, work(900, 2, 0));
        assert_eq!(slots(&waiting, 3, Lane::Read), [0]);
        assert_eq!(slots(&waiting, 3, Lane::Write), [1]);
        assert!(waiting.is_free(3, Lane::PollRead) && waiting.is_free(5000, Lane::Read));
        assert_eq!(waiting.descriptors().collect::<Vec<_>>(), [3, 900]);
    }

    #[test]
    fn a_token_of_an_earlier_use_of_the_slot_finds_nothing() {
        let mut waiting = Waiting::default();
        waiting.push(3, Lane::PollRead, work(3, 5, 9));
        assert!(waiting.find(8 << 32 | 5).is_none());
        assert!(waiting.find(9 << 32 | 6).is_none());
        assert!(waiting.find(u64::MAX).is_none());
        assert!(waiting.find(9 << 32 | 5).is_some());
    }
}
