//! Messages and arguments called like keywords, macros, and what generated code calls its own.

#![allow(dead_code)]
#![deny(warnings)]

use greenroom::prelude::*;

struct N(u8);

#[actor(trait = NApi)]
impl N {
    pub fn r#type(&self, r#match: u8) -> u8 {
        r#match
    }

    pub fn r#async(&self) -> u8 {
        self.0
    }

    pub fn r#await(&self) -> u8 {
        self.0
    }

    pub fn r#gen(&self) -> u8 {
        self.0
    }

    pub fn r#mod(&self, r#fn: u8, r#move: u8) -> u8 {
        r#fn + r#move
    }

    pub fn tell(&self) -> u8 {
        self.0
    }

    pub fn ask(&self) -> u8 {
        self.0
    }

    pub fn map_reduce(&self) -> u8 {
        self.0
    }

    pub fn map(&self) -> u8 {
        self.0
    }

    pub fn timeout(&self) -> u8 {
        self.0
    }

    pub fn new(&self) -> u8 {
        self.0
    }

    pub fn stop(&self) -> u8 {
        self.0
    }

    pub fn local(&self) -> u8 {
        self.0
    }

    pub fn kill(&self) -> u8 {
        self.0
    }

    pub fn from(&self) -> u8 {
        self.0
    }

    pub fn from_port(&self) -> u8 {
        self.0
    }

    pub fn port(&self) -> u8 {
        self.0
    }

    pub fn call(&self) -> u8 {
        self.0
    }

    pub fn build(&self) -> u8 {
        self.0
    }

    pub fn dispatch(&self) -> u8 {
        self.0
    }

    pub fn dispatch_now(&self) -> u8 {
        self.0
    }

    pub fn started(&self) -> u8 {
        self.0
    }

    pub fn stopping(&self) -> u8 {
        self.0
    }

    pub fn down(&self) -> u8 {
        self.0
    }

    pub fn carried(&self) -> u8 {
        self.0
    }

    pub fn overlap(&self) -> u8 {
        self.0
    }

    pub fn begin_timers(&self) -> u8 {
        self.0
    }

    pub fn is_concurrent(&self) -> u8 {
        self.0
    }

    pub fn fmt(&self) -> u8 {
        self.0
    }

    pub fn hash(&self) -> u8 {
        self.0
    }

    pub fn cmp(&self) -> u8 {
        self.0
    }

    pub fn next(&self) -> u8 {
        self.0
    }

    pub fn iter(&self) -> u8 {
        self.0
    }

    pub fn into_iter(&self) -> u8 {
        self.0
    }

    pub fn into_future(&self) -> u8 {
        self.0
    }

    pub fn poll(&self) -> u8 {
        self.0
    }

    pub fn print(&self) -> u8 {
        self.0
    }

    pub fn println(&self) -> u8 {
        self.0
    }

    pub fn vec(&self) -> u8 {
        self.0
    }

    pub fn panic(&self) -> u8 {
        self.0
    }

    pub fn some(&self) -> u8 {
        self.0
    }

    pub fn reply(&self, reply: u8) -> u8 {
        reply
    }

    pub fn ctx(&self, ctx: u8) -> u8 {
        ctx
    }

    pub fn msg(
        &self,
        msg: u8,
        args: u8,
        answer: u8,
        show: u8,
        batch: u8,
        replies: u8,
        news: u8,
        returned: u8,
        arguments: u8,
        port: u8,
        a0: u8,
        a1: u8,
        arg0: u8,
        arg1: u8,
    ) -> u8 {
        msg + args
            + answer
            + show
            + batch
            + replies
            + news
            + returned
            + arguments
            + port
            + a0
            + a1
            + arg0
            + arg1
    }

    pub fn flat(&self, msg: u8, answer: u8, show: u8) -> Result<u8, String> {
        Ok(msg + answer + show)
    }

    pub fn u8(&self, u8: u8) -> u8 {
        u8
    }

    pub fn usize(&self, usize: usize) -> usize {
        usize
    }

    pub fn core(&self, core: u8, std: u8, greenroom: u8) -> u8 {
        core + std + greenroom
    }

    pub fn name(&self) -> u8 {
        self.0
    }

    pub fn is(&self) -> u8 {
        self.0
    }

    pub fn default(&self) -> u8 {
        self.0
    }

    pub fn union(&self, union: u8, auto: u8, raw: u8, safe: u8) -> u8 {
        union + auto + raw + safe
    }

    pub fn macro_rules(&self) -> u8 {
        self.0
    }

    pub fn len_é(&self, größe: u8) -> u8 {
        größe
    }

    pub fn _under(&self, _x: u8) -> u8 {
        _x
    }

    pub fn get_me(&self) -> u8 {
        self.0
    }

    pub fn any(&self) -> u8 {
        self.0
    }

    pub fn as_ref(&self) -> u8 {
        self.0
    }

    pub fn as_mut(&self) -> u8 {
        self.0
    }

    pub fn to_string(&self) -> u8 {
        self.0
    }

    pub fn partial_cmp(&self) -> u8 {
        self.0
    }

    pub fn description(&self) -> u8 {
        self.0
    }

    pub fn send(&self) -> u8 {
        self.0
    }

    pub fn spawn(&self) -> u8 {
        self.0
    }

    pub fn itself(&self) -> u8 {
        self.0
    }

    pub fn within(&self) -> u8 {
        self.0
    }
}

pub(crate) fn main() -> Result<(), greenroom::Error> {
    let system = System::start(1)?;
    system.run_on(0, || async {
        let n = greenroom::spawn(N(1));
        n.r#type(1).await?;
        n.r#async().await?;
        n.r#await().await?;
        n.r#gen().await?;
        n.r#mod(1, 2).await?;
        n.tell().tell().await?;
        n.ask().await?;
        n.map_reduce().await?;
        n.map().await?;
        n.timeout().await?;
        n.new().await?;
        n.stop().await?;
        n.local().await?;
        n.kill().await?;
        n.from().await?;
        n.from_port().await?;
        n.port().await?;
        n.call().await?;
        n.build().await?;
        n.dispatch().await?;
        n.dispatch_now().await?;
        n.started().await?;
        n.stopping().await?;
        n.down().await?;
        n.carried().await?;
        n.overlap().await?;
        n.begin_timers().await?;
        n.is_concurrent().await?;
        n.fmt().await?;
        n.hash().await?;
        n.cmp().await?;
        n.next().await?;
        n.iter().await?;
        n.into_iter().await?;
        n.into_future().await?;
        n.poll().await?;
        n.print().await?;
        n.println().await?;
        n.vec().await?;
        n.panic().await?;
        n.some().await?;
        assert_eq!(n.reply(2).await?, 2);
        assert_eq!(n.ctx(2).await?, 2);
        n.msg(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1).await?;
        n.flat(1, 2, 3).await?;
        n.u8(1).await?;
        n.usize(1).await?;
        n.core(1, 2, 3).await?;
        n.name().await?;
        n.is().await?;
        n.default().await?;
        n.union(1, 2, 3, 4).await?;
        n.macro_rules().await?;
        n.len_é(1).await?;
        n._under(1).await?;
        n.get_me().await?;
        n.any().await?;
        n.as_ref().await?;
        n.as_mut().await?;
        n.to_string().await?;
        n.partial_cmp().await?;
        n.description().await?;
        n.send().await?;
        n.spawn().await?;
        n.itself().await?;
        n.within().await?;
        Ok(())
    })
}
