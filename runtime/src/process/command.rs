//! What to run, and how.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process as std_process;
use std::sync::Arc;

use super::child::{Child, Process};
use super::{ExitStatus, Output};
use crate::shard::context;

/// Says what to run, with which arguments, environment, input and output.
///
/// A plain description: it can be cloned, sent, and used any number of times.
///
/// # Examples
/// ```
/// use greenroom_runtime::{Builder, process::Command};
/// let runtime = Builder::new().shards(1).start()?;
/// let output = runtime.run_on(0, || async { Command::new("echo").arg("hello").output().await })?;
/// assert!(output.status.success());
/// assert_eq!(output.stdout, b"hello\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Command {
    program: OsString,
    arguments: Vec<OsString>,
    name: Option<OsString>,
    environment: Vec<Change>,
    directory: Option<PathBuf>,
    user: Option<u32>,
    group: Option<u32>,
    process_group: Option<i32>,
    stdin: Option<Stdio>,
    stdout: Option<Stdio>,
    stderr: Option<Stdio>,
    kill_on_drop: bool,
}

/// One change of the environment, in the order asked for.
#[derive(Clone, Debug)]
enum Change {
    Clear,
    Set(OsString, OsString),
    Remove(OsString),
}

/// What a child's input, output or error is connected to.
#[derive(Clone)]
pub struct Stdio(Connection);

#[derive(Clone)]
enum Connection {
    Inherited,
    Null,
    Piped,
    Descriptor(Arc<OwnedFd>),
}

impl Stdio {
    /// A pipe, whose other end the [`Child`] has.
    #[must_use]
    pub fn piped() -> Self {
        Self(Connection::Piped)
    }

    /// What this process has.
    #[must_use]
    pub fn inherit() -> Self {
        Self(Connection::Inherited)
    }

    /// Nothing: reads find the end, writes go nowhere.
    #[must_use]
    pub fn null() -> Self {
        Self(Connection::Null)
    }

    /// The standard library's form, with a descriptor of its own.
    fn to_std(&self) -> io::Result<std_process::Stdio> {
        Ok(match &self.0 {
            Connection::Inherited => std_process::Stdio::inherit(),
            Connection::Null => std_process::Stdio::null(),
            Connection::Piped => std_process::Stdio::piped(),
            Connection::Descriptor(fd) => fd.try_clone()?.into(),
        })
    }
}

impl From<OwnedFd> for Stdio {
    fn from(fd: OwnedFd) -> Self {
        Self(Connection::Descriptor(Arc::new(fd)))
    }
}

impl From<std::fs::File> for Stdio {
    fn from(file: std::fs::File) -> Self {
        OwnedFd::from(file).into()
    }
}

