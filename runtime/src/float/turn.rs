//! The float lane's part of a turn: what a shard does with its own lane, and with those of its siblings.

use super::board::{Stolen, Work};
use crate::shard::{Shard, ShardId};
use crate::task::spawn;

/// Pieces of work that one turn takes from the lane when no task is ready.
const WORK_PER_TURN: usize = 16;
/// Time that a turn gives to the lane. Looked at after each piece: none is interrupted.
const WORK_NS: u64 = 200_000;
/// Every so often the overflow comes before the lane, so that a lane that is never empty does not keep it waiting.
const TAKES_PER_OVERFLOW: u64 = 32;
/// How long called siblings get to arrive before others are called.
const CALL_PAUSE_NS: u64 = 50_000;
/// Siblings that one call looks at, from a random one on.
const SIBLINGS_PER_CALL: usize = 64;

/// Whether a shard that has nothing to do may sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Help {
    /// There is work now, or was a moment ago: it goes round its loop once more.
    Needed,
    /// It may sleep after [`Shard::is_help_needed`] has said no.
    NotNeeded,
    /// It may sleep: enough siblings search.
    TurnedAway,
}

impl Shard {
    /// Takes work that any shard may do.
    ///
    /// It is never called or dropped in here, unless the shard is closing: then it is dropped.
    pub(crate) fn submit_float(&self, work: Work) {
        let lane = self.float();
        lane.count(|counts| counts.submitted += 1);
        if self.is_closing() {
            return self.contain(|| drop(work));
        }
        if !self.team().board().moves() {
            return self.bind_float(work);
        }
        if lane.room() > 0 {
            lane.queue.push(work);
        } else if let Err(work) = self.team().board().overflow(work) {
            lane.count(|counts| counts.bound += 1);
            return self.bind_float(work);
        } else {
            lane.count(|counts| counts.overflowed += 1);
        }
        self.raise_float();
    }

    /// Work that does not move any more becomes an ordinary task of this shard.
    fn bind_float(&self, work: Work) {
        self.float().count(|counts| counts.run += 1);
        spawn(async move { work() }).detach();
    }

    fn raise_float(&self) {
        if !self.float().raised.replace(true) {
            self.team().board().notices.raise(self.id().index());
        }
    }

    /// Takes up some of the shard's own lane, after siblings were called to share it if that is worth their while.
    ///
    /// While tasks are ready it is one piece in a turn, so that neither keeps the other waiting.
    pub(crate) fn run_float(&self) {
        let lane = self.float();
        if !lane.has_work() {
            return;
        }
        let busy = self.has_ready_tasks();
        let backlog = lane.queue.len() + self.team().board().overflow_len();
        let own = if busy { 0 } else { 1 };
        self.call_siblings(backlog.saturating_sub(own));
        let start_ns = self.now_ns();
        let mut then_ns = start_ns;
        for _ in 0..if busy { 1 } else { WORK_PER_TURN } {
            let Some(work) = self.next_float() else {
                lane.raised.set(false);
                self.team().board().notices.lower(self.id().index());
                return;
            };
            lane.count(|counts| counts.run += 1);
            self.contain(work);
            let now_ns = self.now_ns();
            lane.note_cost(now_ns - then_ns);
            then_ns = now_ns;
            if now_ns - start_ns > WORK_NS {
                return;
            }
        }
    }

    /// The shard is about to block: whatever waits in its lane is for others.
    pub(crate) fn offer_float(&self) {
        let lane = self.float();
        if lane.has_work() {
            self.call_siblings(lane.queue.len() + self.team().board().overflow_len());
        }
    }

    fn next_float(&self) -> Option<Work> {
        let lane = self.float();
        let taken = lane.taken.replace(lane.taken.get() + 1);
        if !taken.is_multiple_of(TAKES_PER_OVERFLOW)
            && let Some(work) = lane.queue.pop()
        {
            return Some(work);
        }
        // Whatever it says: what it brought is in the lane, behind what was there.
        let _refilled: Stolen = self.team().board().refill(&lane.queue, lane.room());
        lane.queue.pop()
    }

    /// Wakes siblings that sleep, if a backlog is worth it. They come for it by themselves.
    fn call_siblings(&self, backlog: usize) {
        let lane = self.float();
        let calls = lane.worthy_calls(backlog);
        if calls == 0 || self.now_ns() < lane.call_again_ns.get() {
            return;
        }
        let (team, notices) = (self.team(), &self.team().board().notices);
        notices.before_calling();
        if notices.has_searchers() {
            return;
        }
        let start = self.random_sibling();
        let siblings = (0..team.len()).map(|step| (start + step) % team.len());
        let mut called = 0;
        for sibling in siblings.take(SIBLINGS_PER_CALL) {
            if team.shared(ShardId::at(sibling)).wake_if_asleep() {
                called += 1;
                if called == calls {
                    break;
                }
            }
        }
        if called > 0 {
            lane.call_again_ns.set(self.now_ns() + CALL_PAUSE_NS);
            lane.count(|counts| counts.calls += called as u64);
        }
    }

    /// A shard without work of its own looks at its siblings'.
    pub(crate) fn help_siblings(&self) -> Help {
        let board = self.team().board();
        if !board.notices.any() {
            return Help::NotNeeded;
        }
        let Some(search) = board.notices.begin_search() else {
            return Help::TurnedAway;
        };
        let stolen = board.steal(
            self.id().index(),
            &self.float().queue,
            self.random_sibling(),
        );
        drop(search);
        match stolen {
            Stolen::Some { rest } => {
                self.float().count(|counts| counts.steals += 1);
                self.raise_float();
                // Those who were turned away meanwhile sleep, and the victim may be in the middle of something long.
                self.call_siblings(rest);
                Help::Needed
            }
            Stolen::Contended => Help::Needed,
            Stolen::None => Help::NotNeeded,
        }
    }

    /// The last look of a shard that has announced its sleep.
    pub(crate) fn is_help_needed(&self) -> bool {
        let board = self.team().board();
        if !board.moves() {
            return false;
        }
        board.notices.before_sleeping();
        board.has_work_for(self.id().index())
    }

    /// Drops what nobody has taken up. Every shard that ends does it for all lanes: no submission is accepted by then.
    pub(crate) fn drop_float(&self) {
        while let Some(work) = self.team().board().take_any() {
            self.contain(|| drop(work));
        }
    }

    fn random_sibling(&self) -> usize {
        let random = usize::try_from(self.rng().next() >> 32).expect("32 bits fit");
        random % self.team().len()
    }
}
