//! What the actors of a system are at.

use std::fmt;

use greenroom_runtime::ShardId;
use greenroom_runtime::observe::{Found, RunningTask};

use crate::life::LifeState;
use crate::registry::{Counts, Registry};
use crate::system::{Handle, System};

/// What the actors of a system are at, as plain data. `Display` writes it for people.
///
/// # Examples
/// ```
/// use greenroom::prelude::*;
///
/// struct Quiet;
///
/// #[actor]
/// impl Quiet {
///     pub fn wait(&self) {}
/// }
///
/// let system = System::start(2)?;
/// system.block_on(system.spawn_on(1, || Quiet))?;
/// let snapshot = system.snapshot();
/// let shard = snapshot.shards[1].state.as_ref().expect("it answers");
/// assert_eq!(shard.actors[0].actor, "Quiet");
/// # Ok::<(), greenroom::Error>(())
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Snapshot {
    /// One entry for each shard, in their order.
    pub shards: Vec<ShardSnapshot>,
}

/// One shard's part of a [`Snapshot`].
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ShardSnapshot {
    /// Which shard.
    pub shard: ShardId,
    /// What its actors are at; `None` if it did not answer within 250 ms: it is stuck, or has ended.
    pub state: Option<ShardActors>,
    /// The task a shard that did not answer is stuck in. Known if the
    /// [watchdog](greenroom_runtime::Builder::watchdog) is on, and the shard is in a task at all.
    pub stuck_in: Option<RunningTask>,
}

/// The actors of a shard that answered.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ShardActors {
    /// What the shard has counted so far.
    pub counts: Counts,
    /// Its actors, in no certain order.
    pub actors: Vec<ActorSnapshot>,
}

/// One actor.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ActorSnapshot {
    /// The name of its type.
    pub actor: &'static str,
    /// Tells it from all others in the process; as in the texts of errors.
    pub id: String,
    /// What it is doing.
    pub activity: ActorActivity,
    /// How far its life has come.
    pub state: LifeState,
    /// What waits in its mailbox, lane by lane.
    pub lanes: Vec<LaneSnapshot>,
    /// The handlers that it is in and that wait for something: one, or all those of `#[message(concurrent)]` that run.
    pub handlers: Vec<HandlerSnapshot>,
    /// How often it was started again.
    pub restarts: u32,
    /// Timers, futures, streams and tasks that it has begun.
    pub errands: usize,
}

/// What an actor is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub enum ActorActivity {
    /// It waits for a message.
    Idle,
    /// It runs in one of the next turns, or its handler or hook waits for something.
    Busy,
}

/// One lane of a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LaneSnapshot {
    /// Its name.
    pub lane: &'static str,
    /// How many messages stand in it.
    pub queued: usize,
}

/// A handler that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct HandlerSnapshot {
    /// The method.
    pub method: &'static str,
    /// How long it has been waiting since it first had to, in nanoseconds. `None` if it runs for the first time.
    pub age_ns: Option<u64>,
}

impl Snapshot {
    fn new(found: Vec<Found<ShardActors>>) -> Self {
        let shards = found.into_iter().map(|found| ShardSnapshot {
            shard: found.shard,
            state: found.answer,
            stuck_in: found.stuck_in,
        });
        Self {
            shards: shards.collect(),
        }
    }

    /// The snapshot as JSON.
    ///
    /// # Examples
    /// ```
    /// let system = greenroom::System::start(1)?;
    /// assert!(system.snapshot().to_json().starts_with('{'));
    /// # Ok::<(), greenroom::StartError>(())
    /// ```
    #[cfg(feature = "json")]
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain data with text keys")
    }
}

impl System {
    /// Asks every shard what its actors are at, and waits for at most 250 ms.
    ///
    /// # Panics
    /// If the calling thread is a shard, which would block: use [`Handle::snapshot`] there.
    #[must_use]
    #[track_caller]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.survey(actors))
    }
}

impl Handle {
    /// Asks every shard what its actors are at, and waits for at most 250 ms. From any thread, and without blocking it.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub fn snapshot(&self) -> impl Future<Output = Snapshot> + Send + use<> {
        let found = self.runtime().survey(actors);
        async move { Snapshot::new(found.await) }
    }
}

/// What the actors of the calling shard are at.
fn actors() -> ShardActors {
    let registry = Registry::current().expect("a survey asks shards");
    ShardActors {
        counts: registry.counts(),
        actors: registry
            .actors()
            .iter()
            .map(|actor| actor.inspect())
            .collect(),
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ShardSnapshot {
            shard,
            state,
            stuck_in,
        } in &self.shards
        {
            match (state, stuck_in) {
                (Some(state), _) => write!(f, "{shard}: {state}")?,
                (None, Some(task)) => writeln!(f, "{shard}: does not answer; it is in {task}")?,
                (None, None) => writeln!(f, "{shard}: does not answer")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for ShardActors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} actors, {} dead letters, {} panics",
            self.actors.len(),
            self.counts.dead_letters,
            self.counts.panics
        )?;
        self.actors
            .iter()
            .try_for_each(|actor| writeln!(f, "  {actor}"))
    }
}

impl fmt::Display for ActorSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.actor, self.id)?;
        match (&*self.handlers, self.activity) {
            ([], ActorActivity::Idle) => f.write_str(" idle")?,
            ([], ActorActivity::Busy) => f.write_str(" busy")?,
            ([first, others @ ..], _) => {
                write!(f, " in {first}")?;
                for handler in others {
                    write!(f, ", in {handler}")?;
                }
            }
        }
        if self.state != LifeState::Running {
            write!(f, ", {:?}", self.state)?;
        }
        for LaneSnapshot { lane, queued } in self.lanes.iter().filter(|lane| lane.queued > 0) {
            write!(f, ", {queued} {lane}")?;
        }
        if self.restarts > 0 {
            write!(f, ", {} restarts", self.restarts)?;
        }
        if self.errands > 0 {
            write!(f, ", {} errands", self.errands)?;
        }
        Ok(())
    }
}

impl fmt::Display for HandlerSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.method)?;
        match self.age_ns {
            Some(age) => write!(f, " for {} ms", age / 1_000_000),
            None => Ok(()),
        }
    }
}
