//! One handler of an actor runs at a time, across its awaits.

use std::time::Duration;

use greenroom::prelude::*;
use greenroom::runtime::time::sleep;
use greenroom::runtime::yield_now;
use greenroom_tests::{last_shard, on_shards};

#[derive(Default)]
struct Alone {
    running: u32,
    most: u32,
    done: u32,
}

#[actor(mailbox = 4)]
impl Alone {
    pub(crate) fn quick(&mut self) {
        self.enter();
        self.running -= 1;
        self.done += 1;
    }

    pub(crate) async fn yields(&mut self) {
        self.enter();
        for _ in 0..3 {
            yield_now().await;
        }
        self.running -= 1;
        self.done += 1;
    }

    pub(crate) async fn sleeps(&self) -> u32 {
        let before = self.done;
        sleep(Duration::from_millis(1)).await;
        assert_eq!(self.done, before, "nothing else ran meanwhile");
        before
    }

    pub(crate) fn most(&self) -> (u32, u32) {
        (self.most, self.done)
    }

    fn enter(&mut self) {
        self.running += 1;
        self.most = self.most.max(self.running);
    }
}

#[test]
fn handlers_of_an_actor_never_overlap() {
    on_shards(&[1, 2, 4], |system| {
        let alone = system
            .block_on(system.spawn_on(last_shard(system), Alone::default))
            .unwrap();
        let senders: Vec<_> = system
            .shards()
            .chain(system.shards())
            .map(|shard| {
                system.runtime().spawn_on(shard, move || async move {
                    for round in 0..60 {
                        alone.yields().tell().await.unwrap();
                        alone.quick().tell().await.unwrap();
                        if round % 20 == 0 {
                            alone.sleeps().await.unwrap();
                        }
                        alone.yields().await.unwrap();
                    }
                })
            })
            .collect();
        let count = u32::try_from(senders.len()).unwrap();
        for sender in senders {
            system.block_on(sender).unwrap();
        }
        assert_eq!(
            system.block_on(alone.most().into_future()).unwrap(),
            (1, count * 180)
        );
    });
}
