#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn __hidden(&self) {}
}

struct Pair<__P, const __N: usize>([__P; __N]);

#[actor]
impl<__P: Send + 'static, const __N: usize> Pair<__P, __N> {
    pub fn add(&mut self, value: __P) {
        drop(value);
    }
}

fn main() {}
