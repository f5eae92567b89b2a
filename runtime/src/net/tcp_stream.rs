//! A TCP connection.

use std::fmt;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use socket2::{Domain, Protocol, SockRef, Socket as NewSocket, Type};

use super::address::ToSocketAddr;
use super::split::{OwnedReadHalf, OwnedWriteHalf};
use super::transfer;
use crate::buffer::{BufResult, IoBuf, IoBufMut};
use crate::ring::Op;
use crate::ring::ops::connect::Connect;
use crate::ring::ops::recv::StreamSocket;
use crate::ring::ops::shutdown::Shutdown as ShutdownOp;
use crate::ring::socket::Socket;

/// A TCP connection.
///
/// Reading and writing take a buffer by value and give it back with the result. To do both at the same time, split the
/// stream with [`into_split`](Self::into_split). Dropping the stream closes the connection.
///
/// # Shard affinity
///
/// Belongs to the shard that made it. [`into_std`](Self::into_std) and [`from_std`](Self::from_std) move a connection
/// to another shard.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::net::{TcpListener, TcpStream};
/// use greenroom_runtime::{Builder, spawn};
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let listener = TcpListener::bind("127.0.0.1:0")?;
///     let client = spawn(TcpStream::connect(listener.local_addr()?));
///     let (mut server, _peer) = listener.accept().await?;
///     let mut client = client.await.unwrap()?;
///
///     client.write_all(vec![7; 100]).await.0?;
///     let (result, bytes) = server.read_exact(vec![0; 100].into_boxed_slice()).await;
///     result?;
///     assert!(bytes.iter().all(|&byte| byte == 7));
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TcpStream {
    socket: Rc<StreamSocket>,
}

impl TcpStream {
    /// Connects to a peer.
    ///
    /// # Errors
    ///
    /// If the address is no literal one, the peer refuses or cannot be reached, or the system is out of descriptors.
    ///
    /// # Cancel safety
    ///
    /// Safe: a dropped connect closes its socket, connected or not.
    pub async fn connect(address: impl ToSocketAddr) -> io::Result<TcpStream> {
        let address = address.to_socket_addr()?;
        let socket = NewSocket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        let stream = TcpStream::from_fd(socket.into());
        let lane = stream.socket.take_outbound().await;
        Op::new(Connect::new(lane, address)).await?;
        Ok(stream)
    }

    /// Takes over a connection of the standard library.
    ///
    /// # Errors
    ///
    /// If it cannot be put into blocking mode. The shard never blocks on it, but older kernels would not let an
    /// operation wait on a socket in the other mode.
    pub fn from_std(stream: std::net::TcpStream) -> io::Result<TcpStream> {
        stream.set_nonblocking(false)?;
        Ok(TcpStream::from_fd(stream.into()))
    }

    /// Gives the connection to the standard library, which may move it anywhere. It is in blocking mode.
    ///
    /// # Errors
    ///
    /// Gives the stream back if an operation on it, a cancelled one included, has not ended yet, or if a cancelled
    /// read left bytes for the next read: moving the connection would lose them.
    pub fn into_std(self) -> Result<std::net::TcpStream, TcpStream> {
        match Socket::into_fd(self.socket) {
            Ok(fd) => Ok(fd.into()),
            Err(socket) => Err(TcpStream { socket }),
        }
    }

    pub(super) fn from_fd(fd: OwnedFd) -> TcpStream {
        TcpStream {
            socket: Socket::new(fd),
        }
    }

    pub(super) fn from_socket(socket: Rc<StreamSocket>) -> TcpStream {
        TcpStream { socket }
    }

    /// Reads what is there, waiting for at least one byte. Returns how many came; 0 at the end of the stream.
    ///
    /// Fills the buffer from its start, up to its capacity; what was in it is overwritten, and a vector then holds what
    /// was read and nothing else. Its capacity is what `Vec::with_capacity` reserved: an empty vector without capacity
    /// reads nothing. To keep what is there and read behind it, pass `buffer.slice(buffer.len()..)`.
    ///
    /// # Errors
    ///
    /// What the kernel reports, a reset by the peer above all.
    ///
    /// # Cancel safety
    ///
    /// Safe for the stream: bytes that arrive for a dropped read are kept for the next one. The buffer is lost.
    pub async fn read<B: IoBufMut>(&mut self, buffer: B) -> BufResult<usize, B> {
        transfer::read(&self.socket, buffer).await
    }

    /// Reads until the buffer's capacity is full.
    ///
    /// `Vec::with_capacity` may reserve more than asked for: use an array, a boxed slice, or
    /// [`slice`](IoBuf::slice) to say exactly how much.
    ///
    /// # Errors
    ///
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the stream ends first; otherwise as for
    /// [`read`](Self::read). The buffer then holds an unspecified number of bytes from the stream.
    ///
    /// # Cancel safety
    ///
    /// Not safe: bytes already in the buffer are lost with it.
    pub async fn read_exact<B: IoBufMut>(&mut self, buffer: B) -> BufResult<(), B> {
        transfer::read_exact(&self.socket, buffer).await
    }

