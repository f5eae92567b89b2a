//! Answers that are given while their asker is still on the stack.
//!
//! A slot in the table is for answers that come later. When whoever answers runs inside the call that asks, the value
//! can be written where the asker will read it: into a *frame* on its own stack. The shard knows the innermost frame,
//! and each frame the one around it.
//!
//! ```text
//!  answer_at_once ─► frame in the chain ─► work(key) ─► key.send(value) writes the frame ─► frame leaves the chain
//! ```
//! A key of a frame is like any other, except that it names no slot. Used after its frame has gone, or on another
//! thread, which the owner's loop then does for it, it finds no frame with its generation and its value is dropped.

#![expect(
    unsafe_code,
    reason = "writes through pointers to frames further down the stack, typed by generation"
)]

use std::cell::{Cell, UnsafeCell};
use std::ptr::{self, NonNull};

use super::reply::ReplyKey;
use crate::shard::{Shard, context};

/// The most frames on a stack. A chain of actors of which each asks the next from inside of its handler would grow it
/// without end, where no budget ends the chain.
const DEPTH_MAX: u32 = 64;

/// Where one answer is awaited, further down the stack.
#[derive(Debug)]
struct Frame {
    generation: u64,
    /// How many frames there are up to this one.
    depth: u32,
    /// Invariant: points to the `UnsafeCell<Option<T>>` of the [`answer_at_once`] that made this frame, where `T` is
    /// the one type that the generation was taken for.
    value: NonNull<()>,
    outer: *const Frame,
}

/// The innermost frame of a shard, from which the others are reached.
///
/// Invariant: null, or a frame of an [`answer_at_once`] that is on the stack of the shard's thread; likewise each
/// frame's `outer`. Frames are left in the reverse of their order, since they are guarded by locals.
#[derive(Debug)]
pub(crate) struct Frames {
    innermost: Cell<*const Frame>,
}

impl Frames {
    pub(crate) fn new() -> Self {
        Self {
            innermost: Cell::new(ptr::null()),
        }
    }

    #[inline]
    fn depth(&self) -> u32 {
        // SAFETY: by the type's invariant the pointer is null or leads to a frame that is alive.
        unsafe { self.innermost.get().as_ref() }.map_or(0, |frame| frame.depth)
    }

    #[inline]
    fn find(&self, generation: u64) -> Option<&Frame> {
        let mut frame = self.innermost.get();
        // SAFETY: by the type's invariant each pointer is null or leads to a frame that is alive.
        while let Some(found) = unsafe { frame.as_ref() } {
            if found.generation == generation {
                return Some(found);
            }
            frame = found.outer;
        }
        None
    }

    /// Whether the asker of this generation is on the stack.
    pub(crate) fn is_open(&self, generation: u64) -> bool {
        self.find(generation).is_some()
    }

    /// Writes an answer into its frame; gives it back if there is none.
    ///
    /// # Safety
    /// * The generation was taken for `T`.
    #[inline]
    pub(crate) unsafe fn fill<T>(&self, generation: u64, answer: T) -> Option<T> {
        let Some(frame) = self.find(generation) else {
            return Some(answer);
        };
        let value = frame.value.cast::<UnsafeCell<Option<T>>>();
        // SAFETY: by the invariant of `Frame::value` and our contract this points to a live cell of this type.
        let value = unsafe { value.as_ref() }.get();
        // SAFETY: nobody else holds a reference into the cell: it is written here, with no user code in between, and
        // read by its owner after the frame has left the chain. What is written over is `None`: the one key of this
        // generation is used once.
        unsafe { value.write(Some(answer)) };
        None
    }
}

/// Puts the chain back, also when the work panics.
struct Leave<'a> {
    frames: &'a Frames,
    outer: *const Frame,
}

impl Drop for Leave<'_> {
    #[inline]
    fn drop(&mut self) {
        self.frames.innermost.set(self.outer);
    }
}

