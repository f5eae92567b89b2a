//! What a key holds: one of four kinds of value.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use indexmap::{IndexMap, IndexSet};

use crate::bytes::{Bytes, Text};
use crate::error::CommandError;

/// A list that is cheap at both ends.
pub(crate) type List = VecDeque<Bytes>;
/// Fields and their values, in the order they were added.
pub(crate) type Hash = IndexMap<Bytes, Bytes, FixedState>;
/// Members, reachable by index: a random one costs the same in a set of any size.
pub(crate) type Set = IndexSet<Bytes, FixedState>;

/// The value of a key.
///
/// Most values are strings, so only they lie in the table itself.
#[derive(Debug)]
pub(crate) enum Value {
    Text(Text),
    List(Box<List>),
    Hash(Box<Hash>),
    Set(Box<Set>),
}

impl Value {
    /// The name clients know the kind by.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "string",
            Value::List(_) => "list",
            Value::Hash(_) => "hash",
            Value::Set(_) => "set",
        }
    }

    pub(crate) fn view<K: Kind>(&self) -> Result<&K, CommandError> {
        K::view(self).ok_or(CommandError::WrongType)
    }

    pub(crate) fn view_mut<K: Kind>(&mut self) -> Result<&mut K, CommandError> {
        K::view_mut(self).ok_or(CommandError::WrongType)
    }
}

/// One of the kinds of [`Value`].
pub(crate) trait Kind: Sized {
    /// A value without elements; `hasher` is for kinds that look elements up.
    fn empty(hasher: FixedState) -> Value;
    fn is_empty(&self) -> bool;
    fn view(value: &Value) -> Option<&Self>;
    fn view_mut(value: &mut Value) -> Option<&mut Self>;
}

macro_rules! kind {
    ($kind:ident, $hasher:ident => $empty:expr) => {
        impl Kind for $kind {
            fn empty($hasher: FixedState) -> Value {
                Value::$kind($empty)
            }

            fn is_empty(&self) -> bool {
                self.len() == 0
            }

            fn view(value: &Value) -> Option<&Self> {
                match value {
                    Value::$kind(inner) => Some(inner),
                    _ => None,
                }
            }

            fn view_mut(value: &mut Value) -> Option<&mut Self> {
                match value {
                    Value::$kind(inner) => Some(inner),
                    _ => None,
                }
            }
        }
    };
}

kind!(Text, _hasher => (&[][..]).into());
kind!(List, _hasher => Box::default());
kind!(Hash, hasher => Box::new(Hash::with_hasher(hasher)));
kind!(Set, hasher => Box::new(Set::with_hasher(hasher)));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_three_words() {
        assert_eq!(size_of::<Value>(), 24);
    }
}
