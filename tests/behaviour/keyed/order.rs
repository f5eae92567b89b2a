//! Messages to keys: in order, bounded, and none lost.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use futures_channel::oneshot;
use futures_util::future::join_all;
use greenroom_tests::{bounded_wait, counts, hear, last_shard, on_shards, poll_once};

use super::{ALL, Account, World, accounts, key_on};

#[test]
fn messages_wait_in_order_while_an_instance_is_made() {
    on_shards(ALL, |system| {
        let world = Arc::new(World::default());
        let (open, gate) = oneshot::channel::<()>();
        let gate = Arc::new(Mutex::new(Some(gate)));
        let (entered, has_entered) = mpsc::channel();
        let made_in = world.clone();
        let starting = system.keyed_with(async move |key: &u64| {
            let gate = gate.lock().unwrap().take();
            entered.send(()).unwrap();
            if let Some(gate) = gate {
                gate.await.ok();
            }
            Ok::<_, String>(Account::new(*key, &made_in))
        });
        let accounts = system.block_on(starting.start()).unwrap();
        let key = key_on(&accounts, last_shard(system));
        // From outside, and from each shard: each has its order.
        for number in 0..4 {
            accounts.at(&key).note(99, number).try_tell().unwrap();
        }
        hear(&has_entered);
        let senders: Vec<_> = (0_u32..)
            .zip(system.shards())
            .map(|(sender, shard)| {
                let accounts = accounts.clone();
                system.runtime().spawn_on(shard, move || async move {
                    // More than the mailbox holds.
                    for number in 0..50 {
                        accounts.at(&key).note(sender, number).tell().await.unwrap();
                    }
                    accounts.at(&key).note(sender, 50).await.unwrap();
                })
            })
            .collect();
        assert_eq!(world.made(), 0);
        drop(open);
        for sender in senders {
            system.block_on(sender).unwrap();
        }
        let seen = world.seen_by(key);
        for (sender, count) in [(99, 4), (0, 51), (u32::from(last_shard(system)), 51)] {
            let of_sender = seen.iter().filter(|(of, _)| *of == sender);
            let numbers: Vec<_> = of_sender.map(|(_, number)| *number).collect();
            assert_eq!(numbers, (0..count).collect::<Vec<_>>(), "of {sender}");
        }
        assert_eq!(world.made(), 1);
    });
}

#[test]
fn messages_wait_in_order_while_an_instance_ends_and_are_for_the_next() {
    on_shards(ALL, |system| {
        let world = Arc::new(World::default());
        let accounts = accounts(system, &world);
        let key = key_on(&accounts, last_shard(system));
        let (open, gate) = oneshot::channel();
        let at = accounts.at(&key);
        system.block_on(at.note(9, 0).into_future()).unwrap();
        system
            .block_on(at.passivate_slowly(gate).into_future())
            .unwrap();
        let senders: Vec<_> = (0_u32..)
            .zip(system.shards())
            .map(|(sender, shard)| {
                let accounts = accounts.clone();
                system.runtime().spawn_on(shard, move || async move {
                    for number in 0..50 {
                        accounts.at(&key).note(sender, number).tell().await.unwrap();
                    }
                    accounts.at(&key).note_slowly(sender, 50).await.unwrap();
                })
            })
            .collect();
        // They fill the mailbox of the next one; the last one is still there.
        bounded_wait(|| accounts.live() == 2);
        assert_eq!((world.made(), world.seen_by(key)), (1, vec![(9, 0)]));
        drop(open);
        for sender in senders {
            system.block_on(sender).unwrap();
        }
        assert_eq!((world.made(), accounts.live()), (2, 1));
        let seen = world.seen_by(key);
        for sender in 0..u32::try_from(system.shard_count()).unwrap() {
            let of_sender = seen.iter().filter(|(of, _)| *of == sender);
            let numbers: Vec<_> = of_sender.map(|(_, number)| *number).collect();
            assert_eq!(numbers, (0..=50).collect::<Vec<_>>(), "of {sender}");
        }
    });
}

#[test]
fn nothing_is_lost_and_nothing_overtakes_while_instances_come_and_go() {
    on_shards(ALL, |system| {
        const KEYS: u64 = 7;
        const EACH: u64 = 400;
        let world = Arc::new(World::default());
        let accounts = accounts(system, &world);
        let senders: Vec<_> = (0_u32..)
            .zip(system.shards().chain(system.shards()))
            .map(|(sender, shard)| {
                let accounts = accounts.clone();
                system.runtime().spawn_on(shard, move || async move {
                    for number in 0..EACH {
                        let key = (number + u64::from(sender)) % KEYS;
                        let at = accounts.at(&key);
                        match number % 11 {
                            0 => at.note(sender, number).await.map(drop).unwrap(),
                            1 => at.note_slowly(sender, number).tell().await.unwrap(),
                            _ => at.note(sender, number).tell().await.unwrap(),
                        }
                        if number % 13 == u64::from(sender) % 13 {
                            at.passivate().tell().await.unwrap();
                        }
                    }
                })
            })
            .collect();
        let count = u32::try_from(senders.len()).unwrap();
        for number in 0..EACH {
            let key = number % KEYS;
            system
                .block_on(accounts.at(&key).note(count, number).tell())
                .unwrap();
        }
        for sender in senders {
            system.block_on(sender).unwrap();
        }
        system.block_on(accounts.stop());
        assert_eq!(accounts.live(), 0);
        assert!(
            world
                .alive
                .lock()
                .unwrap()
                .values()
                .all(|alive| *alive == 0)
        );
        assert!(world.made() > 7, "some were made again");
        let seen = world.seen.lock().unwrap();
        assert_eq!(seen.len() as u64, EACH * (u64::from(count) + 1));
        let mut last = HashMap::new();
        for (key, sender, number) in &*seen {
            let before = last.insert((key, sender), number);
            assert!(
                before < Some(number),
                "{sender} to {key}: {before:?}, then {number}"
            );
        }
        assert_eq!(counts(system).dead_letters, 0);
    });
}

