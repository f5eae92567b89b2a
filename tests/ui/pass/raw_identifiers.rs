//! Keywords as names of types, methods and parameters.

#![forbid(unsafe_code)]
#![deny(warnings)]
#![allow(non_camel_case_types)]

use greenroom::prelude::*;

struct r#type(u8);

#[actor]
impl r#type {
    pub fn r#match(&mut self, r#fn: u8) -> u8 {
        std::mem::replace(&mut self.0, r#fn)
    }

    pub async fn r#loop(&self, r#in: u8, r#ref: u8) -> Result<u8, u8> {
        Ok(r#in.max(r#ref))
    }
}

fn calls(address: Addr<r#type>) {
    drop(address.r#match(1));
    drop(address.r#loop(1, 2));
}

fn main() {
    let _ = calls;
    assert_eq!(<r#type as greenroom::Actor>::NAME, "type");
}
