//! What a subscriber of `tracing` hears of messages, and what it may do when it is called.

mod recorder;

use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use futures_channel::oneshot;
use greenroom::Batch;
use greenroom::prelude::*;
use greenroom::runtime::yield_now;
use recorder::{
    MEDDLED, MEDDLING_FAILED, Made, THROWN, be_plain, meddle_with, most_of, recorded, spans_of,
};

/// A test that hangs fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A system whose spans can be found by a word; on one shard, two or four.
fn named(word: &str, shards: usize) -> System {
    recorded();
    System::builder()
        .shards(shards)
        .pin(false)
        .runtime(|runtime| {
            let is_plain = word == "plain";
            runtime.thread_name(word).on_shard_start(move |_| {
                if is_plain {
                    be_plain();
                }
            })
        })
        .start()
        .unwrap()
}

/// A word for each number of shards.
fn words(word: &'static str) -> [(String, usize); 3] {
    [1, 2, 4].map(|shards| (format!("{word} on {shards}"), shards))
}

fn last(system: &System) -> greenroom::ShardId {
    system.shards().last().unwrap()
}

/// The one span of a method.
fn only<'a>(spans: &'a std::collections::BTreeMap<u64, Made>, method: &str) -> (u64, &'a Made) {
    let mut found = spans
        .iter()
        .filter(|(_, made)| made.field("method") == Some(method));
    let (id, made) = found
        .next()
        .unwrap_or_else(|| panic!("no span of {method}"));
    assert!(found.next().is_none(), "{method} has two spans");
    (*id, made)
}

/// Passes things on.
#[derive(Default)]
struct Link {
    next: Option<Addr<Link>>,
    done: Option<mpsc::Sender<()>>,
}

#[actor]
impl Link {
    pub(crate) fn meet(&mut self, next: Addr<Link>) {
        self.next = Some(next);
    }

    pub(crate) fn note(&self) {}

    pub(crate) async fn wait_twice(&self) {
        yield_now().await;
        yield_now().await;
    }

    pub(crate) async fn hold(&self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }

    /// Tells the next one.
    pub(crate) fn pass(&self) {
        self.next.unwrap().note().try_tell().unwrap();
    }

    /// Tells the next one what is handled in a batch.
    pub(crate) fn post(&self) {
        self.next.unwrap().collect(0).try_tell().unwrap();
    }

    #[message(batch)]
    pub(crate) fn collect(&mut self, _posted: Batch<u32>) {}

    /// Asks the next one, after a wait.
    pub(crate) async fn ask_on(&self) {
        yield_now().await;
        self.next.unwrap().wait_twice().await.unwrap();
    }

    /// A chain of messages, each of which tells the next.
    pub(crate) fn go_round(&self, left: u32) {
        match left.checked_sub(1) {
            Some(left) => self.next.unwrap().go_round(left).try_tell().unwrap(),
            None => self.done.as_ref().unwrap().send(()).unwrap(),
        }
    }

    /// One handler that asks again and again.
    pub(crate) async fn ask_often(&self, times: u32) {
        for _ in 0..times {
            self.next.unwrap().note().await.unwrap();
            self.next.unwrap().wait_twice().await.unwrap();
        }
    }

    #[message(concurrent)]
    pub(crate) async fn read(&self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }

    #[message(concurrent)]
    pub(crate) async fn look(&self) {
        yield_now().await;
    }

    pub(crate) fn fail(&self) {
        panic!("as it is told");
    }
}

fn link(system: &System) -> Addr<Link> {
    system
        .block_on(system.spawn_on(last(system), Link::default))
        .unwrap()
}

/// Two, of which each has the other one next. They are on the first shard and the last.
fn pair(system: &System, done: mpsc::Sender<()>) -> (Addr<Link>, Addr<Link>) {
    system.block_on(async {
        let make = |done| {
            move || Link {
                next: None,
                done: Some(done),
            }
        };
        let one = system.spawn_on(0, make(done.clone())).await.unwrap();
        let other = system.spawn_on(last(system), make(done)).await.unwrap();
        one.meet(other).await.unwrap();
        other.meet(one).await.unwrap();
        (one, other)
    })
}

