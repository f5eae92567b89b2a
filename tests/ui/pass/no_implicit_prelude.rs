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
    pub struct Reply;
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
    pub trait Future {}
    pub trait Clone {}
    pub trait Copy {}
    pub trait Send {}
    pub mod core {}
    pub mod std {}
    pub mod alloc {}
    pub mod greenroom {}
}

#[allow(unused_imports)]
use decoys::*;

#[allow(unused_imports)]
use decoys::{alloc, core, greenroom, std};

/// An actor among decoys.
pub struct Hidden {
    n: u32,
}

#[::greenroom::actor(mailbox = 8, name = "hidden")]
impl Hidden {
    /// A synchronous message.
    pub fn add(&mut self, by: u32) -> u32 {
        self.n += by;
        self.n
    }

    /// An asynchronous message with a flattened reply.
    pub async fn take(&mut self, by: u32) -> ::core::result::Result<u32, ()> {
        match self.n.checked_sub(by) {
            ::core::option::Option::Some(n) => ::core::result::Result::Ok(n),
            ::core::option::Option::None => ::core::result::Result::Err(()),
        }
    }

    /// A local message.
    #[message(local)]
    pub fn tag(&mut self, tag: ::std::rc::Rc<u8>) {
        self.n += u32::from_ne_bytes([*tag, 0, 0, 0]);
    }

    #[on(started)]
    fn open(&mut self) {}

    #[on(stopping)]
    async fn close(&mut self) {}
}

fn main() {}