#[test]
fn a_key_that_is_overrun_holds_its_senders_back_and_no_other_key() {
    on_shards(&[2, 4], |system| {
        let world = Arc::new(World::default());
        let accounts = accounts(system, &world);
        let home = last_shard(system);
        let slow = key_on(&accounts, home);
        let quick = (slow + 1..)
            .find(|key| accounts.shard_of(key) == home.into())
            .unwrap();
        let (open, gate) = oneshot::channel();
        system
            .block_on(accounts.at(&slow).wait(gate).tell())
            .unwrap();
        let sent = Arc::new(AtomicUsize::new(0));
        let (counted, flooded) = (sent.clone(), accounts.clone());
        let flood = system.runtime().spawn_on(0, move || async move {
            for number in 0..20_000 {
                flooded.at(&slow).note(0, number).tell().await.unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        // Until it is held back other keys of the shard answer, and afterwards too.
        let mut quiet = 0;
        let mut before = 0;
        for number in 0..10_000 {
            let asked = accounts.clone();
            let ask = move || async move { asked.at(&quick).note(1, number).await };
            system.run_on(0, ask).unwrap();
            let now = sent.load(Ordering::SeqCst);
            quiet = if now == before { quiet + 1 } else { 0 };
            before = now;
            if quiet > 50 {
                break;
            }
        }
        assert!(before < 2_000, "{before} were accepted of one that takes 8");
        assert_eq!(world.seen_by(slow), []);
        drop(open);
        system.block_on(flood).unwrap();
        system
            .run_on(0, move || async move {
                accounts.at(&slow).note(0, 20_000).await
            })
            .unwrap();
        let expected: Vec<_> = (0..=20_000).map(|number| (0, number)).collect();
        assert_eq!(world.seen_by(slow), expected);
    });
}

#[test]
fn those_who_are_held_back_go_on_with_the_next_instance() {
    on_shards(&[2, 4], |system| {
        let world = Arc::new(World::default());
        let accounts = accounts(system, &world);
        let key = key_on(&accounts, last_shard(system));
        for end in [false, true] {
            let (open, gate) = oneshot::channel();
            system
                .block_on(accounts.at(&key).wait(gate).tell())
                .unwrap();
            if end {
                system.block_on(accounts.at(&key).fail().tell()).unwrap();
            } else {
                system
                    .block_on(accounts.at(&key).passivate().tell())
                    .unwrap();
            }
            let flooding = accounts.clone();
            let flood = system.runtime().spawn_on(0, move || async move {
                for number in 0..5_000 {
                    flooding.at(&key).note(0, number).tell().await.unwrap();
                }
                flooding.at(&key).note(0, 5_000).await.unwrap();
            });
            drop(open);
            system.block_on(flood).unwrap();
        }
        // A panic takes with it what had been accepted; nothing else is missing, and each asker was answered.
        let missing = counts(system).dead_letters;
        assert_eq!(world.seen_by(key).len() as u64 + missing, 2 * 5_001);
    });
}

#[test]
fn a_send_that_is_given_up_in_line_leaves_it() {
    on_shards(&[1, 2], |system| {
        let world = Arc::new(World::default());
        let accounts = accounts(system, &world);
        let key = key_on(&accounts, last_shard(system));
        let (open, gate) = oneshot::channel();
        system
            .block_on(accounts.at(&key).wait(gate).tell())
            .unwrap();
        let filled = accounts.clone();
        let home = accounts.shard_of(&key);
        system.run_on(home, move || async move {
            let at = filled.at(&key);
            while at.note(0, 0).try_tell().is_ok() {}
            let mut waiting: Vec<_> = (1..4).map(|number| at.note(0, number).tell()).collect();
            for waiting in &mut waiting {
                assert!(poll_once(waiting).is_pending());
            }
            drop(waiting.remove(0));
            drop(open);
            join_all(waiting).await;
            at.note(0, 9).await.unwrap();
        });
        let numbers: Vec<_> = world
            .seen_by(key)
            .into_iter()
            .map(|(_, number)| number)
            .collect();
        assert_eq!(numbers.iter().filter(|number| **number == 0).count(), 8);
        assert_eq!(numbers[8..], [2, 3, 9]);
    });
}
