//! Signals: who hears them, how often, and what they do when nobody listens any more.
//!
//! Signals belong to the process, so the tests take turns, and those in which the process ends run in one of their own.

use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::process::{Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::StreamExt;
use greenroom_runtime::signal::{self, Signal, SignalKind};
use greenroom_runtime::{Builder, Runtime, spawn, yield_now};
use signal_hook::low_level::raise;

static TURNS: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURNS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn runtime(shards: usize) -> Runtime {
    Builder::new().shards(shards).start().unwrap()
}

/// Whether an arrival waits to be looked at.
fn heard(listener: &mut Signal) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    pin!(listener.recv()).poll(&mut cx).is_ready()
}

/// Runs one test of this file in a process of its own, which is to end by itself.
fn run_alone(test: &str) -> ExitStatus {
    let this = std::env::current_exe().unwrap();
    Command::new(this)
        .args(["--exact", test, "--nocapture"])
        .env("ALONE", test)
        .status()
        .unwrap()
}

fn is_alone(test: &str) -> bool {
    std::env::var("ALONE").is_ok_and(|alone| alone == test)
}

/// Waits for the end of the process, which a signal is to bring about.
fn await_the_end() -> ! {
    let (_never, nothing) = mpsc::channel::<()>();
    nothing.recv_timeout(Duration::from_secs(60)).unwrap_err();
    panic!("the process has not ended");
}

#[test]
fn every_listener_on_every_shard_hears_a_signal() {
    let _turn = turn();
    let runtime = runtime(2);
    let (ready, is_ready) = mpsc::channel();
    let hearing: Vec<_> = [0_u16, 0, 1]
        .into_iter()
        .map(|shard| {
            let ready = ready.clone();
            runtime.handle().spawn_on(shard, move || async move {
                let mut listener = Signal::new(SignalKind::USER_1).unwrap();
                ready.send(()).unwrap();
                listener.recv().await
            })
        })
        .collect();
    let mut outside = Signal::new(SignalKind::USER_1).unwrap();
    for _ in &hearing {
        is_ready.recv().unwrap();
    }
    raise(SignalKind::USER_1.as_raw()).unwrap();
    for heard in hearing {
        assert_eq!(runtime.block_on(heard).unwrap(), SignalKind::USER_1);
    }
    assert_eq!(runtime.block_on(outside.recv()), SignalKind::USER_1);
}

#[test]
fn arrivals_that_nobody_looked_at_are_one_arrival() {
    let _turn = turn();
    let runtime = runtime(1);
    let mut lazy = Signal::new(SignalKind::USER_2).unwrap();
    let mut eager = Signal::new(SignalKind::USER_2).unwrap();
    for _ in 0..5 {
        raise(SignalKind::USER_2.as_raw()).unwrap();
        // The hub tells the listeners in the order they came: it has told the lazy one.
        runtime.block_on(eager.recv());
    }
    assert!(heard(&mut lazy));
    assert!(!heard(&mut lazy));
    raise(SignalKind::USER_2.as_raw()).unwrap();
    runtime.block_on(eager.recv());
    assert!(
        heard(&mut lazy),
        "one that was looked at makes room for the next"
    );
}

#[test]
fn one_listener_tells_several_signals_apart_and_keeps_one_of_each() {
    let _turn = turn();
    let runtime = runtime(1);
    let kinds = [
        SignalKind::USER_1,
        SignalKind::WINDOW_CHANGE,
        SignalKind::HANGUP,
    ];
    let mut both = Signal::any(kinds).unwrap();
    let mut last = Signal::new(SignalKind::HANGUP).unwrap();
    for kind in kinds {
        let mut witness = Signal::new(kind).unwrap();
        raise(kind.as_raw()).unwrap();
        runtime.block_on(witness.recv());
    }
    runtime.block_on(last.recv());
    let heard: Vec<_> = runtime.block_on(both.by_ref().take(3).collect());
    assert_eq!(heard, kinds);
}

#[test]
fn a_dropped_wait_loses_no_arrival() {
    let _turn = turn();
    let runtime = runtime(1);
    let mut listener = Signal::new(SignalKind::USER_1).unwrap();
    let mut witness = Signal::new(SignalKind::USER_1).unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..3 {
        let Poll::Pending = pin!(listener.recv()).poll(&mut cx) else {
            panic!("nothing was raised");
        };
        raise(SignalKind::USER_1.as_raw()).unwrap();
        runtime.block_on(witness.recv());
        assert!(heard(&mut listener));
    }
}

