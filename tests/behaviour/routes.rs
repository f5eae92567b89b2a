//! Messages with a key reach the instance that owns it, however they are sent.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use greenroom::prelude::*;
use greenroom::{Call, Remote, ShardId};
use greenroom_tests::{PATIENCE, last_shard, on_shards};

const ALL: &[usize] = &[1, 2, 4];

/// What was noted: the key, who noted it, and its number.
type Note = (String, u16, u32);

struct Part {
    shard: ShardId,
    notes: Vec<Note>,
}

#[actor(mailbox = 8)]
impl Part {
    pub(crate) fn home(
        &self,
        #[key]
        #[into]
        name: String,
    ) -> (String, ShardId) {
        (name, self.shard)
    }

    pub(crate) fn note(&mut self, sender: u16, #[key] name: String, number: u32) -> ShardId {
        self.notes.push((name, sender, number));
        self.shard
    }

    pub(crate) async fn pair(&self, #[key] pair: (u8, String)) -> ShardId {
        drop(pair);
        self.shard
    }

    #[message(boxed)]
    pub(crate) fn boxed(&self, reply: Reply<ShardId>, #[key] number: u64) {
        let _ = number;
        reply.send(self.shard);
    }

    pub(crate) fn notes(&self) -> Vec<Note> {
        self.notes.clone()
    }
}

fn parts(system: &System) -> Sharded<Part> {
    let parts = system.spawn_sharded(|shard| Part {
        shard,
        notes: Vec::new(),
    });
    system.block_on(parts).unwrap()
}

fn names() -> impl Iterator<Item = String> {
    (0..64).map(|number| format!("name {number}"))
}

/// Every kind of key, and the owner that `by_key` gives it.
async fn agree(parts: &Sharded<Part>) {
    let route = parts.route();
    for name in names() {
        let owner = parts.shard_of(name.as_str());
        assert_eq!(parts.shard_of(&name), owner);
        let (echoed, by_key) = parts
            .by_key(name.as_str())
            .home(name.as_str())
            .await
            .unwrap();
        assert_eq!((echoed.as_str(), by_key), (name.as_str(), owner));
        let (_, routed) = route.home(name.as_str()).await.unwrap();
        assert_eq!(routed, owner, "{name}");

        let pair = (7, name);
        let owner = parts.shard_of(&pair);
        assert_eq!(route.pair(pair).await.unwrap(), owner);
    }
    for number in 0..64_u64 {
        assert_eq!(route.boxed(number).await.unwrap(), parts.shard_of(&number));
    }
}

#[test]
fn a_route_leads_where_by_key_does() {
    on_shards(ALL, |system| {
        let parts = parts(system);
        system.block_on(agree(&parts));
        for shard in system.shards() {
            let parts = parts.clone();
            system.run_on(shard, move || async move { agree(&parts).await });
        }
        // The names are spread, so a way that leads to one certain instance does not agree by chance.
        let owners: std::collections::BTreeSet<_> =
            names().map(|name| parts.shard_of(&name).index()).collect();
        assert_eq!(owners.len(), system.shard_count());
    });
}

#[test]
fn every_way_of_calling_follows_the_route() {
    on_shards(ALL, |system| {
        let parts = parts(system);
        let sending = parts.clone();
        let last = last_shard(system);
        system.run_on(last, move || async move {
            let route = sending.route();
            for name in names() {
                let owner = sending.shard_of(&name);
                let note = |number| route.note(0, name.clone(), number);
                assert_eq!(note(0).await.unwrap(), owner);
                assert_eq!(note(1).timeout(PATIENCE).await.unwrap(), owner);
                assert_eq!(note(2).no_timeout().await.unwrap(), owner);
                assert_eq!(note(3).urgent().await.unwrap(), owner);
                note(4).tell().await.unwrap();
                note(5).urgent().tell().await.unwrap();
                // Asked last: what was told is handled, so there is room for one more.
                assert_eq!(note(6).await.unwrap(), owner);
                note(7).try_tell().unwrap();
                assert_eq!(note(8).await.unwrap(), owner);
            }
        });
        let outside = parts.route().note(0, "outside".to_owned(), 0).blocking();
        assert_eq!(outside.unwrap(), parts.shard_of("outside"));
        let notes = system.block_on(parts.map(|part| part.notes()));
        let mut noted = BTreeMap::<String, Vec<u32>>::new();
        for (shard, notes) in system.shards().zip(notes) {
            for (name, _, number) in notes.unwrap() {
                assert_eq!(parts.shard_of(&name), shard, "{name}");
                noted.entry(name).or_default().push(number);
            }
        }
        assert_eq!(noted.remove("outside"), Some(vec![0]));
        assert_eq!(noted.len(), names().count());
        for (name, mut numbers) in noted {
            numbers.sort_unstable();
            assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7, 8], "{name}");
        }
    });
}

