//! The sending side of a pair of shards.
//!
//! # Order and room
//! Records of one pair arrive in the order they were accepted. A message is accepted when it is in the ring; it waits
//! on this side, in order, while
//!
//! * the ring is full, or older records wait in the spill queue (*link* lists, one per lane), or
//! * its lane of its resident is choked: it has more messages than it wants and said so ([`Choke`]) (one list per lane).
//!
//! Of those that wait for the link the urgent ones go first. A choked lane stops nobody but its own senders. The receiving side always empties the ring, so no cycle of full
//! links can form.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::task::{Context, Poll};

use super::lane::Lane;
use super::record::{Record, Spilled, push};
use super::ring::Producer;
use super::wait::{Ticket, WaitList};
use crate::observe::LinkSample;
use crate::shard::{Shard, ShardId, ShardNumber};

/// Why a message was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No room now: the mailbox, or the link to its shard, is full.
    Full,
    /// There is nothing at that address any more.
    Gone,
}

/// Publishing early bounds how much a long turn holds back from a peer that is awake.
const PUBLISH_BYTES: usize = 4096;

/// The most records that may wait for room when a message is to be sent back. The sender of what nobody takes may be
/// faster than it empties its ring.
const RETURNS_BEHIND_MAX: usize = 4096;

/// The most messages of a lane that one turn sends to a peer. A peer that empties the ring meanwhile would let a sender go on for
/// ever, deaf to its shard's timers and to a choke.
const MESSAGES_PER_TURN: usize = 1024;

/// What a choke is about: one lane of a flow.
pub(crate) type Target = (u64, Lane);

/// One peer, seen from a shard that sends to it.
pub(crate) struct Link {
    peer: ShardId,
    producer: Option<Producer>,
    /// Records that must not wait and found the ring full. Older than anything sent later.
    spill: VecDeque<Box<dyn Spilled>>,
    /// In the shard's list of peers to publish to.
    touched: bool,
    /// Something was published early while the peer slept: it is to be told at the end of the turn.
    unannounced: bool,
    /// The peer was told of an early publish in this turn.
    announced_early: bool,
    /// Messages of each lane sent since the publish at the end of the last turn.
    sent_in_turn: [usize; Lane::COUNT],
    /// Who waits for room in the ring.
    waiting: Lines,
    /// The lanes that asked for a pause.
    choked: BTreeMap<Target, Choked>,
    /// Tickets given out, for all lists of this link: a sender that goes from one to another keeps its place.
    tickets: u64,
}

/// Who waits for the link: urgent messages pass the others.
#[derive(Debug, Default)]
struct Lines {
    normal: Rc<WaitList>,
    urgent: Rc<WaitList>,
}

impl Lines {
    fn of(&self, lane: Lane) -> &Rc<WaitList> {
        match lane {
            Lane::Normal => &self.normal,
            Lane::Urgent => &self.urgent,
        }
    }

    /// Those of whom the front goes next.
    fn first(&self) -> &Rc<WaitList> {
        if self.urgent.is_empty() {
            &self.normal
        } else {
            &self.urgent
        }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.normal.is_empty() && self.urgent.is_empty()
    }

    fn len(&self) -> usize {
        self.normal.len() + self.urgent.len()
    }

    fn may_pass(&self, lane: Lane, ticket: Option<Ticket>) -> bool {
        let is_first = lane == Lane::Urgent || self.urgent.is_empty();
        is_first && self.of(lane).may_pass(ticket)
    }
}

struct Choked {
    /// The resident still wants the pause; false when it ended and its waiters pass one by one.
    paused: bool,
    waiting: Rc<WaitList>,
}

/// The places a waiting send holds, all on one shard.
#[derive(Clone, Copy, Debug, Default)]
pub struct Admission {
    held: Option<Held>,
}

