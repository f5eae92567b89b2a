//! Bounds of a block: on associated types, closures, asynchronous functions, for any lifetime.

#![deny(warnings)]
#![allow(dead_code)]

use greenroom::prelude::*;

trait Source {
    type Item;
    fn next(&mut self) -> Option<Self::Item>;
}

struct Up(u8);

impl Source for Up {
    type Item = u8;
    fn next(&mut self) -> Option<u8> {
        self.0 += 1;
        Some(self.0)
    }
}

struct Pull<S>(S);

#[actor]
impl<S> Pull<S>
where
    S: Source<Item = u8> + 'static,
{
    pub fn next(&mut self) -> Option<u8> {
        self.0.next()
    }
}

struct Pull2<S: Source>(S);

#[actor]
impl<S> Pull2<S>
where
    S: Source + 'static,
    S::Item: Send + 'static,
{
    pub fn next(&mut self) -> Option<S::Item> {
        self.0.next()
    }

    pub fn back(&mut self, x: S::Item) -> <S as Source>::Item {
        x
    }
}

struct Pull3<S: Source>(S);

#[actor(trait = P3)]
impl<S: Source<Item: Send + 'static> + 'static> Pull3<S> {
    pub fn next(&mut self) -> Option<S::Item> {
        self.0.next()
    }
}

struct Clos<F, R>(F, std::marker::PhantomData<R>);

#[actor]
impl<F: FnMut(&str) -> R + 'static, R: Send + 'static> Clos<F, R> {
    /// An empty list of bounds is none.
    #[rustfmt::skip]
    pub fn nothing(&self) -> u8 where { 1 }

    pub fn call(&mut self, s: String) -> R {
        (self.0)(&s)
    }
}

struct Hr<F>(F);

#[actor]
impl<F> Hr<F>
where
    F: for<'a> Fn(&'a str) -> &'a str + 'static,
    for<'b> &'b F: Sized,
{
    pub fn call(&mut self, s: String) -> String {
        (self.0)(&s).to_owned()
    }
}

pub(crate) fn main() -> Result<(), greenroom::Error> {
    let system = System::start(1)?;
    system.run_on(0, || async {
        assert_eq!(greenroom::spawn(Pull(Up(0))).next().await?, Some(1));
        assert_eq!(greenroom::spawn(Pull2(Up(0))).back(3).await?, 3);
        assert_eq!(greenroom::spawn(Pull2(Up(0))).next().await?, Some(1));
        assert_eq!(greenroom::spawn(Pull3(Up(0))).next().await?, Some(1));
        assert_eq!(
            greenroom::spawn(Clos(|s: &str| s.len(), std::marker::PhantomData))
                .call("abc".into())
                .await?,
            3
        );
        assert_eq!(
            greenroom::spawn(Hr(str::trim)).call(" abc".into()).await?,
            "abc"
        );
        Ok(())
    })
}