#[test]
fn each_message_has_a_span_that_is_entered_while_its_handler_runs() {
    for (word, shards) in words("each") {
        let system = named(&word, shards);
        let named = system.block_on(async {
            let names = system.names();
            names
                .spawn_on("the link", last(&system), Link::default)
                .await
                .unwrap()
        });
        system.block_on(async {
            named.note().await.unwrap();
            named.wait_twice().await.unwrap();
        });
        let id = Addr::actor_id(named).to_string();
        system.shutdown(PATIENCE);
        let spans = spans_of(&word);
        assert_eq!(spans.len(), 2, "{spans:?}");
        let (_, note) = only(&spans, "note");
        assert_eq!(note.story, "enter exit close");
        assert!(note.is_root);
        assert!(note.thread.starts_with(&word));
        let shard = (shards - 1).to_string();
        for (field, value) in [
            ("actor", "Link"),
            ("id", &id),
            ("name", "the link"),
            ("shard", &shard),
        ] {
            assert_eq!(note.field(field), Some(value), "{field}");
        }
        // Once to find that it waits, and then for each poll.
        let (_, twice) = only(&spans, "wait_twice");
        assert_eq!(
            twice.story,
            "enter exit enter exit enter exit enter exit close"
        );
    }
}

#[test]
fn a_span_follows_from_that_of_the_handler_that_sent_the_message() {
    // A subscriber need not know in which span it is.
    for (word, shards) in words("follows")
        .into_iter()
        .chain([("plain".to_owned(), 2)])
    {
        let system = named(&word, shards);
        let (one, _) = pair(&system, mpsc::channel().0);
        system.block_on(async {
            one.pass().await.unwrap();
            one.ask_on().await.unwrap();
            system.drain().await;
        });
        system.shutdown(PATIENCE);
        let spans = spans_of(&word);
        for (sent, by) in [("note", "pass"), ("wait_twice", "ask_on")] {
            let (by, _) = only(&spans, by);
            let (_, sent) = only(&spans, sent);
            assert_eq!(sent.follows, [by], "{word}: {spans:?}");
            assert!(sent.is_root);
        }
        // Nobody's span was that of a thread outside.
        assert!(only(&spans, "pass").1.follows.is_empty());
    }
}

#[test]
fn the_span_of_a_batch_follows_from_all_who_sent_a_message_of_it() {
    for (word, shards) in words("batch") {
        let system = named(&word, shards);
        let (one, other) = pair(&system, mpsc::channel().0);
        let (open, gate) = oneshot::channel();
        system.block_on(async {
            other.hold(gate).tell().await.unwrap();
            for _ in 0..3 {
                one.post().await.unwrap();
            }
            drop(open);
            system.drain().await;
        });
        system.shutdown(PATIENCE);
        let spans = spans_of(&word);
        let sent = spans
            .iter()
            .filter(|(_, made)| made.field("method") == Some("post"));
        let senders: Vec<_> = sent.map(|(id, _)| *id).collect();
        assert_eq!(senders.len(), 3);
        let taken = spans
            .values()
            .filter(|made| made.field("method") == Some("collect"));
        let followed: Vec<_> = taken
            .clone()
            .flat_map(|made| made.follows.clone())
            .collect();
        assert_eq!(followed, senders, "{spans:?}");
        // The link may be slower than the gate, but not on one shard.
        assert!(shards > 1 || taken.count() == 1);
    }
}

#[test]
fn a_span_follows_from_the_users_own_span_in_which_a_message_was_sent() {
    let system = named("own", 2);
    let link = link(&system);
    let own = tracing::info_span!("order");
    let id = own.id().unwrap().into_u64();
    system.block_on(async {
        let call = link.note().into_future();
        // Not where the call was made, but where it was sent from.
        let _inside = own.enter();
        futures_util::future::ready(()).await;
        link.wait_twice().try_tell().unwrap();
        drop(_inside);
        call.await.unwrap();
        system.drain().await;
    });
    let spans = spans_of("own");
    assert_eq!(only(&spans, "wait_twice").1.follows, [id]);
    assert!(only(&spans, "note").1.follows.is_empty());
}

