//! A process that was started, from its start until its exit status is known.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::process as std_process;
use std::rc::Rc;
use std::task::Poll;

use super::pipe::{ChildStderr, ChildStdin, ChildStdout, Pipe};
use super::{ExitStatus, Output, reaper};
use crate::ring::Op;
use crate::ring::ops::poll::PollReadable;
use crate::ring::socket::Socket;
use crate::signal::{Signal, SignalKind};
use crate::sys;

/// A child process.
///
/// Dropping it does not end the process, unless [`Command::kill_on_drop`](super::Command::kill_on_drop) says so; either
/// way nothing is left of the process once it ends. Its pipes close when their fields are dropped.
///
/// # Shard affinity
/// Belongs to the shard that started it.
///
/// # Examples
/// ```
/// use greenroom_runtime::{Builder, process::Command};
/// let runtime = Builder::new().shards(1).start()?;
/// let status = runtime.run_on(0, || async {
///     let mut child = Command::new("sleep").arg("1000").spawn().await?;
///     child.kill().await?;
///     child.wait().await
/// })?;
/// assert!(!status.success());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Child {
    process: Process,
    /// Readable once the process has ended; `None` where the kernel has no such thing.
    ended: Option<Rc<Socket<()>>>,
    /// The other end of its input, if that is a pipe.
    pub stdin: Option<ChildStdin>,
    /// The other end of its output, if that is a pipe.
    pub stdout: Option<ChildStdout>,
    /// The other end of its error output, if that is a pipe.
    pub stderr: Option<ChildStderr>,
}

/// The part that may cross threads, and sees to it that the process is waited for.
#[derive(Debug)]
pub(super) struct Process {
    /// `None` once the reaper has it.
    child: Option<std_process::Child>,
    /// For the [`Child`] to take.
    ended: Option<OwnedFd>,
    kill_on_drop: bool,
    status: Option<ExitStatus>,
}

impl Process {
    /// Starts a process. Blocks.
    pub(super) fn start(
        command: &mut std_process::Command,
        kill_on_drop: bool,
    ) -> io::Result<Self> {
        let child = command.spawn()?;
        let ended = sys::open_process(child.id()).ok();
        Ok(Self {
            child: Some(child),
            ended,
            kill_on_drop,
            status: None,
        })
    }

    fn child(&mut self) -> &mut std_process::Child {
        self.child.as_mut().expect("taken out by drop alone")
    }

    fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child().try_wait()?;
        }
        Ok(self.status)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.status.is_some() {
            return;
        }
        if self.kill_on_drop {
            // One that has ended meanwhile need not be killed.
            drop(self.child().kill());
        }
        if let Some(child) = self.child.take() {
            reaper::adopt(child);
        }
    }
}

impl Child {
    pub(super) fn new(mut process: Process) -> Self {
        let child = process.child();
        let stdin = child
            .stdin
            .take()
            .map(|end| ChildStdin::new(Pipe::new(end.into())));
        let stdout = child
            .stdout
            .take()
            .map(|end| ChildStdout::new(Pipe::new(end.into())));
        let stderr = child
            .stderr
            .take()
            .map(|end| ChildStderr::new(Pipe::new(end.into())));
        Self {
            ended: process.ended.take().map(Socket::new),
            process,
            stdin,
            stdout,
            stderr,
        }
    }

