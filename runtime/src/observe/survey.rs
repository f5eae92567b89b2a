//! A question of somebody else's, put to every shard.

use std::fmt;

use super::gather;
use super::metrics::assert_no_shard;
use super::pulse::RunningTask;
use crate::runtime::{Handle, Runtime};
use crate::shard::ShardId;

/// What one shard has to say to a question.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Found<T> {
    /// Which shard.
    pub shard: ShardId,
    /// Its answer; `None` if it did not answer within 250 ms: it is stuck, or has ended.
    pub answer: Option<T>,
    /// The task a shard that did not answer is stuck in. Known if the [watchdog](crate::Builder::watchdog) is on, and the
    /// shard is in a task at all.
    pub stuck_in: Option<RunningTask>,
}

/// Writes what a shard has answered, or that it did not.
///
/// # Errors
/// As the writer.
#[doc(hidden)]
pub fn write_answer(
    f: &mut fmt::Formatter<'_>,
    shard: ShardId,
    answer: Option<&impl fmt::Display>,
    stuck_in: Option<&RunningTask>,
) -> fmt::Result {
    match (answer, stuck_in) {
        (Some(answer), _) => write!(f, "{shard}: {answer}"),
        (None, Some(task)) => writeln!(f, "{shard}: does not answer; it is in {task}"),
        (None, None) => writeln!(f, "{shard}: does not answer"),
    }
}

impl Runtime {
    /// Puts a question to every shard, and waits for the answers for at most 250 ms.
    ///
    /// Each shard answers between two tasks, with the question's own thread-local view of it: [`extension`](crate::extension)
    /// finds what was left there. The question is to be short.
    ///
    /// # Panics
    /// If the calling thread is a shard, which would block: use [`Handle::survey`] there.
    ///
    /// # Examples
    /// ```
    /// let runtime = greenroom_runtime::Builder::new().shards(2).start()?;
    /// let found = runtime.survey(|| greenroom_runtime::current_shard());
    /// assert!(found.iter().all(|found| found.answer == Some(Some(found.shard))));
    /// # Ok::<(), greenroom_runtime::StartError>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn survey<T: Send + 'static>(&self, question: fn() -> T) -> Vec<Found<T>> {
        assert_no_shard("survey");
        let answers = gather::ask_all(self.handle(), move |_| question());
        found(self.handle(), answers)
    }
}

impl Handle {
    /// Puts a question to every shard, as [`Runtime::survey`]. From any thread, and without blocking it.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub fn survey<T: Send + 'static>(
        &self,
        question: fn() -> T,
    ) -> impl Future<Output = Vec<Found<T>>> + Send + use<T> {
        let handle = self.clone();
        async move {
            let answers = gather::ask_all_async(&handle, move |_| question()).await;
            found(&handle, answers)
        }
    }
}

/// Says of shards that gave no answer what they are stuck in.
pub(super) fn found<T>(handle: &Handle, answers: Vec<Option<T>>) -> Vec<Found<T>> {
    let answers = handle.shards().zip(answers);
    let found = answers.map(|(shard, answer)| Found {
        shard,
        stuck_in: match answer {
            Some(_) => None,
            None => handle.team().pulse(shard).and_then(|pulse| pulse.running()),
        },
        answer,
    });
    found.collect()
}
