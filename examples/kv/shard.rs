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
///
/// While any key has an end, a task sweeps; without such keys there is none, and an idle server sleeps.
#[derive(Debug)]
pub(crate) struct Store {
    keyspace: Keyspace,
    clock: Clock,
    sweeping: bool,
}

impl Store {
    pub(crate) fn new(seed: u64, clock: Clock) -> Self {
        Store {
            keyspace: Keyspace::new(seed),
            clock,
            sweeping: false,
        }
    }
}

/// What a sweep leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Swept {
    /// More keys are due already.
    MoreDue,
    /// Keys that end later.
    MoreLater,
    /// No key has an end: the sweeper is not needed.
    None,
}

#[actor]
impl Store {
    /// Executes commands at one instant, and sends the replies home in the batch they came in.
    pub(crate) fn apply(&mut self, mut batch: Box<Batch>, ctx: &mut Ctx<Self>) -> Box<Batch> {
        self.keyspace.advance(self.clock.now_ms());
        batch.execute(&mut self.keyspace);
        if !self.sweeping && self.keyspace.has_deadlines() {
            self.sweeping = true;
            spawn(sweep_while_needed(ctx.local())).detach();
        }
        batch
    }

    /// Frees some of the keys whose time has come.
    #[message]
    fn sweep(&mut self) -> Swept {
        self.keyspace.advance(self.clock.now_ms());
        if self.keyspace.sweep(SWEEP_KEYS_MAX) {
            return Swept::MoreDue;
        }
        self.sweeping = self.keyspace.has_deadlines();
        if self.sweeping {
            Swept::MoreLater
        } else {
            Swept::None
        }
    }
}

/// Sweeps again and again until no key has an end, or the store has ended.
async fn sweep_while_needed(store: Local<Store>) {
    let mut ticks = time::interval(SWEEP_EVERY);
    loop {
        match store.sweep().await {
            Ok(Swept::MoreDue) => {}
            Ok(Swept::MoreLater) => {
                ticks.tick().await;
            }
            Ok(Swept::None) | Err(_) => return,
        }
    }
}
