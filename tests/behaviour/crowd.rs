//! Groups and topics: who hears what, and what becomes of those who are slow or gone.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_channel::oneshot;
use futures_util::StreamExt;
use greenroom::prelude::*;
use greenroom::runtime::{spawn, yield_now};
use greenroom::{Group, News, Topic};
use greenroom_tests::{
    Ledger, block_shard, bounded_wait, counts, last_shard, ledger, on_shards, poll_once,
};

const ALL: &[usize] = &[1, 2, 4];

/// A member and a subscriber.
#[derive(Default)]
struct Member {
    heard: Vec<u64>,
    missed: u64,
}

#[actor(mailbox = 4)]
impl Member {
    pub(crate) fn note(&mut self, number: u64) {
        self.heard.push(number);
    }

    pub(crate) fn hear(&mut self, news: News<u64>) {
        match news {
            News::Value(number) => self.heard.push(number),
            News::Missed(count) => self.missed += count,
        }
    }

    pub(crate) fn heard(&self) -> (Vec<u64>, u64) {
        (self.heard.clone(), self.missed)
    }

    pub(crate) async fn wait(&mut self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }

    pub(crate) fn join(&mut self, group: Group<Self>, ctx: &mut Ctx<Self>) -> bool {
        ctx.join(&group)
    }

    pub(crate) fn leave(&mut self, group: Group<Self>, ctx: &mut Ctx<Self>) -> bool {
        ctx.leave(&group)
    }

    pub(crate) fn subscribe(&mut self, topic: Topic<u64>, bound: usize, ctx: &mut Ctx<Self>) {
        ctx.subscribe(&topic, bound, |me, news| me.hear(news));
    }

    pub(crate) fn unsubscribe(&mut self, topic: Topic<u64>, ctx: &mut Ctx<Self>) -> bool {
        ctx.unsubscribe(&topic)
    }

    pub(crate) fn fail(&mut self) {
        panic!("as told");
    }
}

fn members(system: &System, each: usize) -> Vec<Addr<Member>> {
    let shards = system.shards().flat_map(|shard| vec![shard; each]);
    shards
        .map(|shard| {
            system
                .block_on(system.spawn_on(shard, Member::default))
                .unwrap()
        })
        .collect()
}

fn heard(system: &System, member: Addr<Member>) -> (Vec<u64>, u64) {
    system.block_on(member.heard().into_future()).unwrap()
}

#[test]
fn members_come_and_go_and_whoever_ends_is_no_member_when_that_is_known() {
    on_shards(ALL, |system| {
        let group: Group<Member> = system.group("all").unwrap();
        assert!(group.is_empty());
        let members = members(system, 3);
        for member in &members {
            assert!(
                system
                    .block_on(member.join(group.clone()).into_future())
                    .unwrap()
            );
            assert!(!system.block_on(group.join(*member)), "it is one already");
        }
        assert_eq!(group.members(), members);
        assert!(
            system
                .block_on(members[0].leave(group.clone()).into_future())
                .unwrap()
        );
        assert!(!system.block_on(group.leave(members[0])), "it is none");
        assert!(system.block_on(group.join(members[0])));
        assert_eq!(group.len(), members.len());

        let ends: [fn(Addr<Member>); 3] = [Addr::stop, Addr::kill, |member| {
            member.fail().try_tell().unwrap();
        }];
        for (end, member) in ends.into_iter().zip(&members) {
            end(*member);
            system.block_on(Addr::stopped(*member));
            assert!(!group.members().contains(member));
        }
        assert_eq!(group.len(), members.len() - 3);
        assert!(!system.block_on(group.join(members[0])), "it has ended");
    });
}

