//! What a key is made of: two words.
//!
//! A key is a part of every message that asks. A value of more and smaller parts is written in those parts, and copied with
//! the message in larger ones, and a processor waits long for a copy of what it has just written in pieces.

#![expect(
    unsafe_code,
    reason = "owns a sender by an address that is kept as a number"
)]

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::num::NonZeroU64;
use std::ptr;

use futures_channel::oneshot;

use super::Place;
use super::due::Noted;
use super::note::Home;
use crate::shard::ShardNumber;

/// The way to an asker: a slot, or the sender of a channel to a thread that is no shard; or to nobody.
///
/// The invariants are those of its makers: [`Key::slot`], [`Key::outside`] and [`Key::nowhere`].
pub(super) struct Key<T> {
    /// Below, the 24 bits of a [`Home`], and one of three that say which way it is. Above, the number of the slot.
    head: NonZeroU64,
    /// The generation of the slot. Or the address of a `oneshot::Sender<T>` in a box, with exposed provenance, which this
    /// owns.
    tail: u64,
    sender: PhantomData<oneshot::Sender<T>>,
}

const IS_SLOT: NonZeroU64 = NonZeroU64::new(1 << 24).unwrap();
const IS_OUTSIDE: NonZeroU64 = NonZeroU64::new(1 << 25).unwrap();
const IS_NOWHERE: NonZeroU64 = NonZeroU64::new(1 << 26).unwrap();

impl<T> Key<T> {
    #[inline]
    pub(super) fn slot(home: Home, slot: u32, generation: u64) -> Self {
        Self {
            head: IS_SLOT | u64::from(home.word()) | u64::from(slot) << 32,
            tail: generation,
            sender: PhantomData,
        }
    }

    #[inline]
    pub(super) fn nowhere() -> Self {
        Self {
            head: IS_NOWHERE,
            tail: 0,
            sender: PhantomData,
        }
    }

    #[inline]
    pub(super) fn is_nowhere(&self) -> bool {
        self.head == IS_NOWHERE
    }

    #[cold]
    pub(super) fn outside(due: Noted, sender: oneshot::Sender<T>) -> Self {
        let home = Home::new(ShardNumber::new(0), due);
        let address = Box::into_raw(Box::new(sender)).expose_provenance();
        Self {
            head: IS_OUTSIDE | u64::from(home.word()),
            tail: address as u64,
            sender: PhantomData,
        }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a home has 24 bits")]
    pub(super) fn home(&self) -> Home {
        Home::from_word(self.head.get() as u32)
    }

    #[inline]
    fn is_outside(&self) -> bool {
        self.head.get() & IS_OUTSIDE.get() != 0
    }

    /// The slot; `None` if the asker is outside, or there is none.
    #[inline]
    pub(super) fn place(&self) -> Option<Place> {
        if self.head.get() & IS_SLOT.get() == 0 {
            return None;
        }
        Some(Place {
            generation: self.tail,
            slot: (self.head.get() >> 32) as u32,
            shard: self.home().shard(),
        })
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "made of an address, which fits"
    )]
    fn sender(&self) -> Option<*mut oneshot::Sender<T>> {
        self.is_outside()
            .then(|| ptr::with_exposed_provenance_mut(self.tail as usize))
    }

    /// Whether there is an asker outside, who waits.
    #[cold]
    pub(super) fn is_wanted_outside(&self) -> bool {
        // SAFETY: by the invariant of `tail` this points to a live sender, which is borrowed as the key is.
        let sender = self.sender().map(|sender| unsafe { &*sender });
        sender.is_some_and(|sender| !sender.is_canceled())
    }

    /// The sender of an asker outside.
    #[cold]
    pub(super) fn into_sender(self) -> Option<oneshot::Sender<T>> {
        let key = ManuallyDrop::new(self);
        // SAFETY: by the invariant of `tail` the box is the key's own, and the key is not dropped and not used again.
        let sender = key.sender().map(|sender| unsafe { Box::from_raw(sender) });
        sender.map(|sender| *sender)
    }
}

impl<T> Drop for Key<T> {
    #[inline]
    fn drop(&mut self) {
        if self.is_outside() {
            drop_sender(self);
        }
    }
}

#[cold]
fn drop_sender<T>(key: &mut Key<T>) {
    if let Some(sender) = key.sender() {
        // SAFETY: by the invariant of `tail` the box is the key's own, and this is the drop of the key.
        drop(unsafe { Box::from_raw(sender) });
    }
}
