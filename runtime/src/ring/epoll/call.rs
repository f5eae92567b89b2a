//! System calls by their result.

use std::io;

/// The number of an error of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Errno(pub(super) i32);

/// Makes a system call, again if a signal got in its way.
pub(super) fn call(mut attempt: impl FnMut() -> isize) -> Result<u32, Errno> {
    loop {
        if let Ok(value) = u32::try_from(attempt()) {
            return Ok(value);
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::EINTR) => {}
            errno => return Err(Errno(errno.unwrap_or(libc::EIO))),
        }
    }
}
