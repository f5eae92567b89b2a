//! What `cfg` removes takes its variant, its arm and its call along.

#![forbid(unsafe_code)]
#![deny(warnings)]
#![allow(unexpected_cfgs)]

use greenroom::prelude::*;

struct Conditional;

#[actor]
impl Conditional {
    pub fn always(&self) {}

    #[cfg(missing)]
    pub fn never(&self, value: Missing) -> AlsoMissing {
        value.into()
    }

    #[cfg_attr(not(missing), cfg(missing))]
    pub async fn never_either(&self, value: Missing) {
        drop(value);
    }

    #[cfg(missing)]
    #[message(local)]
    pub fn never_local(&self, value: Missing) {}

    #[cfg(missing)]
    pub fn either(&self) -> u8 {
        1
    }

    #[cfg(not(missing))]
    pub fn either(&self) -> u16 {
        2
    }

    #[cfg(missing)]
    #[on(started)]
    fn started_there(&mut self) -> Missing {}

    #[cfg(missing)]
    #[on(stopping)]
    fn stopping_there(&mut self) {}

    #[cfg(not(missing))]
    #[on(stopping)]
    fn stopping_here(&mut self) {}
}

/// Nothing is left of this one's messages.
struct Empty;

#[actor]
impl Empty {
    #[cfg(missing)]
    pub fn never(&self) {}
}

/// The condition may also stand after the attribute.
#[actor]
#[cfg(missing)]
impl Missing {
    pub fn never(&self) {}
}

fn calls(address: Addr<Conditional>, empty: Addr<Empty>) {
    drop(address.always());
    drop(address.either());
    let _ = empty;
}

fn main() {
    let _ = calls;
}
