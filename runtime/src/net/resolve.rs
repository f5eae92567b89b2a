//! Names of hosts, and where they are.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use crate::shard::context;
use crate::{blocking, current_shard};

/// The longest name of a host, in bytes.
const HOST_LEN_MAX: usize = 253;

/// Where to connect to: addresses, or a name and a port that are looked up first.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::net::{Targets, ToTargets};
///
/// assert_eq!("localhost:80".to_targets()?, Targets::name("localhost", 80)?);
/// let address = "127.0.0.1:80".parse::<std::net::SocketAddr>()?;
/// assert_eq!("127.0.0.1:80".to_targets()?, Targets::from(address));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets {
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    One(SocketAddr),
    Several(Vec<SocketAddr>),
    Name { host: String, port: u16 },
}

impl Targets {
    /// A name that is looked up. One that is a literal address is taken as that.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if it cannot be the name of a host: it is empty, longer than 253
    /// bytes, or contains a colon, a space, or a control character.
    pub fn name(host: &str, port: u16) -> io::Result<Targets> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(Targets::from(SocketAddr::new(address, port)));
        }
        let is_name = !host.is_empty()
            && host.len() <= HOST_LEN_MAX
            && !host.contains(|found: char| {
                found == ':' || found.is_whitespace() || found.is_control()
            });
        if !is_name {
            return Err(not_a_target(&format!("{host}:{port}")));
        }
        Ok(Targets {
            kind: Kind::Name {
                host: host.to_owned(),
                port,
            },
        })
    }

    /// The addresses, after a look-up in the blocking pool if there is a name to look up.
    pub(super) async fn resolve(&self) -> io::Result<Cow<'_, [SocketAddr]>> {
        let (host, port) = match &self.kind {
            Kind::One(address) => return Ok(Cow::Borrowed(std::slice::from_ref(address))),
            Kind::Several(addresses) => return Ok(Cow::Borrowed(addresses)),
            Kind::Name { host, port } => (host, *port),
        };
        if current_shard().is_none() {
            return Err(context::no_shard(
                "names are looked up by the runtime of a shard",
            ));
        }
        let owned = host.clone();
        let found = blocking::run(move || {
            let addresses = std::net::ToSocketAddrs::to_socket_addrs(&(owned.as_str(), port))?;
            Ok(addresses.collect::<Vec<SocketAddr>>())
        });
        let error = match found.await {
            Ok(Ok(addresses)) if addresses.is_empty() => io::ErrorKind::NotFound.into(),
            Ok(Ok(addresses)) => return Ok(Cow::Owned(addresses)),
            Ok(Err(error)) => error,
            Err(ended) => io::Error::other(ended.to_string()),
        };
        Err(LookupError::error(host, error))
    }
}

