//! Actors that fail, and an actor that makes them anew: `cargo run --example supervision`.
//!
//! A plant has a store, and a reader that puts into the store what it has read. The reader fails at lines that it does not
//! understand, and is restarted: what waits in its mailbox is read by the next one. When the store fails the reader, which
//! was started after it, is restarted as well. A machine that fails too often takes the plant with it, and whoever watches the
//! plant hears why.

#![expect(
    unreachable_pub,
    reason = "the messages of an actor are public, in a program as in a library"
)]

use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{ChildExit, ChildOutcome, Restart, SpawnError, Strategy};

/// Adds up what it is given.
#[derive(Default)]
struct Store {
    sum: i64,
}

#[actor]
impl Store {
    pub fn put(&mut self, number: i64) {
        self.sum += number;
    }

    pub fn sum(&self) -> i64 {
        self.sum
    }

    /// Finds that its numbers are no good.
    pub fn spoil(&mut self, ctx: &mut Ctx<Self>) {
        ctx.fail("the store has gone bad");
    }
}

/// Reads numbers.
struct Reader {
    store: Addr<Store>,
    lines: u32,
}

#[actor]
impl Reader {
    pub async fn read(&mut self, line: String) {
        let number = line.parse().expect("a line is a number");
        self.lines += 1;
        // The store may be just about to be restarted: its mailbox stays.
        self.store.put(number).tell().await.ok();
    }

    pub fn lines(&self) -> u32 {
        self.lines
    }
}

/// Does not work.
#[derive(Default)]
struct Machine;

#[actor]
impl Machine {
    pub fn run(&mut self) {
        panic!("the machine is broken");
    }
}

/// What a plant is made of.
#[derive(Clone, Copy)]
struct Parts {
    store: Addr<Store>,
    reader: Addr<Reader>,
    machine: Addr<Machine>,
}

/// The parent of the others.
#[derive(Default)]
struct Plant {
    restarts: u32,
}

#[actor]
impl Plant {
    pub async fn build(&mut self, ctx: &mut Ctx<Self>) -> Result<Parts, SpawnError> {
        // Who was started later needs who was started before.
        ctx.set_strategy(Strategy::RestForOne);
        let machine = ctx
            .spawn_child(Machine::default)
            .restart(Restart::OnFailure)
            .intensity(2, Duration::from_secs(60))
            .backoff(Duration::from_millis(1), Duration::from_millis(4))
            .await?;
        let store = ctx
            .spawn_child(Store::default)
            .restart(Restart::OnFailure)
            .await?;
        let make_reader = move || Reader { store, lines: 0 };
        let reader = ctx
            .spawn_child(make_reader)
            .restart(Restart::OnFailure)
            .backoff(Duration::from_millis(1), Duration::from_millis(4))
            .await?;
        Ok(Parts {
            store,
            reader,
            machine,
        })
    }

    pub fn restarts(&self) -> u32 {
        self.restarts
    }

    #[on(child_exit)]
    fn child_exit(&mut self, exit: ChildExit) {
        if exit.outcome == ChildOutcome::Restarts {
            self.restarts += 1;
        }
    }
}

#[expect(clippy::print_stdout, reason = "an example speaks to who runs it")]
fn main() -> Result<(), greenroom::Error> {
    // The panics that follow are meant.
    std::panic::set_hook(Box::new(|_| {}));
    let system = System::builder().shards(2).pin(false).start()?;
    system.block_on(async {
        let plant = system.spawn_on(1, Plant::default).await?;
        let Parts {
            store,
            reader,
            machine,
        } = plant.build().await?;

        for line in ["1", "2", "three", "4"] {
            reader.read(line.to_owned()).tell().await?;
        }
        // Asked of the second reader, behind the lines that wait.
        let lines = reader.lines().await?;
        println!(
            "the second reader has read {lines} line, the sum is {}",
            store.sum().await?
        );

        store.spoil().await.ok();
        reader.read("5".to_owned()).await?;
        println!("the second store has {}", store.sum().await?);
        println!("{} restarts so far", plant.restarts().await?);

        let down = Addr::watch(plant);
        while machine
            .run()
            .await
            .is_err_and(|error| error.panic().is_some())
        {}
        let down = down.await;
        println!("{} ended: {}", down.name, down.reason);
        let late = reader.read("6".to_owned()).await.unwrap_err();
        println!("{late}");
        Ok(())
    })
}
