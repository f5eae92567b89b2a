//! What tasks wait for each other with.
//!
//! | | what | waits |
//! |---|---|---|
//! | [`oneshot`] | one value, from one task to another | the receiver |
//! | [`mpsc`] | a bounded queue, from many tasks to one | senders for room, the receiver for values |
//! | [`watch`] | one value, always the newest, for many | receivers for a change |
//! | [`broadcast`] | every value to every receiver | receivers; a slow one misses values, counted |
//! | [`Notify`] | something has happened | whoever is to know |
//! | [`Semaphore`] | a number of permits | who wants some, in line |
//! | [`Gate`] | who is still inside | who closes it |
//!
//! # Two kinds
//! Those here are for tasks of one shard. They are not `Send`, and cost neither atomic operations nor locks. Those with the
//! same names in [`cross`] are for any threads, shards or not: a change of their state takes a lock for some instructions,
//! and wakes through the injector. Both are one piece of code, in [`generic`], so they do the same. To send *work* to
//! another shard, `Handle::spawn_on` or an actor is the better way; these are for what is shared besides.
//!
//! All are handles: a clone is another handle to the same thing.
//!
//! # What holds for all
//! * A future that is dropped while it waits loses nothing: what it was given goes on to the next one in line.
//! * Who waits is woken when the other side goes away or closes.
//! * First come, first served, and nobody who comes later passes.
//! * Wakers, destructors and clones of values run with nothing borrowed and no lock held: they may use the same primitive.
//!   A waker that panics keeps no other waiter from being woken.
//! * To wait takes memory only when more tasks wait than ever before.
//! * What is ready costs a unit of the task's budget, so that two tasks with a fast channel do not keep the others out.
//!
//! # Examples
//! ```
//! use greenroom_runtime::{spawn, sync::mpsc};
//! # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
//! runtime.run_on(0, || async {
//!     let (sender, mut receiver) = mpsc::channel(2);
//!     spawn(async move {
//!         for number in 0..5 {
//!             sender.send(number).await.expect("the receiver is there");
//!         }
//!     })
//!     .detach();
//!     let mut sum = 0;
//!     while let Some(number) = receiver.recv().await {
//!         sum += number;
//!     }
//!     assert_eq!(sum, 10);
//! });
//! # Ok::<(), greenroom_runtime::StartError>(())
//! ```

pub mod generic;
mod permits;
mod sharing;
mod waiters;

pub use sharing::{AnyThread, SameShard, Sharing};

