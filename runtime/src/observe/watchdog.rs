//! Noticing a shard that does not come round its loop any more.
//!
//! A thread of its own looks at the [pulse](super::pulse) of each shard a few times in the limit. A shard whose pulse has
//! not changed for longer than the limit, and that does not sleep, is stalled: it computes, or waits in a system call
//! that somebody made. It is reported when the limit is over, and again each time that it has lasted twice as long; so
//! a shard that never comes back costs a few lines and not a full disk.
//!
//! # No backtrace
//! A backtrace of another thread needs a signal handler that walks and resolves its stack. That allocates and takes locks
//! which the interrupted code may hold: it would turn a stall into a deadlock. What is safe is asked of the kernel instead:
//! whether the thread computes or waits, and in which function of the kernel. With its number, which is reported, a
//! debugger or a profiler shows the rest.

use std::fmt;
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::pulse::{Pulse, RunningTask};
use super::trace;
use crate::builder::Builder;
use crate::clock::{Clock, nanos};
use crate::mesh::team::Team;
use crate::shard::ShardId;
use crate::shutdown::Phase;
use crate::task::contain;

/// Looks in the time of one limit.
const LOOKS_PER_LIMIT: u32 = 4;
/// The shortest limit, and the shortest time between two looks.
const SHORTEST: Duration = Duration::from_millis(1);

/// Called with each stall, on the watchdog's thread.
pub(crate) type StallHook = Arc<dyn Fn(&Stall) + Send + Sync>;

/// A shard that has not come round its loop for too long.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stall {
    /// The shard.
    pub shard: ShardId,
    /// The task it is in. `None` outside of tasks: it is in an offloaded closure, a hook, a destructor or a waker.
    pub task: Option<RunningTask>,
    /// For how long at least.
    pub lasted: Duration,
    /// The kernel's number of the shard's thread, for debuggers and profilers.
    pub thread: i32,
    /// The kernel's letter for what the thread does: `R` runs, `S` and `D` wait. `None` if the kernel does not tell.
    pub thread_state: Option<char>,
    /// The function of the kernel it waits in, if the kernel tells.
    pub waits_in: Option<String>,
    /// It said so before: it is in a section of [`shard_blocking`](crate::blocking::shard_blocking).
    pub is_announced: bool,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.lasted.as_millis();
        write!(f, "{} is stalled for {ms} ms in ", self.shard)?;
        match &self.task {
            Some(task) => write!(f, "{task}")?,
            None => f.write_str("code that is no task")?,
        }
        if self.is_announced {
            f.write_str(", in a section that says it blocks")?;
        }
        write!(f, "; thread {}", self.thread)?;
        match (self.thread_state, &self.waits_in) {
            (Some('R'), _) => f.write_str(" is running"),
            (Some(state), Some(function)) => write!(f, " waits in {function} ({state})"),
            (Some(state), None) => write!(f, " is in state {state}"),
            (None, _) => Ok(()),
        }
    }
}

impl Builder {
    /// Watches for shards that do not come round their loop for `limit`, from a thread of its own. Default: off.
    ///
    /// A stall is reported as a line on standard error, to [`Builder::on_stall`], or to a subscriber of `tracing`, when the limit is over and then each
    /// time that it has lasted twice as long. Sleeping is no stall. The limit is at least a millisecond; a tenth of a
    /// second finds what users notice.
    ///
    /// Shards then count their turns and polls, which costs them some nanoseconds for each.
    pub fn watchdog(mut self, limit: Duration) -> Self {
        self.watchdog = Some(limit.max(SHORTEST));
        self
    }

    /// Calls `hook` with each stall that the [watchdog](Builder::watchdog) finds, instead of writing a line.
    ///
    /// It runs on the watchdog's thread; a panic in it is contained.
    ///
    /// # Examples
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    ///
    /// let (report, stalls) = mpsc::channel();
    /// let runtime = greenroom_runtime::Builder::new()
    ///     .shards(1)
    ///     .watchdog(Duration::from_millis(5))
    ///     .on_stall(move |stall| report.send(stall.shard).expect("it waits for this"))
    ///     .start()?;
    /// // This blocks its shard until it was found out.
    /// let found = runtime.run_on(0, move || async move { stalls.recv() });
    /// assert_eq!(found, Ok(0.into()));
    /// # Ok::<(), greenroom_runtime::StartError>(())
    /// ```
    pub fn on_stall(mut self, hook: impl Fn(&Stall) + Send + Sync + 'static) -> Self {
        self.on_stall = Some(Arc::new(hook));
        self
    }
}

