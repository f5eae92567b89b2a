//! Values that belong to a task for the length of a future.
//!
//! The value stands in a thread-local while the future is polled or dropped, and nowhere else: whatever runs between two
//! polls, on whichever shard of the thread, does not see it.

use std::cell::Cell;
use std::fmt;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::thread;

/// Declares task-local values.
///
/// # Examples
/// ```
/// greenroom_runtime::task_local! {
///     /// The request that is being served.
///     static REQUEST: u64;
/// }
///
/// async fn note(what: &str) -> String {
///     format!("{what} of request {}", REQUEST.get())
/// }
///
/// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// let text = runtime.run_on(0, || REQUEST.scope(7, note("start")));
/// assert_eq!(text, "start of request 7");
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[macro_export]
macro_rules! task_local {
    ($($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty;)+) => {
        $(
            $(#[$attribute])*
            $visibility static $name: $crate::task::LocalKey<$type> = {
                ::std::thread_local! {
                    static VALUE: $crate::task::LocalValue<$type> =
                        const { $crate::task::LocalValue::none() };
                }
                $crate::task::LocalKey::new(&VALUE)
            };
        )+
    };
}

/// Where the value of a [`LocalKey`] stands while its scope runs. Made by [`task_local!`](crate::task_local) alone.
#[doc(hidden)]
pub struct LocalValue<T>(Cell<Option<Rc<T>>>);

impl<T> LocalValue<T> {
    #[doc(hidden)]
    #[must_use]
    pub const fn none() -> Self {
        Self(Cell::new(None))
    }
}

impl<T> fmt::Debug for LocalValue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalValue").finish_non_exhaustive()
    }
}

/// The name of a task-local value, declared by [`task_local!`](crate::task_local).
///
/// A spawned task does not inherit values: give it a scope of its own.
pub struct LocalKey<T: 'static> {
    value: &'static thread::LocalKey<LocalValue<T>>,
}

impl<T: 'static> LocalKey<T> {
    #[doc(hidden)]
    #[must_use]
    pub const fn new(value: &'static thread::LocalKey<LocalValue<T>>) -> Self {
        Self { value }
    }

    /// Runs a future with a value: it is there in each of its polls, and when it is dropped.
    ///
    /// Scopes can be nested; the inner value is seen.
    ///
    /// # Cancel safety
    /// That of the future.
    pub async fn scope<F: IntoFuture>(&'static self, value: T, future: F) -> F::Output {
        let mut future = pin!(Some(future.into_future()));
        // Declared after the future, so that it drops it.
        let mut scoped = Scoped {
            key: self,
            value: Rc::new(value),
            future: future.as_mut(),
        };
        std::future::poll_fn(|cx| {
            let _entered = self.enter(scoped.value.clone());
            let future = scoped.future.as_mut().as_pin_mut();
            future.expect("dropped by `Scoped` alone").poll(cx)
        })
        .await
    }

    /// Runs a closure with a value.
    pub fn sync_scope<R>(&'static self, value: T, code: impl FnOnce() -> R) -> R {
        let _entered = self.enter(Rc::new(value));
        code()
    }

    /// Looks at the value.
    ///
    /// # Panics
    /// If no scope of this key runs.
    #[track_caller]
    pub fn with<R>(&'static self, look: impl FnOnce(&T) -> R) -> R {
        match self.value() {
            Some(value) => look(&value),
            None => panic!("a task-local value was asked for outside of its scope"),
        }
    }

    /// Looks at the value if there is one.
    ///
    /// # Errors
    /// [`AccessError`] when no scope of this key runs.
    pub fn try_with<R>(&'static self, look: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        let value = self.value().ok_or(AccessError)?;
        Ok(look(&value))
    }

    /// A clone of the value.
    ///
    /// # Panics
    /// If no scope of this key runs.
    #[must_use]
    #[track_caller]
    pub fn get(&'static self) -> T
    where
        T: Clone,
    {
        self.with(T::clone)
    }

    fn value(&'static self) -> Option<Rc<T>> {
        // Held apart while it is looked at: the closure may open scopes of its own.
        let found = self.value.try_with(|LocalValue(cell)| {
            let value = cell.take();
            cell.set(value.clone());
            value
        });
        found.ok().flatten()
    }

    fn enter(&'static self, value: Rc<T>) -> Entered<T> {
        Entered {
            key: self,
            outer: self
                .value
                .with(|LocalValue(cell)| cell.replace(Some(value))),
        }
    }
}

/// A future and the value it runs with.
struct Scoped<'a, T: 'static, F> {
    key: &'static LocalKey<T>,
    value: Rc<T>,
    /// Invariant: `Some` until this is dropped.
    future: Pin<&'a mut Option<F>>,
}

impl<T, F> Drop for Scoped<'_, T, F> {
    fn drop(&mut self) {
        let _entered = self.key.enter(self.value.clone());
        self.future.set(None);
    }
}

/// While this lives, the value is there.
struct Entered<T: 'static> {
    key: &'static LocalKey<T>,
    outer: Option<Rc<T>>,
}

impl<T> Drop for Entered<T> {
    fn drop(&mut self) {
        let outer = self.outer.take();
        // Dropped after the cell was written: a destructor may look at it.
        drop(self.key.value.with(|LocalValue(cell)| cell.replace(outer)));
    }
}

impl<T> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKey").finish_non_exhaustive()
    }
}

/// No scope of the key runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError;

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the task-local value has no scope here")
    }
}

impl std::error::Error for AccessError {}