/// One ticket, for both lists: a sender that goes from one to the other keeps its place in time.
#[derive(Clone, Copy, Debug)]
struct Held {
    ticket: Ticket,
    /// What the message is for.
    target: Target,
    /// The sending shard.
    shard: ShardNumber,
    peer: ShardId,
    /// Among those who wait for room in the link.
    in_link: bool,
    /// Among those who wait for the resident.
    in_resident: bool,
}

impl Admission {
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.held.is_some()
    }

    /// Whether the send waits for the resident it is meant for, and not for room in the link.
    #[must_use]
    pub fn waits_for_resident(&self) -> bool {
        self.held
            .is_some_and(|held| held.in_resident && !held.in_link)
    }

    /// The shard the places are on.
    pub(crate) fn shard(&self) -> Option<ShardNumber> {
        self.held.map(|held| held.shard)
    }

    fn link_ticket(&self) -> Option<Ticket> {
        let held = self.held.filter(|held| held.in_link);
        held.map(|held| held.ticket)
    }

    fn resident_ticket(&self) -> Option<Ticket> {
        let held = self.held.filter(|held| held.in_resident);
        held.map(|held| held.ticket)
    }
}

impl Link {
    pub(crate) fn new(peer: ShardId) -> Self {
        Self {
            peer,
            producer: None,
            spill: VecDeque::new(),
            touched: false,
            sent_in_turn: [0; Lane::COUNT],
            unannounced: false,
            announced_early: false,
            waiting: Lines::default(),
            choked: BTreeMap::new(),
            tickets: 0,
        }
    }

    /// Where the writing end stands, and whether anything sent has not been taken, or waits to be sent.
    pub(crate) fn traffic(&self) -> (usize, bool) {
        let (position, is_unread) = self
            .producer
            .as_ref()
            .map_or((0, false), Producer::progress);
        let waits = !self.spill.is_empty()
            || !self.waiting.is_empty()
            || self
                .choked
                .values()
                .any(|choked| !choked.waiting.is_empty());
        (position, is_unread || waits)
    }

    /// What is held up on the way to the peer; `None` if nothing was ever sent.
    pub(crate) fn sample(&self) -> Option<LinkSample> {
        self.producer.as_ref()?;
        Some(LinkSample {
            to: self.peer,
            spilled: self.spill.len(),
            waiting: self.waiting.len(),
            choked: self.choked.values().filter(|choked| choked.paused).count(),
        })
    }

    /// Writes a record into the ring if nothing older waits for it.
    #[inline]
    fn push<T: Record>(&mut self, shard: &Shard, build: impl FnOnce() -> T) -> bool {
        let peer = self.peer;
        let producer = self
            .producer
            .get_or_insert_with(|| shard.make_producer(peer));
        if !self.spill.is_empty() {
            return false;
        }
        let pushed = push(producer, build);
        let bulky = pushed && producer.unpublished_bytes() >= PUBLISH_BYTES;
        if !self.touched {
            self.touched = true;
            shard.touch(peer);
        }
        if bulky {
            self.publish_early(shard);
        }
        pushed
    }

    /// Lets the peer work on what a long turn has written so far. One that sleeps is woken by the first such publish, so
    /// that it wakes up while the turn goes on; if it falls asleep again, at the end of the turn.
    #[cold]
    fn publish_early(&mut self, shard: &Shard) {
        let shared = shard.team().shared(self.peer);
        self.unannounced |= self.producer.as_mut().is_some_and(Producer::publish);
        let may_ring = !self.announced_early || !shared.handshake.is_asleep();
        if self.unannounced && may_ring {
            shared.notify();
            self.unannounced = false;
            self.announced_early = true;
        }
    }

    /// As [`Link::push`], within the turn's share.
    #[inline]
    fn push_message<T: Record>(
        &mut self,
        shard: &Shard,
        lane: Lane,
        build: impl FnOnce() -> T,
    ) -> bool {
        let sent = self.sent_in_turn[lane.index()];
        let pushed = sent < MESSAGES_PER_TURN && self.push(shard, build);
        self.sent_in_turn[lane.index()] = sent + usize::from(pushed);
        pushed
    }

