//! The receive buffers of a shard: one block of memory, cut into buffers that are lent out.
//!
//! A receive that takes its buffer from here holds none while it waits: a thousand idle connections need no memory. Each
//! buffer is at one of three places:
//!
//! ```text
//!            taken by the backend          completion reaped: `lend`
//!   free ───────────────────────► filling ───────────────────────────► lent (a PooledBuf)
//!    ▲                               │                                      │
//!    └─── given back: nothing came ──┘◄─────────────── PooledBuf dropped ───┘
//! ```
//!
//! Where free buffers are kept depends on who takes them. A backend that receives with system calls of its own takes
//! them from a list ([`BufferPool::take`]). The kernel takes them from a ring in shared memory ([`BufRing`]), and tells
//! which one with the completion.
//!
//! The pool is shared by the driver, by each receive in flight, and by each buffer that is lent out. The last of them
//! frees the memory, so a buffer may outlive its stream, and its shard. If receives are leaked because the kernel did
//! not give them back, the pool is leaked with them.
#![expect(unsafe_code, reason = "owns the memory of the receive buffers")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::ptr::NonNull;
use std::rc::Rc;
use std::slice;

use super::buf_ring::BufRing;
use super::op::BufferId;

/// How many receive buffers a shard has, and how large they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferPoolConfig {
    /// Invariant: a power of two, at most 2^15.
    pub(crate) count: u16,
    /// Invariant: not zero, and at most 2^20.
    pub(crate) buffer_bytes: u32,
}

impl BufferPoolConfig {
    /// `None` if a value is out of range.
    pub(crate) fn new(count: usize, buffer_bytes: usize) -> Option<BufferPoolConfig> {
        let is_valid = count.is_power_of_two() && (64..=1 << 20).contains(&buffer_bytes);
        let count = u16::try_from(count).ok().filter(|_| is_valid)?;
        let buffer_bytes = u32::try_from(buffer_bytes).ok()?;
        Some(BufferPoolConfig {
            count,
            buffer_bytes,
        })
    }
}

impl Default for BufferPoolConfig {
    /// 4 MiB, of which the system provides what was used at least once.
    fn default() -> BufferPoolConfig {
        BufferPoolConfig {
            count: 512,
            buffer_bytes: 8192,
        }
    }
}

/// The receive buffers of one shard.
pub(crate) struct BufferPool {
    /// Invariant: `count` times `buffer_bytes` bytes of one allocation, zeroed once, so always initialised.
    memory: NonNull<u8>,
    count: u16,
    buffer_bytes: u32,
    free: Free,
    /// Who has which buffer. Guards against a backend that names a buffer twice.
    is_lent: Box<[Cell<bool>]>,
    /// Invariant: how many entries of `is_lent` are set.
    lent: Cell<usize>,
}

/// Where free buffers are kept.
enum Free {
    /// In user space, the warmest last.
    List(RefCell<Vec<BufferId>>),
    /// In a ring the kernel takes them from.
    Ring(BufRing),
}

impl BufferPool {
    /// A pool whose buffers the backend takes with [`take`](Self::take).
    pub(super) fn with_list(config: &BufferPoolConfig) -> io::Result<Rc<BufferPool>> {
        let list = (0..config.count).rev().map(BufferId).collect();
        BufferPool::new(config, Free::List(RefCell::new(list)))
    }

    /// A pool whose buffers the kernel takes from the ring that [`ring`](Self::ring) describes.
    pub(super) fn with_ring(config: &BufferPoolConfig) -> io::Result<Rc<BufferPool>> {
        let ring = BufRing::new(config.count)?;
        let pool = BufferPool::new(config, Free::Ring(ring))?;
        for id in (0..config.count).map(BufferId) {
            pool.put(id);
        }
        Ok(pool)
    }

    fn new(config: &BufferPoolConfig, free: Free) -> io::Result<Rc<BufferPool>> {
        let layout = layout(config.count, config.buffer_bytes);
        // SAFETY: the layout is not empty, by the invariants of the configuration.
        let memory = unsafe { alloc_zeroed(layout) };
        let memory = NonNull::new(memory).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Rc::new(BufferPool {
            memory,
            count: config.count,
            buffer_bytes: config.buffer_bytes,
            free,
            is_lent: (0..config.count).map(|_| Cell::new(false)).collect(),
            lent: Cell::new(0),
        }))
    }

    /// The ring to register with the kernel, if there is one.
    pub(super) fn ring(&self) -> Option<&BufRing> {
        match &self.free {
            Free::List(_) => None,
            Free::Ring(ring) => Some(ring),
        }
    }

    /// Takes a free buffer to receive into. `None` if all are in use, or are the kernel's to take.
    ///
    /// The backend either reports it with a completion, or gives it back with [`put`](Self::put).
    pub(super) fn take(&self) -> Option<BufferId> {
        match &self.free {
            Free::List(list) => list.borrow_mut().pop(),
            Free::Ring(_) => None,
        }
    }

    /// Frees a buffer that was taken and is not lent.
    pub(super) fn put(&self, id: BufferId) {
        assert!(
            !self.is_lent[usize::from(id.0)].get(),
            "buffer {} is freed while it is lent",
            id.0
        );
        match &self.free {
            Free::List(list) => list.borrow_mut().push(id),
            Free::Ring(ring) => ring.push(id, self.address(id), self.buffer_bytes),
        }
    }

    /// Lends out a buffer that the backend filled with `len` bytes.
    ///
    /// # Panics
    ///
    /// If the buffer is lent already, or smaller: then the backend is broken.
    pub(super) fn lend(self: &Rc<Self>, id: BufferId, len: usize) -> Lent {
        let was_lent = self.is_lent[usize::from(id.0)].replace(true);
        assert!(!was_lent, "the backend filled buffer {} twice", id.0);
        assert!(
            len <= self.buffer_bytes as usize,
            "the backend filled buffer {} with {len} bytes",
            id.0
        );
        self.lent.set(self.lent.get() + 1);
        Lent {
            pool: Rc::clone(self),
            id,
        }
    }

    /// Where a buffer is.
    pub(super) fn address(&self, id: BufferId) -> NonNull<u8> {
        assert!(id.0 < self.count, "buffer {} of {}", id.0, self.count);
        let offset = usize::from(id.0) * self.buffer_bytes as usize;
        // SAFETY: within the block, by the assertion and the invariant of `memory`.
        unsafe { self.memory.add(offset) }
    }

    /// How many bytes a buffer holds.
    pub(crate) fn buffer_bytes(&self) -> u32 {
        self.buffer_bytes
    }

    /// How many buffers there are.
    pub(crate) fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// How many buffers are not lent out.
    pub(crate) fn free_count(&self) -> usize {
        self.count() - self.lent.get()
    }
}

