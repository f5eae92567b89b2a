//! Unix datagrams.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::SocketAddr;
use std::rc::Rc;

use socket2::{Domain, SockRef, Socket as NewSocket, Type};

use super::address::{ToUnixAddr, from_raw, to_raw};
use super::descriptors::with_fds;
use super::error::{Attempt, UnixSocketError};
use super::listener::bound;
use crate::buffer::{BufResult, IoBuf, IoBufMut};
use crate::net::datagram::{self, Datagram};
use crate::ring::ops::pieces::Single;
use crate::ring::ops::receive_message::{Arrival, MessageSocket};
use crate::ring::socket::Socket;

/// A Unix socket for datagrams.
///
/// Datagrams arrive whole, in order, and none is lost: a send waits while the receiver has no room. They can carry
/// descriptors. A datagram longer than the buffer is cut, which the result tells: see [`Datagram::is_truncated`].
///
/// The file of a socket that is bound to a path stays when the socket is dropped. A path whose file is there cannot be
/// bound again: remove the file first.
///
/// # Shard affinity
///
/// Belongs to the shard that made it.
///
/// # Examples
///
/// ```
/// use std::fs::File;
/// use std::io::Read;
/// use greenroom_runtime::Builder;
/// use greenroom_runtime::net::UnixDatagram;
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let (one, other) = UnixDatagram::pair()?;
///     let zero = File::open("/dev/zero")?.into();
///     one.send_with_fds("a file for you", vec![zero]).await.0?;
///
///     let (result, buffer) = other.recv_with_fds(Vec::with_capacity(64), 1).await;
///     let (_datagram, mut fds) = result?;
///     assert_eq!(buffer, b"a file for you");
///     let mut byte = [1];
///     File::from(fds.remove(0)).read_exact(&mut byte)?;
///     assert_eq!(byte, [0]);
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct UnixDatagram {
    socket: Rc<MessageSocket>,
}

impl UnixDatagram {
    /// Opens a socket at an address that nobody else uses.
    ///
    /// # Errors
    ///
    /// If the address is none, is in use, or its file is there or cannot be made; if the system is out of descriptors.
    pub fn bind(address: impl ToUnixAddr) -> io::Result<UnixDatagram> {
        let socket = bound(Type::DGRAM, address)?;
        Ok(UnixDatagram::from_fd(socket.into()))
    }

    /// Opens a socket without an address: it can send, and receive once it is connected.
    ///
    /// # Errors
    ///
    /// If the system is out of descriptors.
    pub fn unbound() -> io::Result<UnixDatagram> {
        let socket = NewSocket::new(Domain::UNIX, Type::DGRAM, None)?;
        Ok(UnixDatagram::from_fd(socket.into()))
    }

    /// Opens two sockets that are connected with each other and have no address.
    ///
    /// # Errors
    ///
    /// If the system is out of descriptors.
    pub fn pair() -> io::Result<(UnixDatagram, UnixDatagram)> {
        let (one, other) = NewSocket::pair(Domain::UNIX, Type::DGRAM, None)?;
        Ok((
            UnixDatagram::from_fd(one.into()),
            UnixDatagram::from_fd(other.into()),
        ))
    }

    /// Takes over a socket of the standard library.
    ///
    /// # Errors
    ///
    /// If it cannot be put into blocking mode. The shard never blocks on it, but older kernels would not let an
    /// operation wait on a socket in the other mode.
    pub fn from_std(socket: std::os::unix::net::UnixDatagram) -> io::Result<UnixDatagram> {
        socket.set_nonblocking(false)?;
        Ok(UnixDatagram::from_fd(socket.into()))
    }

    /// Gives the socket to the standard library, which may move it anywhere. It is in blocking mode.
    ///
    /// # Errors
    ///
    /// Gives the socket back if an operation on it, a cancelled one included, has not ended yet, or if a cancelled
    /// receive left a datagram for the next one: moving the socket would lose it.
    pub fn into_std(self) -> Result<std::os::unix::net::UnixDatagram, UnixDatagram> {
        match Socket::into_fd(self.socket) {
            Ok(fd) => Ok(fd.into()),
            Err(socket) => Err(UnixDatagram { socket }),
        }
    }

