//! Asking every shard at a time, and not waiting for those that do not answer.
//!
//! The question travels as a job of the injector, which a shard takes at the beginning of a turn, between tasks. So an
//! answer shows a shard at rest; and a shard that does not answer is in the middle of something, or ended.

use std::sync::mpsc;
use std::time::Duration;

use crate::clock::{Clock, nanos};
use crate::runtime::Handle;
use crate::shard::{Shard, ShardId, context};

/// How long shards get to answer.
const LIMIT: Duration = Duration::from_millis(250);

/// Asks all shards from a thread that may block; in their order, `None` for those that did not answer in time.
pub(super) fn ask_all<T: Send + 'static>(
    handle: &Handle,
    question: impl Fn(&Shard) -> T + Copy + Send + 'static,
) -> Vec<Option<T>> {
    let (answer, answers) = mpsc::channel();
    for shard in handle.shards() {
        let answer = answer.clone();
        let job = move || {
            if let Some(found) = context::with(question) {
                // Whoever asked may have stopped waiting.
                drop(answer.send((shard, found)));
            }
        };
        // A shard that ended drops the question.
        handle.run(shard, Box::new(job));
    }
    drop(answer);
    collect(handle.shard_count(), &answers)
}

/// Asks all shards without blocking the caller: a thread of the blocking pool waits for the answers.
pub(super) async fn ask_all_async<T: Send + 'static>(
    handle: &Handle,
    question: impl Fn(&Shard) -> T + Copy + Send + 'static,
) -> Vec<Option<T>> {
    let count = handle.shard_count();
    let asking = handle.clone();
    let asked = handle
        .run_blocking(move || ask_all(&asking, question))
        .await;
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
