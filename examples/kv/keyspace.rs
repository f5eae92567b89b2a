//! The keys of one shard: values and when they end.
//!
//! Time is handed in with [`Keyspace::advance`] and stands still in between, so one batch of commands sees one instant
//! and a test needs no clock. A key whose time has come is gone at once for every command; its memory is freed when the
//! key is written again or by [`Keyspace::sweep`]. Keys that end are also kept in order of their ends: a sweep touches
//! nothing but what is due, and a count is exact although the sweep may be behind.

use std::collections::BTreeSet;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::EntryRef;

use crate::bytes::Bytes;
use crate::error::CommandError;
use crate::random::Random;
use crate::value::{Kind, Value};

/// The end of a key that does not end.
const NEVER_MS: u64 = u64::MAX;

#[derive(Debug)]
struct Slot {
    value: Value,
    /// Invariant: unless it is [`NEVER_MS`], `deadlines` holds it together with the key.
    deadline_ms: u64,
}

/// What a write does to the end of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    Never,
    Keep,
    At(u64),
}

/// The keys of one shard.
#[derive(Debug)]
pub(crate) struct Keyspace {
    slots: HashMap<Bytes, Slot, FixedState>,
    deadlines: BTreeSet<(u64, Bytes)>,
    now_ms: u64,
    random: Random,
}

impl Keyspace {
    /// A keyspace without keys; `seed` decides its hashing and its random choices.
    pub(crate) fn new(seed: u64) -> Self {
        Keyspace {
            slots: HashMap::with_hasher(FixedState::with_seed(seed)),
            deadlines: BTreeSet::new(),
            now_ms: 0,
            random: Random::new(seed),
        }
    }

