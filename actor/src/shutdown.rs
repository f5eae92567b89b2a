//! The end of a system, and waiting until it has nothing to do.

use std::fmt;
use std::ops::Add;
use std::sync::mpsc;
use std::time::Duration;

use futures_channel::oneshot;
use greenroom_runtime::{Runtime, ShardId, mesh, time};

use crate::life::Down;
use crate::registry::{AnyActor, Counts, Registry};
use crate::system::Handle;

/// Shuts a system down.
pub(crate) fn run(runtime: Runtime, handle: &Handle, grace: Duration) -> ShutdownReport {
    let (heir, last_words) = mpsc::channel();
    let (ready, are_ready) = mpsc::channel();
    let mut begin = Vec::new();
    // All shards drain at the same time: actors of one may need those of another to finish their work.
    let draining: Vec<_> = handle
        .shards()
        .map(|shard| {
            let (heir, ready) = (heir.clone(), ready.clone());
            let (go, begins) = oneshot::channel();
            begin.push(go);
            handle.runtime().spawn_on(shard, move || async move {
                let registry = Registry::current().expect("drained on the shard itself");
                registry.begin_shutdown();
                let alive = registry.len();
                // Whoever waits for this may have waited long enough.
                let _unheard: Result<(), mpsc::SendError<()>> = ready.send(());
                // Dropped to begin.
                let _begins: Result<(), oneshot::Canceled> = begins.await;
                registry.bequeath(heir);
                drain(&registry, shard, alive, grace).await
            })
        })
        .collect();
    drop(ready);
    // Actors of one shard stop those of another: all shards count theirs before. One that is held up does not hold the
    // others up for long.
    let patience = grace.min(Duration::from_secs(1));
    for _ in &begin {
        if are_ready.recv_timeout(patience).is_err() {
            break;
        }
    }
    // Tasks that are no actors hear of it now. When they end is up to what follows: they are dropped with the rest.
    handle.runtime().begin_shutdown(Duration::MAX);
    drop(begin);
    let mut report = ShutdownReport::default();
    for drained in draining {
        if let Ok(drained) = runtime.block_on(drained) {
            report.add(drained);
        }
    }
    drop(heir);
    report.runtime = runtime.shutdown();
    // The end of a shard gives up messages too: those that waited for room, or came too late.
    report.counts = last_words.iter().fold(Counts::default(), Counts::add);
    report
}

/// What one shard reports of its end.
struct Drained {
    stopped: usize,
    killed: Vec<Killed>,
    root_failures: Vec<Down>,
}

/// Stops the actors of the current shard, and kills those that are not done in time.
async fn drain(registry: &Registry, shard: ShardId, alive: usize, grace: Duration) -> Drained {
    let all_ended = async {
        loop {
            // The others are stopped by their parents, in their order.
            let actors = registry.actors();
            let roots = actors.iter().filter(|actor| actor.is_root());
            roots.for_each(|actor| actor.stop());
            drop(actors);
            if registry.len() == 0 {
                return;
            }
            // Actors that started meanwhile are asked in the next round.
            let _round_over: Result<(), time::Elapsed> =
                time::timeout(Duration::from_millis(50), registry.until_empty()).await;
        }
    };
    if time::timeout(grace, all_ended).await.is_err() {
        for actor in registry.actors() {
            // One that was killed with its parent is no more, but was as late as the others.
            registry.note_killed(Killed::new(&*actor, shard));
            actor.kill_overdue(grace);
        }
    }
    registry.graces().end();
    let killed = registry.take_killed();
    Drained {
        stopped: alive.saturating_sub(killed.len()),
        killed,
        root_failures: registry.take_root_failures(),
    }
}

/// Waits until a system has nothing to do.
///
/// Nothing is on its way if, in two rounds, no shard had a busy actor or a full link, and none did anything between them: then
/// what could have been on its way at the first round would have arrived before the second.
pub(crate) async fn until_quiet(handle: &Handle) {
    /// Those who wait for a long work do not hurry it by asking all the time.
    const PAUSE_MAX: Duration = Duration::from_millis(5);
    let mut before = None;
    let mut pause = Duration::ZERO;
    loop {
        let now = look(handle, pause).await;
        if now.is_some() && now == before {
            return;
        }
        pause = if now.is_some() {
            Duration::ZERO
        } else {
            (2 * pause).clamp(Duration::from_micros(50), PAUSE_MAX)
        };
        before = now;
    }
}

