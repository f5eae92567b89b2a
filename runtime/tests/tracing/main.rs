//! What a subscriber of `tracing` hears of tasks and shards, and what it may do when it is called.

mod recorder;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use greenroom_runtime::time::sleep;
use greenroom_runtime::{Builder, ShardCounts, spawn, task, yield_now};
use recorder::{Note, What, notes_of, recorded, wait_for};

/// A builder whose threads have a name that notes can be found by.
fn named(name: &str, shards: usize) -> Builder {
    recorded();
    Builder::new().shards(shards).thread_name(name)
}

/// The spans with a field of a value, as they were made.
fn spans_with(notes: &[Note], field: &str, value: &str) -> Vec<u64> {
    let has = |note: &&Note| matches!(note.what, What::New(_)) && note.field(field) == Some(value);
    notes.iter().filter(has).filter_map(Note::span).collect()
}

/// What happened to a span, in order.
fn story(notes: &[Note], span: u64) -> String {
    let of_it = notes.iter().filter(|note| note.span() == Some(span));
    of_it.map(Note::verb).collect::<Vec<_>>().join(" ")
}

fn events<'a>(notes: &'a [Note], message: &str) -> Vec<&'a Note> {
    let is_it = |note: &&Note| {
        note.field("message")
            .is_some_and(|m| m.starts_with(message))
    };
    notes.iter().filter(is_it).collect()
}

/// Fails if a thread was ever in two spans at once, or left one that it was not in.
fn assert_one_at_a_time(notes: &[Note]) {
    let mut threads = std::collections::BTreeMap::new();
    for note in notes {
        let inside = threads.entry(&note.thread).or_insert(None);
        match note.what {
            What::Enter(span) => assert_eq!(inside.replace(span), None, "on {}", note.thread),
            What::Exit(span) => assert_eq!(inside.take(), Some(span), "on {}", note.thread),
            _ => {}
        }
    }
}

#[test]
fn a_task_has_a_span_that_is_entered_for_each_poll() {
    let runtime = named("each poll", 2).start().unwrap();
    let line = line!() + 2;
    let id = runtime.run_on(1, || async {
        let twice = task::Builder::new().name("twice").spawn(yield_now());
        let id = twice.id().to_string();
        twice.await.unwrap();
        id
    });
    let notes = notes_of("each poll");
    let spans = spans_with(&notes, "name", "twice");
    assert_eq!(spans.len(), 1);
    assert_eq!(story(&notes, spans[0]), "new enter exit enter exit close");
    let made = notes
        .iter()
        .find(|note| note.span() == Some(spans[0]))
        .unwrap();
    assert_eq!(made.field("id"), Some(&*id));
    assert_eq!(made.field("shard"), Some("1"));
    let place = made.field("location").unwrap();
    assert!(
        place.starts_with(&format!("{}:{line}:", file!())),
        "{place}"
    );
}

#[test]
fn a_span_follows_from_the_task_that_spawned_and_is_in_none() {
    let runtime = named("follows", 1).start().unwrap();
    runtime.run_on(0, || async {
        let outer = task::Builder::new().name("outer").spawn(async {
            let inner = task::Builder::new().name("inner").spawn(async {
                task::Builder::new()
                    .name("innermost")
                    .spawn(yield_now())
                    .await
                    .unwrap();
            });
            inner.await.unwrap();
        });
        outer.await.unwrap();
    });
    runtime.shutdown();
    let notes = notes_of("follows");
    let [outer, inner, innermost] =
        ["outer", "inner", "innermost"].map(|name| spans_with(&notes, "name", name)[0]);
    let follows: Vec<_> = notes
        .iter()
        .filter_map(|note| match note.what {
            What::Follows(span, spawner) => Some((span, spawner)),
            _ => None,
        })
        .collect();
    assert!(follows.contains(&(inner, outer)), "{follows:?}");
    assert!(follows.contains(&(innermost, inner)), "{follows:?}");
    // The one that `run_on` spawned comes from no task.
    assert_eq!(follows.len(), 3);
    assert!(
        notes
            .iter()
            .all(|note| !matches!(note.what, What::New(false)))
    );
    assert_one_at_a_time(&notes);
}

#[test]
fn a_span_closes_however_its_task_ends() {
    let runtime = named("ends", 1).start().unwrap();
    runtime.run_on(0, || async {
        let named = |name| task::Builder::new().name(name);
        named("panics")
            .spawn(async { panic!("boom") })
            .await
            .unwrap_err();
        let aborted = named("aborted").spawn(std::future::pending::<()>());
        yield_now().await;
        aborted.abort();
        aborted.await.unwrap_err();
        let own = Rc::new(RefCell::new(None::<task::AbortHandle>));
        let mine = own.clone();
        let task = named("aborts itself").spawn(async move {
            mine.take().unwrap().abort();
            std::future::pending::<()>().await;
        });
        own.replace(Some(task.abort_handle()));
        task.await.unwrap_err();
        // This one ends with its shard, and its handle outlives it.
        let kept = named("left").spawn(std::future::pending::<()>());
        yield_now().await;
        Box::leak(Box::new(kept));
    });
    runtime.shutdown();
    let notes = notes_of("ends");
    for name in ["panics", "aborted", "aborts itself", "left"] {
        let span = spans_with(&notes, "name", name)[0];
        assert_eq!(story(&notes, span), "new enter exit close", "{name}");
    }
    let count = |verb| notes.iter().filter(|note| note.verb() == verb).count();
    assert_eq!(count("new"), count("close"));
    assert_one_at_a_time(&notes);
    // The panic is told where it happened.
    let span = spans_with(&notes, "name", "panics")[0];
    let entered = notes
        .iter()
        .position(|note| matches!(note.what, What::Enter(s) if s == span));
    let told = &notes[entered.unwrap() + 1];
    assert_eq!((told.target(), told.level()), ("greenroom::panic", "ERROR"));
    assert_eq!(told.field("panic"), Some("boom"));
}

