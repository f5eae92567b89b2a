//! Traits of the calls of actors with parameters, and other implementations of them.

#![allow(dead_code)]
#![deny(warnings)]

use greenroom::prelude::*;

#[derive(Default, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct A<T = u8>(T);

impl<T> A<T> {
    fn before(&self) {}
}

#[actor(trait = pub(self) Api)]
impl A {
    pub fn x(&self) -> u8 {
        self.before();
        self.0
    }
}

impl A<String> {
    pub fn y(&self) {}
}

impl Drop for B {
    fn drop(&mut self) {}
}

struct B;

#[actor(implements = Api)]
impl B {
    pub fn x(&self) -> u8 {
        4
    }
}

struct C;

#[actor(implements = Api2<u8>(x))]
impl C {
    pub fn x(&self) -> u8 {
        4
    }

    pub fn z(&self) {}
}

struct D<T>(T);

#[actor(trait = Api2)]
impl<T: Send + Clone + 'static> D<T> {
    pub fn x(&self) -> T {
        self.0.clone()
    }
}

async fn ask(a: &dyn Api) -> u8 {
    a.x().await.unwrap()
}

async fn ask2(a: Box<dyn Api2<u8>>) -> u8 {
    a.x().await.unwrap()
}

pub(crate) fn main() -> Result<(), greenroom::Error> {
    let system = System::start(1)?;
    system.run_on(0, || async {
        let a = greenroom::spawn(A(1));
        let b = greenroom::spawn(B);
        let c = greenroom::spawn(C);
        let d = greenroom::spawn(D(3u8));
        assert_eq!(
            ask(&*a).await + ask(&*b).await + ask2(Box::new(*c)).await + ask2(Box::new(*d)).await,
            12
        );
        A(String::new()).y();
        c.z().await?;
        Ok(())
    })
}