impl Command {
    /// A command that runs a program, looked for in `PATH` unless the name has a slash, with inherited everything.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            arguments: Vec::new(),
            name: None,
            environment: Vec::new(),
            directory: None,
            user: None,
            group: None,
            process_group: None,
            stdin: None,
            stdout: None,
            stderr: None,
            kill_on_drop: false,
        }
    }

    /// Adds one argument. It is passed as it is: no shell looks at it.
    pub fn arg(&mut self, argument: impl AsRef<OsStr>) -> &mut Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds several arguments.
    pub fn args<A: AsRef<OsStr>>(&mut self, arguments: impl IntoIterator<Item = A>) -> &mut Self {
        for argument in arguments {
            self.arg(argument);
        }
        self
    }

    /// Sets what the program is told to be called, its argument zero. Default: the program.
    pub fn arg0(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        self.name = Some(name.as_ref().to_owned());
        self
    }

    /// Sets one variable of the environment.
    pub fn env(&mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        let set = Change::Set(key.as_ref().to_owned(), value.as_ref().to_owned());
        self.environment.push(set);
        self
    }

    /// Sets several variables of the environment.
    pub fn envs<K, V>(&mut self, variables: impl IntoIterator<Item = (K, V)>) -> &mut Self
    where
        K: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        for (key, value) in variables {
            self.env(key, value);
        }
        self
    }

    /// Takes one variable out of the environment.
    pub fn env_remove(&mut self, key: impl AsRef<OsStr>) -> &mut Self {
        let remove = Change::Remove(key.as_ref().to_owned());
        self.environment.push(remove);
        self
    }

    /// Begins with an empty environment: nothing is inherited, and what was set before is forgotten.
    pub fn env_clear(&mut self) -> &mut Self {
        self.environment = vec![Change::Clear];
        self
    }

    /// Sets the working directory.
    pub fn current_dir(&mut self, directory: impl AsRef<Path>) -> &mut Self {
        self.directory = Some(directory.as_ref().to_owned());
        self
    }

    /// Sets the user.
    pub fn uid(&mut self, user: u32) -> &mut Self {
        self.user = Some(user);
        self
    }

    /// Sets the group.
    pub fn gid(&mut self, group: u32) -> &mut Self {
        self.group = Some(group);
        self
    }

    /// Puts the child into a process group; 0 makes one of its own, which Ctrl-C at the terminal does not reach.
    pub fn process_group(&mut self, group: i32) -> &mut Self {
        self.process_group = Some(group);
        self
    }

    /// Sets the child's input. Default: inherited, or nothing for [`output`](Self::output).
    pub fn stdin(&mut self, stdin: impl Into<Stdio>) -> &mut Self {
        self.stdin = Some(stdin.into());
        self
    }

    /// Sets the child's output. Default: inherited, or a pipe for [`output`](Self::output).
    pub fn stdout(&mut self, stdout: impl Into<Stdio>) -> &mut Self {
        self.stdout = Some(stdout.into());
        self
    }

    /// Sets the child's error output. Default: inherited, or a pipe for [`output`](Self::output).
    pub fn stderr(&mut self, stderr: impl Into<Stdio>) -> &mut Self {
        self.stderr = Some(stderr.into());
        self
    }

    /// Sets whether the child is killed when its [`Child`] is dropped. Default: no, it runs on by itself.
    pub fn kill_on_drop(&mut self, kill: bool) -> &mut Self {
        self.kill_on_drop = kill;
        self
    }

    /// Starts the child.
    ///
    /// # Errors
    /// If there is no such program or it may not be run; if the system is out of processes, memory or descriptors; if
    /// the calling thread is no shard; if the runtime's blocking pool has shut down.
    ///
    /// # Cancel safety
    /// A dropped spawn has started the child or not. One that was started is treated as a dropped [`Child`].
    ///
    /// # Examples
    /// ```
    /// use greenroom_runtime::{Builder, process::{Command, Stdio}};
    /// let runtime = Builder::new().shards(1).start()?;
    /// let upper = runtime.run_on(0, || async {
    ///     let mut child = Command::new("tr").args(["a-z", "A-Z"])
    ///         .stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().await?;
    ///     let mut stdin = child.stdin.take().unwrap();
    ///     stdin.write_all("quiet").await.0?;
    ///     drop(stdin);
    ///     Ok::<_, std::io::Error>(child.wait_with_output().await?.stdout)
    /// })?;
    /// assert_eq!(upper, b"QUIET");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn spawn(&self) -> io::Result<Child> {
        let command = self.clone();
        let Some(pool) = context::with(|shard| shard.team().blocking().clone()) else {
            return Err(context::no_shard(
                "a child belongs to the shard that starts it",
            ));
        };
        let started = crate::blocking::submit(&pool, move || {
            Process::start(&mut command.to_std()?, command.kill_on_drop)
        });
        match started.await {
            Ok(process) => Ok(Child::new(process?)),
            Err(error) => match error.try_into_panic() {
                Ok(payload) => resume_unwind(payload),
                Err(_) => Err(io::Error::other(
                    "no process was started: the blocking pool has shut down, or could not have a thread",
                )),
            },
        }
    }

    /// Starts the child and waits for its end.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn) and [`Child::wait`].
    ///
    /// # Cancel safety
    /// As dropping a [`Child`].
    pub async fn status(&self) -> io::Result<ExitStatus> {
        self.spawn().await?.wait().await
    }

    /// Starts the child, waits for its end, and returns all that it wrote.
    ///
    /// Output and error output are kept in memory, whatever their size, unless the command connects them to something.
    /// The child reads nothing, unless it is connected to something.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn) and [`Child::wait_with_output`].
    ///
    /// # Cancel safety
    /// As dropping a [`Child`].
    pub async fn output(&self) -> io::Result<Output> {
        let mut captured = self.clone();
        captured.stdin.get_or_insert_with(Stdio::null);
        captured.stdout.get_or_insert_with(Stdio::piped);
        captured.stderr.get_or_insert_with(Stdio::piped);
        captured.spawn().await?.wait_with_output().await
    }

    fn to_std(&self) -> io::Result<std_process::Command> {
        let mut command = std_process::Command::new(&self.program);
        command.args(&self.arguments);
        if let Some(name) = &self.name {
            command.arg0(name);
        }
        for change in &self.environment {
            match change {
                Change::Clear => command.env_clear(),
                Change::Set(key, value) => command.env(key, value),
                Change::Remove(key) => command.env_remove(key),
            };
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        if let Some(user) = self.user {
            command.uid(user);
        }
        if let Some(group) = self.group {
            command.gid(group);
        }
        if let Some(group) = self.process_group {
            command.process_group(group);
        }
        if let Some(stdin) = &self.stdin {
            command.stdin(stdin.to_std()?);
        }
        if let Some(stdout) = &self.stdout {
            command.stdout(stdout.to_std()?);
        }
        if let Some(stderr) = &self.stderr {
            command.stderr(stderr.to_std()?);
        }
        Ok(command)
    }
}

impl fmt::Debug for Stdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Connection::Inherited => "Inherited",
            Connection::Null => "Null",
            Connection::Piped => "Piped",
            Connection::Descriptor(_) => "Descriptor",
        })
    }
}
