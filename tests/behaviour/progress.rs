//! No deadlock comes from the framework: not from full mailboxes, full links, or answers on their way.

use futures_util::future::join_all;
use greenroom::prelude::*;
use greenroom::{Handle, ShardId};
use greenroom_tests::{on_shards, settle};

/// Tells and asks its peers from its handlers.
#[derive(Default)]
struct Node {
    seen: u64,
    next: Option<Addr<Node>>,
}

#[actor(mailbox = 1)]
impl Node {
    pub(crate) fn take(&mut self) {
        self.seen += 1;
    }

    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    pub(crate) fn link(&mut self, next: Addr<Self>) {
        self.next = Some(next);
    }

    /// Asks on along the chain, and adds one.
    pub(crate) async fn depth(&mut self) -> u64 {
        match self.next {
            Some(next) => 1 + next.depth().await.unwrap(),
            None => 1,
        }
    }

    pub(crate) fn bulky(&self, fill: u8) -> [u8; 200] {
        [fill; 200]
    }
}

fn nodes(system: &Handle) -> Vec<Addr<Node>> {
    let spawned = system
        .shards()
        .map(|shard| system.spawn_on(shard, Node::default));
    block_on_all(spawned)
}

fn block_on_all<T>(
    futures: impl Iterator<Item = impl Future<Output = Result<T, greenroom::SpawnError>>>,
) -> Vec<T> {
    let other = greenroom_tests::start(1);
    other
        .block_on(join_all(futures))
        .into_iter()
        .map(Result::unwrap)
        .collect()
}

/// Every shard runs a task that gets all nodes.
fn from_every_shard<Fut>(
    system: &System,
    nodes: &[Addr<Node>],
    work: impl Fn(Vec<Addr<Node>>) -> Fut + Copy + Send + 'static,
) where
    Fut: Future<Output = ()> + 'static,
{
    let running: Vec<_> = system
        .shards()
        .map(|shard: ShardId| {
            let nodes = nodes.to_vec();
            system.runtime().spawn_on(shard, move || work(nodes))
        })
        .collect();
    for done in running {
        system.block_on(done).unwrap();
    }
}

#[test]
fn all_shards_tell_all_shards_through_mailboxes_of_one_place() {
    on_shards(&[1, 2, 4], |system| {
        const ROUNDS: u64 = 1000;
        let nodes = nodes(system);
        from_every_shard(system, &nodes, |nodes| async move {
            join_all(nodes.iter().map(|node| async move {
                for _ in 0..ROUNDS {
                    node.take().tell().await.unwrap();
                }
                node.seen().await.unwrap();
            }))
            .await;
        });
        for node in nodes {
            let seen = system.block_on(node.seen().into_future()).unwrap();
            assert_eq!(seen, ROUNDS * system.shard_count() as u64);
        }
    });
}

#[test]
fn chains_of_asks_through_all_shards_come_back() {
    on_shards(&[1, 2, 4], |system| {
        // Three nodes a shard, in a chain that visits each shard three times.
        let chain: Vec<_> = (0..3).flat_map(|_| nodes(system)).collect();
        for pair in chain.windows(2) {
            system
                .block_on(pair[0].link(pair[1]).into_future())
                .unwrap();
        }
        let depth = chain.len() as u64;
        let first = chain[0];
        from_every_shard(system, &[first], move |nodes| async move {
            for _ in 0..20 {
                let asks = (0..16).map(|_| nodes[0].depth().into_future());
                for answer in join_all(asks).await {
                    assert_eq!(answer.unwrap(), depth);
                }
            }
        });
    });
}

#[test]
fn answers_that_outgrow_the_link_arrive() {
    on_shards(&[1, 2, 4], |system| {
        let nodes = nodes(system);
        from_every_shard(system, &nodes, |nodes| async move {
            for round in 0..4_u8 {
                let asks =
                    (0..120).flat_map(|_| nodes.iter().map(|node| node.bulky(round).into_future()));
                for answer in join_all(asks).await {
                    assert_eq!(answer.unwrap(), [round; 200]);
                }
            }
        });
    });
}

/// Both directions of a pair are full of messages for choked actors while asks go over the same links.
#[test]
fn asks_go_through_links_on_which_senders_wait() {
    on_shards(&[2, 4], |system| {
        let (busy, free) = (nodes(system), nodes(system));
        for (node, next) in busy.iter().zip(busy.iter().skip(1)) {
            system.block_on(node.link(*next).into_future()).unwrap();
        }
        let handle = system.handle().clone();
        let floods: Vec<_> = system
            .shards()
            .map(|shard| {
                let busy = busy.clone();
                system.runtime().spawn_on(shard, move || async move {
                    for _ in 0..500 {
                        join_all(busy.iter().map(|node| node.take().tell())).await;
                    }
                })
            })
            .collect();
        from_every_shard(system, &free, |nodes| async move {
            for round in 0..200_u8 {
                for node in &nodes {
                    assert_eq!(node.bulky(round).await.unwrap(), [round; 200]);
                }
            }
        });
        for flood in floods {
            system.block_on(flood).unwrap();
        }
        system.block_on(settle(&handle, 0));
    });
}