    /// Whether a message that was not wanted may go back to the peer.
    pub(crate) fn may_send_back(&self) -> bool {
        self.spill.len() < RETURNS_BEHIND_MAX
    }

    fn next_ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket::new(self.tickets)
    }

    fn may_pass(&self, target: Target, admission: &Admission) -> bool {
        if let Some(choked) = self.choked.get(&target)
            && (choked.paused || !choked.waiting.may_pass(admission.resident_ticket()))
        {
            return false;
        }
        self.waiting.may_pass(target.1, admission.link_ticket())
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("peer", &self.peer)
            .field("spilled", &self.spill.len())
            .field("choked", &self.choked.len())
            .finish_non_exhaustive()
    }
}

impl Shard {
    /// Sends a message to a resident of a peer if it can be accepted now.
    #[inline]
    pub(crate) fn try_send_record<T: Record>(
        &self,
        peer: ShardId,
        target: Target,
        build: impl FnOnce() -> T,
    ) -> bool {
        let mut link = self.link(peer).borrow_mut();
        // The two looks that decide almost every send: nobody is choked, nobody waits.
        let open = link.choked.is_empty() && link.waiting.is_empty();
        let may_pass = open || link.may_pass(target, &Admission::default());
        may_pass && link.push_message(self, target.1, build)
    }

    /// Whether a lane of a resident of the peer wants a pause.
    pub(crate) fn is_choked(&self, peer: ShardId, target: Target) -> bool {
        let link = self.link(peer).borrow();
        link.choked.get(&target).is_some_and(|choked| choked.paused)
    }

    /// Sends when it is this sender's turn and there is room; until then holds its places.
    pub(crate) fn poll_send_record<T: Record>(
        &self,
        peer: ShardId,
        target: Target,
        admission: &mut Admission,
        cx: &Context<'_>,
        build: impl FnOnce() -> T,
    ) -> Poll<()> {
        if admission
            .shard()
            .is_some_and(|shard| shard != self.number())
        {
            // The send moved here from another shard: what it held there is given up.
            super::resident::leave(admission);
        }
        let mut link = self.link(peer).borrow_mut();
        if link.may_pass(target, admission) && link.push_message(self, target.1, build) {
            drop(link);
            self.leave_places(admission);
            return Poll::Ready(());
        }
        let mut held = admission.held.unwrap_or_else(|| Held {
            ticket: link.next_ticket(),
            target,
            shard: self.number(),
            peer,
            in_link: false,
            in_resident: false,
        });
        if let Some(choked) = link.choked.get(&target) {
            choked.waiting.hold(held.ticket, cx.waker());
            held.in_resident = true;
            if choked.paused || !choked.waiting.may_pass(Some(held.ticket)) {
                admission.held = Some(held);
                drop(link);
                // Others on this link are not to wait behind a sender that waits for something else.
                self.leave_link(admission);
                return Poll::Pending;
            }
        }
        link.waiting.of(target.1).hold(held.ticket, cx.waker());
        held.in_link = true;
        admission.held = Some(held);
        // The ring is flushed at the end of the turn, and whoever waits at the front is woken when it has room.
        if !link.touched {
            link.touched = true;
            self.touch(peer);
        }
        Poll::Pending
    }

    /// Gives up the places of a send that went through or was dropped, and lets the next ones try.
    pub(crate) fn leave_places(&self, admission: &mut Admission) {
        if let Some(held) = admission.held.filter(|held| held.in_resident) {
            let mut link = self.link(held.peer).borrow_mut();
            let mut next = None;
            if let Some(choked) = link.choked.get(&held.target) {
                choked.waiting.leave(held.ticket);
                if choked.waiting.is_empty() && !choked.paused {
                    link.choked.remove(&held.target);
                } else if !choked.paused {
                    next = Some(choked.waiting.clone());
                }
            }
            drop(link);
            if let Some(waiting) = next {
                waiting.wake_front();
            }
        }
        self.leave_link(admission);
        admission.held = None;
    }

