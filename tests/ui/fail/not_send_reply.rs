#![allow(unused)]

use greenroom::prelude::*;

use std::cell::RefCell;
use std::rc::Rc;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn get(&self) -> Rc<RefCell<u8>> {
        todo!()
    }

    pub async fn open(&self) -> Result<u8, Rc<str>> {
        Ok(1)
    }

    pub fn later(&self, reply: Reply<Rc<u8>>) {}
}

fn main() {}
