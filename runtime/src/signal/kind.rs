//! The name of a signal.

use std::ffi::c_int;
use std::fmt;

use signal_hook::low_level::signal_name;

/// Which signal.
///
/// # Examples
/// ```
/// use greenroom_runtime::signal::SignalKind;
/// assert_eq!(SignalKind::INTERRUPT.to_string(), "SIGINT");
/// assert_eq!(SignalKind::from_raw(15), SignalKind::TERMINATE);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignalKind(c_int);

impl SignalKind {
    /// `SIGALRM`: a timer of the process ran out.
    pub const ALARM: Self = Self(libc::SIGALRM);
    /// `SIGCHLD`: a child process ended or stopped. Ignored by default.
    pub const CHILD: Self = Self(libc::SIGCHLD);
    /// `SIGHUP`: the terminal is gone; by custom also "read the configuration again".
    pub const HANGUP: Self = Self(libc::SIGHUP);
    /// `SIGINT`: Ctrl-C.
    pub const INTERRUPT: Self = Self(libc::SIGINT);
    /// `SIGPIPE`: a write to a pipe or socket that nobody reads. Rust programs ignore it.
    pub const PIPE: Self = Self(libc::SIGPIPE);
    /// `SIGQUIT`: Ctrl-\, end with a core dump.
    pub const QUIT: Self = Self(libc::SIGQUIT);
    /// `SIGTERM`: asks the process to end.
    pub const TERMINATE: Self = Self(libc::SIGTERM);
    /// `SIGUSR1`: for the program to define.
    pub const USER_1: Self = Self(libc::SIGUSR1);
    /// `SIGUSR2`: for the program to define.
    pub const USER_2: Self = Self(libc::SIGUSR2);
    /// `SIGWINCH`: the terminal has another size. Ignored by default.
    pub const WINDOW_CHANGE: Self = Self(libc::SIGWINCH);

    /// The signal with this number, whether there is one or not.
    #[must_use]
    pub const fn from_raw(number: c_int) -> Self {
        Self(number)
    }

    /// The number of the signal.
    #[must_use]
    pub const fn as_raw(self) -> c_int {
        self.0
    }
}

impl fmt::Display for SignalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match signal_name(self.0) {
            Some(name) => f.write_str(name),
            None => write!(f, "signal {}", self.0),
        }
    }
}

impl fmt::Debug for SignalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignalKind({self})")
    }
}
