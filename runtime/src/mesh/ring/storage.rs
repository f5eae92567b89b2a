//! The memory of a ring, and how a record is found in it.

#![expect(
    unsafe_code,
    reason = "owns one block of raw memory and reads headers in it"
)]

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use super::{Header, RecordVtable, UNIT, record_bytes};

/// Bytes of a cache line.
const LINE: usize = 64;
/// How far ahead of the record at hand lines are fetched: as far as both ends work on records while one line comes from
/// the other CPU.
pub(super) const AHEAD: usize = 8 * LINE;

/// Memory that begins with a cache line: a record that fits into one then lies in one.
#[repr(C, align(64))]
struct Line(MaybeUninit<[u8; LINE]>);

const _: () = assert!(size_of::<Line>() == LINE && LINE.is_multiple_of(UNIT));

/// The memory of a ring.
pub(super) struct Storage {
    /// Invariant: from `Box::into_raw` of a slice of `capacity_bytes / LINE` lines.
    lines: NonNull<Line>,
    /// Invariant: a power of two, and a multiple of `LINE`.
    pub(super) capacity_bytes: usize,
    /// One cell per unit, for loom, which does not see raw memory: see `touch`.
    #[cfg(loom)]
    touched: Vec<crate::primitives::UnsafeCell<()>>,
}

// SAFETY: `lines` is memory that the storage owns alone, as a box does, and the rest is plain data.
// What is in the memory came through `try_push`, which asks for `T: Send`.
unsafe impl Send for Storage {}
// SAFETY: a shared storage gives out raw pointers and numbers; whether the memory behind a pointer
// may be touched is argued where it is done.
unsafe impl Sync for Storage {}

impl Storage {
    pub(super) fn new(capacity_bytes: usize) -> Self {
        let lines: Box<[MaybeUninit<Line>]> = Box::new_uninit_slice(capacity_bytes / LINE);
        // A line is itself uninitialised bytes, so this is only a change of type. The pages are
        // first touched by the producer.
        let lines = Box::into_raw(lines).cast::<Line>();
        Self {
            lines: NonNull::new(lines).expect("a box is not null"),
            capacity_bytes,
            #[cfg(loom)]
            touched: (0..capacity_bytes / UNIT)
                .map(|_| crate::primitives::UnsafeCell::new(()))
                .collect(),
        }
    }

    /// The place of an index, in bytes.
    #[inline]
    pub(super) fn place(&self, index: usize) -> usize {
        index & (self.capacity_bytes - 1)
    }

    /// The memory at an index: inside the storage, and aligned to `UNIT` as all indices are.
    #[inline]
    pub(super) fn at(&self, index: usize) -> *mut u8 {
        self.lines
            .as_ptr()
            .cast::<u8>()
            .wrapping_add(self.place(index))
    }

    /// Tells loom that the caller uses these bytes, and that nobody else may do so meanwhile.
    #[inline]
    pub(super) fn touch(&self, index: usize, bytes: usize) {
        #[cfg(loom)]
        for offset in (0..bytes).step_by(UNIT) {
            self.touched[self.place(index.wrapping_add(offset)) / UNIT].with_mut(|_| ());
        }
        #[cfg(not(loom))]
        let _ = (index, bytes);
    }

    /// Gets the lines between two indices on their way to be read.
    #[inline]
    pub(super) fn fetch(&self, from: usize, to: usize) {
        self.each_line(from, to, prefetch);
    }

    /// Gets the lines between two indices on their way to be written.
    #[inline]
    pub(super) fn fetch_to_write(&self, from: usize, to: usize) {
        self.each_line(from, to, prefetch_to_write);
    }

    #[inline]
    fn each_line(&self, from: usize, to: usize, act: impl Fn(*const u8)) {
        // A line that begins before is one of what ends at `from`.
        let mut line = from.wrapping_add(LINE - 1) & !(LINE - 1);
        while line.wrapping_sub(to).cast_signed() < 0 {
            act(self.at(line));
            line = line.wrapping_add(LINE);
        }
    }

    /// Takes the record at `head`, passing over padding, and moves `head` behind it.
    ///
    /// Returns what to call and the payload to call it with, or `None` when `head` has reached
    /// `tail`.
    ///
    /// # Safety
    ///
    /// * From `head` to `tail` there are whole records, written by the producer.
    /// * Those writes happened before this call, and the producer does not write there again before
    ///   the caller is done with the payload.
    /// * No record is taken twice.
    pub(super) unsafe fn take(
        &self,
        head: &mut usize,
        tail: usize,
    ) -> Option<(&'static RecordVtable, *mut u8)> {
        while *head != tail {
            let index = *head;
            self.touch(index, UNIT);
            // SAFETY: `at` is inside the storage and aligned for a header, and the caller says that
            // a record starts here, that its header was written and that it does not change.
            let header = unsafe { self.at(index).cast::<Header>().read() };
            let payload_bytes = header.payload_bytes as usize;
            *head = index.wrapping_add(record_bytes(payload_bytes));
            if let Some(vtable) = header.vtable {
                self.touch(index.wrapping_add(UNIT), payload_bytes);
                if tail.wrapping_sub(*head) >= AHEAD {
                    self.fetch(index.wrapping_add(AHEAD), head.wrapping_add(AHEAD));
                }
                return Some((vtable, self.at(index).wrapping_add(UNIT)));
            }
        }
        None
    }
}

/// Gets a cache line on its way, so that it has come from the other CPU when it is read.
#[inline]
pub(super) fn prefetch(place: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which reads nothing, whatever the address is.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// As [`prefetch`], of a line that is going to be written: it leaves the other CPU's cache.
///
/// The intrinsic with the hint for it becomes a plain prefetch unless the program is compiled for newer processors only.
#[inline]
fn prefetch_to_write(place: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint, which reads and writes nothing, whatever the address is. Processors of this architecture that do
    // not know it do nothing.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = place;
}

impl Drop for Storage {
    fn drop(&mut self) {
        let lines = std::ptr::slice_from_raw_parts_mut(
            self.lines.as_ptr().cast::<MaybeUninit<Line>>(),
            self.capacity_bytes / LINE,
        );
        // SAFETY: by the fields' invariants this is the slice that `new` took out of its box, and a
        // storage is dropped once.
        drop(unsafe { Box::from_raw(lines) });
    }
}