    /// Closes the socket. When the future is done, its name is free again; the file of a path stays.
    ///
    /// Otherwise as [`UdpSocket::close`](crate::net::UdpSocket::close).
    ///
    /// # Cancel safety
    ///
    /// Safe: the socket is closed even if the future is dropped.
    pub async fn close(self) {
        Socket::close(self.socket).await;
    }

    fn from_fd(fd: OwnedFd) -> UnixDatagram {
        UnixDatagram {
            socket: Socket::new(fd),
        }
    }

    /// Sets the one peer that [`send`](Self::send) sends to and that datagrams are accepted from.
    ///
    /// # Errors
    ///
    /// If nobody is at the address, or it may not be used.
    pub fn connect(&self, peer: impl ToUnixAddr) -> io::Result<()> {
        let peer = peer.to_unix_addr()?;
        let outcome = SockRef::from(&*self.socket).connect(&to_raw(&peer)?);
        outcome.map_err(|cause| UnixSocketError::error(Attempt::Connect, peer, cause))
    }

    /// Sends a datagram, and waits while the receiver has no room. Returns how many bytes it has: all of the buffer.
    ///
    /// # Errors
    ///
    /// What the kernel reports: that the datagram is too long, or that nobody is at the address.
    ///
    /// # Cancel safety
    ///
    /// The datagram of a dropped send is sent whole or not at all. The buffer is lost.
    pub async fn send_to<B: IoBuf>(
        &self,
        buffer: B,
        target: impl ToUnixAddr,
    ) -> BufResult<usize, B> {
        match target.to_unix_addr().and_then(|target| to_raw(&target)) {
            Ok(target) => datagram::send_single(&self.socket, Some(&target), buffer).await,
            Err(error) => (Err(error), buffer),
        }
    }

    /// Sends a datagram to the peer of a connected socket. Otherwise as [`send_to`](Self::send_to).
    ///
    /// # Errors
    ///
    /// As for [`send_to`](Self::send_to); and if the socket is not connected.
    ///
    /// # Cancel safety
    ///
    /// As for [`send_to`](Self::send_to).
    pub async fn send<B: IoBuf>(&self, buffer: B) -> BufResult<usize, B> {
        datagram::send_single(&self.socket, None, buffer).await
    }