#[test]
fn shards_tell_when_they_start_rest_and_stop() {
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    let runtime = named(&name, 2).start().unwrap();
    runtime.run_on(0, || sleep(Duration::from_millis(2)));
    let backend = runtime.backend();
    runtime.shutdown();
    let notes = notes_of(&name);
    for (message, level) in [("shard started", "INFO"), ("shard stopped", "INFO")] {
        let events = events(&notes, message);
        let mut shards: Vec<_> = events
            .iter()
            .filter_map(|event| event.field("shard"))
            .collect();
        shards.sort_unstable();
        assert_eq!(shards, ["0", "1"], "{message}");
        assert!(
            events
                .iter()
                .all(|e| e.level() == level && e.target() == "greenroom::shard")
        );
    }
    let (parks, unparks) = (events(&notes, "parking"), events(&notes, "unparked"));
    assert!(!parks.is_empty() && parks.iter().all(|event| event.level() == "TRACE"));
    assert_eq!(parks.len(), unparks.len());
    // On the thread that starts the runtime.
    let [chosen] = events(&notes, "backend chosen")[..] else {
        panic!("{notes:?}")
    };
    assert_eq!(chosen.field("backend"), Some(backend));
    assert_eq!(chosen.field("shards"), Some("2"));
}

#[test]
fn a_stall_is_a_warning() {
    let runtime = named("stall", 1)
        .watchdog(Duration::from_millis(5))
        .start()
        .unwrap();
    // It blocks its shard until it was found out.
    let id = runtime.run_on(0, || async {
        wait_for(|note| note.thread == "stall-watchdog" && note.field("task").is_some());
        task::id().unwrap().to_string()
    });
    let notes = notes_of("stall-watchdog");
    let stall = events(&notes, "shard 0 is stalled for ")
        .into_iter()
        .find(|stall| stall.field("task") == Some(&id))
        .unwrap();
    assert_eq!(
        (stall.target(), stall.level()),
        ("greenroom::shard", "WARN")
    );
    assert_eq!(stall.field("shard"), Some("0"));
    assert!(stall.field("lasted_ms").unwrap().parse::<u64>().unwrap() >= 5);
}

#[test]
fn a_subscriber_may_spawn_and_wake_whenever_it_is_called() {
    let runtime = named("meddler", 1).start().unwrap();
    let strays = runtime.run_on(0, || async {
        let watched = spawn(recorder::woken_often());
        for round in 0..20 {
            let aborted = spawn(std::future::pending::<()>());
            yield_now().await;
            aborted.abort();
            aborted.await.unwrap_err();
            spawn(async move { assert!(round % 2 == 0, "boom") })
                .await
                .ok();
            sleep(Duration::from_millis(1)).await;
        }
        watched.await.unwrap();
        ShardCounts::current().unwrap().stray_panics
    });
    runtime.shutdown();
    assert_eq!(strays, 0);
    assert_eq!(recorder::MEDDLING_FAILED.load(Ordering::Relaxed), 0);
    for (verb, times) in recorder::meddled() {
        assert!(times > 0, "never called for {verb}");
    }
    assert_one_at_a_time(&notes_of("meddler"));
}

#[test]
fn what_a_subscriber_does_before_a_rest_is_not_slept_on() {
    let (told, hears) = mpsc::channel();
    recorder::at_next_rest(move || told.send(greenroom_runtime::current_shard()).unwrap());
    let runtime = named("rester", 1).start().unwrap();
    let limit = Duration::from_secs(20);
    assert_eq!(hears.recv_timeout(limit).unwrap(), Some(0.into()));
    runtime.shutdown();
}

#[test]
fn a_subscriber_that_panics_hurts_nobody() {
    let runtime = named("thrower", 2).start().unwrap();
    let sum = runtime.run_on(1, || async {
        sleep(Duration::from_millis(1)).await;
        let failed = spawn(async { panic!("boom") }).await.unwrap_err();
        assert!(failed.is_panic());
        spawn(async { 2 }).await.unwrap() + spawn(async { 3 }).await.unwrap()
    });
    assert_eq!(sum, 5);
    runtime.shutdown();
    assert!(recorder::THROWN.load(Ordering::Relaxed) > 0);
}