#[test]
fn listeners_survive_the_runtime_and_the_shard_they_were_made_on() {
    let _turn = turn();
    let mut carried = {
        let first = runtime(1);
        let carried = first.run_on(0, || async { Signal::new(SignalKind::USER_2).unwrap() });
        first.shutdown();
        carried
    };
    let second = runtime(1);
    raise(SignalKind::USER_2.as_raw()).unwrap();
    let heard = second
        .handle()
        .spawn_on(0, || async move { carried.recv().await });
    assert_eq!(second.block_on(heard).unwrap(), SignalKind::USER_2);
}

#[test]
fn ctrl_c_is_heard_by_all_who_await_it() {
    let _turn = turn();
    let runtime = runtime(1);
    let (ready, is_ready) = mpsc::channel();
    let heard = runtime.handle().spawn_on(0, move || async move {
        let both = [spawn(signal::ctrl_c()), spawn(signal::ctrl_c())];
        // Both are polled, and with that heard from now on.
        yield_now().await;
        ready.send(()).unwrap();
        for one in both {
            one.await.unwrap().unwrap();
        }
    });
    is_ready.recv().unwrap();
    raise(SignalKind::INTERRUPT.as_raw()).unwrap();
    runtime.block_on(heard).unwrap();
}

#[test]
fn signals_that_no_program_can_go_on_from_are_refused() {
    for (number, name) in [
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGSTOP, "SIGSTOP"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGILL, "SIGILL"),
        (0, "signal 0"),
        (-1, "signal -1"),
        (65, "signal 65"),
        (i32::MAX, "2147483647"),
    ] {
        let error = Signal::new(SignalKind::from_raw(number)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{number}");
        assert!(error.to_string().contains(name), "{number}: {error}");
    }
    let error = Signal::any([]).unwrap_err();
    assert!(error.to_string().contains("no signal"), "{error}");
}

#[test]
fn without_a_listener_a_signal_has_its_usual_effect_again() {
    const TEST: &str = "without_a_listener_a_signal_has_its_usual_effect_again";
    if is_alone(TEST) {
        let runtime = runtime(1);
        let mut end = signal::termination().unwrap();
        raise(SignalKind::TERMINATE.as_raw()).unwrap();
        assert_eq!(runtime.block_on(end.recv()), SignalKind::TERMINATE);
        drop(end);
        raise(SignalKind::TERMINATE.as_raw()).unwrap();
        await_the_end();
    }
    assert_eq!(run_alone(TEST).signal(), Some(libc::SIGTERM));
}

#[test]
fn a_signal_that_was_ignored_before_stays_without_effect_after_its_listener() {
    const TEST: &str = "a_signal_that_was_ignored_before_stays_without_effect_after_its_listener";
    if is_alone(TEST) {
        // Every program of Rust begins with SIGPIPE ignored.
        let runtime = runtime(1);
        drop(Signal::new(SignalKind::PIPE).unwrap());
        raise(SignalKind::PIPE.as_raw()).unwrap();
        let mut later = Signal::new(SignalKind::PIPE).unwrap();
        raise(SignalKind::PIPE.as_raw()).unwrap();
        runtime.block_on(later.recv());
        return;
    }
    assert_eq!(run_alone(TEST).code(), Some(0));
}

#[test]
fn the_thread_of_the_hub_is_not_pinned_to_the_shard_that_started_it() {
    const TEST: &str = "the_thread_of_the_hub_is_not_pinned_to_the_shard_that_started_it";
    if is_alone(TEST) {
        let runtime = Builder::new().shards(1).pin(true).start().unwrap();
        runtime.run_on(0, || async {
            let mut listener = Signal::new(SignalKind::USER_1).unwrap();
            raise(SignalKind::USER_1.as_raw()).unwrap();
            listener.recv().await;
        });
        let hub = allowed("signals");
        assert!(hub.is_some());
        assert_eq!(hub, allowed_of("/proc/self/status"));
        return;
    }
    assert_eq!(run_alone(TEST).code(), Some(0));
}

/// The CPUs of the thread with this name.
fn allowed(name: &str) -> Option<String> {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    threads
        .map(|thread| thread.unwrap().path())
        .find(|thread| {
            std::fs::read_to_string(thread.join("comm")).is_ok_and(|comm| comm.trim() == name)
        })
        .and_then(|thread| allowed_of(thread.join("status").to_str()?))
}

fn allowed_of(status: &str) -> Option<String> {
    let status = std::fs::read_to_string(status).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(line.trim().to_owned())
}