#[test]
fn a_broadcast_reaches_every_member_once_from_everywhere() {
    on_shards(ALL, |system| {
        let group = Group::new(system.handle());
        let members = members(system, 3);
        for member in &members {
            system.block_on(group.join(*member));
        }
        assert_eq!(
            system.block_on(group.broadcast(|member| member.note(0))),
            members.len()
        );
        for shard in system.shards() {
            let group = group.clone();
            let told = system.run_on(shard, move || async move {
                for number in 1..=20 {
                    // More than the mailboxes hold at once.
                    group.broadcast(move |member| member.note(number)).await;
                }
                group.broadcast(|member| member.note(21)).await
            });
            assert_eq!(told, members.len());
        }
        let mut expected = vec![0];
        for _ in system.shards() {
            expected.extend(1..=21);
        }
        for member in members {
            assert_eq!(heard(system, member).0, expected);
        }
    });
}

#[test]
fn a_broadcast_keeps_its_place_among_the_other_messages_of_its_sender() {
    on_shards(ALL, |system| {
        let group = Group::new(system.handle());
        let member = members(system, 1)[usize::from(last_shard(system))];
        system.block_on(group.join(member));
        let heard = system.run_on(0, move || async move {
            for number in 0..100 {
                if number % 2 == 0 {
                    assert_eq!(group.broadcast(move |member| member.note(number)).await, 1);
                } else {
                    member.note(number).tell().await.unwrap();
                }
            }
            member.heard().await.unwrap().0
        });
        assert_eq!(heard, (0..100).collect::<Vec<_>>());
    });
}

#[test]
fn a_broadcast_that_does_not_wait_leaves_out_who_has_no_room_and_counts_it() {
    on_shards(ALL, |system| {
        let group = Group::new(system.handle());
        let members = members(system, 1);
        for member in &members {
            system.block_on(group.join(*member));
        }
        let (open, gate) = oneshot::channel();
        system.block_on(members[0].wait(gate).tell()).unwrap();
        let sent = group;
        system.run_on(0, move || async move {
            for number in 0..10 {
                assert!(sent.try_broadcast(move |member| member.note(number)));
                yield_now().await;
            }
        });
        // Those who wait for nothing may be too slow as well.
        let others = || -> u64 {
            let each = members[1..]
                .iter()
                .map(|member| heard(system, *member).0.len() as u64);
            each.sum()
        };
        let all = 10 * members.len() as u64;
        bounded_wait(|| others() + counts(system).dead_letters + 4 == all);
        assert!(counts(system).dead_letters >= 6, "a mailbox of 4 takes 4");
        drop(open);
        assert_eq!(heard(system, members[0]).0, [0, 1, 2, 3]);
    });
}

#[test]
fn a_broadcast_waits_for_the_slowest_and_goes_on_when_that_one_ends() {
    on_shards(ALL, |system| {
        let group = Group::new(system.handle());
        let members = members(system, 2);
        for member in &members {
            system.block_on(group.join(*member));
        }
        let (_open, gate) = oneshot::channel();
        let slow = members[members.len() - 1];
        system.block_on(slow.wait(gate).tell()).unwrap();
        system.run_on(last_shard(system), move || async move {
            while slow.note(9).try_tell().is_ok() {}
        });
        let mut waiting = group.broadcast(|member| member.note(1));
        assert!(poll_once(&mut waiting).is_pending());
        for member in &members[..members.len() - 1] {
            bounded_wait(|| heard(system, *member).0 == [1]);
        }
        assert!(poll_once(&mut waiting).is_pending());
        Addr::kill(slow);
        assert_eq!(system.block_on(waiting), members.len() - 1);
    });
}

#[test]
fn a_name_leads_everybody_to_one_group_or_topic_and_is_free_when_nobody_has_it() {
    on_shards(ALL, |system| {
        let one: Group<Member> = system.group("x").unwrap();
        let error = system.group::<Ledger<1>>("x").unwrap_err();
        assert!(error.to_string().contains("\"x\" is of"), "{error}");
        assert!(error.to_string().contains("Ledger<1>"), "{error}");
        let member = members(system, 1)[0];
        system.block_on(one.join(member));
        drop(one);
        assert_eq!(
            system.group::<Member>("x").unwrap().members(),
            [member],
            "a member keeps it"
        );
        Addr::stop(member);
        system.block_on(Addr::stopped(member));
        system.group::<Ledger<1>>("x").unwrap();

        // Topics have names of their own.
        let topic: Topic<u64> = system.topic("x").unwrap();
        assert!(system.topic::<u32>("x").is_err());
        drop(topic);
        system.topic::<u32>("x").unwrap();
    });
}

