//! The bound of mailboxes whose senders do not wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_channel::oneshot;
use greenroom::prelude::*;
use greenroom_tests::{on_shards, settle};

/// Counts how many of its kind there are.
struct Weight {
    alive: Arc<AtomicUsize>,
}

impl Weight {
    fn new(alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self {
            alive: alive.clone(),
        }
    }
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

macro_rules! scales {
    ($actor:ident, $policy:ident) => {
        struct $actor;

        #[actor(mailbox = 8, overflow = $policy)]
        impl $actor {
            pub(crate) fn put(&mut self, weight: Weight) {
                drop(weight);
            }

            pub(crate) async fn wait(&mut self, gate: oneshot::Receiver<()>) {
                gate.await.ok();
            }
        }

        impl $actor {
            /// Sends as much as anybody takes from both shards while the actor is busy; returns the most there ever was.
            fn weigh(system: &System) -> usize {
                let to = system.block_on(system.spawn_on(1, || $actor)).unwrap();
                let (open, gate) = oneshot::channel();
                system.block_on(to.wait(gate).tell()).unwrap();
                system.block_on(settle(system, 1));
                let alive = Arc::new(AtomicUsize::new(0));
                let mut most = 0;
                for shard in [0, 1] {
                    let alive = alive.clone();
                    let handle = system.handle().clone();
                    let seen = system.run_on(shard, move || async move {
                        let mut most = 0;
                        for _ in 0..10 {
                            for _ in 0..20 {
                                drop(to.put(Weight::new(&alive)).try_tell());
                                drop(to.put(Weight::new(&alive)).urgent().try_tell());
                            }
                            settle(&handle, 1).await;
                            most = most.max(alive.load(Ordering::Relaxed));
                        }
                        most
                    });
                    most = most.max(seen);
                }
                open.send(()).unwrap();
                system
                    .block_on(to.put(Weight::new(&alive)).into_future())
                    .ok();
                Addr::stop(to);
                system.block_on(Addr::stopped(to));
                assert_eq!(alive.load(Ordering::Relaxed), 0);
                most
            }
        }
    };
}

scales!(RejectingScales, reject);
scales!(OldestScales, drop_oldest);
scales!(NewestScales, drop_newest);

#[test]
fn a_mailbox_that_does_not_let_senders_wait_never_holds_more_than_its_bound() {
    on_shards(&[2], |system| {
        assert_eq!(RejectingScales::weigh(system), 8 + 16);
        assert_eq!(OldestScales::weigh(system), 8 + 16);
        assert_eq!(NewestScales::weigh(system), 8 + 16);
    });
}
