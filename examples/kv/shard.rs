//! The actor that owns the keys of one shard.

use std::time::Duration;

use greenroom::prelude::*;
use greenroom::runtime::{spawn, time};

use crate::batch::Batch;
use crate::clock::Clock;
use crate::keyspace::Keyspace;

/// How often keys whose time has come are freed.
const SWEEP_EVERY: Duration = Duration::from_millis(100);

/// How many keys are freed before waiting commands get their turn.
const SWEEP_KEYS_MAX: usize = 1000;

/// The keys of one shard. It takes one message for each read of a connection, however many commands were in it.
#[derive(Debug)]
pub(crate) struct Store {
    keyspace: Keyspace,
    clock: Clock,
}

impl Store {
    pub(crate) fn new(seed: u64, clock: Clock) -> Self {
        Store {
            keyspace: Keyspace::new(seed),
            clock,
        }
    }
}

#[actor]
impl Store {
    #[on(started)]
    fn start_sweeping(&mut self, ctx: &mut Ctx<Self>) {
        spawn(sweep_always(ctx.local())).detach();
    }

    /// Executes commands at one instant, and sends the replies home in the batch they came in.
    pub(crate) fn apply(&mut self, mut batch: Box<Batch>) -> Box<Batch> {
        self.keyspace.advance(self.clock.now_ms());
        batch.execute(&mut self.keyspace);
        batch
    }

    /// Frees some of the keys whose time has come. Returns whether there are more.
    #[message]
    fn sweep(&mut self) -> bool {
        self.keyspace.advance(self.clock.now_ms());
        self.keyspace.sweep(SWEEP_KEYS_MAX)
    }
}

/// Sweeps again and again until the store has ended.
async fn sweep_always(store: Local<Store>) {
    let mut ticks = time::interval(SWEEP_EVERY);
    loop {
        match store.sweep().await {
            Ok(true) => {}
            Ok(false) => {
                ticks.tick().await;
            }
            Err(_) => return,
        }
    }
}
