//! Constants as lengths, as defaults of parameters, and as options.

#![allow(dead_code)]
#![deny(warnings)]

use greenroom::prelude::*;
struct Ring<T, const N: usize = { 2 + 2 }>([Option<T>; N]);
#[actor(mailbox = { N + 1 }, name = "ring")]
impl<T: Send + 'static, const N: usize> Ring<T, { N }> {
    pub fn a(&mut self, x: [T; N]) -> Option<[T; N]> {
        let _ = &self.0;
        Some(x)
    }
}
struct Fixed;
#[actor(mailbox = if true { 3 } else { 4 }, max_message = { const X: usize = 64; X }, concurrent = <u8 as Into2>::C)]
impl Fixed {
    #[message(concurrent)]
    pub async fn a(&self, x: [u8; 3]) -> [u8; 3] {
        x
    }
}
trait Into2 {
    const C: usize;
}
impl Into2 for u8 {
    const C: usize = 2;
}
pub(crate) fn main() {
    let _ = |a: Addr<Ring<u8>>, b: Addr<Fixed>| drop((a.a([1; 4]), b.a([1; 3])));
}
