//! Big: a hundred and twenty actors ping each other at random, twenty thousand times each.

use std::sync::Arc;

use futures_util::future::try_join_all;
use greenroom::Error;
use greenroom::prelude::*;

use crate::harness::{Size, check, start_many};
use crate::random::Random;

struct Node {
    number: usize,
    all: Arc<[Addr<Node>]>,
    random: Random,
    /// Whose pong is waited for.
    pinged: usize,
    pings_left: u64,
    pongs: u64,
    done: Option<Reply<u64>>,
}

impl Node {
    fn new(number: usize) -> Self {
        Self {
            number,
            all: Arc::new([]),
            random: Random::new(number as u64),
            pinged: 0,
            pings_left: 0,
            pongs: 0,
            done: None,
        }
    }
}

#[actor]
impl Node {
    pub fn meet(&mut self, all: Arc<[Addr<Node>]>) {
        self.all = all;
    }

    /// Answers with the number of pongs when the last one has come.
    pub fn start(&mut self, pings: u64, done: Reply<u64>) {
        self.pings_left = pings;
        self.done = Some(done);
        self.ping_another();
    }

    pub fn ping(&mut self, from: usize) {
        self.all[from]
            .pong(self.number)
            .try_tell()
            .expect("an actor waits for one pong at a time");
    }

    pub fn pong(&mut self, from: usize) {
        assert_eq!(from, self.pinged, "only who was pinged answers");
        self.pongs += 1;
        self.ping_another();
    }

    fn ping_another(&mut self) {
        if self.pings_left == 0 {
            if let Some(done) = self.done.take() {
                done.send(self.pongs);
            }
            return;
        }
        self.pings_left -= 1;
        self.pinged = self.random.below(self.all.len());
        self.all[self.pinged]
            .ping(self.number)
            .try_tell()
            .expect("there are fewer actors than places in a mailbox");
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let (nodes, pings) = size.pick((120, 20_000), (12, 100));
    let all: Arc<[_]> = start_many(nodes, Node::new).await?.into();
    for node in &*all {
        node.meet(all.clone()).await?;
    }
    let pongs: u64 = try_join_all(all.iter().map(|node| node.start(pings).into_future()))
        .await?
        .iter()
        .sum();
    let expected = pings * all.len() as u64;
    check("the number of pongs", pongs, expected)?;
    Ok(2 * expected)
}
