//! Unix sockets: streams, datagrams and packets between processes of one host, which can carry descriptors.

mod address;
mod datagram;
mod descriptors;

pub use self::address::ToUnixAddr;
pub use self::datagram::UnixDatagram;
pub use self::descriptors::DescriptorsLost;
