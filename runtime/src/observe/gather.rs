//! Asking every shard at a time, and not waiting for those that do not answer.
//!
//! The question travels as a job of the injector, which a shard takes at the beginning of a turn, between tasks. So an
//! answer shows a shard at rest; and a shard that does not answer is in the middle of something, or ended.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use crate::blocking;
use crate::clock::{Clock, nanos};
use crate::mesh::team::Team;
use crate::shard::{Shard, ShardId, context};

/// How long shards get to answer.
const LIMIT: Duration = Duration::from_millis(250);

/// Asks all shards from a thread that may block; in their order, `None` for those that did not answer in time.
pub(super) fn ask_all<T: Send + 'static>(
    team: &Arc<Team>,
    question: fn(&Shard) -> T,
) -> Vec<Option<T>> {
    let (answer, answers) = mpsc::channel();
    for shard in team.shards() {
        let (answer, ours) = (answer.clone(), team.clone());
        let job = Box::new(move || {
            let found = context::with(|shard| {
                // After a shutdown the number may belong to a shard of another runtime.
                Arc::ptr_eq(shard.team(), &ours).then(|| question(shard))
            });
            if let Some(found) = found.flatten() {
                // Whoever asked may have stopped waiting.
                drop(answer.send((shard, found)));
            }
        });
        // A shard that ended gives the job back.
        drop(team.shared(shard).submit(job));
    }
    drop(answer);
    collect(team.len(), &answers)
}

/// Asks all shards without blocking the caller: a thread of the blocking pool waits for the answers.
pub(super) async fn ask_all_async<T: Send + 'static>(
    team: Arc<Team>,
    question: fn(&Shard) -> T,
) -> Vec<Option<T>> {
    let count = team.len();
    let asking = team.clone();
    let asked = blocking::submit(team.blocking(), move || ask_all(&asking, question)).await;
    // A runtime that has ended has no pool either.
    asked.unwrap_or_else(|_| std::iter::repeat_with(|| None).take(count).collect())
}

fn collect<T>(count: usize, answers: &mpsc::Receiver<(ShardId, T)>) -> Vec<Option<T>> {
    let mut found: Vec<Option<T>> = std::iter::repeat_with(|| None).take(count).collect();
    let clock = Clock::Monotonic;
    let deadline_ns = clock.now_ns() + nanos(LIMIT);
    loop {
        let left = Duration::from_nanos(deadline_ns.saturating_sub(clock.now_ns()));
        // The channel closes when every shard has answered or dropped the question.
        let Ok((shard, answer)) = answers.recv_timeout(left) else {
            return found;
        };
        found[shard.index()] = Some(answer);
    }
}