#[test]
fn messages_of_one_key_keep_the_order_of_their_sender() {
    const EACH: u32 = 40;
    on_shards(ALL, |system| {
        let parts = parts(system);
        let senders = system.shards().map(|shard| {
            let parts = parts.clone();
            let sender = u16::try_from(shard.index()).unwrap();
            system.runtime().spawn_on(shard, move || async move {
                for first in (0..EACH).step_by(4) {
                    // More than the mailboxes hold are under way at a time, so that some have to wait.
                    let tells = (first..first + 4).flat_map(|number| {
                        let route = parts.route();
                        names().map(move |name| route.note(sender, name, number).tell())
                    });
                    for told in join_all(tells).await {
                        told.unwrap();
                    }
                }
                // What was told before has been handled when these are answered.
                for notes in parts.map(|part| part.notes()).await {
                    notes.unwrap();
                }
            })
        });
        let senders: Vec<_> = senders.collect();
        for sent in system.block_on(join_all(senders)) {
            sent.unwrap();
        }
        let mut noted = BTreeMap::<(String, u16), Vec<u32>>::new();
        for notes in system.block_on(parts.map(|part| part.notes())) {
            for (name, sender, number) in notes.unwrap() {
                noted.entry((name, sender)).or_default().push(number);
            }
        }
        assert_eq!(noted.len(), names().count() * system.shard_count());
        for (from, numbers) in noted {
            assert!(numbers.iter().copied().eq(0..EACH), "{from:?}: {numbers:?}");
        }
    });
}

#[test]
fn a_call_is_one_to_the_instance_and_keeps_nothing_of_the_route() {
    on_shards(ALL, |system| {
        fn is_a_usual_call<M, Args, B>(_: &Call<Remote<Part>, M, Args, B>)
        where
            M: greenroom::__rt::ReplyMode,
            B: greenroom::__rt::Method<Remote<Part>, M, Args>,
        {
        }
        let parts = parts(system);
        is_a_usual_call(&parts.route().home("x"));
        let owner = parts.shard_of(&(1_u8, "x".to_owned()));
        let call = parts.route().pair((1, "x".to_owned()));
        drop(parts);
        let routed = system.block_on(call.into_future());
        assert_eq!(routed.unwrap(), owner);
    });
}

#[test]
fn a_route_to_instances_that_have_stopped_says_so() {
    on_shards(ALL, |system| {
        let parts = parts(system);
        system.block_on(parts.stop());
        for name in names() {
            let error = system.block_on(parts.route().home(name.as_str()).into_future());
            let error = error.unwrap_err();
            assert!(error.is_stopped(), "{error}");
            assert!(error.to_string().contains("home"), "{error}");
        }
    });
}

/// Counts how often it is hashed.
struct Counted {
    hashed: Arc<AtomicUsize>,
    number: u64,
}

impl Hash for Counted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hashed.fetch_add(1, Ordering::Relaxed);
        self.number.hash(state);
    }
}

struct Table {
    shard: ShardId,
}

#[actor]
impl Table {
    pub(crate) fn home(&self, #[key] key: Counted) -> ShardId {
        drop(key);
        self.shard
    }
}

#[test]
fn a_key_is_hashed_once_and_only_where_it_chooses() {
    on_shards(ALL, |system| {
        let tables = system.block_on(system.spawn_sharded(|shard| Table { shard }));
        let tables = tables.unwrap();
        let hashed = Arc::new(AtomicUsize::new(0));
        let key = |number| Counted {
            hashed: hashed.clone(),
            number,
        };
        for shard in system.shards() {
            let table = tables.on(shard);
            let home = system.block_on(table.home(key(1)).into_future());
            assert_eq!(home.unwrap(), shard);
        }
        assert_eq!(hashed.load(Ordering::Relaxed), 0);
        let home = system.block_on(tables.route().home(key(1)).into_future());
        assert_eq!(hashed.load(Ordering::Relaxed), 1);
        assert_eq!(home.unwrap(), tables.shard_of(&1_u64));
    });
}
