//! Shapes that are rare one by one, and that somebody writes all the same.

#![forbid(unsafe_code)]
#![deny(warnings, missing_docs)]

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use greenroom::Batch;
use greenroom::prelude::*;

/// Bounds in each place where they can stand, constants with and without a default, an option that needs `Self`.
#[derive(Debug)]
pub struct Grid<T: Clone, const W: usize, const H: usize = 3>
where
    T: Debug,
{
    cells: [[T; W]; H],
}

#[actor(mailbox = Self::ROOM, name = "grid")]
impl<T: Clone + Send + 'static, const W: usize, const H: usize> Grid<T, W, H>
where
    T: Debug,
    [T; W]: Sized,
{
    const ROOM: usize = W * H + 1;

    /// Takes a pattern.
    pub fn set(&mut self, (x, y): (usize, usize), value: T) -> Option<T> {
        Some(std::mem::replace(self.cells.get_mut(y)?.get_mut(x)?, value))
    }

    /// Returns an array as long as a parameter says.
    pub fn row(&self, y: usize) -> [T; W] {
        self.cells[y].clone()
    }

    /// Takes a function of the actor.
    pub fn fold(&self, how: fn(&Self) -> usize) -> usize {
        how(self)
    }
}

/// Arguments that are large, boxed, shared, higher-ranked, empty.
pub struct Objects;

/// Matched in a parameter.
pub struct Point {
    /// Used.
    pub x: u8,
    /// Not used.
    pub y: u8,
}

#[actor(max_message = 64)]
impl Objects {
    /// A closure that is given the actor.
    pub fn run(&mut self, job: Box<dyn FnOnce(&mut Self) -> u64 + Send>) -> u64 {
        job(self)
    }

    /// A shared closure.
    pub fn measure(&self, with: Arc<dyn Fn(&str) -> usize + Send + Sync>) -> usize {
        with("abc")
    }

    /// More than a mailbox should hold, and nothing at all.
    #[message(boxed)]
    pub fn huge(&self, data: [u64; 1000], (): ()) -> Box<[u64; 1000]> {
        Box::new(data)
    }

    /// A function for any lifetime.
    pub fn same(&self, text: &'static str, how: for<'a> fn(&'a str) -> &'a str) -> &'static str {
        how(text)
    }

    /// A result in a result: the outer one is flattened.
    pub fn nested(&self) -> Result<Result<u8, String>, std::io::Error> {
        Ok(Ok(1))
    }

    /// `Send` by its parameter only.
    pub fn tagged(&self, tag: PhantomData<fn(Rc<u8>)>) -> usize {
        size_of_val(&tag)
    }

    /// Several arguments in a batch.
    #[message(batch = 7)]
    pub async fn many(&mut self, all: Batch<(u8, String)>) -> usize {
        all.len()
    }

    /// Patterns of each kind.
    pub fn patterns(
        &self,
        (a,): (u8,),
        [b, ..]: [u8; 3],
        Point { x, y: _ }: Point,
        mut text: String,
    ) -> usize {
        text.push('!');
        usize::from(a + b + x) + text.len()
    }

    /// Deprecated, and its call is.
    #[deprecated = "use `run`"]
    pub fn old(&self) {}

    /// Attributes of a method stay with it.
    #[must_use]
    #[inline(always)]
    #[track_caller]
    pub fn hints(&self) -> u8 {
        3
    }

    /// One of two, by the target.
    #[cfg(unix)]
    pub fn only(&self) -> u8 {
        1
    }

    /// The other one.
    #[cfg(not(unix))]
    pub fn only(&self) -> Missing {
        unreachable!()
    }

    /// No message: it has no receiver.
    pub async fn make() -> Self {
        Self
    }

    /// No message: it says so.
    #[skip]
    pub const fn constant(&self) -> u8 {
        4
    }
}

macro_rules! actors {
    ($(#[$meta:meta])* $vis:vis $name:ident<$t:ident> { $($method:ident($($arg:ident: $ty:ty),*) $body:block)* }) => {
        $(#[$meta])*
        $vis struct $name<$t>(PhantomData<$t>);

        #[greenroom::actor]
        impl<$t: Send + 'static> $name<$t> {
            $(
                /// Made.
                pub fn $method(&self, $($arg: $ty),*) -> usize $body
            )*
        }
    };
}

actors! {
    /// Written by a macro.
    pub Made<T> {
        one(all: Vec<T>) { all.len() }
        two(by: u8, all: HashMap<u8, T>) { usize::from(by) + all.len() }
    }
}

/// Everything at once, of types that are not known.
pub struct Store<K, V>(HashMap<K, V>);

#[actor]
impl<K: Hash + Eq + Send + 'static, V: Clone + Send + 'static> Store<K, V> {
    /// Finds its shard by the key.
    pub fn put(&mut self, #[key] key: K, value: V) {
        self.0.insert(key, value);
    }

    /// Does so, too.
    pub fn get(&self, #[key] key: K) -> Option<V> {
        self.0.get(&key).cloned()
    }

    /// Converts.
    pub fn echo(&self, #[into] name: String) -> String {
        name
    }

    #[on(started)]
    fn begin(&mut self) -> Result<(), std::fmt::Error> {
        Ok(())
    }

    #[on(stopping)]
    async fn end(&mut self, _: &mut Ctx<Self>) {}

    #[every(100s)]
    fn tick(&mut self) {}

    #[message(local)]
    fn here(&self, key: Rc<K>) -> Option<Rc<V>> {
        self.0.get(&key).cloned().map(Rc::new)
    }
}

fn main() -> Result<(), greenroom::Error> {
    let system = System::start(1)?;
    system.run_on(0, || async {
        let grid = greenroom::spawn(Grid::<u8, 2> { cells: [[0; 2]; 3] });
        assert_eq!(grid.set((1, 1), 5).await?, Some(0));
        assert_eq!(grid.row(1).await?, [0, 5]);
        assert_eq!(grid.fold(|grid| grid.cells.len()).await?, 3);

        let objects = greenroom::spawn(Objects::make().await);
        assert_eq!(
            objects.run(Box::new(|it| u64::from(it.constant()))).await?,
            4
        );
        assert_eq!(objects.measure(Arc::new(str::len)).await?, 3);
        assert_eq!(objects.huge([1; 1000], ()).await?[999], 1);
        assert_eq!(objects.same("a", |text| text).await?, "a");
        assert_eq!(objects.nested().await?, Ok(1));
        assert_eq!(objects.tagged(PhantomData).await?, 0);
        assert_eq!(objects.many(1, String::new()).await?, 1);
        let point = Point { x: 1, y: 2 };
        assert_eq!(
            objects
                .patterns((1,), [1, 2, 3], point, "ab".into())
                .await?,
            6
        );
        #[expect(deprecated, reason = "that is to be seen")]
        objects.old().await?;
        objects.hints().await?;
        assert_eq!(objects.only().await?, 1);

        let made = greenroom::spawn(Made::<u8>(PhantomData));
        assert_eq!(
            made.one(vec![1]).await? + made.two(1, HashMap::new()).await?,
            2
        );

        let store = greenroom::spawn(Store(HashMap::new()));
        store.put("a".to_owned(), 3).await?;
        assert_eq!(store.get("a".into()).await?, Some(3));
        assert_eq!(store.echo("x").await?, "x");
        let near = Addr::local(store).expect("on its shard");
        assert_eq!(near.here(Rc::new("a".into())).await?, Some(Rc::new(3)));
        Ok::<_, greenroom::Error>(())
    })?;
    Ok(())
}
