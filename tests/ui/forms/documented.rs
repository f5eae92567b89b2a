//! Documentation in each of its forms.

#![deny(warnings, missing_docs, rustdoc::all)]
#![allow(rustdoc::missing_crate_level_docs, rustdoc::missing_doc_code_examples)]

use greenroom::prelude::*;

/// A
pub struct A;

/// block
#[actor(trait = AApi)]
impl A {
    #[doc(hidden)]
    pub fn hid(&self) {}
    #[doc(hidden)]
    #[allow(missing_docs)]
    pub fn hid2(&self) {}
    #[doc = include_str!("../../../Cargo.toml")]
    #[allow(rustdoc::all)]
    pub fn inc(&self) {}
    #[doc = concat!("a", "b")]
    pub fn con(&self) {}
    /** block doc */
    pub fn bl(&self) {}
    /// [`Self::con`] and [`A`].
    #[doc(alias = "linx")]
    pub fn links(&self) {}
    #[cfg_attr(all(), doc = "x")]
    pub fn ca(&self) {}
    /// Must use
    #[must_use = "x"]
    pub fn mu(&self) -> u8 {
        1
    }

    /// Const
    pub const C: u8 = 1;
    #[allow(missing_docs)]
    pub fn nodoc(&self) {}
}

pub(crate) fn main() {
    let _ = |a: Addr<A>| {
        let _ = (
            a.hid(),
            a.hid2(),
            a.inc(),
            a.con(),
            a.bl(),
            a.links(),
            a.ca(),
            a.mu(),
            a.nodoc(),
        );
    };
}
