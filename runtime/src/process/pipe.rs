//! The ends of the pipes to a child.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use crate::buffer::{BufResult, IoBuf, IoBufMut};
use crate::ring::ops::pipe::{ReadPipe, WritePipe};
use crate::ring::ops::recv::StreamSocket;
use crate::ring::socket::Socket;
use crate::ring::{Op, is_interrupted};

/// What [`Pipe::read_to_end`] makes room for at a time, the size of the kernel's buffer of a pipe.
const READ_BYTES: usize = 64 * 1024;

/// One end of a pipe. It has a lane for each direction, as a socket has, and uses one.
#[derive(Debug)]
pub(super) struct Pipe {
    end: Rc<StreamSocket>,
}

impl Pipe {
    pub(super) fn new(end: OwnedFd) -> Self {
        Self {
            end: Socket::new(end),
        }
    }

    async fn read<B: IoBufMut>(&self, mut buffer: B) -> BufResult<usize, B> {
        if buffer.capacity() == 0 {
            return (Ok(0), buffer);
        }
        loop {
            let lane = self.end.take_inbound().await;
            if let Some(kept) = lane.with_kept(|kept| kept.take(&mut buffer)) {
                return (kept, buffer);
            }
            let (result, returned) = Op::new(ReadPipe::new(lane, buffer)).await;
            if !is_interrupted(&result) {
                return (result, returned);
            }
            buffer = returned;
        }
    }

    /// Reads what comes until the other end is closed by all who have it.
    pub(super) async fn read_to_end(&self, all: &mut Vec<u8>) -> io::Result<usize> {
        let before = all.len();
        let mut chunk = vec![0; READ_BYTES].into_boxed_slice();
        loop {
            let (result, returned) = self.read(chunk).await;
            chunk = returned;
            match result? {
                0 => return Ok(all.len() - before),
                count => all.extend_from_slice(&chunk[..count]),
            }
        }
    }

    async fn write<B: IoBuf>(&self, mut buffer: B) -> BufResult<usize, B> {
        if buffer.is_empty() {
            return (Ok(0), buffer);
        }
        loop {
            let lane = self.end.take_outbound().await;
            let (result, returned) = Op::new(WritePipe::new(lane, buffer)).await;
            if !is_interrupted(&result) {
                return (result, returned);
            }
            buffer = returned;
        }
    }

    async fn write_all<B: IoBuf>(&self, mut buffer: B) -> BufResult<(), B> {
        let mut written = 0;
        while written < buffer.len() {
            let (result, part) = self.write(buffer.slice(written..)).await;
            buffer = part.into_inner();
            match result {
                Ok(0) => return (Err(io::ErrorKind::WriteZero.into()), buffer),
                Ok(count) => written += count,
                Err(error) => return (Err(error), buffer),
            }
        }
        (Ok(()), buffer)
    }

    fn into_owned_fd(self) -> Result<OwnedFd, Self> {
        Socket::into_fd(self.end).map_err(|end| Self { end })
    }
}

/// The writing end of a child's input. Dropping it tells the child that no more will come.
///
/// # Shard affinity
/// Belongs to the shard that started the child.
pub struct ChildStdin(Pipe);

/// The reading end of a child's output.
///
/// # Shard affinity
/// Belongs to the shard that started the child.
pub struct ChildStdout(Pipe);

/// The reading end of a child's error output.
///
/// # Shard affinity
/// Belongs to the shard that started the child.
pub struct ChildStderr(Pipe);

impl ChildStdin {
    pub(super) fn new(pipe: Pipe) -> Self {
        Self(pipe)
    }

    /// Writes as much of the buffer as the pipe takes now, waiting for room. Returns how many bytes that was.
    ///
    /// # Errors
    /// [`BrokenPipe`](io::ErrorKind::BrokenPipe) if nobody reads any more.
    ///
    /// # Cancel safety
    /// Not safe: a dropped write may have written any part of the buffer, or nothing. It never mixes with what is written
    /// after it.
    pub async fn write<B: IoBuf>(&mut self, buffer: B) -> BufResult<usize, B> {
        self.0.write(buffer).await
    }

    /// Writes the whole buffer.
    ///
    /// # Errors
    /// As [`write`](Self::write). A part may have been written.
    ///
    /// # Cancel safety
    /// As [`write`](Self::write).
    pub async fn write_all<B: IoBuf>(&mut self, buffer: B) -> BufResult<(), B> {
        self.0.write_all(buffer).await
    }

    /// Gives the descriptor away, for example to be the output of another child.
    ///
    /// # Errors
    /// Gives this end back if an operation on it, a cancelled one included, has not ended yet.
    pub fn into_owned_fd(self) -> Result<OwnedFd, Self> {
        self.0.into_owned_fd().map_err(Self)
    }
}

/// The two reading ends have the same methods.
macro_rules! reading_end {
    ($name:ident) => {
        impl $name {
            pub(super) fn new(pipe: Pipe) -> Self {
                Self(pipe)
            }

            pub(super) fn into_pipe(self) -> Pipe {
                self.0
            }

            /// Reads what is there, waiting for at least one byte. Returns how many came; 0 when nobody writes any more.
            ///
            /// Fills the buffer from its start, up to its capacity, as [`TcpStream::read`](crate::net::TcpStream::read).
            ///
            /// # Errors
            /// What the kernel reports.
            ///
            /// # Cancel safety
            /// Safe for the pipe: bytes that arrive for a dropped read are kept for the next one. The buffer is lost.
            pub async fn read<B: IoBufMut>(&mut self, buffer: B) -> BufResult<usize, B> {
                self.0.read(buffer).await
            }

            /// Reads what comes until nobody writes any more, and adds it to the vector. Returns how much that was.
            ///
            /// # Errors
            /// What the kernel reports. What was read before is in the vector.
            ///
            /// # Cancel safety
            /// Safe: what was read is in the vector or will be read again.
            pub async fn read_to_end(&mut self, all: &mut Vec<u8>) -> io::Result<usize> {
                self.0.read_to_end(all).await
            }

            /// Gives the descriptor away, for example to be the input of another child.
            ///
            /// # Errors
            /// Gives this end back if an operation on it, a cancelled one included, has not ended yet, or if a cancelled
            /// read left bytes for the next read.
            pub fn into_owned_fd(self) -> Result<OwnedFd, Self> {
                self.0.into_owned_fd().map_err(Self)
            }
        }
    };
}

reading_end!(ChildStdout);
reading_end!(ChildStderr);

/// All three have a descriptor that can be looked at.
macro_rules! end {
    ($name:ident) => {
        impl AsFd for $name {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.0.end.as_fd()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.0).finish()
            }
        }
    };
}

end!(ChildStdin);
end!(ChildStdout);
end!(ChildStderr);
