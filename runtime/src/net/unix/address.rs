//! Addresses of Unix sockets.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};

use socket2::SockAddr;

/// The longest path, in bytes, that the kernel takes. It ends with a zero byte there.
const PATH_MAX: usize = 107;

/// The address of a Unix socket: a path, or a name without a file.
///
/// Implemented for everything that is a path, and for the address type of the standard library. An *abstract* name has
/// no file and no owner; it is made with
/// [`from_abstract_name`](std::os::linux::net::SocketAddrExt::from_abstract_name).
///
/// # Examples
///
/// ```
/// use std::os::linux::net::SocketAddrExt;
/// use std::os::unix::net::SocketAddr;
/// use greenroom_runtime::net::ToUnixAddr;
///
/// let by_path = "/run/service.sock".to_unix_addr()?;
/// assert_eq!(by_path.as_pathname().unwrap().to_str(), Some("/run/service.sock"));
/// let by_name = SocketAddr::from_abstract_name("service")?;
/// assert_eq!(by_name.to_unix_addr()?.as_abstract_name(), Some(b"service".as_slice()));
///
/// let error = "x".repeat(200).to_unix_addr().unwrap_err();
/// assert!(error.to_string().contains("200 bytes"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait ToUnixAddr {
    /// Returns the address.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if a path is empty, longer than 107 bytes, or contains a zero
    /// byte.
    fn to_unix_addr(&self) -> io::Result<SocketAddr>;
}

impl ToUnixAddr for SocketAddr {
    fn to_unix_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.clone())
    }
}

impl ToUnixAddr for Path {
    fn to_unix_addr(&self) -> io::Result<SocketAddr> {
        let bytes = self.as_os_str().as_bytes();
        if bytes.is_empty() {
            return Err(invalid("an empty path names no socket".to_owned()));
        }
        if bytes.contains(&0) {
            return Err(invalid(format!(
                "the path {self:?} contains a zero byte; for a name without a file use `SocketAddr::from_abstract_name`"
            )));
        }
        if bytes.len() > PATH_MAX {
            return Err(invalid(format!(
                "the path `{}` has {} bytes, and that of a socket at most {PATH_MAX}; use a shorter or a relative one",
                self.display(),
                bytes.len()
            )));
        }
        SocketAddr::from_pathname(self)
    }
}

/// Implements the trait for types that are paths.
macro_rules! path {
    ($($type:ty),* $(,)?) => {$(
        impl ToUnixAddr for $type {
            fn to_unix_addr(&self) -> io::Result<SocketAddr> {
                Path::new(self).to_unix_addr()
            }
        }
    )*};
}

path!(PathBuf, OsStr, OsString, str, String);

impl<T: ToUnixAddr + ?Sized> ToUnixAddr for &T {
    fn to_unix_addr(&self) -> io::Result<SocketAddr> {
        (**self).to_unix_addr()
    }
}

/// The address as system calls take it.
pub(in crate::net) fn to_raw(address: &SocketAddr) -> io::Result<SockAddr> {
    if let Some(path) = address.as_pathname() {
        return SockAddr::unix(path);
    }
    let Some(name) = address.as_abstract_name() else {
        return Err(invalid("an unnamed socket cannot be addressed".to_owned()));
    };
    let mut bytes = vec![0];
    bytes.extend_from_slice(name);
    SockAddr::unix(OsStr::from_bytes(&bytes))
}

/// The address as the kernel gave it. A sender without a name has an unnamed address.
pub(in crate::net) fn from_raw(address: &SockAddr) -> io::Result<SocketAddr> {
    if address.len() == 0 || address.is_unnamed() {
        return SocketAddr::from_pathname("");
    }
    if let Some(path) = address.as_pathname() {
        return SocketAddr::from_pathname(path);
    }
    match address.as_abstract_namespace() {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => Err(io::Error::other("the address is not one of a Unix socket")),
    }
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_way_to_the_kernel_and_back() {
        let longest = "x".repeat(PATH_MAX);
        let addresses = [
            "/run/socket".to_unix_addr().unwrap(),
            longest.to_unix_addr().unwrap(),
            SocketAddr::from_abstract_name(b"name\0with zero").unwrap(),
            SocketAddr::from_abstract_name([7; PATH_MAX]).unwrap(),
        ];
        for address in addresses {
            let raw = to_raw(&address).unwrap();
            let back = from_raw(&raw).unwrap();
            assert_eq!(back.as_pathname(), address.as_pathname());
            assert_eq!(back.as_abstract_name(), address.as_abstract_name());
        }
    }

    #[test]
    fn what_is_no_address_is_refused_by_name() {
        let check = |path: &str, expected: &str| {
            let error = path.to_unix_addr().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert!(error.to_string().contains(expected), "{error}");
        };
        check("", "an empty path");
        check("a\0b", "zero byte");
        check(&"x".repeat(PATH_MAX + 1), "has 108 bytes");
        let unnamed = SocketAddr::from_pathname("").unwrap();
        assert!(unnamed.is_unnamed());
        assert!(to_raw(&unnamed).is_err());
    }
}
