//! A TCP connection.

use std::fmt;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use super::address::{local_addr, peer_addr};
use super::connect::Connector;
use super::migrate::sealed::Attach;
use super::migrate::{DetachedStream, attach, detach};
use super::receiver::Receiver;
use super::resolve::ToTargets;
use super::split::{OwnedReadHalf, OwnedWriteHalf};
use super::transfer;
use super::zero_copy::{self, Returning};
use crate::buffer::{BufResult, IoBuf, IoBufMut, PooledBuf};
use crate::ring::Op;
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
    /// Dropped first, so that the socket closes as soon as the kernel lets go of it.
    receiver: Receiver,
    socket: Rc<StreamSocket>,
}

impl TcpStream {
    /// Connects to a host, by its address or its name.
    ///
    /// A name is looked up first. If the host has several addresses they are tried in a race, so that one that leads
    /// nowhere costs a quarter of a second and not minutes. [`Connector`] sets limits and the local address.
    ///
    /// # Errors
    ///
    /// An error that contains a [`LookupError`](super::LookupError) if the name is not found, or a
    /// [`ConnectError`](super::ConnectError), which tells what was tried, if no address can be connected to.
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if text is neither an address nor a name with a port.
    ///
    /// # Cancel safety
    ///
    /// Safe: a dropped connect closes its sockets, connected or not.
    pub async fn connect(host: impl ToTargets) -> io::Result<TcpStream> {
        Connector::new().connect(host).await
    }

    /// Connects to a host within a time, the look-up included. Otherwise as [`connect`](Self::connect).
    ///
    /// # Errors
    ///
    /// As for [`connect`](Self::connect); [`TimedOut`](io::ErrorKind::TimedOut) if the time is over.
    ///
    /// # Cancel safety
    ///
    /// As for [`connect`](Self::connect).
    pub async fn connect_timeout(host: impl ToTargets, limit: Duration) -> io::Result<TcpStream> {
        Connector::new().timeout(limit).connect(host).await
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
    /// read left bytes for the next read: moving the connection would lose them. A receive that [`recv`](Self::recv) left
    /// running is ended with [`settle`](Self::settle).
    pub fn into_std(self) -> Result<std::net::TcpStream, TcpStream> {
        let TcpStream { receiver, socket } = self;
        match Socket::into_fd(socket) {
            Ok(fd) => Ok(fd.into()),
            Err(socket) => Err(TcpStream { receiver, socket }),
        }
    }

    /// Lets the stream go from its shard, to be taken by another: see [`migrate`](super::migrate()).
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
    pub async fn detach(self) -> io::Result<DetachedStream<TcpStream>> {
        detach(self.receiver, self.socket).await
    }

    pub(super) fn from_fd(fd: OwnedFd) -> TcpStream {
        TcpStream::from_parts(Receiver::default(), Socket::new(fd))
    }

    pub(super) fn from_parts(receiver: Receiver, socket: Rc<StreamSocket>) -> TcpStream {
        TcpStream { receiver, socket }
    }

    /// Receives what is there, waiting for at least one byte. `None` at the end of the stream.
    ///
    /// The bytes are in a buffer of the shard ([`PooledBuf`]), which is taken when bytes are there: a connection that
    /// waits holds no memory. The first call asks the kernel for everything that comes, from then on and until the stream
    /// ends or is dropped, which saves asking each time. Bytes that come while nobody receives are kept, up to a limit
    /// (32 buffers); beyond it the peer is held up as ever.
    ///
    /// It may be mixed with [`read`](Self::read), which then copies.
    ///
    /// # Errors
    ///
    /// What the kernel reports, a reset by the peer above all. Bytes that came before the error come first.
    ///
    /// # Cancel safety
    ///
    /// Safe: bytes that arrive for a dropped receive go to the next one.
    ///
    /// # Examples
    ///
    /// An echo without a copy in between:
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
    ///     let echo = spawn(async move {
    ///         while let Some(bytes) = server.recv().await? {
    ///             server.write_all(bytes).await.0?;
    ///         }
    ///         Ok::<(), std::io::Error>(())
    ///     });
    ///     let mut client = client.await.unwrap()?;
    ///     client.write_all("hello").await.0?;
    ///     assert_eq!(*client.recv().await?.unwrap(), *b"hello");
    ///     drop(client);
    ///     echo.await.unwrap()
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn recv(&mut self) -> io::Result<Option<PooledBuf>> {
        self.receiver.recv(&self.socket).await
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
        self.receiver.read(&self.socket, buffer).await
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
        transfer::read_exact(&mut self.receiver, &self.socket, buffer).await
    }

    /// Reads what is there, without waiting. Returns how many bytes came; 0 at the end of the stream.
    ///
    /// Bytes that were received before come first. Otherwise this asks the kernel at once, with a system call of its own:
    /// worth it where something is likely there, as after [`readable`](Self::readable).
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing is there, and also while a receive is in flight (one that
    /// [`recv`](Self::recv) left armed, or one that was dropped and has not ended): its bytes come first, with a later
    /// turn of the shard. Otherwise as for [`read`](Self::read).
    pub fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receiver.try_read(&self.socket, buffer)
    }

    /// Waits until there is something to read: bytes, the end of the stream, or an error.
    ///
    /// As ever with readiness, a [`try_read`](Self::try_read) may still find nothing.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn readable(&mut self) -> io::Result<()> {
        self.receiver.readable(&self.socket).await
    }