/// The thread that watches. Dropping it ends the watch without waiting for the thread.
#[derive(Debug)]
pub(crate) struct Watchdog {
    /// Nothing is ever sent: its drop is the message.
    end: mpsc::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl Watchdog {
    pub(crate) fn start(
        team: Arc<Team>,
        name: String,
        limit: Duration,
        hook: Option<StallHook>,
    ) -> io::Result<Self> {
        let (end, ended) = mpsc::channel();
        let watch = move || watch(&team, limit, hook.as_ref(), &ended);
        let thread = thread::Builder::new().name(name).spawn(watch)?;
        Ok(Self { end, thread })
    }

    /// Ends the watch and waits for its thread.
    pub(crate) fn stop(self) {
        drop(self.end);
        // It contains what it calls, and has nothing else to panic with.
        drop(self.thread.join());
    }
}

/// What is known of one shard.
struct Seen {
    beat: u64,
    since_ns: u64,
    /// How long a stall has to last to be reported next.
    due_ns: u64,
}

fn watch(team: &Team, limit: Duration, hook: Option<&StallHook>, ended: &mpsc::Receiver<()>) {
    let clock = Clock::Monotonic;
    let limit_ns = nanos(limit);
    let step = (limit / LOOKS_PER_LIMIT).max(SHORTEST);
    let mut shards: Vec<(ShardId, &Pulse, Seen)> = team
        .shards()
        .filter_map(|shard| {
            let seen = Seen {
                beat: 0,
                since_ns: clock.now_ns(),
                due_ns: limit_ns,
            };
            Some((shard, team.pulse(shard)?.as_ref(), seen))
        })
        .collect();
    // Shards that end do so within a limit of their own, and without turns.
    let is_ending = || team.stop().phase() >= Phase::Cancelling;
    while ended.recv_timeout(step) == Err(RecvTimeoutError::Timeout) && !is_ending() {
        for (shard, pulse, seen) in &mut shards {
            let (beat, now_ns) = (pulse.current(), clock.now_ns());
            if beat != seen.beat || team.shared(*shard).handshake.is_asleep() {
                *seen = Seen {
                    beat,
                    since_ns: now_ns,
                    due_ns: limit_ns,
                };
                continue;
            }
            let lasted_ns = now_ns - seen.since_ns;
            if lasted_ns >= seen.due_ns {
                seen.due_ns = lasted_ns.saturating_mul(2);
                report(
                    &stall(team, *shard, pulse, Duration::from_nanos(lasted_ns)),
                    hook,
                );
            }
        }
    }
}

fn stall(team: &Team, shard: ShardId, pulse: &Pulse, lasted: Duration) -> Stall {
    let thread = pulse.thread();
    let read = |file| fs::read_to_string(format!("/proc/self/task/{thread}/{file}")).ok();
    // After the name, which is in parentheses and may hold anything.
    let state = read("stat").and_then(|stat| stat.rsplit_once(") ")?.1.chars().next());
    let waits_in =
        read("wchan").filter(|function| function.as_str() != "0" && !function.is_empty());
    Stall {
        shard,
        task: pulse.running(),
        lasted,
        thread,
        thread_state: state,
        waits_in,
        is_announced: team.shared(shard).is_blocked(),
    }
}

/// Tells whoever wants to know; a line is written if it is nobody.
fn report(stall: &Stall, hook: Option<&StallHook>) {
    let heard = trace::stalled(stall);
    match hook {
        // It is anyone's code.
        Some(hook) => contain(|| hook(stall)),
        None if heard => {}
        None => write_line(stall),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "whoever wants it elsewhere sets a hook"
)]
fn write_line(stall: &Stall) {
    eprintln!("greenroom: {stall}");
}
