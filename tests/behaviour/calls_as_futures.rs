//! A call is no future, but becomes one: what runs futures takes it as it is.

use greenroom::prelude::*;
use greenroom::runtime;
use greenroom::runtime::task::JoinSet;
use greenroom_tests::on_shards;

#[derive(Default)]
struct Counter {
    n: u64,
}

#[actor]
impl Counter {
    pub(crate) fn add(&mut self, by: u64) -> u64 {
        self.n += by;
        self.n
    }

    /// Asks another one, and goes on meanwhile.
    pub(crate) fn relay(&mut self, to: Addr<Counter>, reply: Reply<u64>, ctx: &mut Ctx<Self>) {
        ctx.pipe(to.add(1), |me, sum| {
            me.n = sum.unwrap();
            reply.send(me.n);
        });
    }

    pub(crate) fn relay_and_stop(
        &mut self,
        to: Addr<Counter>,
        reply: Reply<u64>,
        ctx: &mut Ctx<Self>,
    ) {
        ctx.pipe_with(to.add(1).tell(), |me, told, ctx| {
            told.unwrap();
            reply.send(me.n);
            ctx.stop();
        });
    }
}

#[test]
fn a_call_is_taken_where_a_future_is() {
    on_shards(&[1, 2], |system| {
        let counter = system.block_on(system.spawn_on(0, Counter::default));
        let counter = counter.unwrap();
        assert_eq!(system.block_on(counter.add(1)).unwrap(), 1);
        assert_eq!(runtime::block_on(counter.add(1)).unwrap(), 2);
        system.run_on(system.shard(1), move || async move {
            assert_eq!(runtime::spawn(counter.add(1)).await.unwrap().unwrap(), 3);
            let mut calls = JoinSet::new();
            calls.spawn(counter.add(1));
            assert_eq!(calls.join_next().await.unwrap().unwrap().unwrap(), 4);
            let relay = greenroom::spawn(Counter::default());
            assert_eq!(relay.relay(counter).await.unwrap(), 5);
            assert_eq!(relay.relay_and_stop(counter).await.unwrap(), 5);
            Addr::stopped(relay).await;
            assert_eq!(counter.add(0).await.unwrap(), 6);
        });
    });
}
