//! Sockets: TCP, UDP, and those between processes of one host.
//!
//! Sockets belong to the shard that opened them: they are neither `Send` nor `Sync`, and every read, write, accept and
//! connect is an operation of that shard's ring. Buffers are passed by value and come back with the result, see
//! [`buffer`](crate::buffer).
//!
//! Reading order: [`ToSocketAddr`] and [`ToTargets`], [`TcpListener`], [`TcpStream`], [`Connector`], and [`OwnedReadHalf`] with [`OwnedWriteHalf`] for
//! reading and writing at the same time. Then what keeps the borders of messages: [`UdpSocket`] and [`UnixDatagram`]. [`UnixListener`] and
//! [`UnixStream`] are the streams of one host. [`migrate()`] moves a connection to another shard, and
//! [`Distributor`] hands out the connections of one listener.
//!
//! # Examples
//!
//! An echo server and its client, on one shard:
//!
//! ```
//! use greenroom_runtime::net::{TcpListener, TcpStream};
//! use greenroom_runtime::{Builder, spawn};
//!
//! let runtime = Builder::new().shards(1).start()?;
//! runtime.run_on(0, || async {
//!     let listener = TcpListener::bind("127.0.0.1:0")?;
//!     let address = listener.local_addr()?;
//!     let server = spawn(async move {
//!         let (mut stream, _peer) = listener.accept().await.unwrap();
//!         let (result, line) = stream.read(Vec::with_capacity(512)).await;
//!         assert!(result.is_ok());
//!         stream.write_all(line).await.0.unwrap();
//!     });
//!
//!     let mut stream = TcpStream::connect(address).await?;
//!     stream.write_all("hello").await.0?;
//!     let (result, echo) = stream.read_exact([0; 5]).await;
//!     result?;
//!     assert_eq!(&echo, b"hello");
//!     server.await.unwrap();
//!     Ok::<(), std::io::Error>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod acceptor;
mod address;
mod connect;
mod datagram;
mod distributor;
mod migrate;
mod race;
mod receiver;
mod resolve;
mod split;
mod tcp_listener;
mod tcp_options;
mod tcp_socket;
mod tcp_stream;
#[cfg(test)]
mod tests;
mod transfer;
mod udp;
mod udp_options;
mod unix;
mod zero_copy;

pub use self::address::ToSocketAddr;
pub use self::connect::{ConnectError, Connector};
pub use self::datagram::Datagram;
pub use self::distributor::Distributor;
pub use self::migrate::{DetachedStream, Migrate, MigrateError, ShardGone, migrate};
pub use self::resolve::{LookupError, Targets, ToTargets, lookup_host};
pub use self::split::{OwnedReadHalf, OwnedWriteHalf, ReuniteError};
pub use self::tcp_listener::TcpListener;
pub use self::tcp_options::Keepalive;
pub use self::tcp_socket::TcpSocket;
pub use self::tcp_stream::TcpStream;
pub use self::udp::UdpSocket;
pub use self::unix::{
    DescriptorsLost, PeerCred, ToUnixAddr, UnixDatagram, UnixListener, UnixSeqpacket,
    UnixSeqpacketListener, UnixSocketError, UnixStream,
};
pub use self::zero_copy::Returning;
