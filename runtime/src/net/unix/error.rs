//! What went wrong at which address.

use std::error::Error;
use std::fmt;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;

/// An address that could not be bound or connected to. Part of an [`io::Error`].
///
/// The kind of the error is that of the system's.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::net::{UnixListener, UnixSocketError};
/// use greenroom_runtime::Builder;
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let error = UnixListener::bind("/no/such/folder/socket").unwrap_err();
///     assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
///     assert!(error.to_string().starts_with("cannot bind `/no/such/folder/socket`: No such file"));
///     assert_eq!(UnixSocketError::of(&error).unwrap().raw_os_error(), Some(2));
/// });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[derive(Debug)]
pub struct UnixSocketError {
    attempt: Attempt,
    address: SocketAddr,
    cause: io::Error,
}

/// What an address was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    Bind,
    Connect,
}

impl UnixSocketError {
    /// Finds the details of an error of a bind or connect.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&UnixSocketError> {
        error.get_ref()?.downcast_ref()
    }

    /// Returns the address.
    #[must_use]
    pub fn address(&self) -> &SocketAddr {
        &self.address
    }

    /// Returns the number the system gave, which the [`io::Error`] around this does not have.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        self.cause.raw_os_error()
    }

    pub(super) fn error(attempt: Attempt, address: SocketAddr, cause: io::Error) -> io::Error {
        let kind = cause.kind();
        let details = UnixSocketError {
            attempt,
            address,
            cause,
        };
        io::Error::new(kind, details)
    }
}

impl fmt::Display for UnixSocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.attempt {
            Attempt::Bind => "cannot bind ",
            Attempt::Connect => "cannot connect to ",
        })?;
        let path = self.address.as_pathname();
        match (path, self.address.as_abstract_name()) {
            (Some(path), _) => write!(f, "`{}`", path.display())?,
            (None, Some(name)) => write!(f, "the abstract name `{}`", name.escape_ascii())?,
            (None, None) => f.write_str("an unnamed socket")?,
        }
        // The cause is part of the text and therefore no `source`: whoever prints a chain sees it once.
        write!(f, ": {}", self.cause)?;
        if self.attempt == Attempt::Bind
            && path.is_some()
            && self.cause.kind() == io::ErrorKind::AddrInUse
        {
            f.write_str("; if nobody uses it any more, remove the file first")?;
        }
        Ok(())
    }
}

impl Error for UnixSocketError {}
