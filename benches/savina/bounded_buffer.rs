//! Bounded buffer: forty producers and forty consumers, and room for fifty items between them.
//!
//! The buffer answers later: a producer waits for room, a consumer for an item, and neither blocks the buffer.

use std::collections::VecDeque;

use futures_util::future::{try_join, try_join_all};
use greenroom::Error;
use greenroom::prelude::*;

use crate::harness::{Size, check_close, start, start_many};
use crate::random::Random;

/// What a producer and a consumer each do with an item: so many times a hundred logarithms.
const COST: usize = 25;

struct Item {
    value: f64,
}

#[derive(Default)]
struct Buffer {
    capacity: usize,
    items: VecDeque<Item>,
    producers: VecDeque<(Item, Reply<()>)>,
    consumers: VecDeque<Reply<Item>>,
}

#[actor]
impl Buffer {
    /// Answers when the item has been taken into the buffer.
    pub fn put(&mut self, item: Item, reply: Reply<()>) {
        if let Some(consumer) = self.consumers.pop_front() {
            consumer.send(item);
        } else if self.items.len() < self.capacity {
            self.items.push_back(item);
        } else {
            self.producers.push_back((item, reply));
            return;
        }
        reply.send(());
    }

    /// Answers when there is an item.
    pub fn take(&mut self, reply: Reply<Item>) {
        let Some(item) = self.items.pop_front() else {
            return self.consumers.push_back(reply);
        };
        reply.send(item);
        if let Some((item, producer)) = self.producers.pop_front() {
            self.items.push_back(item);
            producer.send(());
        }
    }
}

fn process(value: f64, cost: usize) -> f64 {
    let mut random = Random::new(cost as u64);
    (0..100 * cost).fold(value, |sum, _| sum + (random.fraction() + 0.01).ln())
}

struct Producer {
    buffer: Addr<Buffer>,
    cost: usize,
}

#[actor]
impl Producer {
    pub async fn produce(&mut self, items: u64) -> Result<f64, Error> {
        let mut value = 0.0;
        for _ in 0..items {
            value = process(value, self.cost);
            self.buffer.put(Item { value }).await?;
        }
        Ok(value)
    }
}

struct Consumer {
    buffer: Addr<Buffer>,
    cost: usize,
}

#[actor]
impl Consumer {
    /// Takes its share of the items. Returns the sum of their values.
    pub async fn consume(&mut self, items: u64) -> Result<f64, Error> {
        let mut sum = 0.0;
        for _ in 0..items {
            let item = self.buffer.take().await?;
            sum += item.value;
            std::hint::black_box(process(item.value, self.cost));
        }
        Ok(sum)
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let (pairs, items, cost) = size.pick((40, 1_000, COST), (4, 50, 1));
    let buffer = start(0, || Buffer {
        capacity: 50,
        ..Buffer::default()
    })
    .await?;
    let producers = start_many(pairs, move |_| Producer { buffer, cost }).await?;
    let consumers = start_many(pairs, move |_| Consumer { buffer, cost }).await?;
    let produced = producers.iter().map(|one| one.produce(items).into_future());
    let consumed = consumers.iter().map(|one| one.consume(items).into_future());
    let (_, consumed) = try_join(try_join_all(produced), try_join_all(consumed)).await?;
    // Every producer makes the same values: each but the last from the one before.
    let values = (0..items).scan(0.0, |value, _| {
        *value = process(*value, cost);
        Some(*value)
    });
    let sum: f64 = values.sum::<f64>() * pairs as f64;
    check_close(
        "the sum of what was consumed",
        consumed.iter().sum(),
        sum,
        1e-9,
    )?;
    Ok(4 * items * pairs as u64)
}