/// Where the links of all shards stand, if all of them are empty and no actor is busy.
async fn look(handle: &Handle, pause: Duration) -> Option<Vec<usize>> {
    let asked: Vec<_> = handle
        .shards()
        .map(|shard| {
            handle.runtime().spawn_on(shard, move || async move {
                if !pause.is_zero() {
                    time::sleep(pause).await;
                }
                let traffic = mesh::traffic()?;
                let actors = Registry::with(Registry::actors)?;
                let is_quiet = !traffic.is_under_way && actors.iter().all(|actor| actor.is_quiet());
                is_quiet.then_some(traffic.position)
            })
        })
        .collect();
    let mut positions = Some(Vec::with_capacity(asked.len()));
    for asked in asked {
        // A shard that is gone has nothing to do.
        let position = asked.await.unwrap_or(Some(0));
        positions = positions.zip(position).map(|(mut positions, position)| {
            positions.push(position);
            positions
        });
    }
    positions
}

/// What a shutdown did.
#[derive(Debug, Default)]
pub struct ShutdownReport {
    stopped: usize,
    killed: Vec<Killed>,
    root_failures: Vec<Down>,
    counts: Counts,
    runtime: greenroom_runtime::shutdown::ShutdownReport,
}

/// An actor that did not stop within the grace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Killed {
    actor: &'static str,
    shard: ShardId,
    queued: usize,
    method: Option<&'static str>,
    since: Option<Duration>,
}

impl Killed {
    pub(crate) fn new(actor: &dyn AnyActor, shard: ShardId) -> Self {
        let (method, since) = actor.waits_in();
        Self {
            actor: actor.name(),
            shard,
            queued: actor.queued(),
            method,
            since,
        }
    }

    /// The method or hook it was stuck in, if it was in one.
    #[must_use]
    pub fn method(&self) -> Option<&'static str> {
        self.method
    }

    /// For how long it had waited there.
    #[must_use]
    pub fn since(&self) -> Option<Duration> {
        self.since
    }

    /// The name of its type.
    #[must_use]
    pub fn actor(&self) -> &'static str {
        self.actor
    }

    /// The shard it lived on.
    #[must_use]
    pub fn shard(&self) -> ShardId {
        self.shard
    }

    /// What its mailbox held, the stop included.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queued
    }
}

impl fmt::Display for Killed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} on {} did not stop in time (messages that waited: {})",
            self.actor, self.shard, self.queued
        )?;
        if let (Some(method), Some(since)) = (self.method, self.since) {
            write!(f, ": it had been in `{method}` for {since:?}")?;
        }
        Ok(())
    }
}

impl ShutdownReport {
    fn add(&mut self, drained: Drained) {
        self.stopped += drained.stopped;
        self.killed.extend(drained.killed);
        self.root_failures.extend(drained.root_failures);
    }

    /// Actors that handled what they had accepted and stopped.
    #[must_use]
    pub fn stopped(&self) -> usize {
        self.stopped
    }

    /// Actors that were killed because the grace was over.
    #[must_use]
    pub fn killed(&self) -> &[Killed] {
        &self.killed
    }

    /// Failures of actors without a parent, at most 16 of each shard.
    #[must_use]
    pub fn root_failures(&self) -> &[Down] {
        &self.root_failures
    }

    /// What the shards had counted when they ended.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Operations the kernel did not give back in time. Normally zero.
    #[must_use]
    pub fn leaked_operations(&self) -> usize {
        self.runtime.leaked_operations()
    }

    /// What the runtime below has to say: of tasks that are no actors, of each shard, and of shards that got stuck.
    #[must_use]
    pub fn runtime(&self) -> &greenroom_runtime::shutdown::ShutdownReport {
        &self.runtime
    }
}
