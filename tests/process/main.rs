//! What a process sees of a system: its threads, descriptors and CPU time.
//!
//! The tests take turns: each counts what belongs to the whole process.

mod killed;
mod places;

use std::fs;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use greenroom::prelude::*;
use greenroom_tests::{Ledger, bounded, ledger};

static TURNS: Mutex<()> = Mutex::new(());

fn start(shards: usize, name: &'static str) -> System {
    let builder = System::builder().shards(shards).pin(false);
    builder
        .runtime(|runtime| runtime.thread_name(name))
        .start()
        .unwrap()
}

/// The threads of this process with such a name.
fn threads(name: &str) -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let ids = tasks.filter_map(|task| task.ok()?.file_name().into_string().ok());
    // A thread may end while it is looked at.
    ids.filter(|id| {
        fs::read_to_string(format!("/proc/self/task/{id}/comm"))
            .is_ok_and(|comm| comm.starts_with(name))
    })
    .collect()
}

/// The descriptors that only a shard opens.
fn descriptors() -> usize {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap();
    let links = descriptors.filter_map(|descriptor| fs::read_link(descriptor.ok()?.path()).ok());
    links
        .filter(|link| link.to_string_lossy().starts_with("anon_inode:"))
        .count()
}

/// Time on a CPU, of all threads with such a name.
fn cpu_time(name: &str) -> Duration {
    let of_thread = |id: &String| {
        let stat = fs::read_to_string(format!("/proc/self/task/{id}/schedstat")).unwrap();
        stat.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    Duration::from_nanos(threads(name).iter().map(of_thread).sum())
}

/// Talks between all shards, so that every link and doorbell was in use.
fn talk(system: &System) {
    let ledgers: Vec<Addr<Ledger<4>>> = (0..system.shard_count())
        .map(|shard| ledger(system, u16::try_from(shard).unwrap()))
        .collect();
    for shard in system.shards() {
        let ledgers = ledgers.clone();
        system.run_on(shard, move || async move {
            for ledger in ledgers {
                for number in 0..20 {
                    ledger
                        .note(0, number)
                        .timeout(Duration::from_secs(60))
                        .await
                        .unwrap();
                }
            }
        });
    }
}

#[test]
fn an_idle_system_uses_no_cpu() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    bounded("the idle system", || {
        let system = start(4, "idle");
        talk(&system);
        assert_eq!(threads("idle-").len(), 4);
        let (_never, nothing) = mpsc::channel::<()>();
        // What the talk left to do is done in the first wait.
        nothing.recv_timeout(Duration::from_millis(50)).unwrap_err();
        let before = cpu_time("idle-");
        nothing
            .recv_timeout(Duration::from_millis(300))
            .unwrap_err();
        let used = cpu_time("idle-") - before;
        assert!(
            used < Duration::from_millis(20),
            "four idle shards used {used:?} in 300 ms"
        );
    });
}

#[test]
fn fifty_systems_leave_no_thread_and_no_descriptor() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    bounded("fifty systems", || {
        let before = descriptors();
        for round in 0..50 {
            let system = start(1 + round % 4, "brief");
            talk(&system);
            if round % 3 == 0 {
                system.shutdown(Duration::from_secs(5));
            } else {
                drop(system);
            }
        }
        assert_eq!(threads("brief-"), Vec::<String>::new());
        assert_eq!(descriptors(), before);
    });
}

#[test]
fn a_system_that_does_not_start_leaves_no_thread_and_no_descriptor() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    bounded("the failed starts", || {
        let before = descriptors();
        for _ in 0..20 {
            let builder = System::builder().shards(3).pin(false);
            let hooked = builder.runtime(|runtime| {
                runtime
                    .thread_name("fails")
                    .on_shard_start(|shard| assert_ne!(shard.index(), 1, "no second shard"))
            });
            let error = hooked.start().unwrap_err();
            assert!(
                error.is_panic() && error.shard() == Some(1.into()),
                "{error}"
            );
        }
        assert_eq!(threads("fails-"), Vec::<String>::new());
        assert_eq!(descriptors(), before);
    });
}
