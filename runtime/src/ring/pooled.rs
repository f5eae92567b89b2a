//! Received bytes, in a buffer of the shard's pool.

use std::fmt;
use std::ops::{Deref, DerefMut};

use super::pool::Lent;

/// Bytes that were received into a buffer of the shard.
///
/// Dropping it gives the buffer back, for the next bytes of any connection of the shard. Keep it as long as the bytes are
/// looked at; to keep bytes for longer, copy them ([`to_vec`](slice::to_vec)). A shard has a limited number of buffers
/// ([`Builder::recv_buffers`](crate::Builder::recv_buffers)): while all of them are held, receives fall back to
/// buffers from the heap, which is slower but never wrong.
///
/// It can be written as it is: it is an [`IoBuf`](crate::buffer::IoBuf).
///
/// # Shard affinity
///
/// Stays on its shard. It may outlive the stream it came from.
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
///     client.await.unwrap()?.write_all("GET /").await.0?;
///
///     let mut bytes = server.recv().await?.expect("the request");
///     assert_eq!(&bytes[..3], b"GET");
///     bytes.advance(4);
///     assert_eq!(*bytes, *b"/");
///     assert!(server.recv().await?.is_none(), "the client is gone");
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PooledBuf {
    memory: Memory,
    /// Invariant: at most `end`.
    begin: u32,
    /// Invariant: at most the length of the memory.
    end: u32,
}

enum Memory {
    Pool(Lent),
    Heap(Box<[u8]>),
}

impl PooledBuf {
    /// The first `len` bytes of a buffer of the pool.
    pub(super) fn from_pool(lent: Lent, len: u32) -> PooledBuf {
        assert!(
            len as usize <= lent.bytes().len(),
            "{len} bytes in a buffer"
        );
        PooledBuf {
            memory: Memory::Pool(lent),
            begin: 0,
            end: len,
        }
    }

    /// Bytes from elsewhere.
    ///
    /// # Panics
    ///
    /// If they are more than a receive can bring.
    pub(crate) fn from_heap(bytes: Vec<u8>) -> PooledBuf {
        let end = u32::try_from(bytes.len()).expect("no receive brings 4 GiB");
        PooledBuf {
            memory: Memory::Heap(bytes.into_boxed_slice()),
            begin: 0,
            end,
        }
    }

    /// Whether the bytes are in a buffer of the pool. If not, the pool had none to spare.
    pub fn is_pooled(&self) -> bool {
        matches!(self.memory, Memory::Pool(_))
    }

    /// Forgets the first `count` bytes.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    #[track_caller]
    pub fn advance(&mut self, count: usize) {
        let len = self.len();
        assert!(count <= len, "advanced by {count} of {len} bytes");
        self.begin += u32::try_from(count).expect("at most the length");
    }
}

impl Deref for PooledBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let bytes = match &self.memory {
            Memory::Pool(lent) => lent.bytes(),
            Memory::Heap(bytes) => bytes,
        };
        &bytes[self.begin as usize..self.end as usize]
    }
}

impl DerefMut for PooledBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        let bytes = match &mut self.memory {
            Memory::Pool(lent) => lent.bytes_mut(),
            Memory::Heap(bytes) => bytes,
        };
        &mut bytes[self.begin as usize..self.end as usize]
    }
}

impl AsRef<[u8]> for PooledBuf {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for PooledBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PooledBuf")
            .field("len", &self.len())
            .field("is_pooled", &self.is_pooled())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::IoBuf;

    #[test]
    fn what_is_advanced_over_is_gone() {
        let mut bytes = PooledBuf::from_heap(b"request body".to_vec());
        bytes.advance(8);
        assert_eq!(*bytes, *b"body");
        bytes[0] = b'B';
        assert_eq!(&*bytes.slice(..2), b"Bo");
    }

    #[test]
    #[should_panic(expected = "advanced by 3 of 2 bytes")]
    fn nothing_is_advanced_over_that_is_not_there() {
        PooledBuf::from_heap(b"ab".to_vec()).advance(3);
    }
}
