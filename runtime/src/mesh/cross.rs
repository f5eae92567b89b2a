//! The proof that a value may change its thread.

#![expect(
    unsafe_code,
    reason = "asserts Send for values that were proved Send when wrapped"
)]

/// Values that may cross from one shard to another: exactly those that are `Send`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be sent to another shard",
    label = "this type is not `Send`",
    note = "messages and replies of `Addr<_>` may cross shards, so they must be `Send`",
    note = "mark the method `#[message(local)]` to restrict it to same-shard `Local<_>` handles"
)]
pub trait CrossShard: Send + Sized {}

#[diagnostic::do_not_recommend]
impl<T: Send> CrossShard for T {}

/// A value that was `Send` when it was wrapped.
///
/// The wrapper is `Send` whatever `T` is, so a message type made of wrapped fields needs no bounds of its own, and a
/// field that may not cross is reported once, where it is wrapped.
#[derive(Debug)]
pub struct Cross<T>(T);

// SAFETY: the field is private and `Cross::new` is the only way in; it demands `T: CrossShard`, which holds for `Send`
// types alone.
unsafe impl<T> Send for Cross<T> {}

impl<T> Cross<T> {
    /// Wraps a value that may cross.
    #[inline]
    pub fn new(value: T) -> Self
    where
        T: CrossShard,
    {
        Self(value)
    }

    /// Looks at the value, where it lies.
    #[inline]
    pub fn peek(&self) -> &T {
        &self.0
    }

    /// Takes the value out.
    #[inline]
    pub fn get(self) -> T {
        self.0
    }
}
