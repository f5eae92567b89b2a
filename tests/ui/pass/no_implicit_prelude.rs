//! Generated code finds its names whatever the module calls its own.

#![no_implicit_prelude]
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs)]

/// Decoys: the names that generated code would use if it were careless.
#[allow(dead_code, non_camel_case_types, missing_docs)]
mod decoys {
    pub struct Option;
    pub struct Result;
    pub struct Vec;
    pub struct Addr;
    pub struct Call;
    pub struct Msg;
    pub struct Client;
    pub struct Port;
    pub struct Actor;
    pub struct PhantomData;
    pub struct Infallible;
    pub enum Some {}
    pub enum None {}
    pub trait From {}
    pub trait Into {}
    pub trait Future {}
    pub trait Clone {}
    pub trait Copy {}
    pub trait Send {}
    pub trait Sized {}
    pub trait Drop {}
    pub trait Fn {}
    pub trait Default {}
    pub trait IntoFuture {}
    pub mod core {}
    pub mod std {}
    pub mod alloc {}
    pub mod greenroom {}
    pub struct Box;
    pub struct String;
    pub fn drop() {}
    pub struct usize;
    pub struct u64;
    pub struct bool;
    pub struct str;
    pub struct Duration;
    pub struct Cross;
    pub struct Plain;
    pub struct Flat;
    pub struct Message;
    pub struct Way;
    pub struct SameShard;
    pub fn unreachable() {}
    pub fn panic() {}
    pub struct Overflow;
    pub struct Missed;
    pub struct MissedTicks;
    pub struct ExitCode;
    pub struct System;
    pub struct Ok;
    pub struct Err;
}
#[allow(unused_imports)]
use decoys::*;
#[allow(unused_imports)]
use decoys::{alloc, core, greenroom, std};
#[allow(unused_macros)]
macro_rules! unreachable {
    () => {
        compile_error!("x")
    };
}
#[allow(unused_macros)]
macro_rules! panic {
    () => {
        compile_error!("x")
    };
}
#[allow(unused_macros)]
macro_rules! matches {
    () => {
        compile_error!("x")
    };
}
#[allow(unused_macros)]
macro_rules! concat {
    () => {
        compile_error!("x")
    };
}
/// An actor among decoys.
pub struct Hidden<K, const N: ::core::primitive::usize>(pub ::std::vec::Vec<K>);
#[::greenroom::actor(mailbox = N + 3, overflow = drop_oldest, name = "a", max_message = 64, concurrent = 4, trait = Api)]
impl<
    K: ::core::hash::Hash + ::core::marker::Send + ::core::clone::Clone + 'static,
    const N: ::core::primitive::usize,
> Hidden<K, N>
{
    /// Finds its shard by a key.
    pub fn a(
        &mut self,
        #[key] k: K,
        #[into] s: ::std::string::String,
    ) -> ::core::option::Option<::std::string::String> {
        self.0.push(k);
        ::core::option::Option::Some(s)
    }
    /// Stays on its shard.
    #[message(local)]
    pub fn b(&self, k: ::std::rc::Rc<K>) -> ::std::rc::Rc<K> {
        k
    }
    /// Runs beside others.
    #[message(concurrent)]
    pub async fn c(&self, k: u8) -> ::core::result::Result<u8, ()> {
        ::core::result::Result::Ok(k)
    }
    /// Takes several.
    #[message(batch)]
    pub fn d(
        &mut self,
        b: ::greenroom::Batch<(K, u8)>,
    ) -> ::core::result::Result<u8, ::std::string::String> {
        ::core::mem::drop(b);
        ::core::result::Result::Ok(3)
    }
    /// Takes several, and answers each.
    #[message(batch, local)]
    pub fn d2(&mut self, b: ::greenroom::Batch<(K, ::greenroom::Reply<u8>)>) {
        ::core::mem::drop(b);
    }
    /// Travels in a box.
    #[message(boxed, urgent)]
    pub async fn e(&mut self, b: [u8; 32], ctx: &mut ::greenroom::Ctx<Self>) {
        let _ = (b, ctx);
    }
    /// Answers later.
    pub fn f(&mut self, r: ::greenroom::Reply<::core::result::Result<u8, ()>>) {
        r.send(::core::result::Result::Ok(1));
    }
    #[every(100s, missed = burst)]
    fn g(&self) {}
    #[every(::core::time::Duration::from_secs(100))]
    async fn h(&self) -> ::core::result::Result<(), ()> {
        ::core::result::Result::Ok(())
    }
    #[on(started)]
    async fn i(
        &mut self,
        _: &mut ::greenroom::Ctx<Self>,
    ) -> ::core::result::Result<(), ::std::string::String> {
        ::core::result::Result::Ok(())
    }
    #[on(stopping)]
    fn j(&mut self) {}
    #[on(down)]
    fn k(&mut self, _: ::greenroom::Down) {}
    #[on(child_exit)]
    async fn l(&mut self, _: ::greenroom::ChildExit) {}
    #[on(error)]
    fn m(&mut self, _: ::greenroom::ToldError) {}
}
#[::greenroom::main(shards = 1, grace = ::core::time::Duration::from_secs(1), backend = auto)]
async fn main() -> ::core::result::Result<(), ::greenroom::Error> {
    let a = ::greenroom::spawn(Hidden::<u8, 2>(::std::vec::Vec::new()));
    let _ = a.a(1, "x").await?;
    let _ = a.d(1, 2).await;
    a.e([0; 32]).await?;
    let _ = a.f().await;
    let _ = a.c(1).await;
    ::core::result::Result::Ok(())
}