    fn leave_link(&self, admission: &mut Admission) {
        if let Some(held) = admission.held.as_mut().filter(|held| held.in_link) {
            held.in_link = false;
            let link = self.link(held.peer).borrow();
            let left = link.waiting.of(held.target.1).clone();
            drop(link);
            left.leave(held.ticket);
            let first = self.link(held.peer).borrow().waiting.first().clone();
            first.wake_front();
        }
    }

    /// Sends a record that must not wait: an answer, a choke, a stop.
    pub(crate) fn post_record<T: Record>(&self, peer: ShardId, record: T) {
        let mut link = self.link(peer).borrow_mut();
        let mut record = Some(record);
        let pushed = link.push(self, || {
            record.take().expect("built once, when there is room")
        });
        if let Some(record) = record {
            debug_assert!(!pushed, "a record that was pushed was taken");
            link.spill.push_back(Box::new(record));
            if !link.touched {
                link.touched = true;
                self.touch(peer);
            }
        }
    }

    /// Publishes what this turn wrote for a peer and refills the ring from the spill queue. True if the peer should be
    /// looked at again next turn, because something still waits for room in the ring.
    pub(crate) fn publish_link(&self, peer: ShardId) -> bool {
        let mut link = self.link(peer).borrow_mut();
        link.touched = false;
        link.sent_in_turn = [0; Lane::COUNT];
        link.announced_early = false;
        let Link {
            producer,
            spill,
            waiting,
            unannounced,
            ..
        } = &mut *link;
        let Some(producer) = producer else {
            return false;
        };
        let mut news = std::mem::take(unannounced);
        let (wanting, has_room) = loop {
            flush_spill(spill, producer);
            news |= producer.publish();
            let wanting = !spill.is_empty() || !waiting.is_empty();
            // Either there is room, or the reader has been asked to say when there is.
            let has_room = wanting && producer.want_room();
            if !has_room || spill.is_empty() {
                break (wanting, has_room);
            }
            // The reader made room just now: what was spilled takes it.
        };
        let waiting = has_room.then(|| waiting.first().clone());
        link.touched = wanting;
        drop(link);
        if news {
            self.note_told(peer);
            self.team().shared(peer).notify();
        }
        if let Some(waiting) = waiting {
            self.contain(|| waiting.wake_front());
        }
        wanting
    }
}

/// Moves spilled records into the ring, oldest first, until one has no room.
fn flush_spill(spill: &mut VecDeque<Box<dyn Spilled>>, producer: &mut Producer) {
    while let Some(record) = spill.pop_front() {
        if let Err(record) = record.retry(producer) {
            spill.push_front(record);
            return;
        }
    }
}

/// A lane of a resident wants no more messages from the sending shard for now, or wants them again.
pub(crate) struct Choke {
    pub(crate) target: Target,
    pub(crate) pause: Pause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    Begin,
    End,
    /// The resident is gone: everyone who waits should come and see.
    Gone,
}

impl Record for Choke {
    fn arrive(self, shard: &Shard, from: ShardId) {
        let mut link = shard.link(from).borrow_mut();
        let waiting = match self.pause {
            Pause::Begin => {
                let choked = link.choked.entry(self.target);
                choked
                    .or_insert_with(|| Choked {
                        paused: true,
                        waiting: Rc::default(),
                    })
                    .paused = true;
                None
            }
            Pause::End => {
                let waiting = link.choked.get_mut(&self.target).map(|choked| {
                    choked.paused = false;
                    choked.waiting.clone()
                });
                if waiting.as_ref().is_some_and(|waiting| waiting.is_empty()) {
                    link.choked.remove(&self.target);
                }
                waiting
            }
            Pause::Gone => link
                .choked
                .remove(&self.target)
                .map(|choked| choked.waiting),
        };
        drop(link);
        if let Some(waiting) = waiting {
            if self.pause == Pause::Gone {
                waiting.wake_all();
            } else {
                waiting.wake_front();
            }
        }
    }
}
