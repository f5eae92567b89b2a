#![allow(unused)]

use greenroom::prelude::*;
use greenroom::{ChildExit, Down, ToldError};

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    #[on(down)]
    fn told_nothing(&mut self, _: &mut Ctx<Self>) {}

    #[on(child_exit)]
    fn told_twice(&mut self, exit: ChildExit, again: ChildExit) {}

    #[on(error)]
    fn answers(&mut self, error: ToldError) -> bool {
        true
    }
}

fn main() {}
