//! The arguments of a repeated call are cloned for each tick.

use std::time::Duration;

use greenroom::prelude::*;

struct Token;

struct Clock;

#[actor]
impl Clock {
    pub fn begin(&self, ctx: &mut Ctx<Self>) {
        ctx.after(Duration::from_secs(1)).tick(Token);
        ctx.every(Duration::from_secs(1)).tick(Token);
    }

    pub fn tick(&self, token: Token) {
        let _ = token;
    }
}

fn main() {}
