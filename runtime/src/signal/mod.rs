//! Signals to the process.
//!
//! A signal is delivered to a process, not to a shard, so no shard owns one. The first listener of a process starts a
//! thread, the [`hub`], which lives as long as the process and hands each arrival to every listener of that signal, on
//! whatever shard or thread it is awaited. It is not disturbed by the end of a shard or a runtime.
//!
//! # What a listener sees
//!
//! Every listener sees every arrival after it was made, with one reservation that lies in signals themselves: arrivals
//! of one signal that nobody has looked at yet are one arrival.
//!
//! # When nobody listens any more
//!
//! A signal handler cannot be taken out again safely, so the kernel goes on handing the signal over after the last
//! listener is gone. The hub then does what would have happened without it: the process ends on `SIGINT`, stops on
//! `SIGTSTP`, and ignores `SIGWINCH`. A program that awaits [`ctrl_c`] once and then shuts down is therefore ended at
//! once by a second Ctrl-C, however long its shutdown takes. Where the program ignored or handled the signal by other
//! means before the first listener came, the hub does nothing in its place.

mod hub;
mod kind;

pub(crate) use hub::tell_reaper;
pub use kind::SignalKind;

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_channel::mpsc;
use futures_core::Stream;

/// A listener for one or more signals: a stream that never ends.
///
/// Signals that arrive are not lost while nobody awaits the listener, but several of the same kind become one. While the
/// listener exists, the signal's usual effect on the process is suspended.
///
/// # Cancel safety
/// Dropping the future of [`recv`](Self::recv) loses nothing.
///
/// # Shard affinity
/// None: it may be made, awaited and dropped on any thread.
///
/// # Examples
/// ```no_run
/// use greenroom_runtime::signal::{Signal, SignalKind};
/// use greenroom_runtime::{Builder, spawn};
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let mut reload = Signal::new(SignalKind::HANGUP)?;
///     spawn(async move {
///         loop {
///             reload.recv().await;
///             println!("reading the configuration again");
///         }
///     })
///     .detach();
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "signals are heard as long as the listener exists"]
pub struct Signal {
    /// One sender for each kind, each with room for one arrival.
    arrivals: mpsc::Receiver<SignalKind>,
}

impl Signal {
    /// Listens for one signal.
    ///
    /// # Errors
    /// If the kernel does not let the signal be handled (`SIGKILL`, `SIGSTOP`), or its handler could not go on with a
    /// program that is broken (`SIGSEGV`, `SIGBUS`, `SIGFPE`, `SIGILL`); if there is no such signal; if the system
    /// refuses the handler, or the hub its thread.
    ///
    /// # Examples
    /// ```
    /// use greenroom_runtime::signal::{Signal, SignalKind};
    /// let _listener = Signal::new(SignalKind::USER_1)?;
    /// assert!(Signal::new(SignalKind::from_raw(9)).is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new(kind: SignalKind) -> io::Result<Self> {
        Self::any([kind])
    }

    /// Listens for several signals at once.
    ///
    /// # Errors
    /// As [`Signal::new`], for any of them. Without a kind the listener would never hear anything, which is an error
    /// too.
    pub fn any(kinds: impl IntoIterator<Item = SignalKind>) -> io::Result<Self> {
        // Room for nothing, and for one more with each sender.
        let (sender, arrivals) = mpsc::channel(0);
        let mut any = false;
        for kind in kinds {
            any = true;
            hub::listen(kind, sender.clone())?;
        }
        if !any {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a listener for no signal at all was asked for; name at least one",
            ));
        }
        Ok(Self { arrivals })
    }

    /// Waits for the next arrival and tells which signal it was.
    pub async fn recv(&mut self) -> SignalKind {
        std::future::poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// As [`recv`](Self::recv), for futures written by hand.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<SignalKind> {
        Pin::new(&mut self.arrivals)
            .poll_next(cx)
            .map(|kind| kind.expect("the hub keeps the sender of a listener that exists"))
    }
}

impl Stream for Signal {
    type Item = SignalKind;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SignalKind>> {
        self.poll_recv(cx).map(Some)
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal").finish_non_exhaustive()
    }
}

/// Waits for Ctrl-C, which is [`SignalKind::INTERRUPT`].
///
/// It is heard from the first poll on. When the future is gone, and no other listener exists, the next Ctrl-C ends the
/// process.
///
/// # Errors
/// As [`Signal::new`].
///
/// # Cancel safety
/// A Ctrl-C that arrived for a dropped future is not kept for the next one: keep a [`Signal`] for that.
///
/// # Examples
/// ```no_run
/// use greenroom_runtime::{Builder, signal};
/// let runtime = Builder::new().start()?;
/// runtime.block_on(signal::ctrl_c())?;
/// runtime.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn ctrl_c() -> io::Result<()> {
    Signal::new(SignalKind::INTERRUPT)?.recv().await;
    Ok(())
}

/// Listens for the two signals that ask a program to end: `SIGINT` (Ctrl-C) and `SIGTERM` (a service manager, `kill`).
///
/// Drop the listener after the first arrival, and the second one ends the process at once.
///
/// # Errors
/// As [`Signal::new`].
///
/// # Examples
/// ```no_run
/// use greenroom_runtime::{Builder, signal};
/// let mut end = signal::termination()?;
/// let runtime = Builder::new().start()?;
/// let kind = runtime.block_on(end.recv());
/// drop(end);
/// println!("{kind}: ending; once more to end at once");
/// runtime.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn termination() -> io::Result<Signal> {
    Signal::any([SignalKind::INTERRUPT, SignalKind::TERMINATE])
}
