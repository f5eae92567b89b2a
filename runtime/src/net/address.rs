//! Addresses as sockets take them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsFd;

use socket2::{SockAddr, SockRef};

/// A literal internet address and port.
///
/// Nothing is looked up: resolving a name blocks, and a shard must not. Implemented for the address types of the
/// standard library, for pairs of an address and a port, and for text like `127.0.0.1:80` or `[::1]:80`.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::net::ToSocketAddr;
///
/// let address = ("127.0.0.1", 80).to_socket_addr()?;
/// assert_eq!(address, "127.0.0.1:80".to_socket_addr()?);
/// assert!("localhost:80".to_socket_addr().is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait ToSocketAddr {
    /// Returns the address.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if text is not a literal address.
    fn to_socket_addr(&self) -> io::Result<SocketAddr>;
}

/// Implements the trait for types that turn into an address without fail.
macro_rules! literal {
    ($($type:ty),* $(,)?) => {$(
        impl ToSocketAddr for $type {
            fn to_socket_addr(&self) -> io::Result<SocketAddr> {
                Ok(SocketAddr::from(*self))
            }
        }
    )*};
}

literal!(
    SocketAddr,
    SocketAddrV4,
    SocketAddrV6,
    (IpAddr, u16),
    (Ipv4Addr, u16),
    (Ipv6Addr, u16),
);

impl ToSocketAddr for str {
    fn to_socket_addr(&self) -> io::Result<SocketAddr> {
        self.parse().map_err(|_| not_literal(self))
    }
}

impl ToSocketAddr for String {
    fn to_socket_addr(&self) -> io::Result<SocketAddr> {
        self.as_str().to_socket_addr()
    }
}

impl ToSocketAddr for (&str, u16) {
    fn to_socket_addr(&self) -> io::Result<SocketAddr> {
        let (host, port) = *self;
        let address: IpAddr = host.parse().map_err(|_| not_literal(host))?;
        Ok(SocketAddr::new(address, port))
    }
}

impl<T: ToSocketAddr + ?Sized> ToSocketAddr for &T {
    fn to_socket_addr(&self) -> io::Result<SocketAddr> {
        (**self).to_socket_addr()
    }
}

/// The address of the other end of an internet socket.
pub(super) fn peer_addr(socket: &impl AsFd) -> io::Result<SocketAddr> {
    from_raw(&SockRef::from(socket).peer_addr()?)
}

/// The address of this end of an internet socket.
pub(super) fn local_addr(socket: &impl AsFd) -> io::Result<SocketAddr> {
    from_raw(&SockRef::from(socket).local_addr()?)
}

/// The address as the system reports it, of a socket that ought to be one of the internet.
pub(super) fn from_raw(address: &SockAddr) -> io::Result<SocketAddr> {
    address
        .as_socket()
        .ok_or_else(|| io::Error::other("the socket is not an internet socket"))
}

fn not_literal(text: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!(
            "`{text}` is no literal address: names are not looked up here; \
             write an address like 127.0.0.1:80 or [::1]:80"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_refused_with_a_cure() {
        let error = "localhost:80".to_socket_addr().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let text = error.to_string();
        assert!(
            text.contains("`localhost:80`") && text.contains("127.0.0.1:80"),
            "{text}"
        );
    }

    #[test]
    fn all_forms_agree() {
        let expected: SocketAddr = "[::1]:9".parse().unwrap();
        assert_eq!(("::1", 9).to_socket_addr().unwrap(), expected);
        assert_eq!((Ipv6Addr::LOCALHOST, 9).to_socket_addr().unwrap(), expected);
        assert_eq!(String::from("[::1]:9").to_socket_addr().unwrap(), expected);
        assert_eq!(ToSocketAddr::to_socket_addr(&&expected).unwrap(), expected);
    }
}
