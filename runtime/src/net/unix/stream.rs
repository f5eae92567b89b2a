//! A Unix connection.

use std::fmt;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::SocketAddr;
use std::rc::Rc;

use socket2::{Domain, SockRef, Socket as NewSocket, Type};

use super::address::{ToUnixAddr, from_raw};
use super::connect::connect;
use super::credentials::PeerCred;
use super::descriptors::{receive_from_stream, send_to_stream};
use crate::buffer::{BufResult, IoBuf, IoBufMut, PooledBuf};
use crate::net::migrate::sealed::Attach;
use crate::net::migrate::{DetachedStream, attach, detach};
use crate::net::receiver::Receiver;
use crate::net::split::{OwnedReadHalf, OwnedWriteHalf, ReuniteError};
use crate::net::tcp_stream::shutdown;
use crate::net::transfer;
use crate::ring::ops::recv::StreamSocket;
use crate::ring::socket::Socket;

/// A Unix connection: a stream of bytes between processes of one host, which can carry descriptors.
///
/// It reads and writes as a [`TcpStream`](crate::net::TcpStream) does, down to the same code.
///
/// # Descriptors
///
/// They travel with bytes, sent by [`send_with_fds`](Self::send_with_fds) and received by
/// [`recv_with_fds`](Self::recv_with_fds). Whatever else reads the bytes they came with closes them. So where
/// descriptors are expected, receive with that method from the start: [`recv`](Self::recv) goes on reading on its own.
///
/// # Shard affinity
///
/// Belongs to the shard that made it.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::net::UnixStream;
/// use greenroom_runtime::{Builder, spawn};
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let (mut one, other) = UnixStream::pair()?;
///     let (mut read_half, mut write_half) = other.into_split();
///     let echo = spawn(async move {
///         let bytes = read_half.recv().await?.unwrap();
///         write_half.write_all(bytes.to_vec()).await.0
///     });
///     one.write_all("hello").await.0?;
///     assert_eq!(one.read_exact([0; 5]).await.1, *b"hello");
///     echo.await.unwrap()
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct UnixStream {
    /// Dropped first, so that the socket closes as soon as the kernel lets go of it.
    receiver: Receiver,
    socket: Rc<StreamSocket>,
}

impl UnixStream {
    /// Connects to who listens at an address, and waits while its backlog is full.
    ///
    /// # Errors
    ///
    /// [`NotFound`](io::ErrorKind::NotFound) if there is no such path, and
    /// [`ConnectionRefused`](io::ErrorKind::ConnectionRefused) if nobody listens there;
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the path is none for a socket.
    ///
    /// # Cancel safety
    ///
    /// Safe: a dropped connect closes its socket, connected or not.
    pub async fn connect(address: impl ToUnixAddr) -> io::Result<UnixStream> {
        let fd = connect(Type::STREAM, address).await?;
        Ok(UnixStream::from_fd(fd))
    }

    /// Opens two streams that are connected with each other.
    ///
    /// # Errors
    ///
    /// If the system is out of descriptors.
    pub fn pair() -> io::Result<(UnixStream, UnixStream)> {
        let (one, other) = NewSocket::pair(Domain::UNIX, Type::STREAM, None)?;
        Ok((
            UnixStream::from_fd(one.into()),
            UnixStream::from_fd(other.into()),
        ))
    }

    /// Takes over a connection of the standard library.
    ///
    /// # Errors
    ///
    /// If it cannot be put into blocking mode. The shard never blocks on it, but older kernels would not let an
    /// operation wait on a socket in the other mode.
    pub fn from_std(stream: std::os::unix::net::UnixStream) -> io::Result<UnixStream> {
        stream.set_nonblocking(false)?;
        Ok(UnixStream::from_fd(stream.into()))
    }

    /// Gives the connection to the standard library, which may move it anywhere. It is in blocking mode.
    ///
    /// # Errors
    ///
    /// Gives the stream back if an operation on it, a cancelled one included, has not ended yet, or if bytes were
    /// received and not asked for yet: moving the connection would lose them.
    pub fn into_std(self) -> Result<std::os::unix::net::UnixStream, UnixStream> {
        let UnixStream { receiver, socket } = self;
        match Socket::into_fd(socket) {
            Ok(fd) => Ok(fd.into()),
            Err(socket) => Err(UnixStream { receiver, socket }),
        }
    }

    /// Lets the stream go from its shard, to be taken by another: see [`migrate`](crate::net::migrate()).
    ///
    /// What was in flight on it is cancelled and awaited. A send that somebody dropped may have sent a part, as ever;
    /// nothing that was received is lost.
    ///
    /// # Errors
    ///
    /// If the descriptor cannot be had, which closes the connection.
    ///
    /// # Cancel safety
    ///
    /// Not safe: dropping the future closes the connection.
    pub async fn detach(self) -> io::Result<DetachedStream<UnixStream>> {
        detach(self.receiver, self.socket).await
    }

    pub(in crate::net) fn from_fd(fd: OwnedFd) -> UnixStream {
        UnixStream {
            receiver: Receiver::default(),
            socket: Socket::new(fd),
        }
    }

    /// Receives what is there into a buffer of the shard. As [`TcpStream::recv`](crate::net::TcpStream::recv).
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    ///
    /// # Cancel safety
    ///
    /// Safe: bytes that arrive for a dropped receive go to the next one.
    pub async fn recv(&mut self) -> io::Result<Option<PooledBuf>> {
        self.receiver.recv(&self.socket).await
    }

    /// Reads what is there, waiting for at least one byte. As [`TcpStream::read`](crate::net::TcpStream::read).
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    ///
    /// # Cancel safety
    ///
    /// Safe for the stream: bytes that arrive for a dropped read are kept for the next one. The buffer is lost.
    pub async fn read<B: IoBufMut>(&mut self, buffer: B) -> BufResult<usize, B> {
        self.receiver.read(&self.socket, buffer).await
    }

