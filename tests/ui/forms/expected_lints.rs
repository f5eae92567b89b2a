//! Lints that are allowed or expected on methods are neither doubled nor missed.

#![allow(dead_code)]
#![deny(warnings, unused_qualifications, single_use_lifetimes)]

use greenroom::prelude::*;

struct A(u8);
#[expect(clippy::unused_self)]
#[actor]
#[expect(dead_code)]
impl A {
    fn never(&self) {}
    #[expect(unused_variables)]
    pub fn a(&self, x: u8) -> u8 {
        self.0
    }

    #[expect(non_snake_case)]
    pub fn bB(&self) -> u8 {
        self.0
    }

    #[expect(unused_mut)]
    pub fn c(&self, mut x: u8) -> u8 {
        x
    }

    #[allow(non_snake_case)]
    pub fn cC(&self, Xx: u8) -> u8 {
        Xx
    }

    #[expect(deprecated)]
    pub fn d(&self) -> u8 {
        old()
    }

    #[expect(unused_must_use)]
    pub async fn e(&self) {
        f();
    }

    #[expect(deprecated)]
    pub fn g(&self, x: Old) -> Old {
        x
    }

    #[expect(unreachable_code)]
    pub fn h(&self) -> u8 {
        return 1;
        2
    }

    #[expect(unused_assignments, unused_variables)]
    #[on(started)]
    fn st(&mut self) {
        let mut x = 1;
        x = 2;
    }

    #[expect(unused_variables)]
    #[message(concurrent)]
    async fn cc(&self, x: u8) {}
    #[expect(unused_variables)]
    #[every(100s)]
    fn ev(&self) {
        let x = 1;
    }

    #[deny(unused)]
    #[warn(missing_docs)]
    pub fn w(&self) {}
    #[expect(unused)]
    #[skip]
    pub fn sk(&self, x: u8) {}
    #[expect(clippy::too_many_arguments)]
    pub fn many(&self, a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8, h: u8) {
        let _ = (a, b, c, d, e, f, g, h);
    }
}

#[deprecated]
fn old() -> u8 {
    1
}

#[deprecated]
pub struct Old;
#[must_use]
fn f() -> u8 {
    1
}

struct B;
#[allow(non_snake_case)]
#[actor]
impl B {
    pub fn Bb(&self, Cc: u8) -> u8 {
        Cc
    }

    #[allow(non_camel_case_types, non_snake_case)]
    pub fn xX(&self) {}
}

#[deprecated]
struct DeprActor;
#[allow(deprecated)]
#[actor(trait = DApi)]
impl DeprActor {
    pub fn x(&self) {}
}

struct Inner;

#[actor]
impl Inner {
    #![allow(non_snake_case)]

    pub fn Xx(&self) {}
}

/// Generated code repeats these types, and the lints with them.
struct Types;

#[actor(trait = TypesApi)]
impl Types {
    #[allow(unused_qualifications, unused_braces, single_use_lifetimes)]
    pub fn allowed(&self, a: std::option::Option<u8>, b: [u8; { 2 }], c: for<'a> fn(&'a u8)) {
        let _ = (a, b, c);
    }

    #[expect(unused_qualifications, unused_braces, single_use_lifetimes)]
    #[message(concurrent)]
    pub async fn expected(
        &self,
        a: std::option::Option<u8>,
        b: [u8; { 2 }],
        c: for<'a> fn(&'a u8),
    ) {
        let _ = (a, b, c);
    }
}

#[expect(unused_qualifications)]
#[actor]
#[allow(unused_braces, single_use_lifetimes)]
impl InTheBlock {
    pub fn get(&self, b: [u8; { 2 }], c: for<'a> fn(&'a u8)) -> std::result::Result<u8, ()> {
        let _ = (b, c);
        Ok(1)
    }
}

struct InTheBlock;

pub(crate) fn main() -> Result<(), greenroom::Error> {
    let system = System::start(1)?;
    system.run_on(0, || async {
        let a = greenroom::spawn(A(1));
        a.a(1).await?;
        a.bB().await?;
        a.c(1).await?;
        a.cC(1).await?;
        a.d().await?;
        a.e().await?;
        #[expect(deprecated)]
        let o = Old;
        a.g(o).await?;
        a.h().await?;
        a.w().await?;
        a.cc(1).await?;
        a.ev().await?;
        a.many(1, 2, 3, 4, 5, 6, 7, 8).await?;
        A(1).sk(1);
        #[allow(deprecated)]
        greenroom::spawn(DeprActor).x().await?;
        greenroom::spawn(B).Bb(1).await?;
        greenroom::spawn(B).xX().await?;
        greenroom::spawn(Inner).Xx().await?;
        Ok(())
    })
}
