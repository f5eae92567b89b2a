//! Internet addresses in the layout the kernel reads.

use std::net::SocketAddr;
#[cfg(test)]
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

/// Room for a `sockaddr_in` or a `sockaddr_in6`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(super) struct RawAddress {
    bytes: [u8; RawAddress::SIZE],
}

impl RawAddress {
    const SIZE: usize = size_of::<libc::sockaddr_in6>();

    /// Lays the address out, and tells how many bytes of the room it takes.
    pub(super) fn encode(address: SocketAddr) -> (RawAddress, libc::socklen_t) {
        let mut bytes = [0; RawAddress::SIZE];
        bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        let (family, len) = match address {
            SocketAddr::V4(address) => {
                bytes[4..8].copy_from_slice(&address.ip().octets());
                (libc::AF_INET, size_of::<libc::sockaddr_in>())
            }
            SocketAddr::V6(address) => {
                bytes[4..8].copy_from_slice(&address.flowinfo().to_ne_bytes());
                bytes[8..24].copy_from_slice(&address.ip().octets());
                bytes[24..28].copy_from_slice(&address.scope_id().to_ne_bytes());
                (libc::AF_INET6, RawAddress::SIZE)
            }
        };
        let family = libc::sa_family_t::try_from(family).expect("a small constant");
        bytes[..2].copy_from_slice(&family.to_ne_bytes());
        let len = libc::socklen_t::try_from(len).expect("a small constant");
        (RawAddress { bytes }, len)
    }

    /// Reads the address back, or `None` if it is of another family.
    #[cfg(test)]
    pub(super) fn decode(&self) -> Option<SocketAddr> {
        let [f0, f1, p0, p1, a0, a1, a2, a3, ..] = self.bytes;
        let port = u16::from_be_bytes([p0, p1]);
        match i32::from(libc::sa_family_t::from_ne_bytes([f0, f1])) {
            libc::AF_INET => Some(SocketAddrV4::new(Ipv4Addr::new(a0, a1, a2, a3), port).into()),
            libc::AF_INET6 => {
                let octets: [u8; 16] = self.bytes[8..24].try_into().expect("sixteen bytes");
                let scope: [u8; 4] = self.bytes[24..28].try_into().expect("four bytes");
                let flow = u32::from_ne_bytes([a0, a1, a2, a3]);
                let address = Ipv6Addr::from(octets);
                Some(SocketAddrV6::new(address, port, flow, u32::from_ne_bytes(scope)).into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip() {
        let addresses: [SocketAddr; 3] = [
            "127.0.0.1:80".parse().unwrap(),
            "[2001:db8::17]:65535".parse().unwrap(),
            SocketAddrV6::new("fe80::1".parse().unwrap(), 9, 7, 3).into(),
        ];
        for address in addresses {
            let (raw, _) = RawAddress::encode(address);
            assert_eq!(raw.decode(), Some(address));
        }
    }

    #[test]
    fn layout_is_the_one_of_the_system() {
        let address: SocketAddr = "10.1.2.3:4567".parse().unwrap();
        let system = socket2::SockAddr::from(address);
        let (raw, len) = RawAddress::encode(address);
        assert_eq!(len, system.len());
        assert_eq!(i32::from(system.family()), libc::AF_INET);
        assert_eq!(raw.decode(), system.as_socket());
    }

    #[test]
    fn foreign_families_have_no_internet_address() {
        let bytes = [0; RawAddress::SIZE];
        assert_eq!(RawAddress { bytes }.decode(), None);
    }
}