impl fmt::Display for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::One(address) => write!(f, "{address}"),
            Kind::Several(addresses) => write!(f, "{} addresses", addresses.len()),
            Kind::Name { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

impl From<SocketAddr> for Targets {
    fn from(address: SocketAddr) -> Targets {
        Targets {
            kind: Kind::One(address),
        }
    }
}

impl From<Vec<SocketAddr>> for Targets {
    fn from(addresses: Vec<SocketAddr>) -> Targets {
        Targets {
            kind: Kind::Several(addresses),
        }
    }
}

/// What can be connected to.
///
/// Implemented for the address types of the standard library and lists of them, for pairs of a host and a port, and for
/// text like `localhost:80`, `127.0.0.1:80` or `[::1]:80`. Literal addresses are never looked up.
pub trait ToTargets {
    /// Returns the addresses, or the name to look up.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if text is neither an address nor a name with a port.
    fn to_targets(&self) -> io::Result<Targets>;
}

/// Implements the trait for types that turn into an address without fail.
macro_rules! literal {
    ($($type:ty),* $(,)?) => {$(
        impl ToTargets for $type {
            fn to_targets(&self) -> io::Result<Targets> {
                Ok(Targets::from(SocketAddr::from(*self)))
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

impl ToTargets for Targets {
    fn to_targets(&self) -> io::Result<Targets> {
        Ok(self.clone())
    }
}

impl ToTargets for [SocketAddr] {
    fn to_targets(&self) -> io::Result<Targets> {
        Ok(Targets::from(self.to_vec()))
    }
}

impl ToTargets for Vec<SocketAddr> {
    fn to_targets(&self) -> io::Result<Targets> {
        self.as_slice().to_targets()
    }
}

impl ToTargets for str {
    fn to_targets(&self) -> io::Result<Targets> {
        if let Ok(address) = self.parse::<SocketAddr>() {
            return Ok(Targets::from(address));
        }
        let parts = self.rsplit_once(':');
        let parts = parts.and_then(|(host, port)| Some((host, port.parse().ok()?)));
        match parts {
            // Without brackets it cannot be told where an IPv6 address ends and the port begins.
            Some((host, port)) if !host.contains(':') => {
                Targets::name(host, port).map_err(|_| not_a_target(self))
            }
            _ => Err(not_a_target(self)),
        }
    }
}

impl ToTargets for String {
    fn to_targets(&self) -> io::Result<Targets> {
        self.as_str().to_targets()
    }
}

impl ToTargets for (&str, u16) {
    fn to_targets(&self) -> io::Result<Targets> {
        Targets::name(self.0, self.1)
    }
}

impl ToTargets for (String, u16) {
    fn to_targets(&self) -> io::Result<Targets> {
        Targets::name(&self.0, self.1)
    }
}

impl<T: ToTargets + ?Sized> ToTargets for &T {
    fn to_targets(&self) -> io::Result<Targets> {
        (**self).to_targets()
    }
}

/// Looks a host up. Returns its addresses, best first, as the system orders them.
///
/// The system's resolver blocks, so it runs in the [blocking pool](crate::blocking). Literal addresses are returned as
/// they are, at once. To connect there is no need to look up first: [`TcpStream::connect`](super::TcpStream::connect)
/// takes names.
///
/// # Errors
///
/// [`InvalidInput`](io::ErrorKind::InvalidInput) if the text is neither an address nor a name with a port; an error
/// that contains a [`LookupError`] if the system does not find the host.
///
/// # Cancel safety
///
/// Safe: a look-up that has begun ends in the pool, and its result is dropped.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::Builder;
/// use greenroom_runtime::net::lookup_host;
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let addresses = lookup_host("localhost:80").await?;
///     assert!(addresses.iter().all(|address| address.ip().is_loopback()));
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn lookup_host(host: impl ToTargets) -> io::Result<Vec<SocketAddr>> {
    let targets = host.to_targets()?;
    Ok(targets.resolve().await?.into_owned())
}

/// A host that could not be looked up. Part of an [`io::Error`].
#[derive(Debug)]
pub struct LookupError {
    host: String,
    source: io::Error,
}

impl LookupError {
    fn error(host: &str, source: io::Error) -> io::Error {
        let kind = source.kind();
        let host = host.to_owned();
        io::Error::new(kind, LookupError { host, source })
    }

    /// The name that was looked up.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the host `{}` could not be looked up", self.host)
    }
}

impl Error for LookupError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}

fn not_a_target(text: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!(
            "`{text}` is neither an address nor a host with a port: write it like example.net:80, 127.0.0.1:80 or \
             [::1]:80"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_addresses_are_no_names() {
        let expected: SocketAddr = "[::1]:9".parse().unwrap();
        let forms = [
            "[::1]:9".to_targets(),
            ("::1", 9).to_targets(),
            ("::1".to_owned(), 9).to_targets(),
            (Ipv6Addr::LOCALHOST, 9).to_targets(),
            expected.to_targets(),
        ];
        for form in forms {
            assert_eq!(form.unwrap(), Targets::from(expected));
        }
        assert_eq!(
            vec![expected; 2].to_targets().unwrap().to_string(),
            "2 addresses"
        );
    }

    #[test]
    fn what_cannot_be_a_host_is_refused_by_name() {
        let long = format!("{}:80", "x".repeat(254));
        for text in [
            "",
            "host",
            "host:",
            ":80",
            "host:65536",
            "::1:80",
            "a b:80",
            "a\0:80",
            &long,
        ] {
            let error = text.to_targets().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{text}");
            let said = error.to_string();
            assert!(said.starts_with(&format!("`{text}` is")), "{said}");
            assert!(said.contains("example.net:80"), "{said}");
        }
        for (host, given) in [("host:80", "`host:80:80`"), ("", "`:80`")] {
            let error = (host, 80).to_targets().unwrap_err();
            assert!(error.to_string().starts_with(given), "{error}");
        }
    }
}
