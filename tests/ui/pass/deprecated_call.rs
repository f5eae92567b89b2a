//! A deprecated message warns its callers and nobody else.

#![forbid(unsafe_code)]
#![deny(warnings)]

use greenroom::prelude::*;

struct Old;

#[actor]
impl Old {
    #[deprecated = "use `new_way`"]
    #[must_use]
    #[inline]
    pub fn old_way(&self, #[allow(unused)] value: u8) -> u8 {
        1
    }

    #[allow(non_snake_case)]
    pub fn newWay(&self, withValue: u8) -> u8 {
        withValue
    }
}

fn calls(address: Addr<Old>) {
    #[expect(deprecated)]
    drop(address.old_way(1));
    drop(address.newWay(1));
}

fn main() {
    let _ = calls;
}