/// Runs `work` with the key of an answer, and returns the answer that was given before `work` returned, if any. One
/// that is given later is dropped.
///
/// `None`, and `work` does not run, where nothing may be answered at once: the running task has spent its budget, of which
/// this takes a unit; sixty-four askers are on the stack already, each asking from inside of another's answer; or the
/// thread is no shard.
///
/// # Shard affinity
/// The key is to be used on the calling shard.
#[inline]
pub fn answer_at_once<T: 'static>(work: impl FnOnce(ReplyKey<T>)) -> Option<Option<T>> {
    context::with(|shard: &Shard| {
        let frames = shard.frames();
        let depth = frames.depth() + 1;
        if shard.budget().is_spent() || depth > DEPTH_MAX {
            return None;
        }
        shard.budget().spend();
        let generation = shard.next_generation();
        let value = UnsafeCell::new(None::<T>);
        let frame = Frame {
            generation,
            depth,
            value: NonNull::from(&value).cast(),
            outer: frames.innermost.get(),
        };
        {
            let _leave = Leave {
                frames,
                outer: frame.outer,
            };
            frames.innermost.set(&raw const frame);
            work(ReplyKey::at_once(shard.number(), generation));
        }
        Some(value.into_inner())
    })
    .flatten()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::{DEPTH_MAX, answer_at_once};
    use crate::Builder;

    fn on_a_shard<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
        let runtime = Builder::new().shards(1).start().expect("a shard");
        runtime.run_on(0, move || async move { work() })
    }

    #[test]
    fn an_answer_given_meanwhile_is_returned() {
        let answer = on_a_shard(|| answer_at_once::<String>(|key| key.send("yes".to_owned())));
        assert_eq!(answer, Some(Some("yes".to_owned())));
    }

    #[test]
    fn a_key_that_is_dropped_gives_no_answer() {
        assert_eq!(on_a_shard(|| answer_at_once::<u32>(drop)), Some(None));
    }

    #[test]
    fn the_answer_of_an_outer_frame_may_be_given_inside_of_an_inner_one() {
        let both = on_a_shard(|| {
            let mut inner = None;
            let outer = answer_at_once::<u32>(|outer| {
                inner = answer_at_once::<String>(|key| {
                    outer.send(1);
                    key.send("inner".to_owned());
                });
            });
            (outer, inner)
        });
        assert_eq!(both, (Some(Some(1)), Some(Some("inner".to_owned()))));
    }

    #[test]
    fn a_late_answer_is_dropped_and_reaches_no_other_frame() {
        let found = on_a_shard(|| {
            let mut kept = None;
            let first = answer_at_once::<u32>(|key| kept = Some(key));
            let key = kept.expect("kept");
            assert!(!key.is_wanted());
            let second = answer_at_once::<u32>(|_| key.send(7));
            (first, second)
        });
        assert_eq!(found, (Some(None), Some(None)));
    }

    #[test]
    fn a_panic_leaves_the_chain_as_it_was() {
        let found = on_a_shard(|| {
            answer_at_once::<u32>(|key| {
                let work = || answer_at_once::<u32>(|_| panic!("on purpose"));
                assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
                assert!(key.is_wanted());
                key.send(3);
            })
        });
        assert_eq!(found, Some(Some(3)));
    }

    #[test]
    fn a_key_used_on_another_thread_answers_nobody() {
        let answer = on_a_shard(|| {
            answer_at_once::<u32>(|key| {
                std::thread::spawn(move || key.send(1))
                    .join()
                    .expect("the thread sends and ends");
            })
        });
        assert_eq!(answer, Some(None));
    }

    #[test]
    fn a_chain_of_askers_ends_before_the_stack_does() {
        fn ask(depth: u32) -> u32 {
            let mut deepest = depth;
            answer_at_once::<u32>(|_| deepest = ask(depth + 1));
            deepest
        }
        assert_eq!(on_a_shard(|| ask(0)), DEPTH_MAX);
        // Where no budget ends it either.
        let unlimited = on_a_shard(|| crate::blocking::shard_blocking(|| ask(0)));
        assert_eq!(unlimited, DEPTH_MAX);
    }

    #[test]
    fn nothing_is_answered_at_once_on_a_thread_that_is_no_shard() {
        assert_eq!(answer_at_once::<u32>(|key| key.send(1)), None);
    }
}
