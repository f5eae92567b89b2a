//! Everything in the block that is not a message passes through as it is.

#![forbid(unsafe_code)]
#![deny(warnings)]

use greenroom::prelude::*;

macro_rules! helper {
    ($name:ident) => {
        fn $name(&self) -> u8 {
            Self::ONE
        }
    };
}

struct Mixed(u8);
struct Sized2<const N: usize>([u8; N]);

#[actor]
impl Mixed {
    #![allow(clippy::unused_self)]
    //! Documentation inside the block.

    /// A constant with braces before its end.
    const ONE: u8 = { 1 };

    helper!(from_macro);
    helper! { from_braces }

    pub const fn new() -> Self {
        Self(Self::ONE)
    }

    #[skip]
    pub const fn inner(&self) -> u8 {
        self.0
    }

    #[skip]
    pub fn borrowed<'a, T: AsRef<str>>(&'a self, text: &'a T) -> impl Iterator<Item = u8> + 'a {
        text.as_ref().bytes()
    }

    pub fn sum(&self) -> u8 {
        self.from_macro() + self.from_braces() + self.generic(1)
    }

    pub fn array(&self) -> [u8; 1 + 1] {
        [self.0; 2]
    }

    pub fn braces(&self) -> Sized2<{ 1 + 1 }> {
        Sized2([self.0; 2])
    }

    fn generic<T: Into<u8>>(&self, value: T) -> u8 {
        value.into()
    }
}

fn calls(address: Addr<Mixed>) {
    drop(address.sum());
    drop(address.array());
    drop(address.braces());
}

pub fn main() {
    let _ = calls;
    assert_eq!(Sized2([1]).0.len(), 1);
    assert_eq!(Mixed::new().borrowed(&"a").count(), 1);
    assert_eq!(Mixed(2).inner(), 2);
}
