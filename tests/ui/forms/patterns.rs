//! Patterns as parameters, and parameters called like the bindings of generated code.

#![forbid(unsafe_code)]
#![deny(warnings)]

use greenroom::prelude::*;

struct Point {
    x: u8,
    y: u8,
}

struct Patterns {
    sum: u32,
}

#[actor]
impl Patterns {
    pub fn tuple(&mut self, (a, b): (u8, u8), [c, ..]: [u8; 3], mut rest: Vec<u8>) -> u8 {
        rest.push(a);
        rest.push(b);
        rest.push(c);
        rest.iter().sum()
    }

    pub fn structure(&mut self, Point { x, y }: Point, _: u64, (): ()) {
        self.sum += u32::from(x) + u32::from(y);
    }

    pub fn whole(&mut self, pair @ (a, _): (u8, u8), ref text: String) -> usize {
        usize::from(pair.0 + a) + text.len()
    }

    pub async fn like_ours(
        &mut self,
        args: u8,
        msg: u8,
        ctx: u8,
        reply: u8,
        a0: u8,
        port: u8,
        arg5: u8,
        context: &mut Ctx<Self>,
        _: u8,
    ) -> u8 {
        let _ = context;
        args + msg + ctx + reply + a0 + port + arg5
    }

    pub fn context_first(&mut self, _: &mut Ctx<Self>, value: u8) -> u8 {
        value
    }

    pub fn context_between(&self, a: u8, ctx: &mut Ctx<Self>, b: u8) -> u8 {
        let _ = ctx;
        a + b
    }
}

fn calls(address: Addr<Patterns>) {
    drop(address.tuple((1, 2), [1, 2, 3], Vec::new()));
    drop(address.structure(Point { x: 1, y: 2 }, 1, ()));
    drop(address.whole((1, 2), String::new()));
    drop(address.like_ours(1, 2, 3, 4, 5, 6, 7, 8));
    drop(address.context_first(1));
    drop(address.context_between(1, 2));
}

pub fn main() {
    let _ = calls;
}
