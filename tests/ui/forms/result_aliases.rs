//! Whatever is spelled `Result` is flattened, unless told otherwise.

#![forbid(unsafe_code)]
#![deny(warnings)]
#![allow(unused_parens)]

use std::fmt;
use std::io;

use greenroom::prelude::*;

type Result<T, E = String> = std::result::Result<T, E>;
type Answer = std::result::Result<u8, String>;

struct Fallible;

#[actor]
impl Fallible {
    pub fn own(&self) -> Result<u8> {
        Ok(1)
    }

    pub fn of_io(&self) -> io::Result<u8> {
        Ok(1)
    }

    pub async fn of_fmt(&self) -> fmt::Result {
        Ok(())
    }

    pub fn in_full(&self) -> ::core::result::Result<u8, u16> {
        Ok(1)
    }

    pub fn in_parentheses(&self) -> (Result<u8>) {
        Ok(1)
    }

    #[message(plain)]
    pub fn plain(&self) -> Result<u8> {
        Ok(1)
    }

    pub fn other_spelling(&self) -> Answer {
        Ok(1)
    }

    #[message(result)]
    pub fn asked_for(&self) -> Answer {
        Ok(1)
    }
}

async fn calls(address: Addr<Fallible>) {
    let _: u8 = address.own().await.unwrap();
    let _: u8 = address.of_io().await.unwrap();
    let _: () = address.of_fmt().await.unwrap();
    let _: u8 = address.in_full().await.unwrap();
    let _: u8 = address.in_parentheses().await.unwrap();
    let _: Result<u8> = address.plain().await.unwrap();
    let _: Answer = address.other_spelling().await.unwrap();
    let _: u8 = address.asked_for().await.unwrap();
}

pub fn main() {
    let _ = calls;
}
