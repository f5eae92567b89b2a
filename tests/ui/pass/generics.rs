//! Type parameters, constant parameters, where clauses, and `Self` in every place that allows it.

#![forbid(unsafe_code)]
#![deny(warnings)]

use std::fmt::Debug;
use std::marker::PhantomData;
use std::rc::Rc;

use greenroom::prelude::*;

struct Cache<K, V, const N: usize>
where
    K: PartialEq,
{
    entries: Vec<(K, V)>,
}

#[actor]
impl<K: Clone + Send + 'static, V: Send + 'static, const N: usize> Cache<K, V, N>
where
    K: PartialEq,
    V: Clone + Debug,
{
    const LIMIT: usize = 4;

    pub fn put(&mut self, key: K, value: V) -> Option<V> {
        self.entries.push((key, value));
        None
    }

    pub fn find(&self, key: K) -> Option<V> {
        let found = self.entries.iter().find(|(known, _)| *known == key);
        found.map(|(_, value)| value.clone())
    }

    pub async fn all(&self) -> Vec<(K, V)> {
        self.entries.clone()
    }

    pub fn fill(&mut self, values: [V; N], keys: [K; N]) {
        self.entries.extend(keys.into_iter().zip(values));
        self.entries.truncate(Self::LIMIT);
    }
}

/// The parameter has the name that a careless macro would use for its own.
struct Pair<P>(P);

#[actor]
impl<P: Send + 'static> Pair<P> {
    pub fn swap(&mut self, with: P) -> P {
        std::mem::replace(&mut self.0, with)
    }
}

/// No message mentions the parameter, which is not even sized.
struct Unused<T: ?Sized + 'static>(PhantomData<T>);

#[actor]
impl<T: ?Sized + 'static> Unused<T> {
    pub fn ping(&self) {}
}

/// An actor is `'static`, so its parameters need not say so.
struct Boxed<T>(Option<T>);

#[actor]
impl<T: Send> Boxed<T> {
    pub fn put(&mut self, item: T) -> Option<T> {
        self.0.replace(item)
    }

    pub async fn take(&mut self) -> Result<T, String> {
        self.0.take().ok_or_else(|| String::from("empty"))
    }
}

/// Every message of this one is local, so the other enum has none.
struct OnlyLocal<T>(Vec<T>);

#[actor]
impl<T: 'static> OnlyLocal<T> {
    #[message(local)]
    pub fn push(&mut self, item: T) {
        self.0.push(item);
    }

    #[message(local)]
    pub async fn len(&self) -> usize {
        self.0.len()
    }
}

/// `Self` in parameters, in a constant, in a reply.
#[derive(Clone)]
struct Itself {
    children: Vec<Itself>,
}

#[actor]
impl Itself {
    const WIDTH: usize = 2;

    pub fn adopt(&mut self, children: Vec<Self>, _sizes: [u8; Self::WIDTH]) -> Self {
        self.children.extend(children);
        self.clone()
    }

    pub fn visit(&mut self, visit: fn(&mut Self)) {
        visit(self);
    }
}

fn calls(
    cache: Addr<Cache<String, u8, 2>>,
    pair: Addr<Pair<u8>>,
    unused: Addr<Unused<str>>,
    only_local: Local<OnlyLocal<Rc<u8>>>,
    itself: Addr<Itself>,
    boxed: Addr<Boxed<u8>>,
) {
    drop(cache.put(String::new(), 1));
    drop(cache.find(String::new()));
    drop(cache.all());
    drop(cache.fill([1, 2], Default::default()));
    drop(pair.swap(1));
    drop(unused.ping());
    drop(only_local.push(Rc::new(1)));
    drop(only_local.len());
    drop(itself.adopt(Vec::new(), [1, 2]));
    drop(itself.visit(|_| {}));
    drop(boxed.put(1));
    drop(boxed.take());
}

fn main() {
    let _ = calls;
}
