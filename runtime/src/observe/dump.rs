//! What every shard is at: its tasks, and what they wait for.

use std::collections::BTreeMap;
use std::fmt;

use super::gather;
use super::metrics::{LinkSample, assert_no_shard, links};
use super::pulse::RunningTask;
use super::survey::{self, write_answer};
use crate::runtime::{Handle, Runtime};
use crate::shard::{Shard, ShardId};
use crate::task::TaskId;

/// What the shards of a runtime are at, as plain data. `Display` writes it for people.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Dump {
    /// One entry for each shard, in their order.
    pub shards: Vec<ShardDump>,
}

/// One shard's part of a [`Dump`].
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ShardDump {
    /// Which shard.
    pub shard: ShardId,
    /// What it is at; `None` if it did not answer within 250 ms: it is stuck, or has ended.
    pub state: Option<ShardState>,
    /// The task a shard that did not answer is stuck in. Known if the [watchdog](crate::Builder::watchdog) is on, and the
    /// shard is in a task at all.
    pub stuck_in: Option<RunningTask>,
}

/// What a shard that answered is at.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ShardState {
    /// Its tasks, the oldest first.
    pub tasks: Vec<TaskDump>,
    /// Timers that have not fired.
    pub timers: usize,
    /// Nanoseconds until the first timer fires; zero if it is due.
    pub next_timer_ns: Option<u64>,
    /// The way to each peer that it has ever sent to.
    pub links: Vec<LinkSample>,
}

/// One task.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TaskDump {
    /// Its id, as [`task::Id`](crate::task::Id) is displayed.
    pub id: String,
    /// The name it was given.
    pub name: Option<String>,
    /// The call that spawned it: file, line and column.
    pub spawned_at: String,
    /// Whether it is ready to run.
    pub state: TaskState,
    /// Time since it was spawned, in nanoseconds.
    pub age_ns: u64,
    /// Operations in flight that will wake it, by name, and `timer` for each timer that will. Of what else a task may
    /// wait for (messages, other tasks, threads) the runtime knows nothing.
    pub waits_for: Vec<&'static str>,
}

/// Whether a task is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub enum TaskState {
    /// It will be polled in one of the next turns.
    Ready,
    /// It has returned from its last poll and was not woken since.
    Waiting,
}

impl Dump {
    fn new(handle: &Handle, answers: Vec<Option<ShardState>>) -> Self {
        let found = survey::found(handle, answers).into_iter();
        let shards = found.map(|found| ShardDump {
            shard: found.shard,
            state: found.answer,
            stuck_in: found.stuck_in,
        });
        Self {
            shards: shards.collect(),
        }
    }

    /// The dump as JSON.
    ///
    /// # Examples
    /// ```
    /// let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
    /// assert!(runtime.dump().to_json().starts_with('{'));
    /// # Ok::<(), greenroom_runtime::StartError>(())
    /// ```
    #[cfg(feature = "json")]
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain data with text keys")
    }
}

impl Runtime {
    /// Asks every shard what it is at, and waits for at most 250 ms.
    ///
    /// # Panics
    /// If the calling thread is a shard, which would block: use [`Handle::dump`] there.
    ///
    /// # Examples
    /// ```
    /// use greenroom_runtime::task;
    /// let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
    /// runtime.run_on(0, || async {
    ///     task::Builder::new().name("sleeper").spawn(std::future::pending::<()>()).detach();
    /// });
    /// let dump = runtime.dump();
    /// let tasks = &dump.shards[0].state.as_ref().unwrap().tasks;
    /// assert!(tasks.iter().any(|task| task.name.as_deref() == Some("sleeper")));
    /// # Ok::<(), greenroom_runtime::StartError>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn dump(&self) -> Dump {
        assert_no_shard("dump");
        let answers = gather::ask_all(self.handle(), state);
        Dump::new(self.handle(), answers)
    }
}

impl Handle {
    /// Asks every shard what it is at, and waits for at most 250 ms. From any thread, and without blocking it.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub fn dump(&self) -> impl Future<Output = Dump> + Send + use<> {
        let handle = self.clone();
        async move {
            let answers = gather::ask_all_async(&handle, state).await;
            Dump::new(&handle, answers)
        }
    }
}

fn state(shard: &Shard) -> ShardState {
    let now_ns = shard.now_ns();
    let mut waits = Waits::new(shard);
    let mut tasks = Vec::new();
    shard.each_task(|info, task| {
        tasks.push(TaskDump {
            id: info.id.to_string(),
            name: info.name.map(str::to_owned),
            spawned_at: info.spawned_at.to_string(),
            state: if task.ready {
                TaskState::Ready
            } else {
                TaskState::Waiting
            },
            age_ns: now_ns.saturating_sub(task.born_ns),
            waits_for: waits.take(info.id.task()),
        });
    });
    tasks.sort_by_key(|task| std::cmp::Reverse(task.age_ns));
    let timers = shard.timers().borrow();
    ShardState {
        tasks,
        timers: timers.len(),
        next_timer_ns: timers
            .first_deadline_ns()
            .map(|next| next.saturating_sub(now_ns)),
        links: links(shard),
    }
}

/// What the tasks of a shard wait for.
struct Waits(BTreeMap<TaskId, Vec<&'static str>>);

impl Waits {
    fn new(shard: &Shard) -> Self {
        let mut waits: BTreeMap<TaskId, Vec<&'static str>> = BTreeMap::new();
        let mut note = |name, task: Option<TaskId>| {
            if let Some(task) = task {
                waits.entry(task).or_default().push(name);
            }
        };
        shard.driver().borrow().each_operation(&mut note);
        shard.timers().borrow().each(|task| note("timer", task));
        Self(waits)
    }

    fn take(&mut self, task: TaskId) -> Vec<&'static str> {
        self.0.remove(&task).unwrap_or_default()
    }
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shards.iter().try_for_each(|found| {
            let (state, stuck_in) = (found.state.as_ref(), found.stuck_in.as_ref());
            write_answer(f, found.shard, state, stuck_in)
        })
    }
}

impl fmt::Display for ShardState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tasks, {} timers", self.tasks.len(), self.timers)?;
        match self.next_timer_ns {
            Some(next) => writeln!(f, ", the next in {} ms", next / 1_000_000)?,
            None => writeln!(f)?,
        }
        for task in &self.tasks {
            writeln!(f, "  {task}")?;
        }
        for link in self.links.iter().filter(|link| link.is_held_up()) {
            writeln!(
                f,
                "  to {}: {} spilled, {} senders wait, {} actors choked",
                link.to, link.spilled, link.waiting, link.choked
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for TaskDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {}", self.id)?;
        if let Some(name) = &self.name {
            write!(f, " \"{name}\"")?;
        }
        let state = match self.state {
            TaskState::Ready => "ready",
            TaskState::Waiting => "waiting",
        };
        write!(f, " {state}")?;
        if !self.waits_for.is_empty() {
            write!(f, " for {}", self.waits_for.join(", "))?;
        }
        write!(
            f,
            ", {} ms old, spawned at {}",
            self.age_ns / 1_000_000,
            self.spawned_at
        )
    }
}