    /// Sends a datagram, and descriptors with it, to the peer of a connected socket.
    ///
    /// The peer gets descriptors of its own for the same open files. Those that were sent come back with the buffer,
    /// to be closed by dropping them, or kept.
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send); and if there are more than 253 descriptors.
    ///
    /// # Cancel safety
    ///
    /// As for [`send_to`](Self::send_to). The descriptors of a dropped send are closed here.
    pub async fn send_with_fds<B: IoBuf>(
        &self,
        buffer: B,
        fds: Vec<OwnedFd>,
    ) -> BufResult<usize, (B, Vec<OwnedFd>)> {
        let (result, Single(buffer), fds) =
            datagram::send(&self.socket, None, Single(buffer), fds).await;
        (result, (buffer, fds))
    }

    /// Receives a datagram. Returns how much of it is in the buffer, and who sent it.
    ///
    /// Fills the buffer from its start, up to its capacity. What does not fit is lost, which the result tells.
    /// Descriptors that come with it are closed.
    ///
    /// # Errors
    ///
    /// What the kernel reports, and if the buffer has no capacity.
    ///
    /// # Cancel safety
    ///
    /// Safe: a datagram that arrives for a dropped receive is kept for the next one, with the address of its sender
    /// and its descriptors. It is cut to the buffer of the dropped receive, which is lost.
    pub async fn recv_from<B: IoBufMut>(&self, buffer: B) -> BufResult<(Datagram, SocketAddr), B> {
        let (result, buffer) = datagram::receive_single(&self.socket, buffer, 0).await;
        (result.and_then(|arrival| with_peer(&arrival)), buffer)
    }

    /// Receives a datagram. As [`recv_from`](Self::recv_from), without the address.
    ///
    /// # Errors
    ///
    /// As for [`recv_from`](Self::recv_from).
    ///
    /// # Cancel safety
    ///
    /// As for [`recv_from`](Self::recv_from).
    pub async fn recv<B: IoBufMut>(&self, buffer: B) -> BufResult<Datagram, B> {
        let (result, buffer) = datagram::receive_single(&self.socket, buffer, 0).await;
        (result.map(|arrival| Datagram::from(&arrival)), buffer)
    }

    /// Receives a datagram and up to `fds_max` descriptors that come with it.
    ///
    /// They are closed when this process starts another program (`CLOEXEC`).
    ///
    /// # Errors
    ///
    /// As for [`recv_from`](Self::recv_from); and [`DescriptorsLost`](super::DescriptorsLost) if more descriptors came
    /// than expected, or than the process has room for. Then the datagram is in the buffer, and those that came are
    /// closed.
    ///
    /// # Cancel safety
    ///
    /// As for [`recv_from`](Self::recv_from).
    pub async fn recv_with_fds<B: IoBufMut>(
        &self,
        buffer: B,
        fds_max: usize,
    ) -> BufResult<(Datagram, Vec<OwnedFd>), B> {
        let (result, buffer) = datagram::receive_single(&self.socket, buffer, fds_max).await;
        (
            result.and_then(|arrival| with_fds(arrival, fds_max)),
            buffer,
        )
    }

    /// Sends a datagram if that is possible at once.
    ///
    /// # Errors
    ///
    /// As for [`send_to`](Self::send_to); [`WouldBlock`](io::ErrorKind::WouldBlock) if the receiver has no room, or
    /// another send is in flight.
    pub fn try_send_to<B: IoBuf>(&self, buffer: B, target: impl ToUnixAddr) -> BufResult<usize, B> {
        match target.to_unix_addr().and_then(|target| to_raw(&target)) {
            Ok(target) => datagram::try_send_single(&self.socket, Some(&target), buffer),
            Err(error) => (Err(error), buffer),
        }
    }

    /// Sends a datagram to the peer of a connected socket if that is possible at once.
    ///
    /// # Errors
    ///
    /// As for [`try_send_to`](Self::try_send_to); and if the socket is not connected.
    pub fn try_send<B: IoBuf>(&self, buffer: B) -> BufResult<usize, B> {
        datagram::try_send_single(&self.socket, None, buffer)
    }

    /// Receives a datagram if there is one.
    ///
    /// # Errors
    ///
    /// As for [`recv_from`](Self::recv_from); [`WouldBlock`](io::ErrorKind::WouldBlock) if there is none, or another
    /// receive, which comes first, is in flight.
    pub fn try_recv_from<B: IoBufMut>(&self, buffer: B) -> BufResult<(Datagram, SocketAddr), B> {
        let (result, buffer) = datagram::try_receive_single(&self.socket, buffer, 0);
        (result.and_then(|arrival| with_peer(&arrival)), buffer)
    }

    /// Receives a datagram if there is one. As [`try_recv_from`](Self::try_recv_from), without the address.
    ///
    /// # Errors
    ///
    /// As for [`try_recv_from`](Self::try_recv_from).
    pub fn try_recv<B: IoBufMut>(&self, buffer: B) -> BufResult<Datagram, B> {
        let (result, buffer) = datagram::try_receive_single(&self.socket, buffer, 0);
        (result.map(|arrival| Datagram::from(&arrival)), buffer)
    }

    /// Returns the address of this end, which may be unnamed.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        from_raw(&SockRef::from(&*self.socket).local_addr()?)
    }

    /// Returns the peer of a connected socket, which may be unnamed.
    ///
    /// # Errors
    ///
    /// If the socket is not connected.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        from_raw(&SockRef::from(&*self.socket).peer_addr()?)
    }
}

impl AsFd for UnixDatagram {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl fmt::Debug for UnixDatagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixDatagram")
            .field("local_addr", &self.local_addr().ok())
            .field("peer_addr", &self.peer_addr().ok())
            .finish()
    }
}

fn with_peer(arrival: &Arrival) -> io::Result<(Datagram, SocketAddr)> {
    let peer = from_raw(&arrival.envelope.peer)?;
    Ok((Datagram::from(arrival), peer))
}