    /// The number of the process; `None` once it was waited for, when the number may be another's.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        let child = self.process.child.as_ref()?;
        self.process.status.is_none().then(|| child.id())
    }

    /// Waits for the end of the process.
    ///
    /// First closes its input, if that is still here: many programs end when they have read all of it. It may be called
    /// again, and returns the same.
    ///
    /// # Errors
    /// What the system reports, such as that somebody else has waited for the process.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        let Some(ended) = self.ended.clone() else {
            return self.wait_for_signal().await;
        };
        loop {
            if let Some(status) = self.process.try_wait()? {
                return Ok(status);
            }
            let lane = ended.take_inbound().await;
            Op::new(PollReadable::new(lane)).await?;
        }
    }

    /// Waits where processes have no descriptors: looks whenever any child has ended.
    async fn wait_for_signal(&mut self) -> io::Result<ExitStatus> {
        // Before the first look, so that the end is either seen or heard.
        let mut some_child_ended = Signal::new(SignalKind::CHILD)?;
        loop {
            if let Some(status) = self.process.try_wait()? {
                return Ok(status);
            }
            some_child_ended.recv().await;
        }
    }

    /// How the process has ended, if it has.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.try_wait()
    }

    /// Sends the process a signal, for example [`SignalKind::TERMINATE`] to ask it to end.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the process was waited for; what the system reports, such as that
    /// there is no such signal.
    pub fn signal(&self, kind: SignalKind) -> io::Result<()> {
        match self.id() {
            Some(id) => sys::send_signal(id, kind.as_raw()),
            None => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "{kind} was sent to a child that was waited for: its number may be another's"
                ),
            )),
        }
    }

    /// Kills the process, without waiting for its end. One that has ended already is no error.
    ///
    /// # Errors
    /// What the system reports, such as that the child has changed its user.
    pub fn start_kill(&mut self) -> io::Result<()> {
        self.process.child().kill()
    }

    /// Kills the process and waits for its end.
    ///
    /// # Errors
    /// As [`start_kill`](Self::start_kill) and [`wait`](Self::wait).
    ///
    /// # Cancel safety
    /// The process is killed by the first poll; dropping the future gives up the wait.
    pub async fn kill(&mut self) -> io::Result<()> {
        self.start_kill()?;
        self.wait().await.map(drop)
    }

    /// Waits for the end of the process and returns all that it wrote to its pipes.
    ///
    /// What it writes is kept in memory, whatever its size. A pipe that a child of the child still holds is read until
    /// that one is gone too.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), and what reading the pipes reports.
    ///
    /// # Cancel safety
    /// As dropping the child; what was read is lost.
    pub async fn wait_with_output(mut self) -> io::Result<Output> {
        drop(self.stdin.take());
        let (stdout, stderr) = (self.stdout.take(), self.stderr.take());
        let mut stdout = pin!(read_all(stdout.map(ChildStdout::into_pipe)));
        let mut stderr = pin!(read_all(stderr.map(ChildStderr::into_pipe)));
        let (mut output, mut errors) = (None, None);
        // Both at the same time: the child may fill one pipe while the other waits for its end.
        poll_fn(|cx| {
            if output.is_none()
                && let Poll::Ready(all) = stdout.as_mut().poll(cx)
            {
                output = Some(all);
            }
            if errors.is_none()
                && let Poll::Ready(all) = stderr.as_mut().poll(cx)
            {
                errors = Some(all);
            }
            match (output.is_some(), errors.is_some()) {
                (true, true) => Poll::Ready(()),
                _ => Poll::Pending,
            }
        })
        .await;
        let status = self.wait().await?;
        Ok(Output {
            status,
            stdout: output.unwrap_or_else(|| Ok(Vec::new()))?,
            stderr: errors.unwrap_or_else(|| Ok(Vec::new()))?,
        })
    }
}

async fn read_all(pipe: Option<Pipe>) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    if let Some(pipe) = pipe {
        pipe.read_to_end(&mut all).await?;
    }
    Ok(all)
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child")
            .field("id", &self.id())
            .field("status", &self.process.status)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Child, Process};
    use crate::Builder;

    #[test]
    fn the_end_is_heard_where_processes_have_no_descriptors() {
        let runtime = Builder::new().shards(1).start().unwrap();
        for script in ["exit 3", "sleep 0.01; exit 3"] {
            let status = runtime.run_on(0, move || async move {
                let mut command = std::process::Command::new("sh");
                let mut process = Process::start(command.args(["-c", script]), false).unwrap();
                process.ended = None;
                Child::new(process).wait().await
            });
            assert_eq!(status.unwrap().code(), Some(3));
        }
    }
}
