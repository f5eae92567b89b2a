//! Functions of the user's that the runtime calls: when, with what, and what they may do.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use greenroom_runtime::time::sleep;
use greenroom_runtime::{Builder, ShardCounts, ShardId, current_shard, spawn, task, yield_now};

const LIMIT: Duration = Duration::from_secs(20);

/// What happened to tasks of one name, in order.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<&'static str>>>);

impl Diary {
    fn note(&self, what: &'static str, task: &task::Info<'_>) {
        if task.name == Some("watched") {
            assert_eq!(Some(task.shard), current_shard());
            self.0.lock().unwrap().push(what);
        }
    }

    fn hooked(&self) -> Builder {
        let [spawn, before, after, end] = [(); 4].map(|()| self.clone());
        Builder::new()
            .shards(1)
            .on_task_spawn(move |task| spawn.note("spawn", task))
            .on_before_task_poll(move |task| before.note("before", task))
            .on_after_task_poll(move |task| after.note("after", task))
            .on_task_terminate(move |task| end.note("end", task))
    }

    fn entries(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().clone()
    }
}

fn watched<F: Future<Output = ()> + 'static>(future: F) -> greenroom_runtime::JoinHandle<()> {
    task::Builder::new().name("watched").spawn(future)
}

#[test]
fn a_task_is_followed_from_its_spawn_to_its_end() {
    let diary = Diary::default();
    let runtime = diary.hooked().start().unwrap();
    runtime.run_on(0, || async { watched(yield_now()).await.unwrap() });
    assert_eq!(
        diary.entries(),
        ["spawn", "before", "after", "before", "after", "end"]
    );
}

#[test]
fn a_task_that_panics_or_is_aborted_ends_as_well() {
    let diary = Diary::default();
    let runtime = diary.hooked().start().unwrap();
    runtime.run_on(0, || async {
        watched(async { panic!("boom") }).await.unwrap_err();
        let aborted = watched(std::future::pending());
        aborted.abort();
        aborted.await.unwrap_err();
        // This one ends with its shard.
        watched(std::future::pending()).detach();
        yield_now().await;
    });
    runtime.shutdown();
    assert_eq!(
        diary.entries().join(" "),
        "spawn before after end spawn end spawn before after end"
    );
}

#[test]
fn hooks_learn_where_a_task_was_spawned() {
    let places = Arc::new(Mutex::new(Vec::new()));
    let seen = places.clone();
    let runtime = Builder::new()
        .shards(2)
        .on_task_spawn(move |task| {
            seen.lock()
                .unwrap()
                .push((task.spawned_at.file(), task.spawned_at.line()));
        })
        .start()
        .unwrap();
    let (here, there) = runtime.run_on(0, || async {
        let here = line!() + 1;
        spawn(async {}).await.unwrap();
        let there = line!() + 2;
        let handle = greenroom_runtime::Handle::current().unwrap();
        handle.spawn_on(1, || async {}).await.unwrap();
        (here, there)
    });
    runtime.shutdown();
    let places = places.lock().unwrap();
    for line in [here, there] {
        assert!(places.contains(&(file!(), line)), "{line} in {places:?}");
    }
}

#[test]
fn shards_tell_when_they_rest_and_when_they_stop() {
    let (parks, unparks, stops) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicUsize::new(0)),
        Arc::new(Mutex::new(Vec::new())),
    );
    let (park, unpark, stop) = (parks.clone(), unparks.clone(), stops.clone());
    let runtime = Builder::new()
        .shards(2)
        .on_shard_park(move |_| {
            park.fetch_add(1, Ordering::Relaxed);
        })
        .on_shard_unpark(move |_| {
            unpark.fetch_add(1, Ordering::Relaxed);
        })
        .on_shard_stop(move |shard| stop.lock().unwrap().push(shard))
        .start()
        .unwrap();
    runtime.run_on(0, || sleep(Duration::from_millis(3)));
    assert!(parks.load(Ordering::Relaxed) > 0);
    runtime.shutdown();
    assert_eq!(
        parks.load(Ordering::Relaxed),
        unparks.load(Ordering::Relaxed)
    );
    let mut stopped = stops.lock().unwrap().clone();
    stopped.sort();
    assert_eq!(stopped, [ShardId::from(0), ShardId::from(1)]);
}

#[test]
fn what_a_hook_does_before_a_rest_is_not_slept_on() {
    let (told, hears) = mpsc::channel();
    let once = AtomicUsize::new(0);
    let runtime = Builder::new()
        .shards(2)
        .on_shard_park(move |shard| {
            if shard == ShardId::from(0) && once.fetch_add(1, Ordering::Relaxed) == 0 {
                let told = told.clone();
                spawn(async move { told.send(current_shard()).unwrap() }).detach();
            }
        })
        .start()
        .unwrap();
    assert_eq!(hears.recv_timeout(LIMIT).unwrap(), Some(0.into()));
    runtime.shutdown();
}

#[test]
fn a_hook_may_spawn_and_a_panic_in_one_is_contained() {
    let runtime = Builder::new()
        .shards(1)
        .on_task_spawn(|task| {
            if task.name == Some("watched") {
                spawn(async {}).detach();
                panic!("in a hook");
            }
        })
        .start()
        .unwrap();
    let counts = runtime.run_on(0, || async {
        watched(async {}).await.unwrap();
        ShardCounts::current().unwrap()
    });
    assert_eq!(counts.stray_panics, 1);
}
