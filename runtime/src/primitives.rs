//! Atomics, cells and, for tests, threads: the standard library's, or loom's under `cfg(loom)`.
//!
//! Every protocol between threads in this crate is written against these names, so that the code
//! that ships is the code that the model checker runs. Two habits follow from it. Plain memory that
//! is handed from one thread to another sits in an [`UnsafeCell`], whose accesses loom can see and
//! check for races. And constructors that make an atomic are not `const`, because loom's are not.
//!
//! What the standard library promises by itself (`Arc`, `OnceLock`) is used as it is: loom need not
//! prove it again.

#[cfg(loom)]
pub(crate) use loom::{cell::UnsafeCell, sync::atomic};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic;

#[cfg(all(loom, test))]
pub(crate) use loom::{
    sync::{Arc, mpsc},
    thread,
};
#[cfg(all(not(loom), test))]
pub(crate) use std::{
    sync::{Arc, mpsc},
    thread,
};

use std::ops::Deref;

/// A cell whose content is reached through a raw pointer, for the length of one closure.
///
/// This is loom's shape of `std::cell::UnsafeCell`: a scope instead of a pointer that could be kept,
/// so that the checker knows when an access begins and when it ends. Making the pointer is safe;
/// what may be done with it is argued where it is used.
#[cfg(not(loom))]
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    /// Wraps `value`.
    #[inline]
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Runs `read` with a pointer to read through; others may read meanwhile, nobody may write.
    #[inline]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get().cast_const())
    }

    /// Runs `write` with a pointer to write through; nobody else may look meanwhile.
    #[inline]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// A value that shares its cache line with nothing.
///
/// 128 bytes, not 64: x86 fetches lines in adjacent pairs and some ARM cores have lines of that
/// size, so a neighbour 64 bytes away still costs a transfer.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CacheAligned<T>(T);

impl<T> CacheAligned<T> {
    /// Wraps `value`.
    #[inline]
    pub(crate) const fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for CacheAligned<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{CacheAligned, UnsafeCell};

    #[test]
    fn neighbours_in_an_array_do_not_share_a_line() {
        assert_eq!(align_of::<CacheAligned<u8>>(), 128);
        assert_eq!(size_of::<[CacheAligned<u8>; 2]>(), 256);
    }

    #[test]
    fn the_cell_costs_nothing() {
        assert_eq!(size_of::<UnsafeCell<*mut u8>>(), size_of::<*mut u8>());
    }
}
