//! Bounds on concurrent messages that bound nothing, or everything.

#![allow(unused)]

use greenroom::prelude::*;

struct Unused;

#[actor(concurrent = 4)]
impl Unused {
    pub async fn get(&self) {}
}

struct None;

#[actor(concurrent = 0)]
impl None {
    #[message(concurrent)]
    pub async fn get(&self) {}
}

struct Text;

#[actor(concurrent = "4")]
impl Text {
    #[message(concurrent)]
    pub async fn get(&self) {}
}

struct Typed;

#[actor(concurrent = 4_u8)]
impl Typed {
    #[message(concurrent)]
    pub async fn get(&self) {}
}

fn main() {}