#[test]
fn every_subscriber_hears_every_value_in_order_from_every_publisher() {
    on_shards(ALL, |system| {
        let topic: Topic<u64> = Topic::new(system.handle());
        let members = members(system, 2);
        for member in &members {
            system
                .block_on(member.subscribe(topic.clone(), 1000).into_future())
                .unwrap();
        }
        assert_eq!(topic.subscribers(), members.len());
        let publishing: Vec<_> = (0..)
            .zip(system.shards())
            .map(|(publisher, shard)| {
                let topic = topic.clone();
                system.runtime().spawn_on(shard, move || async move {
                    for number in 0..100 {
                        topic.publish_when_room(publisher * 1000 + number).await;
                    }
                })
            })
            .collect();
        for number in 0..100 {
            system.block_on(topic.publish_when_room(900_000 + number));
        }
        for publishing in publishing {
            system.block_on(publishing).unwrap();
        }
        for member in members {
            let all = (system.shard_count() + 1) * 100;
            // All that was published has a place; their actors take it in turn.
            bounded_wait(|| heard(system, member).0.len() == all);
            let (values, missed) = heard(system, member);
            assert_eq!(missed, 0);
            for publisher in values
                .iter()
                .map(|value| value / 1000)
                .collect::<std::collections::BTreeSet<_>>()
            {
                let of_one = values.iter().filter(|value| **value / 1000 == publisher);
                assert!(of_one.is_sorted(), "of {publisher}");
            }
        }
    });
}

#[test]
fn one_who_is_slow_misses_the_oldest_and_hears_how_many_in_their_place() {
    on_shards(ALL, |system| {
        let topic: Topic<u64> = Topic::new(system.handle());
        for publisher in [None, Some(0), Some(last_shard(system))] {
            let heard = topic.clone();
            let shard = last_shard(system);
            let (subscribed, is_subscribed) = oneshot::channel();
            let (begin, begun) = oneshot::channel::<()>();
            let reader = system.runtime().spawn_on(shard, move || async move {
                let mut subscription = heard.subscribe(3);
                let quick = heard.subscribe(100);
                subscribed.send(()).unwrap();
                begun.await.ok();
                while quick.len() < 10 {
                    yield_now().await;
                }
                assert_eq!(subscription.len(), 3);
                let first: Vec<_> = std::iter::from_fn(|| subscription.try_next()).collect();
                heard.publish(11);
                (
                    first,
                    subscription.next().await,
                    quick.take(10).collect::<Vec<_>>().await,
                )
            });
            system.block_on(is_subscribed).unwrap();
            let published = topic.clone();
            let publish = move || {
                for number in 1..=10 {
                    published.publish(number);
                }
            };
            match publisher {
                None => publish(),
                Some(shard) => system.run_on(shard, || async move { publish() }),
            }
            drop(begin);
            let (first, last, quick) = system.block_on(reader).unwrap();
            assert_eq!(
                first,
                [
                    News::Missed(7),
                    News::Value(8),
                    News::Value(9),
                    News::Value(10)
                ]
            );
            assert_eq!(last, News::Value(11));
            assert_eq!(quick, (1..=10).map(News::Value).collect::<Vec<_>>());
            bounded_wait(|| topic.subscribers() == 0);
        }
    });
}

