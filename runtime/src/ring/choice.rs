//! Which backend to use, and who decides.

use std::env;
use std::ffi::OsString;

/// The variable that decides where the program leaves the choice open.
pub(crate) const VARIABLE: &str = "GREENROOM_BACKEND";

/// How the shards of a runtime do their I/O.
///
/// Programs behave the same on either; io_uring takes fewer system calls. All shards of one runtime use the same.
///
/// # Examples
/// ```
/// use greenroom_runtime::{Backend, Builder};
/// let runtime = Builder::new().shards(1).backend(Backend::Epoll).start()?;
/// assert_eq!(runtime.backend(), "epoll");
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// What the environment variable `GREENROOM_BACKEND` says (`io_uring`, `epoll` or `auto`); without it io_uring if
    /// every shard gets a ring, else epoll.
    #[default]
    Auto,
    /// io_uring, or no start at all.
    IoUring,
    /// epoll, also where io_uring would work.
    Epoll,
}

impl Backend {
    /// Lets the environment decide what the program left open.
    ///
    /// # Errors
    ///
    /// If the variable holds anything but the three names; the error is what it holds.
    pub(crate) fn or_from_environment(self) -> Result<Backend, OsString> {
        match (self, env::var_os(VARIABLE)) {
            (Backend::Auto, Some(value)) => Backend::parse(value),
            (chosen, _) => Ok(chosen),
        }
    }

    fn parse(value: OsString) -> Result<Backend, OsString> {
        match value.to_str() {
            Some("" | "auto") => Ok(Backend::Auto),
            Some("io_uring") => Ok(Backend::IoUring),
            Some("epoll") => Ok(Backend::Epoll),
            Some(_) | None => Err(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_takes_three_names_and_nothing_else() {
        let parse = |text: &str| Backend::parse(text.into());
        assert_eq!(parse("io_uring"), Ok(Backend::IoUring));
        assert_eq!(parse("epoll"), Ok(Backend::Epoll));
        assert_eq!(parse("auto"), Ok(Backend::Auto));
        assert_eq!(parse(""), Ok(Backend::Auto));
        for wrong in ["Epoll", "iouring", "kqueue", " epoll"] {
            assert_eq!(parse(wrong), Err(wrong.into()));
        }
    }

    #[test]
    fn the_program_has_the_last_word() {
        // Whatever the environment says.
        for chosen in [Backend::IoUring, Backend::Epoll] {
            assert_eq!(chosen.or_from_environment(), Ok(chosen));
        }
    }
}
