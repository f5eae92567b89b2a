//! What the actors of a system are at.

use std::fmt;

use greenroom_runtime::ShardId;
use greenroom_runtime::observe::{Found, RunningTask, write_answer};

use crate::cycle::{Edge, Wait};
use crate::error::CallSite;
use crate::life::{ActorId, LifeState};
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
    /// Tells it from all others in the process.
    pub id: ActorId,
    /// The names by which it is [registered](crate::Names), here and in the system.
    pub names: Vec<String>,
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
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct HandlerSnapshot {
    /// The method.
    pub method: &'static str,
    /// How long it has been waiting since it first had to, in nanoseconds. `None` if it runs for the first time.
    pub age_ns: Option<u64>,
    /// The calls that it waits for. What else it waits for, a timer or a socket, is not known.
    pub waits_for: Vec<WaitSnapshot>,
}

/// A call that a handler waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct WaitSnapshot {
    /// The actor that was called, by the name of its type.
    pub actor: &'static str,
    /// Which one, as [`ActorSnapshot::id`]; `None` if it was called by its key.
    pub id: Option<ActorId>,
    /// The method that was called.
    pub method: &'static str,
    /// The shard of that actor.
    pub shard: Option<ShardId>,
    /// What is missing for the handler to go on.
    pub reason: WaitReason,
}

/// What a handler lacks of a call that it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub enum WaitReason {
    /// The answer.
    Answer,
    /// Room in the mailbox of the actor that is called.
    Room,
}

impl WaitSnapshot {
    pub(crate) fn new(wait: &Wait) -> Self {
        let CallSite {
            actor,
            method,
            shard,
            number,
        } = wait.site;
        Self {
            actor,
            // Otherwise it is the number of whoever finds the actor.
            id: wait.forward.is_some().then(|| ActorId::new(number)),
            method,
            shard,
            reason: match wait.edge {
                Edge::Answer(_) => WaitReason::Answer,
                Edge::Room(..) => WaitReason::Room,
            },
        }
    }
}

impl Snapshot {
    /// All actors of the shards that answered.
    pub fn actors(&self) -> impl Iterator<Item = &ActorSnapshot> {
        let states = self.shards.iter().filter_map(|shard| shard.state.as_ref());
        states.flat_map(|state| &state.actors)
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
    /// Asks every shard what its actors are at. One that does not answer within 250 ms is left out.
    ///
    /// Handlers that wait for calls are polled once more, to say for which. Shards that have some are asked twice, or a
    /// third time if they are busy.
    ///
    /// # Panics
    /// If the calling thread is a shard, which would block: use [`Handle::snapshot`] there.
    #[must_use]
    #[track_caller]
    pub fn snapshot(&self) -> Snapshot {
        let mut looks = Looks::new(self.survey(ask_and_look));
        while looks.are_to_go_on() {
            looks.add(self.survey(look));
        }
        looks.into_snapshot()
    }
}

impl Handle {
    /// Asks every shard what its actors are at, as [`System::snapshot`]. From any thread, and without blocking it.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub fn snapshot(&self) -> impl Future<Output = Snapshot> + Send + use<> {
        let runtime = self.runtime().clone();
        async move {
            let mut looks = Looks::new(runtime.survey(ask_and_look).await);
            while looks.are_to_go_on() {
                looks.add(runtime.survey(look).await);
            }
            looks.into_snapshot()
        }
    }
}

/// What a shard sees of its actors.
struct Seen {
    actors: ShardActors,
    /// Handlers that have yet to say what they wait for.
    owing: usize,
}

/// Has those who wait for calls say for which, and looks.
fn ask_and_look() -> Seen {
    let registry = Registry::current().expect("a survey asks shards");
    for actor in registry.actors() {
        actor.ask_waits();
    }
    look()
}

fn look() -> Seen {
    let registry = Registry::current().expect("a survey asks shards");
    let actors = registry.actors();
    Seen {
        owing: actors.iter().filter(|actor| actor.owes_waits()).count(),
        actors: ShardActors {
            counts: registry.counts(),
            actors: actors.iter().map(|actor| actor.inspect()).collect(),
        },
    }
}

/// What was seen until now.
struct Looks {
    seen: Vec<Found<Seen>>,
    left: u32,
}

impl Looks {
    /// How often shards are asked at most: a busy one has not polled everybody yet when it is asked again.
    const MOST: u32 = 3;

    fn new(first: Vec<Found<Seen>>) -> Self {
        Self {
            seen: first,
            left: Self::MOST - 1,
        }
    }

    /// Whether another look would show more.
    fn are_to_go_on(&self) -> bool {
        let mut answers = self.seen.iter().filter_map(|found| found.answer.as_ref());
        self.left > 0 && answers.any(|seen| seen.owing > 0)
    }

    fn add(&mut self, next: Vec<Found<Seen>>) {
        self.left -= 1;
        for (before, now) in self.seen.iter_mut().zip(next) {
            if now.answer.is_some() {
                *before = now;
            } else {
                // It was waited for, and perhaps not for the first time.
                self.left = 0;
            }
        }
    }

    fn into_snapshot(self) -> Snapshot {
        let shards = self.seen.into_iter().map(|found| ShardSnapshot {
            shard: found.shard,
            state: found.answer.map(|seen| seen.actors),
            stuck_in: found.stuck_in,
        });
        Snapshot {
            shards: shards.collect(),
        }
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shards.iter().try_for_each(|found| {
            let (state, stuck_in) = (found.state.as_ref(), found.stuck_in.as_ref());
            write_answer(f, found.shard, state, stuck_in)
        })
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
        self.names
            .iter()
            .try_for_each(|name| write!(f, " {name:?}"))?;
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
        if let Some(age) = self.age_ns {
            write!(f, " for {} ms", age / 1_000_000)?;
        }
        for (place, wait) in self.waits_for.iter().enumerate() {
            f.write_str(if place == 0 { " (waits for " } else { ", " })?;
            write!(f, "{wait}")?;
        }
        f.write_str(if self.waits_for.is_empty() { "" } else { ")" })
    }
}

impl fmt::Display for WaitSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.reason == WaitReason::Room {
            f.write_str("room for ")?;
        }
        write!(f, "{}::{}", self.actor, self.method)?;
        match &self.id {
            Some(id) => write!(f, " of {id}"),
            None => Ok(()),
        }
    }
}
