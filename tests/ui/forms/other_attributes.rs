//! Attributes of others before and after ours.

#![allow(dead_code)]
#![deny(warnings)]

use greenroom::prelude::*;

struct A(u8);

#[actor]
impl A {
    #[inline(never)]
    #[cold]
    #[track_caller]
    #[must_use]
    pub fn a(&self) -> u8 {
        self.0
    }
    #[inline]
    pub async fn b(&self) {}
    #[clippy::cognitive_complexity = "100"]
    pub fn d(&self) {}
    #[target_feature(enable = "sse2")]
    #[skip]
    pub fn e(&self) {}
    #[allow(unused)]
    fn f(&self) {}
}

pub(crate) fn main() {}
