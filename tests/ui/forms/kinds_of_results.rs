//! Results: aliases, in results, without anything that shows them, deferred, local.

#![allow(dead_code)]
#![deny(warnings)]

use greenroom::prelude::*;
use std::fmt;
use std::io;

mod an {
    pub type Result<T = (), E = Box<dyn std::error::Error + Send + Sync>> =
        std::result::Result<T, E>;
    #[derive(Debug)]
    pub struct Error;
}

type MyResult<T> = Result<T, u8>;
struct NoShow;
struct A;

#[actor]
impl A {
    pub fn a(&self) -> io::Result<u8> {
        Ok(1)
    }

    pub fn b(&self) -> fmt::Result {
        Ok(())
    }

    pub fn c(&self) -> an::Result {
        Ok(())
    }

    pub fn d(&self) -> an::Result<u8, an::Error> {
        Ok(1)
    }

    pub fn e(&self) -> MyResult<u8> {
        Ok(1)
    }

    #[message(result)]
    pub fn f(&self) -> MyResult<u8> {
        Ok(1)
    }

    #[message(plain)]
    pub fn g(&self) -> Result<u8, NoShow> {
        Err(NoShow)
    }

    pub fn h(&self) -> Result<u8, NoShow> {
        Err(NoShow)
    }

    pub fn i(&self) -> Result<Result<u8, NoShow>, Result<u8, NoShow>> {
        Err(Ok(1))
    }

    pub fn j(&self) -> std::result::Result<(), ()> {
        Ok(())
    }

    pub fn k(&self) -> ::core::result::Result<(), std::convert::Infallible> {
        Ok(())
    }

    #[allow(unused_parens)]
    pub fn l(&self) -> (Result<(), ()>) {
        Ok(())
    }

    pub fn m(&self) -> () {}
    #[allow(unused_parens)]
    pub fn n(&self) -> (()) {}
    pub fn o(&self) -> Option<Result<(), ()>> {
        None
    }

    pub fn p(&self, r: Reply<Result<u8, NoShow>>) {
        r.send(Err(NoShow))
    }

    #[message(plain)]
    pub fn q(&self, r: Reply<Result<u8, NoShow>>) {
        r.send(Err(NoShow))
    }

    #[message(result)]
    pub fn r(&self, r: Reply<MyResult<u8>>) {
        r.send(Err(1))
    }

    pub async fn s(&self, r: Reply<()>) -> () {
        r.send(())
    }

    pub fn t(&self) -> Result<std::convert::Infallible, u8> {
        Err(1)
    }

    pub fn u(&self) -> Result<(), Box<dyn std::error::Error + Send>> {
        Ok(())
    }

    #[message(local)]
    pub fn v(&self) -> Result<std::rc::Rc<u8>, Box<dyn std::error::Error>> {
        Err("x".into())
    }

    pub fn w(&self) -> Result<(), greenroom::Error> {
        Ok(())
    }

    pub fn x(&self) -> Result<(), CallError<u8>> {
        Ok(())
    }

    #[message(concurrent)]
    pub async fn y(&self) -> an::Result<u8> {
        Ok(1)
    }

    #[message(batch)]
    pub fn z(&self, _b: greenroom::Batch<u8>) -> Result<u8, String> {
        Ok(1)
    }
}

pub(crate) fn main() -> Result<(), greenroom::Error> {
    let system = System::start(1)?;
    system.run_on(0, || async {
        let a = greenroom::spawn(A);
        let _: u8 = a.a().await.unwrap();
        a.b().await.unwrap();
        a.c().await.unwrap();
        a.d().await.unwrap();
        let _: MyResult<u8> = a.e().await.unwrap();
        let _: u8 = a.f().await.unwrap();
        let _: Result<u8, NoShow> = a.g().await.unwrap();
        let _: Result<u8, CallError<NoShow>> = a.h().await;
        let _: Result<Result<u8, NoShow>, CallError<Result<u8, NoShow>>> = a.i().await;
        a.j().await.unwrap();
        a.k().await.unwrap();
        let _: Result<(), CallError<()>> = a.l().await;
        a.m().await?;
        a.n().await?;
        a.o().await?;
        let _: Result<u8, CallError<NoShow>> = a.p().await;
        let _: Result<u8, NoShow> = a.q().await?;
        let _: Result<u8, CallError<u8>> = a.r().await;
        a.s().await?;
        let _ = a.t().await;
        a.u().await.unwrap();
        let _ = Addr::local(a).unwrap().v().await;
        a.w().await.unwrap();
        a.x().await.unwrap();
        a.y().await.unwrap();
        a.z(1).await.unwrap();
        a.h().tell().await?;
        a.c().tell().await?;
        Ok(())
    })
}
