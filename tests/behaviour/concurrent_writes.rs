//! Readers and writers of one actor, from every shard at once.

use greenroom::prelude::*;
use greenroom::runtime::{current_shard, yield_now};
use greenroom_tests::{counts, last_shard, on_shards};

#[test]
fn many_senders_see_every_write_before_their_next_read() {
    #[derive(Default)]
    struct Table {
        rows: Vec<u64>,
    }

    #[actor(mailbox = 4)]
    impl Table {
        #[message(concurrent)]
        pub(crate) async fn sum(&self, row: usize) -> u64 {
            let before = self.rows.get(row).copied().unwrap_or(0);
            yield_now().await;
            assert_eq!(before, self.rows.get(row).copied().unwrap_or(0));
            before
        }

        pub(crate) fn add(&mut self, row: usize, by: u64) {
            if self.rows.len() <= row {
                self.rows.resize(row + 1, 0);
            }
            if let Some(cell) = self.rows.get_mut(row) {
                *cell += by;
            }
        }
    }

    on_shards(&[1, 2, 4], |system| {
        let table = system
            .block_on(system.spawn_on(last_shard(system), Table::default))
            .unwrap();
        let senders: Vec<_> = (0_usize..)
            .zip(system.shards().chain(system.shards()))
            .map(|(row, shard)| {
                system.runtime().spawn_on(shard, move || async move {
                    assert!(current_shard().is_some());
                    for round in 1..100 {
                        table.add(row, 1).tell().await.unwrap();
                        assert_eq!(table.sum(row).await.unwrap(), round);
                    }
                })
            })
            .collect();
        for sender in senders {
            system.block_on(sender).unwrap();
        }
        assert_eq!(counts(system).panics, 0);
    });
}