/// Names the primitives for one kind of [`Sharing`].
macro_rules! primitives_of {
    ($kind:ident) => {
        pub use $crate::sync::generic::gate::GateClosed;
        pub use $crate::sync::generic::semaphore::{AcquireError, TryAcquireError};

        /// Tells waiting tasks that something has happened.
        pub type Notify = $crate::sync::generic::notify::Notify<$crate::sync::$kind>;
        /// The future of [`Notify::notified`]($crate::sync::generic::notify::Notify::notified).
        pub type Notified = $crate::sync::generic::notify::Notified<$crate::sync::$kind>;
        /// A number of permits: limits how many tasks do something at a time.
        pub type Semaphore = $crate::sync::generic::semaphore::Semaphore<$crate::sync::$kind>;
        /// The future of [`Semaphore::acquire`]($crate::sync::generic::semaphore::Semaphore::acquire).
        pub type Acquire = $crate::sync::generic::semaphore::Acquire<$crate::sync::$kind>;
        /// Permits of a [`Semaphore`]; they go back when this is dropped.
        pub type Permit = $crate::sync::generic::semaphore::Permit<$crate::sync::$kind>;
        /// Counts who is inside, and can be closed.
        pub type Gate = $crate::sync::generic::gate::Gate<$crate::sync::$kind>;
        /// Somebody is inside of a [`Gate`] while this lives.
        pub type Entered = $crate::sync::generic::gate::Entered<$crate::sync::$kind>;
        /// The future of [`Gate::close`]($crate::sync::generic::gate::Gate::close).
        pub type AllLeft = $crate::sync::generic::gate::AllLeft<$crate::sync::$kind>;

        /// One value, from one task to another.
        pub mod oneshot {
            pub use $crate::sync::generic::oneshot::{RecvError, TryRecvError};

            /// The end that sends.
            pub type Sender<T> = $crate::sync::generic::oneshot::Sender<T, $crate::sync::$kind>;
            /// The end that receives: a future of the value.
            pub type Receiver<T> = $crate::sync::generic::oneshot::Receiver<T, $crate::sync::$kind>;

            /// Opens a channel for one value.
            pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
                $crate::sync::generic::oneshot::channel()
            }
        }

        /// A bounded queue of values from many tasks to one.
        pub mod mpsc {
            pub use $crate::sync::generic::mpsc::{SendError, TryRecvError, TrySendError};

            /// An end that sends.
            pub type Sender<T> = $crate::sync::generic::mpsc::Sender<T, $crate::sync::$kind>;
            /// The end that receives.
            pub type Receiver<T> = $crate::sync::generic::mpsc::Receiver<T, $crate::sync::$kind>;
            /// Room for one value.
            pub type Permit<T> = $crate::sync::generic::mpsc::Permit<T, $crate::sync::$kind>;
            /// The future of waiting for room.
            pub type Reserve<T> = $crate::sync::generic::mpsc::Reserve<T, $crate::sync::$kind>;
            /// The future of sending a value.
            pub type Sending<'a, T> =
                $crate::sync::generic::mpsc::Sending<'a, T, $crate::sync::$kind>;

            /// Opens a channel that holds up to `capacity` values; zero counts as one.
            pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
                $crate::sync::generic::mpsc::channel(capacity)
            }
        }

        /// A value that one task changes and others look at.
        pub mod watch {
            pub use $crate::sync::generic::watch::{RecvError, SendError};

            /// The end that changes the value.
            pub type Sender<T> = $crate::sync::generic::watch::Sender<T, $crate::sync::$kind>;
            /// An end that looks at the value.
            pub type Receiver<T> = $crate::sync::generic::watch::Receiver<T, $crate::sync::$kind>;

            /// Opens a channel that holds one value, always the newest.
            pub fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
                $crate::sync::generic::watch::channel(value)
            }
        }

        /// Every value to every receiver, with a bound on how far a slow one may fall behind.
        pub mod broadcast {
            pub use $crate::sync::generic::broadcast::{RecvError, SendError, TryRecvError};

            /// An end that sends.
            pub type Sender<T> = $crate::sync::generic::broadcast::Sender<T, $crate::sync::$kind>;
            /// An end that receives every value sent since it was made.
            pub type Receiver<T> =
                $crate::sync::generic::broadcast::Receiver<T, $crate::sync::$kind>;

            /// Opens a channel that keeps up to `capacity` values for receivers that are behind; zero counts as one.
            pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
                $crate::sync::generic::broadcast::channel(capacity)
            }
        }
    };
}

primitives_of!(SameShard);

/// The primitives for holders on any threads.
///
/// # Examples
/// ```
/// use greenroom_runtime::{Handle, sync::cross::mpsc};
/// # let runtime = greenroom_runtime::Builder::new().shards(2).start()?;
/// runtime.run_on(0, || async {
///     let (sender, mut receiver) = mpsc::channel(8);
///     let there = Handle::current().unwrap().spawn_on(1, || async move {
///         for number in 0..100 {
///             sender.send(number).await.expect("the receiver is there");
///         }
///     });
///     let mut sum = 0;
///     while let Some(number) = receiver.recv().await {
///         sum += number;
///     }
///     assert_eq!(sum, 4950);
///     there.await.unwrap();
/// });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
pub mod cross {
    primitives_of!(AnyThread);
}