    /// Sets the time, in milliseconds since 1970. It does not run backwards.
    pub(crate) fn advance(&mut self, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    pub(crate) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// How many keys there are. Costs a step for each key that is due and not swept.
    pub(crate) fn len(&self) -> usize {
        let due = self
            .deadlines
            .iter()
            .take_while(|(deadline_ms, _)| *deadline_ms <= self.now_ms);
        self.slots.len() - due.count()
    }

    pub(crate) fn clear(&mut self) {
        let hasher = self.slots.hasher().clone();
        self.slots = HashMap::with_hasher(hasher);
        self.deadlines.clear();
    }

    pub(crate) fn value(&self, key: &[u8]) -> Option<&Value> {
        self.slot(key).map(|slot| &slot.value)
    }

    /// The value of a key as one kind of value.
    ///
    /// # Errors
    /// The key holds another kind.
    pub(crate) fn read<K: Kind>(&self, key: &[u8]) -> Result<Option<&K>, CommandError> {
        self.value(key).map(Value::view).transpose()
    }

    /// The value of a key as one kind of value, to be changed. A value that may have lost its last element is to be
    /// followed by [`Keyspace::remove_if_empty`].
    ///
    /// # Errors
    /// The key holds another kind.
    pub(crate) fn write<K: Kind>(&mut self, key: &[u8]) -> Result<Option<&mut K>, CommandError> {
        let now_ms = self.now_ms;
        match self.slots.get_mut(key) {
            Some(slot) if slot.deadline_ms > now_ms => slot.value.view_mut().map(Some),
            _ => Ok(None),
        }
    }

    /// The value of a key as one kind of value, made first when there is none.
    ///
    /// # Errors
    /// The key holds another kind.
    pub(crate) fn write_or_make<K: Kind>(&mut self, key: &[u8]) -> Result<&mut K, CommandError> {
        let hasher = self.slots.hasher().clone();
        let slot = match self.slots.entry_ref(key) {
            EntryRef::Occupied(entry) => {
                let slot = entry.into_mut();
                if slot.deadline_ms <= self.now_ms {
                    self.deadlines.remove(&(slot.deadline_ms, key.into()));
                    *slot = Slot::new(K::empty(hasher));
                }
                slot
            }
            EntryRef::Vacant(entry) => {
                entry.insert_with_key(key.into(), Slot::new(K::empty(hasher)))
            }
        };
        slot.value.view_mut()
    }

    /// Makes a key hold a string, whatever it held before.
    pub(crate) fn set(&mut self, key: &[u8], text: &[u8], expiry: Expiry) {
        let (slot, before_ms) = match self.slots.entry_ref(key) {
            EntryRef::Occupied(entry) => {
                let slot = entry.into_mut();
                match &mut slot.value {
                    Value::Text(old) => old.overwrite(text),
                    other => *other = Value::Text(text.into()),
                }
                let before_ms = slot.deadline_ms;
                (slot, before_ms)
            }
            EntryRef::Vacant(entry) => (
                entry.insert_with_key(key.into(), Slot::new(Value::Text(text.into()))),
                NEVER_MS,
            ),
        };
        slot.deadline_ms = match expiry {
            Expiry::At(deadline_ms) => deadline_ms,
            Expiry::Keep if before_ms > self.now_ms => before_ms,
            Expiry::Keep | Expiry::Never => NEVER_MS,
        };
        let after_ms = slot.deadline_ms;
        self.index_deadline(key, before_ms, after_ms);
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<Value> {
        let slot = self.slots.remove(key)?;
        self.index_deadline(key, slot.deadline_ms, NEVER_MS);
        (slot.deadline_ms > self.now_ms).then_some(slot.value)
    }

    /// Removes a key whose value has no elements: such a value does not exist for clients.
    pub(crate) fn remove_if_empty<K: Kind>(&mut self, key: &[u8]) {
        if let Ok(Some(value)) = self.read::<K>(key)
            && value.is_empty()
        {
            self.remove(key);
        }
    }

    /// When a key ends; the outer `None` is no key, the inner one no end.
    pub(crate) fn deadline_ms(&self, key: &[u8]) -> Option<Option<u64>> {
        let deadline_ms = self.slot(key)?.deadline_ms;
        Some((deadline_ms != NEVER_MS).then_some(deadline_ms))
    }

    /// Sets or takes away the end of a key. Returns whether there is such a key.
    pub(crate) fn set_deadline_ms(&mut self, key: &[u8], deadline_ms: Option<u64>) -> bool {
        let now_ms = self.now_ms;
        let after_ms = deadline_ms.unwrap_or(NEVER_MS);
        let Some(slot) = self
            .slots
            .get_mut(key)
            .filter(|slot| slot.deadline_ms > now_ms)
        else {
            return false;
        };
        let before_ms = std::mem::replace(&mut slot.deadline_ms, after_ms);
        self.index_deadline(key, before_ms, after_ms);
        true
    }

    /// Frees at most `keys_max` keys whose time has come. Returns whether more are due.
    pub(crate) fn sweep(&mut self, keys_max: usize) -> bool {
        for _ in 0..keys_max {
            let Some((_, key)) = self.take_due() else {
                return false;
            };
            self.slots.remove(&key);
        }
        self.deadlines
            .first()
            .is_some_and(|(deadline_ms, _)| *deadline_ms <= self.now_ms)
    }

    /// Whether any key has an end.
    pub(crate) fn has_deadlines(&self) -> bool {
        !self.deadlines.is_empty()
    }

    fn take_due(&mut self) -> Option<(u64, Bytes)> {
        let (deadline_ms, _) = self.deadlines.first()?;
        if *deadline_ms > self.now_ms {
            return None;
        }
        self.deadlines.pop_first()
    }

    fn slot(&self, key: &[u8]) -> Option<&Slot> {
        self.slots
            .get(key)
            .filter(|slot| slot.deadline_ms > self.now_ms)
    }

    fn index_deadline(&mut self, key: &[u8], before_ms: u64, after_ms: u64) {
        if before_ms == after_ms {
            return;
        }
        if before_ms != NEVER_MS {
            self.deadlines.remove(&(before_ms, key.into()));
        }
        if after_ms != NEVER_MS {
            self.deadlines.insert((after_ms, key.into()));
        }
    }
}

impl Slot {
    fn new(value: Value) -> Self {
        Slot {
            value,
            deadline_ms: NEVER_MS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Text;
    use crate::value::List;

    fn keyspace() -> Keyspace {
        let mut keyspace = Keyspace::new(1);
        keyspace.advance(1000);
        keyspace
    }

    #[test]
    fn a_key_is_gone_when_its_time_has_come() {
        let mut keys = keyspace();
        keys.set(b"a", b"1", Expiry::At(1500));
        keys.set(b"b", b"2", Expiry::Never);
        keys.advance(1499);
        assert_eq!(keys.len(), 2);
        keys.advance(1500);
        assert_eq!(keys.len(), 1);
        assert!(keys.value(b"a").is_none());
        assert_eq!(keys.deadline_ms(b"a"), None);
        assert_eq!(keys.deadline_ms(b"b"), Some(None));
        assert!(keys.remove(b"a").is_none());
        assert_eq!(keys.slots.len(), 1);
        assert!(keys.deadlines.is_empty());
    }

    #[test]
    fn a_write_over_an_ended_key_starts_anew() {
        let mut keys = keyspace();
        keys.set(b"list", b"text", Expiry::At(1001));
        keys.set(b"kept", b"text", Expiry::At(1001));
        keys.advance(1001);
        keys.write_or_make::<List>(b"list")
            .unwrap()
            .push_back(b"x"[..].into());
        keys.set(b"kept", b"new", Expiry::Keep);
        assert_eq!(keys.deadline_ms(b"list"), Some(None));
        assert_eq!(keys.deadline_ms(b"kept"), Some(None));
        assert!(keys.deadlines.is_empty());
        assert_eq!(keys.len(), 2);
    }

    #[test]
    fn a_sweep_is_bounded_and_takes_only_what_is_due() {
        let mut keys = keyspace();
        for number in 0..10u8 {
            keys.set(&[number], b"", Expiry::At(1001));
        }
        keys.set(b"later", b"", Expiry::At(5000));
        assert!(!keys.sweep(100));
        keys.advance(2000);
        assert!(keys.sweep(6));
        assert_eq!((keys.slots.len(), keys.len()), (5, 1));
        assert!(!keys.sweep(6));
        assert_eq!((keys.slots.len(), keys.len()), (1, 1));
    }

    #[test]
    fn a_deadline_is_kept_replaced_or_dropped() {
        let mut keys = keyspace();
        keys.set(b"a", b"1", Expiry::At(2000));
        keys.set(b"a", b"2", Expiry::Keep);
        assert_eq!(keys.deadline_ms(b"a"), Some(Some(2000)));
        assert!(keys.set_deadline_ms(b"a", Some(3000)));
        assert_eq!(keys.deadlines.len(), 1);
        keys.set(b"a", b"3", Expiry::Never);
        assert_eq!(keys.deadline_ms(b"a"), Some(None));
        assert!(keys.deadlines.is_empty());
        assert!(!keys.set_deadline_ms(b"none", Some(3000)));
    }

    #[test]
    fn another_kind_of_value_is_refused() {
        let mut keys = keyspace();
        keys.set(b"a", b"1", Expiry::Never);
        assert_eq!(
            keys.read::<List>(b"a").unwrap_err(),
            CommandError::WrongType
        );
        assert_eq!(
            keys.write::<List>(b"a").unwrap_err(),
            CommandError::WrongType
        );
        assert_eq!(
            keys.write_or_make::<List>(b"a"),
            Err(CommandError::WrongType)
        );
        assert_eq!(keys.read::<Text>(b"a").unwrap().unwrap()[..], *b"1");
    }
}
