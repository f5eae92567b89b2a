//! Which reader is the next to start.

use greenroom_tests::{counts, last_shard, poll_once, settle};

use super::{open, waiting, with_hall};

#[test]
fn an_urgent_reader_joins_those_that_run_and_an_urgent_writer_keeps_others_out() {
    with_hall(&[1, 2], |system, hall, shard| async move {
        hall.read(1).tell().await.unwrap();
        waiting(&system, shard, 1).await;
        // Behind a writer, but for their urgency.
        hall.write(7).tell().await.unwrap();
        hall.read(2).urgent().tell().await.unwrap();
        waiting(&system, shard, 2).await;
        hall.write(8).urgent().tell().await.unwrap();
        hall.read(3).urgent().tell().await.unwrap();
        settle(&system, last_shard(&system)).await;
        for number in [3, 2, 1] {
            open(&system, shard, number).await;
        }
        let heard = hall.heard().await.unwrap();
        let expected = [
            "in 1", "in 2", "out 2", "out 1", "write 8", "in 3", "out 3", "write 7",
        ];
        assert_eq!(heard, expected);
    });
}

#[test]
fn a_reader_whose_asker_has_given_up_is_not_started() {
    with_hall(&[1, 2], |system, hall, shard| async move {
        let mut asks: Vec<_> = (1..=4)
            .map(|number| hall.read(number).into_future())
            .collect();
        for ask in &mut asks {
            assert!(poll_once(ask).is_pending());
        }
        // The fourth is in the mailbox, behind as many as may run.
        waiting(&system, shard, 3).await;
        settle(&system, last_shard(&system)).await;
        drop(asks.pop());
        settle(&system, last_shard(&system)).await;
        for number in 1..=4 {
            open(&system, shard, number).await;
        }
        for (number, ask) in (1..).zip(asks) {
            assert_eq!(ask.await.unwrap(), number * 10);
        }
        let heard = hall.heard().await.unwrap();
        assert!(!heard.contains(&"in 4".to_owned()), "{heard:?}");
        assert_eq!(counts(&system).skipped, 1);
    });
}
