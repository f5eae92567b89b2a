//! Many at once: many messages to one actor, one call to many actors, and handles that name no type of actor.
//!
//! Nothing here has a way of its own into a mailbox. What is sent in bulk is sent as single messages are, with the same
//! order, bound and accounting; what is saved is what they would do over and over.
//!
//! * `batch`: several messages to one handler, which runs once for all of them.
//! * `tell_many`: a run of calls, told one after the other with one look-up for those to the same address.
//! * `gather`: several futures driven together, for the calls of a [`crate::Sharded`].
//! * `recipient`, `caller`: an address and a method behind a type that names only what is sent.

mod batch;
mod caller;
mod gather;
mod recipient;
mod tell_many;
mod way;

pub use self::batch::{
    Batch, Replies, SharedAnswer, answer_all, answer_all_flat, gather, gather_answered,
};
pub use self::caller::{Asking, Caller};
pub use self::gather::{Gather, TellEach, TellEachError};
pub use self::recipient::{Recipient, Telling};
pub use self::tell_many::{TellMany, TellManyError, tell_many};

use std::any::{Any, TypeId};

use crate::actor::Actor;
use crate::address::{Addr, Remote};

/// What an erased handle leads to, as far as two of them can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Target {
    /// The shard's number and the actor's generation there.
    actor: (u16, u64),
    name: &'static str,
    closure: TypeId,
    /// The closure captures nothing, so its type says all about it.
    is_pure: bool,
}

impl Target {
    fn new<A: Actor, F: 'static>(addr: Addr<A>) -> Self {
        Self {
            actor: addr.id().number(),
            name: A::NAME,
            closure: TypeId::of::<F>(),
            is_pure: size_of::<F>() == 0,
        }
    }

    /// Whether handles to both do the same with what they are given.
    fn is_same(&self, other: &Self) -> bool {
        self.is_pure && self == other
    }

    fn describe(&self, handle: &str, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            actor: (shard, generation),
            name,
            ..
        } = self;
        write!(f, "{handle}({name}({shard}.{generation}))")
    }
}

/// An address and the closure that makes a call on it.
struct By<A: Actor, F> {
    to: Remote<A>,
    call: F,
    target: Target,
}

impl<A: Actor, F: 'static> By<A, F> {
    fn new(addr: Addr<A>, call: F) -> Self {
        Self {
            to: Remote::new(addr.id()),
            call,
            target: Target::new::<A, F>(addr),
        }
    }
}

impl<A: Actor, F> By<A, F> {
    fn call<T, C>(&self, item: T) -> C
    where
        F: Fn(Addr<A>, T) -> C,
    {
        (self.call)(Addr::from_port(self.to), item)
    }
}

/// The item that a call was made of, if the call has it as it was: as its only argument, or as all of them.
fn take_back<A: 'static, T: 'static>(args: A) -> Option<T> {
    let mut args = Some(args);
    let args: &mut dyn Any = &mut args;
    if let Some(only) = args.downcast_mut::<Option<(T,)>>() {
        return only.take().map(|(item,)| item);
    }
    args.downcast_mut::<Option<T>>().and_then(Option::take)
}

#[cfg(test)]
mod tests {
    use super::take_back;

    #[test]
    fn an_item_comes_back_if_it_is_all_there_is() {
        assert_eq!(take_back::<_, u8>((7_u8,)), Some(7));
        assert_eq!(take_back::<_, (u8, u16)>((7_u8, 9_u16)), Some((7, 9)));
        assert_eq!(take_back::<_, ()>(()), Some(()));
        assert_eq!(take_back::<_, u8>((7_u8, 9_u16)), None);
        assert_eq!(take_back::<_, u8>((7_u16,)), None);
    }
}