    /// Copies the next bytes into the buffer and leaves them in the stream, waiting for at least one. 0 at its end.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn peek(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receiver.peek(&self.socket, buffer).await
    }

    /// Writes what the connection takes now, without waiting. Returns how many bytes that was.
    ///
    /// Asks the kernel at once, with a system call of its own, and borrows the bytes only meanwhile.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the connection takes nothing, and also while a write that was dropped
    /// has not ended: what it sends comes first. Otherwise as for [`write`](Self::write).
    pub fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        transfer::try_write(&self.socket, bytes)
    }

    /// Waits until the connection takes something.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn writable(&mut self) -> io::Result<()> {
        transfer::writable(&self.socket).await
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

    /// Writes a large buffer without copying it. Returns how many bytes were sent, and the buffer's way back.
    ///
    /// The network reads from the buffer itself until the peer has acknowledged the bytes; the next write need not wait
    /// for that. The result may be short, as with [`write`](Self::write). Worth it above some 16 KiB on a real network;
    /// on a loopback device the kernel copies anyway, and small writes cost more than a copy. Where the kernel cannot do
    /// it (before 6.0, or out of memory to keep track), the bytes are copied and the buffer is back at once.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write). The buffer comes back all the same.
    ///
    /// # Cancel safety
    ///
    /// As for [`write`](Self::write). The buffer is dropped once the kernel has let go of it.
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
    ///     let (result, returning) = client.write_zero_copy(vec![7; 1 << 16]).await;
    ///     let (received, _bytes) = server.read_exact(vec![0; result?].into_boxed_slice()).await;
    ///     received?;
    ///     assert_eq!(returning.await.len(), 1 << 16);
    ///     Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn write_zero_copy<B: IoBuf>(
        &mut self,
        buffer: B,
    ) -> (io::Result<usize>, Returning<B>) {
        zero_copy::write(&self.socket, buffer).await
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

    /// Ends what [`recv`](Self::recv) left running, and waits for that.
    ///
    /// Bytes that came meanwhile are there for the next receives and reads, [`try_read`](Self::try_read) included. With
    /// nothing running and nothing left to read, [`into_std`](Self::into_std) gives the connection away.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn settle(&mut self) {
        self.receiver.settle(&self.socket).await;
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

    /// Returns the address of the other end.
    ///
    /// # Errors
    ///
    /// What the kernel reports, such as that the connection is gone.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        peer_addr(&*self.socket)
    }

    /// Returns the address of this end.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        local_addr(&*self.socket)
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
            OwnedReadHalf::new(self.receiver, Rc::clone(&self.socket)),
            OwnedWriteHalf::new(self.socket),
        )
    }
}

impl Attach for TcpStream {
    fn attach(detached: DetachedStream<TcpStream>) -> TcpStream {
        TcpStream::from_parts(Receiver::default(), attach(detached))
    }

    fn detach(self) -> impl Future<Output = io::Result<DetachedStream<TcpStream>>> {
        TcpStream::detach(self)
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