    /// Reads until the buffer's capacity is full. As [`TcpStream::read_exact`](crate::net::TcpStream::read_exact).
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read); [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the stream ends before.
    ///
    /// # Cancel safety
    ///
    /// Not safe: what was read before is lost with the buffer.
    pub async fn read_exact<B: IoBufMut>(&mut self, buffer: B) -> BufResult<(), B> {
        transfer::read_exact(&mut self.receiver, &self.socket, buffer).await
    }

    /// Reads what is there, without waiting. As [`TcpStream::try_read`](crate::net::TcpStream::try_read).
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read); [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing is there.
    pub fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receiver.try_read(&self.socket, buffer)
    }

    /// Waits until there is something to read. As [`TcpStream::readable`](crate::net::TcpStream::readable).
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub async fn readable(&mut self) -> io::Result<()> {
        self.receiver.readable(&self.socket).await
    }

    /// Writes what the connection takes now. As [`TcpStream::write`](crate::net::TcpStream::write).
    ///
    /// # Errors
    ///
    /// What the kernel reports, such as that the peer is gone.
    ///
    /// # Cancel safety
    ///
    /// A dropped write may have written a part, and the buffer is lost.
    pub async fn write<B: IoBuf>(&mut self, buffer: B) -> BufResult<usize, B> {
        transfer::write(&self.socket, buffer).await
    }

    /// Writes the whole buffer. As [`TcpStream::write_all`](crate::net::TcpStream::write_all).
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

    /// Writes what the connection takes now of several buffers.
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

    /// Writes all of several buffers, in order.
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

    /// Writes what the connection takes now, without waiting.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write); [`WouldBlock`](io::ErrorKind::WouldBlock) if it takes nothing.
    pub fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        transfer::try_write(&self.socket, bytes)
    }

    /// Waits until the connection takes something.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub async fn writable(&mut self) -> io::Result<()> {
        transfer::writable(&self.socket).await
    }

    /// Writes what the connection takes now, and descriptors with the first byte of it.
    ///
    /// The peer gets descriptors of its own for the same open files. Those that were sent come back with the buffer, to
    /// be closed by dropping them, or kept. When bytes were written, all of the descriptors were sent.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write); and if the buffer is empty, or there are more than 253 descriptors.
    ///
    /// # Cancel safety
    ///
    /// As for [`write`](Self::write). The descriptors of a dropped send are closed here.
    pub async fn send_with_fds<B: IoBuf>(
        &mut self,
        buffer: B,
        fds: Vec<OwnedFd>,
    ) -> BufResult<usize, (B, Vec<OwnedFd>)> {
        send_to_stream(&self.socket, buffer, fds).await
    }

    /// Reads what is there, and up to `fds_max` descriptors that came with it.
    ///
    /// The kernel may join what was sent before them, and ends the receive behind the bytes they were sent with. They are
    /// closed when this process starts another program (`CLOEXEC`).
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read); and [`DescriptorsLost`](super::DescriptorsLost) if more descriptors came than
    /// expected, or than the process has room for. Then the bytes are in the buffer, and those that came are closed.
    ///
    /// # Cancel safety
    ///
    /// Safe for the stream: bytes that arrive for a dropped receive are kept for the next read, and the descriptors
    /// with them. The buffer is lost.
    pub async fn recv_with_fds<B: IoBufMut>(
        &mut self,
        buffer: B,
        fds_max: usize,
    ) -> BufResult<(usize, Vec<OwnedFd>), B> {
        self.receiver.disarm();
        receive_from_stream(&self.socket, buffer, fds_max).await
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

    /// Returns the process at the other end, as it was when it connected.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn peer_cred(&self) -> io::Result<PeerCred> {
        PeerCred::of(&*self.socket)
    }

    /// Returns the address of the other end, which mostly has none.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        from_raw(&SockRef::from(&*self.socket).peer_addr()?)
    }

    /// Returns the address of this end, which may have none.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        from_raw(&SockRef::from(&*self.socket).local_addr()?)
    }

    /// Splits the stream into a half that reads and one that writes, for two tasks of this shard.
    ///
    /// Dropping the write half tells the peer that no more will come; dropping both closes the connection.
    pub fn into_split(self) -> (OwnedReadHalf<UnixStream>, OwnedWriteHalf<UnixStream>) {
        (
            OwnedReadHalf::new(self.receiver, Rc::clone(&self.socket)),
            OwnedWriteHalf::new(self.socket),
        )
    }
}

impl Attach for UnixStream {
    fn attach(detached: DetachedStream<UnixStream>) -> UnixStream {
        UnixStream {
            receiver: Receiver::default(),
            socket: attach(detached),
        }
    }

    fn detach(self) -> impl Future<Output = io::Result<DetachedStream<UnixStream>>> {
        UnixStream::detach(self)
    }
}

impl OwnedReadHalf<UnixStream> {
    /// Puts the halves of one stream together again.
    ///
    /// # Errors
    ///
    /// Gives both back if they come from different streams.
    pub fn reunite(
        self,
        write_half: OwnedWriteHalf<UnixStream>,
    ) -> Result<UnixStream, ReuniteError<UnixStream>> {
        let (receiver, socket) = self.join(write_half)?;
        Ok(UnixStream { receiver, socket })
    }
}

impl AsFd for UnixStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl fmt::Debug for UnixStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixStream")
            .field("local_addr", &self.local_addr().ok())
            .field("peer_addr", &self.peer_addr().ok())
            .finish()
    }
}