    /// Writes as much of the buffer as the connection takes now. Returns how many bytes that was.
    ///
    /// # Errors
    ///
    /// What the kernel reports, such as a reset by the peer. No signal is raised (`MSG_NOSIGNAL`).
    ///
    /// # Cancel safety
    ///
    /// Not safe: a dropped write may have sent any part of the buffer, or nothing. It never mixes with what is
    /// written after it.
    pub async fn write<B: IoBuf>(&mut self, buffer: B) -> BufResult<usize, B> {
        transfer::write(&self.socket, buffer).await
    }

    /// Writes the whole buffer.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write). A part of the buffer may have been sent.
    ///
    /// # Cancel safety
    ///
    /// As for [`write`](Self::write).
    pub async fn write_all<B: IoBuf>(&mut self, buffer: B) -> BufResult<(), B> {
        transfer::write_all(&self.socket, buffer).await
    }

    /// Writes as much of the buffers, in order, as the connection takes now. Returns how many bytes that was.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write).
    ///
    /// # Cancel safety
    ///
    /// As for [`write`](Self::write).
    pub async fn write_vectored<B: IoBuf>(&mut self, buffers: Vec<B>) -> BufResult<usize, Vec<B>> {
        transfer::write_vectored(&self.socket, buffers).await
    }

    /// Writes all of the buffers, in order.
    ///
    /// # Errors
    ///
    /// As for [`write_all`](Self::write_all).
    ///
    /// # Cancel safety
    ///
    /// As for [`write`](Self::write).
    pub async fn write_all_vectored<B: IoBuf>(&mut self, buffers: Vec<B>) -> BufResult<(), Vec<B>> {
        transfer::write_all_vectored(&self.socket, buffers).await
    }

    /// Shuts down reading, writing or both, after writes in flight.
    ///
    /// # Errors
    ///
    /// What the kernel reports, such as that the connection is already gone.
    ///
    /// # Cancel safety
    ///
    /// Safe: it happens or it does not.
    pub async fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        shutdown(&self.socket, how).await
    }

    /// Sets whether small writes are sent at once (`TCP_NODELAY`) instead of being held back to be joined.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        SockRef::from(&*self.socket).set_tcp_nodelay(nodelay)
    }

    /// Returns whether small writes are sent at once.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn nodelay(&self) -> io::Result<bool> {
        SockRef::from(&*self.socket).tcp_nodelay()
    }

    /// Returns the address of the other end.
    ///
    /// # Errors
    ///
    /// What the kernel reports, such as that the connection is gone.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        peer_addr(&self.socket)
    }

    /// Returns the address of this end.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        local_addr(&self.socket)
    }

    /// Splits the stream into a half that reads and one that writes, for two tasks of this shard.
    ///
    /// Dropping the write half tells the peer that no more will come; dropping both closes the connection.
    ///
    /// # Examples
    ///
    /// ```
    /// use greenroom_runtime::net::{TcpListener, TcpStream};
    /// use greenroom_runtime::{Builder, spawn};
    ///
    /// let runtime = Builder::new().shards(1).start()?;
    /// runtime.run_on(0, || async {
    ///     let listener = TcpListener::bind("127.0.0.1:0")?;
    ///     let client = spawn(TcpStream::connect(listener.local_addr()?));
    ///     let (mut read_half, mut write_half) = listener.accept().await?.0.into_split();
    ///     let mut client = client.await.unwrap()?;
    ///
    ///     let reader = spawn(async move { read_half.read([0; 4]).await.0 });
    ///     write_half.write_all("from the server").await.0?;
    ///     drop(write_half);
    ///     client.write_all("ping").await.0?;
    ///     assert_eq!(reader.await.unwrap()?, 4);
    ///     Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        (
            OwnedReadHalf::new(Rc::clone(&self.socket)),
            OwnedWriteHalf::new(self.socket),
        )
    }
}

impl AsFd for TcpStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpStream")
            .field("local_addr", &self.local_addr().ok())
            .field("peer_addr", &self.peer_addr().ok())
            .finish()
    }
}

pub(super) async fn shutdown(socket: &Rc<StreamSocket>, how: Shutdown) -> io::Result<()> {
    let lane = socket.take_outbound().await;
    Op::new(ShutdownOp::new(lane, how)).await
}

pub(super) fn peer_addr(socket: &StreamSocket) -> io::Result<SocketAddr> {
    internet_address(&SockRef::from(socket).peer_addr()?)
}

pub(super) fn local_addr(socket: &StreamSocket) -> io::Result<SocketAddr> {
    internet_address(&SockRef::from(socket).local_addr()?)
}

fn internet_address(address: &socket2::SockAddr) -> io::Result<SocketAddr> {
    address
        .as_socket()
        .ok_or_else(|| io::Error::other("the socket is not an internet socket"))
}