#[test]
fn a_shard_to_which_there_is_no_room_hears_how_many_it_missed() {
    on_shards(&[2, 4], |system| {
        let topic: Topic<u64> = Topic::new(system.handle());
        let heard = topic.clone();
        let reader = system.runtime().spawn_on(1, move || async move {
            let mut subscription = heard.subscribe(100_000);
            let (mut values, mut missed) = (0, 0);
            let mut last = None;
            while values + missed < 50_000 {
                match subscription.next().await {
                    News::Value(number) => {
                        assert!(last < Some(number));
                        last = Some(number);
                        values += 1;
                    }
                    News::Missed(count) => missed += count,
                }
            }
            (values, missed)
        });
        bounded_wait(|| topic.subscribers() == 1);
        let release = block_shard(system, 1);
        let published = topic;
        system.run_on(0, move || async move {
            for number in 0..50_000 {
                published.publish(number);
            }
        });
        drop(release);
        let (values, missed) = system.block_on(reader).unwrap();
        assert!(missed > 0 && values > 0, "{values} came, {missed} did not");
        assert_eq!(values + missed, 50_000);
    });
}

#[test]
fn a_publisher_that_waits_goes_on_when_the_slowest_has_room() {
    on_shards(ALL, |system| {
        let topic: Topic<u64> = Topic::new(system.handle());
        let heard = topic.clone();
        let published = Arc::new(AtomicUsize::new(0));
        let (subscribed, is_subscribed) = oneshot::channel();
        let (open, gate) = oneshot::channel::<()>();
        let reader = system
            .runtime()
            .spawn_on(last_shard(system), move || async move {
                let mut slow = heard.subscribe(3);
                let mut quick = heard.subscribe(3);
                let quick = spawn(async move {
                    for number in 0..20 {
                        assert_eq!(quick.next().await, News::Value(number));
                    }
                });
                subscribed.send(()).unwrap();
                gate.await.ok();
                for number in 0..20 {
                    assert_eq!(slow.next().await, News::Value(number));
                }
                quick.await.unwrap();
            });
        system.block_on(is_subscribed).unwrap();
        let (counted, topic) = (published.clone(), topic);
        let publisher = system.runtime().spawn_on(0, move || async move {
            for number in 0..20 {
                topic.publish_when_room(number).await;
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        bounded_wait(|| published.load(Ordering::SeqCst) == 3);
        system.block_on(greenroom_tests::settle(system.handle(), last_shard(system)));
        assert_eq!(published.load(Ordering::SeqCst), 3, "three have room");
        drop(open);
        system.block_on(publisher).unwrap();
        system.block_on(reader).unwrap();
    });
}

#[test]
fn a_subscription_ends_with_its_actor_and_is_made_once() {
    on_shards(ALL, |system| {
        let topic: Topic<u64> = Topic::new(system.handle());
        let members = members(system, 1);
        for member in &members {
            for _ in 0..3 {
                system
                    .block_on(member.subscribe(topic.clone(), 8).into_future())
                    .unwrap();
            }
        }
        bounded_wait(|| topic.subscribers() == members.len());
        topic.publish(1);
        for member in &members {
            bounded_wait(|| heard(system, *member).0 == [1]);
        }
        let unsubscribed = members[0].unsubscribe(topic.clone()).into_future();
        assert!(system.block_on(unsubscribed).unwrap());
        let again = members[0].unsubscribe(topic.clone()).into_future();
        assert!(!system.block_on(again).unwrap());
        for member in &members {
            Addr::kill(*member);
            system.block_on(Addr::stopped(*member));
        }
        assert_eq!(topic.subscribers(), 0);
        topic.publish(2);
    });
}

#[test]
fn an_actor_that_is_slow_hears_how_many_it_missed() {
    on_shards(ALL, |system| {
        let topic: Topic<u64> = Topic::new(system.handle());
        let member = members(system, 1)[usize::from(last_shard(system))];
        system
            .block_on(member.subscribe(topic.clone(), 4).into_future())
            .unwrap();
        let (open, gate) = oneshot::channel();
        system.block_on(member.wait(gate).tell()).unwrap();
        for number in 0..1000 {
            topic.publish(number);
        }
        system.block_on(greenroom_tests::settle(system.handle(), last_shard(system)));
        drop(open);
        bounded_wait(|| {
            let (values, missed) = heard(system, member);
            values.len() as u64 + missed == 1000
        });
        let (values, missed) = heard(system, member);
        // What the queue, the mailbox and the one in between hold.
        assert!(values.len() <= 4 + 4 + 2, "{values:?}");
        assert_eq!(values.last(), Some(&999), "the newest are kept");
        assert!(missed >= 990);
    });
}

/// Counts its copies, and does not want to be copied the third time.
struct Shy(Arc<AtomicUsize>);

impl Clone for Shy {
    fn clone(&self) -> Self {
        assert!(self.0.fetch_add(1, Ordering::SeqCst) != 2, "not again");
        Self(self.0.clone())
    }
}

#[test]
fn a_value_that_cannot_be_copied_is_missed_by_one_subscriber() {
    on_shards(&[1], |system| {
        let topic: Topic<Shy> = Topic::new(system.handle());
        system.run_on(0, move || async move {
            let mut all: Vec<_> = (0..5).map(|_| topic.subscribe(2)).collect();
            topic.publish(Shy(Arc::default()));
            let news = all.iter_mut().map(|one| one.try_next().unwrap());
            let missed = news.filter(|news| matches!(news, News::Missed(1))).count();
            assert_eq!(missed, 1);
        });
    });
}

#[test]
fn a_subscriber_may_go_or_come_while_a_value_is_handed_out() {
    /// Publishes, and drops its subscription, when it is copied.
    #[derive(Debug)]
    struct Restless(u8);

    impl Clone for Restless {
        fn clone(&self) -> Self {
            TAKEN.with_borrow_mut(|taken| drop(taken.take()));
            Self(self.0)
        }
    }

    thread_local! {
        static TAKEN: std::cell::RefCell<Option<greenroom::Subscription<Restless>>> =
            const { std::cell::RefCell::new(None) };
    }

    on_shards(&[1], |system| {
        let topic: Topic<Restless> = Topic::new(system.handle());
        system.run_on(0, move || async move {
            let mut first = topic.subscribe(2);
            TAKEN.set(Some(topic.subscribe(2)));
            let mut last = topic.subscribe(2);
            topic.publish(Restless(7));
            assert!(matches!(first.try_next(), Some(News::Value(Restless(7)))));
            assert!(matches!(last.try_next(), Some(News::Value(Restless(7)))));
            assert_eq!(topic.subscribers(), 2);
        });
    });
}

#[test]
fn nobody_subscribes_from_outside_or_for_nothing() {
    on_shards(&[1], |system| {
        let topic: Topic<u64> = Topic::new(system.handle());
        let outside = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            drop(topic.subscribe(1));
        }));
        assert!(outside.is_err());
        system.run_on(0, move || async move {
            let nothing = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                drop(topic.subscribe(0));
            }));
            assert!(nothing.is_err());
            // Values need not be `Sync`, and what is on a shard stays there.
            let cells = Topic::new(&greenroom::Handle::current().unwrap());
            let mut subscription = cells.subscribe(1);
            cells.publish(std::cell::Cell::new(1));
            let _stays = Rc::new(());
            assert!(matches!(subscription.next().await, News::Value(cell) if cell.get() == 1));
        });
    });
}

#[test]
fn topics_and_groups_come_and_go_and_leave_nothing() {
    on_shards(ALL, |system| {
        let handle = system.handle().clone();
        let keeper: Addr<Ledger<8>> = ledger(system, last_shard(system));
        system.run_on(0, move || async move {
            for round in 0..500 {
                let topic: Topic<String> = handle.topic(&format!("{}", round % 7)).unwrap();
                let mut subscription = topic.subscribe(1);
                topic.publish("x".to_owned());
                assert_eq!(subscription.next().await, News::Value("x".to_owned()));
                let group: Group<Ledger<8>> = handle.group("g").unwrap();
                assert!(group.join(keeper).await);
                assert_eq!(group.broadcast(|member| member.note(0, 0)).await, 1);
                assert!(group.leave(keeper).await);
            }
        });
    });
}
