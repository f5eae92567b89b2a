//! Unix sockets: streams, datagrams and packets between processes of one host, which can carry descriptors.

mod address;
mod connect;
mod credentials;
mod datagram;
mod descriptors;
mod error;
mod listener;
mod seqpacket;
mod stream;

pub use self::address::ToUnixAddr;
pub use self::credentials::PeerCred;
pub use self::datagram::UnixDatagram;
pub use self::descriptors::DescriptorsLost;
pub use self::error::UnixSocketError;
pub use self::listener::UnixListener;
pub use self::seqpacket::{UnixSeqpacket, UnixSeqpacketListener};
pub use self::stream::UnixStream;
