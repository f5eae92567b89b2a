#![allow(unused)]

use greenroom::prelude::*;

struct Counter<T>(T);

#[actor]
impl<T: Send> Counter<T> {
    pub fn valid(&self) {}

    pub fn copy(&self) -> T
    where
        T: Clone,
    {
        self.0.clone()
    }
}

fn main() {}
