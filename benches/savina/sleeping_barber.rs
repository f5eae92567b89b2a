//! Sleeping barber: five thousand customers, one barber, and a thousand chairs to wait on.

use std::collections::VecDeque;

use futures_util::future::try_join;
use greenroom::Error;
use greenroom::prelude::*;
use greenroom::runtime::yield_now;

use crate::harness::{Size, busy_wait, check, start};
use crate::random::Random;

/// The right to tell a customer that its hair is cut.
struct Haircut(Reply<bool>);

struct WaitingRoom {
    chairs: usize,
    waiting: VecDeque<Haircut>,
    barber: Option<Reply<Option<Haircut>>>,
    is_closing: bool,
}

#[actor]
impl WaitingRoom {
    /// Answers `true` when the customer's hair is cut, and `false` at once when no chair is free.
    pub fn enter(&mut self, reply: Reply<bool>) {
        if let Some(barber) = self.barber.take() {
            barber.send(Some(Haircut(reply)));
        } else if self.waiting.len() < self.chairs {
            self.waiting.push_back(Haircut(reply));
        } else {
            reply.send(false);
        }
    }

    /// Answers the barber when there is a customer; with none after the shop has closed.
    pub fn next(&mut self, reply: Reply<Option<Haircut>>) {
        match self.waiting.pop_front() {
            None if !self.is_closing => self.barber = Some(reply),
            next => reply.send(next),
        }
    }

    pub fn close(&mut self) {
        self.is_closing = true;
        if let Some(barber) = self.barber.take() {
            barber.send(None);
        }
    }
}

struct Barber {
    random: Random,
}

#[actor]
impl Barber {
    /// Cuts hair until the shop has closed. Returns how many customers came.
    pub async fn work(&mut self, room: Addr<WaitingRoom>, effort: usize) -> Result<u64, Error> {
        let mut cut = 0;
        while let Some(Haircut(done)) = room.next().await? {
            busy_wait(self.random.below(effort) + 10);
            done.send(true);
            cut += 1;
        }
        Ok(cut)
    }
}

struct Customer;

#[actor]
impl Customer {
    /// Comes again until its hair is cut, and then leaves for good.
    pub async fn visit(
        &mut self,
        ctx: &mut Ctx<Self>,
        room: Addr<WaitingRoom>,
        street: Addr<Street>,
    ) -> Result<(), Error> {
        let mut visits = 1;
        while !room.enter().await? {
            visits += 1;
        }
        street.leave(visits).tell().await?;
        ctx.stop();
        Ok(())
    }
}

/// Where customers come from, and whence they return.
#[derive(Default)]
struct Street {
    away: u64,
    visits: u64,
    done: Option<Reply<u64>>,
}

#[actor]
impl Street {
    /// Sends customers to the shop, one after the other. Answers with the number of visits when all have come back.
    pub async fn send(
        &mut self,
        ctx: &mut Ctx<Self>,
        room: Addr<WaitingRoom>,
        customers: u64,
        effort: usize,
        done: Reply<u64>,
    ) {
        let mut random = Random::new(2);
        self.away = customers;
        self.done = Some(done);
        for _ in 0..customers {
            busy_wait(random.below(effort) + 10);
            greenroom::spawn(Customer)
                .visit(room, ctx.addr())
                .try_tell()
                .expect("a new mailbox has room");
            // Whoever is in the shop has a turn, or on one shard all would come at once.
            yield_now().await;
        }
    }

    pub fn leave(&mut self, visits: u64) {
        self.away -= 1;
        self.visits += visits;
        if self.away == 0
            && let Some(done) = self.done.take()
        {
            done.send(self.visits);
        }
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let (customers, chairs, effort) = size.pick((5_000, 1_000, 1_000), (100, 10, 10));
    let room = start(0, move || WaitingRoom {
        chairs,
        waiting: VecDeque::new(),
        barber: None,
        is_closing: false,
    })
    .await?;
    let barber = start(0, || Barber {
        random: Random::new(1),
    })
    .await?;
    let street = start(1, Street::default).await?;
    let day = async {
        let visits = street.send(room, customers, effort).await?;
        room.close().await?;
        Ok::<_, Error>(visits)
    };
    let work = async { Ok(barber.work(room, effort).await?) };
    let (cut, visits) = try_join(work, day).await?;
    check("the number of haircuts", cut, customers)?;
    Ok(2 * visits + 4 * customers)
}