impl Drop for BufferPool {
    fn drop(&mut self) {
        debug_assert_eq!(self.lent.get(), 0, "a lent buffer keeps its pool");
        let layout = layout(self.count, self.buffer_bytes);
        // SAFETY: allocated in `new` with this layout. Nobody writes to it any more: a receive in flight keeps the pool.
        unsafe { dealloc(self.memory.as_ptr(), layout) };
    }
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferPool")
            .field("count", &self.count)
            .field("buffer_bytes", &self.buffer_bytes)
            .field("lent", &self.lent.get())
            .finish_non_exhaustive()
    }
}

fn layout(count: u16, buffer_bytes: u32) -> Layout {
    let size = usize::from(count) * buffer_bytes as usize;
    Layout::from_size_align(size, 64).expect("at most 2^35 bytes")
}

/// One buffer of a pool, lent to whoever holds this. Dropping it gives the buffer back.
pub(super) struct Lent {
    pool: Rc<BufferPool>,
    id: BufferId,
}

impl Lent {
    /// The whole buffer.
    pub(super) fn bytes(&self) -> &[u8] {
        let len = self.pool.buffer_bytes as usize;
        // SAFETY: initialised by the invariant of `memory`. While it is lent neither the kernel nor a second holder has
        // it (`lend` checks that), and it is only written through a unique borrow of this.
        unsafe { slice::from_raw_parts(self.pool.address(self.id).as_ptr(), len) }
    }

    /// The whole buffer, for writing.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        let len = self.pool.buffer_bytes as usize;
        // SAFETY: as in `bytes`; this borrow of the only holder is unique.
        unsafe { slice::from_raw_parts_mut(self.pool.address(self.id).as_ptr(), len) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.pool.is_lent[usize::from(self.id.0)].set(false);
        self.pool.lent.set(self.pool.lent.get() - 1);
        self.pool.put(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(count: u16) -> Rc<BufferPool> {
        let config = BufferPoolConfig {
            count,
            buffer_bytes: 64,
        };
        BufferPool::with_list(&config).unwrap()
    }

    #[test]
    fn each_buffer_is_taken_once_and_comes_back() {
        let pool = pool(4);
        let taken: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(taken, [0, 1, 2, 3].map(BufferId));
        assert_eq!(pool.free_count(), 4);
        let lent: Vec<_> = taken.iter().map(|&id| pool.lend(id, 64)).collect();
        assert_eq!((pool.free_count(), pool.take()), (0, None));
        drop(lent);
        assert_eq!(pool.free_count(), 4);
        assert_eq!(pool.take(), Some(BufferId(3)), "the warmest comes first");
    }

    #[test]
    fn buffers_do_not_overlap() {
        let pool = pool(4);
        let mut lent: Vec<_> = (0..4).map(|id| pool.lend(BufferId(id), 1)).collect();
        for (value, lent) in (1..).zip(&mut lent) {
            lent.bytes_mut().fill(value);
        }
        for (value, lent) in (1..).zip(&lent) {
            assert_eq!(lent.bytes(), [value; 64]);
        }
    }

    #[test]
    fn a_lent_buffer_outlives_its_pool() {
        let pool = pool(2);
        let lent = pool.lend(pool.take().unwrap(), 64);
        drop(pool);
        assert_eq!(lent.bytes(), [0; 64]);
    }

    #[test]
    #[should_panic(expected = "filled buffer 1 twice")]
    fn a_backend_that_names_a_lent_buffer_is_found_out() {
        let pool = pool(2);
        let _first = pool.lend(BufferId(1), 3);
        let _second = pool.lend(BufferId(1), 3);
    }

    #[test]
    #[should_panic(expected = "with 65 bytes")]
    fn a_backend_that_overfills_a_buffer_is_found_out() {
        let _lent = pool(2).lend(BufferId(1), 65);
    }
}