#[test]
fn a_long_chain_of_messages_builds_no_stack_of_spans_and_keeps_none_open() {
    for (word, shards) in words("chain") {
        let system = named(&word, shards);
        let (done, is_done) = mpsc::channel();
        let (one, _) = pair(&system, done);
        system.block_on(one.go_round(10_000).tell()).unwrap();
        is_done.recv_timeout(PATIENCE).unwrap();
        system.shutdown(PATIENCE);
        let spans = spans_of(&word);
        let rounds = spans
            .values()
            .filter(|made| made.field("method") == Some("go_round"));
        assert_eq!(rounds.clone().count(), 10_001);
        assert_eq!(
            rounds.filter(|made| made.follows.len() == 1).count(),
            10_000
        );
        assert!(spans.values().all(|made| made.story.ends_with("close")));
        // One that ends, and one that begins meanwhile on the other shard.
        let (open, deepest) = most_of(&word);
        assert!(open <= 2, "{open} spans were open");
        assert_eq!(deepest, 1);
    }
}

#[test]
fn many_asks_build_no_stack_of_spans_and_keep_none_open() {
    for (word, shards) in words("asks") {
        let system = named(&word, shards);
        let (one, _) = pair(&system, mpsc::channel().0);
        system.block_on(one.ask_often(1000).into_future()).unwrap();
        system.shutdown(PATIENCE);
        let spans = spans_of(&word);
        let asked = spans.values().filter(|made| made.follows.len() == 1);
        assert_eq!(asked.count(), 2000);
        assert!(spans.values().all(|made| made.story.ends_with("close")));
        // The asker's own, and that of the one it asks.
        let (open, deepest) = most_of(&word);
        assert!(open <= 2, "{open} spans were open");
        assert_eq!(deepest, 1);
    }
}

#[test]
fn handlers_that_run_side_by_side_have_a_span_each() {
    for (word, shards) in words("readers") {
        let system = named(&word, shards);
        let link = link(&system);
        let (open, gate) = oneshot::channel();
        system.block_on(async {
            link.read(gate).tell().await.unwrap();
            link.look().await.unwrap();
            drop(open);
            link.note().await.unwrap();
        });
        system.shutdown(PATIENCE);
        let spans = spans_of(&word);
        assert_eq!(spans.len(), 3);
        assert!(
            spans
                .values()
                .all(|made| made.story.ends_with("exit close")),
            "{spans:?}"
        );
        assert_eq!(only(&spans, "look").1.story, "enter exit enter exit close");
    }
}

#[test]
fn the_span_of_a_handler_that_is_cut_off_or_panics_is_closed() {
    for (word, shards) in words("ends") {
        let system = named(&word, shards);
        let (killed, failing) = (link(&system), link(&system));
        let (open, gate) = oneshot::channel();
        system.block_on(async {
            killed.hold(gate).tell().await.unwrap();
            killed.note().tell().await.unwrap();
            Addr::kill(killed);
            Addr::stopped(killed).await;
            failing.fail().await.unwrap_err();
            Addr::stopped(failing).await;
        });
        drop(open);
        system.shutdown(PATIENCE);
        let spans = spans_of(&word);
        assert_eq!(only(&spans, "fail").1.story, "enter exit close");
        // A kill may come before the message.
        for made in spans.values() {
            assert!(made.story.ends_with("exit close"), "{made:?}");
            assert_ne!(made.field("method"), Some("note"), "it was not handled");
        }
    }
}

#[test]
fn what_a_subscriber_throws_is_contained() {
    let system = named("thrower", 2);
    let (one, other) = pair(&system, mpsc::channel().0);
    system.block_on(async {
        for _ in 0..10 {
            one.pass().await.unwrap();
            one.ask_on().await.unwrap();
            other.look().await.unwrap();
        }
    });
    assert!(THROWN.load(Ordering::Relaxed) > 0);
    let report = system.shutdown(PATIENCE);
    assert_eq!(report.counts().panics, 0);
}

#[test]
fn a_subscriber_may_send_to_the_actor_it_is_called_for() {
    for shards in [1, 2] {
        MEDDLED.store(0, Ordering::Relaxed);
        let system = named("meddler", shards);
        let (one, other) = pair(&system, mpsc::channel().0);
        meddle_with(move || {
            // One of them is full at some time.
            one.note().try_tell().ok();
            other.note().try_tell().ok();
        });
        system.block_on(async {
            for _ in 0..10 {
                one.ask_on().await.unwrap();
                one.note().tell().await.unwrap();
                other.look().await.unwrap();
            }
        });
        assert!(MEDDLED.load(Ordering::Relaxed) > 100);
        assert_eq!(MEDDLING_FAILED.load(Ordering::Relaxed), 0);
    }
}
