//! The two halves of a connection, whatever its family.

use std::error::Error;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::net::{Shutdown, SocketAddr};
use std::rc::Rc;

use socket2::SockRef;

use super::address::{local_addr, peer_addr};
use super::receiver::Receiver;
use super::tcp_stream::{TcpStream, shutdown};
use super::transfer;
use crate::buffer::{BufResult, IoBuf, IoBufMut, PooledBuf};
use crate::ring::ops::recv::StreamSocket;

/// The half of a stream that reads, a [`TcpStream`] unless told otherwise. Made by [`TcpStream::into_split`] and
/// [`UnixStream::into_split`](super::UnixStream::into_split).
pub struct OwnedReadHalf<S = TcpStream> {
    receiver: Receiver,
    pub(super) socket: Rc<StreamSocket>,
    whole: PhantomData<fn() -> S>,
}

impl<S> OwnedReadHalf<S> {
    pub(super) fn new(receiver: Receiver, socket: Rc<StreamSocket>) -> OwnedReadHalf<S> {
        OwnedReadHalf {
            receiver,
            socket,
            whole: PhantomData,
        }
    }

    /// Receives what is there, waiting for at least one byte. As [`TcpStream::recv`].
    pub async fn recv(&mut self) -> io::Result<Option<PooledBuf>> {
        self.receiver.recv(&self.socket).await
    }

    /// Reads what is there, waiting for at least one byte. As [`TcpStream::read`].
    pub async fn read<B: IoBufMut>(&mut self, buffer: B) -> BufResult<usize, B> {
        self.receiver.read(&self.socket, buffer).await
    }

    /// Reads until the buffer's capacity is full. As [`TcpStream::read_exact`].
    pub async fn read_exact<B: IoBufMut>(&mut self, buffer: B) -> BufResult<(), B> {
        transfer::read_exact(&mut self.receiver, &self.socket, buffer).await
    }

    /// Reads what is there, without waiting. As [`TcpStream::try_read`].
    pub fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receiver.try_read(&self.socket, buffer)
    }

    /// Waits until there is something to read. As [`TcpStream::readable`].
    pub async fn readable(&mut self) -> io::Result<()> {
        self.receiver.readable(&self.socket).await
    }

    /// Copies the next bytes and leaves them in the stream. As [`TcpStream::peek`].
    pub async fn peek(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receiver.peek(&self.socket, buffer).await
    }

    /// Puts the halves of one stream together again.
    pub(super) fn join(
        self,
        write_half: OwnedWriteHalf<S>,
    ) -> Result<(Receiver, Rc<StreamSocket>), ReuniteError<S>> {
        if !Rc::ptr_eq(&self.socket, write_half.socket()) {
            return Err(ReuniteError {
                read_half: self,
                write_half,
            });
        }
        drop(write_half.into_socket());
        Ok((self.receiver, self.socket))
    }
}

impl OwnedReadHalf {
    /// Puts the halves of one stream together again.
    ///
    /// # Errors
    ///
    /// Gives both back if they come from different streams.
    pub fn reunite(self, write_half: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
        let (receiver, socket) = self.join(write_half)?;
        Ok(TcpStream::from_parts(receiver, socket))
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
}

impl<S> fmt::Debug for OwnedReadHalf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedReadHalf")
            .field("socket", &self.socket)
            .finish()
    }
}

/// The half of a stream that writes, a [`TcpStream`] unless told otherwise. Made by [`TcpStream::into_split`] and
/// [`UnixStream::into_split`](super::UnixStream::into_split).
///
/// Dropping it shuts down writing: the peer reads to the end and learns that no more will come.
pub struct OwnedWriteHalf<S = TcpStream> {
    /// `None` once the halves were put together again.
    socket: Option<Rc<StreamSocket>>,
    whole: PhantomData<fn() -> S>,
}

impl<S> OwnedWriteHalf<S> {
    pub(super) fn new(socket: Rc<StreamSocket>) -> OwnedWriteHalf<S> {
        OwnedWriteHalf {
            socket: Some(socket),
            whole: PhantomData,
        }
    }

    pub(super) fn socket(&self) -> &Rc<StreamSocket> {
        self.socket
            .as_ref()
            .expect("only `into_socket`, which consumes the half, takes the socket")
    }

    /// Takes the socket out, so that dropping the half shuts nothing down.
    fn into_socket(mut self) -> Option<Rc<StreamSocket>> {
        self.socket.take()
    }

    /// Writes as much of the buffer as the connection takes now. As [`TcpStream::write`].
    pub async fn write<B: IoBuf>(&mut self, buffer: B) -> BufResult<usize, B> {
        transfer::write(self.socket(), buffer).await
    }

    /// Writes what the connection takes now, without waiting. As [`TcpStream::try_write`].
    pub fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        transfer::try_write(self.socket(), bytes)
    }

    /// Waits until the connection takes something. As [`TcpStream::writable`].
    pub async fn writable(&mut self) -> io::Result<()> {
        transfer::writable(self.socket()).await
    }

    /// Writes the whole buffer. As [`TcpStream::write_all`].
    pub async fn write_all<B: IoBuf>(&mut self, buffer: B) -> BufResult<(), B> {
        transfer::write_all(self.socket(), buffer).await
    }

    /// Writes as much of the buffers as the connection takes now. As [`TcpStream::write_vectored`].
    pub async fn write_vectored<B: IoBuf>(&mut self, buffers: Vec<B>) -> BufResult<usize, Vec<B>> {
        transfer::write_vectored(self.socket(), buffers).await
    }

    /// Writes all of the buffers. As [`TcpStream::write_all_vectored`].
    pub async fn write_all_vectored<B: IoBuf>(&mut self, buffers: Vec<B>) -> BufResult<(), Vec<B>> {
        transfer::write_all_vectored(self.socket(), buffers).await
    }

    /// Shuts down reading, writing or both. As [`TcpStream::shutdown`].
    ///
    /// # Errors
    ///
    /// What the kernel reports, such as that the connection is already gone.
    pub async fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        shutdown(self.socket(), how).await
    }
}

impl OwnedWriteHalf {
    /// Returns the address of the other end.
    ///
    /// # Errors
    ///
    /// What the kernel reports, such as that the connection is gone.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        peer_addr(&**self.socket())
    }

    /// Returns the address of this end.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        local_addr(&**self.socket())
    }
}

impl<S> Drop for OwnedWriteHalf<S> {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            // Fails when the connection is gone already, which tells the peer as much. The call does not block.
            SockRef::from(&**socket).shutdown(Shutdown::Write).ok();
        }
    }
}

impl<S> fmt::Debug for OwnedWriteHalf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedWriteHalf")
            .field("socket", &self.socket)
            .finish()
    }
}

/// Two halves of different streams cannot be put together.
pub struct ReuniteError<S = TcpStream> {
    /// The half that was to be completed.
    pub read_half: OwnedReadHalf<S>,
    /// The half that does not belong to it.
    pub write_half: OwnedWriteHalf<S>,
}

impl<S> fmt::Debug for ReuniteError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReuniteError").finish_non_exhaustive()
    }
}

impl<S> fmt::Display for ReuniteError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the halves come from different streams")
    }
}

impl<S> Error for ReuniteError<S> {}
