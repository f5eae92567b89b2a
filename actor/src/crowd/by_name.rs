//! Groups and topics by name: whoever asks for one gets the same as everybody else.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The named groups, or topics, of a system. Keeps none of them alive.
pub(super) struct ByName<Kind> {
    known: Mutex<BTreeMap<Arc<str>, Known>>,
    kind: std::marker::PhantomData<fn() -> Kind>,
}

impl<Kind> Default for ByName<Kind> {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            kind: std::marker::PhantomData,
        }
    }
}

struct Known {
    of: TypeId,
    type_name: &'static str,
    shared: Weak<dyn Any + Send + Sync>,
}

/// A place in the list; frees the name when it is dropped with its crowd.
pub(super) struct Listed<Kind: 'static> {
    name: Arc<str>,
    list: Weak<ByName<Kind>>,
}

impl<Kind: 'static> ByName<Kind> {
    /// The crowd of this name, or a new one. `M` is what its members are told apart by.
    pub(super) fn get_or_make<M: 'static, S: Send + Sync + 'static>(
        self: &Arc<Self>,
        name: &str,
        make: impl FnOnce(Listed<Kind>) -> S,
    ) -> Result<Arc<S>, CrowdError> {
        let name: Arc<str> = name.into();
        let listed = Listed {
            name: name.clone(),
            list: Arc::downgrade(self),
        };
        // Made with no lock held; if another one is there already it is dropped with none held either.
        let made = Arc::new(make(listed));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = known.get(&name).and_then(|known| known.shared.upgrade()) {
            let found = known.get(&name).map(|known| known.type_name);
            let same = known
                .get(&name)
                .is_some_and(|known| known.of == TypeId::of::<M>());
            drop(known);
            let downcast = shared.downcast::<S>().ok().filter(|_| same);
            return downcast.ok_or_else(|| CrowdError {
                name,
                wanted: std::any::type_name::<M>(),
                found: found.unwrap_or_default(),
            });
        }
        let shared: Weak<dyn Any + Send + Sync> = Arc::<S>::downgrade(&made);
        known.insert(
            name,
            Known {
                of: TypeId::of::<M>(),
                type_name: std::any::type_name::<M>(),
                shared,
            },
        );
        Ok(made)
    }
}

impl<Kind: 'static> Drop for Listed<Kind> {
    fn drop(&mut self) {
        if let Some(list) = self.list.upgrade() {
            let mut known = list.known.lock().unwrap_or_else(PoisonError::into_inner);
            // The name may belong to another one by now, or never have been this one's.
            if known
                .get(&self.name)
                .is_some_and(|known| known.shared.strong_count() == 0)
            {
                known.remove(&self.name);
            }
        }
    }
}

/// Why a name did not lead to a group or a topic of the wanted type: it belongs to one of another type.
#[derive(Clone, PartialEq, Eq)]
pub struct CrowdError {
    name: Arc<str>,
    wanted: &'static str,
    found: &'static str,
}

impl CrowdError {
    /// The name that was asked for.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for CrowdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            wanted,
            found,
        } = self;
        write!(
            f,
            "{name:?} is of {found}, not of {wanted}: ask for it as that, or choose another name"
        )
    }
}

impl fmt::Debug for CrowdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for CrowdError {}
