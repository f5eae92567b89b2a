//! Every way a task can end, against every way it can be aborted and joined, on its own shard and from another.
//!
//! What must hold in all of them: the future is dropped once and on its shard, an output is dropped once, who joins is
//! told what happened, and both shards go on.

use std::future::pending;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::thread::{self, ThreadId};

use greenroom_runtime::sync::cross::{Notify, oneshot};
use greenroom_runtime::task::AbortHandle;
use greenroom_runtime::{
    Builder, Handle, JoinError, JoinHandle, RemoteJoinHandle, ShardCounts, spawn, yield_now,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Panics {
    Never,
    InPoll,
    InDropOfFuture,
    InDropOfOutput,
    InBothDrops,
}

impl Panics {
    const ALL: [Self; 5] = [
        Self::Never,
        Self::InPoll,
        Self::InDropOfFuture,
        Self::InDropOfOutput,
        Self::InBothDrops,
    ];

    fn in_drop_of_future(self) -> bool {
        matches!(self, Self::InDropOfFuture | Self::InBothDrops)
    }

    fn in_drop_of_output(self) -> bool {
        matches!(self, Self::InDropOfOutput | Self::InBothDrops)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aborts {
    Never,
    BeforeFirstPoll,
    InPendingPoll,
    WhilePending,
    InLastPoll,
    AfterTheEnd,
}

impl Aborts {
    const ALL: [Self; 6] = [
        Self::Never,
        Self::BeforeFirstPoll,
        Self::InPendingPoll,
        Self::WhilePending,
        Self::InLastPoll,
        Self::AfterTheEnd,
    ];

    /// Whether the abort comes before the task can end by itself.
    fn cancels(self) -> bool {
        matches!(
            self,
            Self::BeforeFirstPoll | Self::InPendingPoll | Self::WhilePending
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handles {
    DroppedAtOnce,
    DroppedAfterAbort,
    Awaited,
    AwaitedByAnotherTask,
}

impl Handles {
    const ALL: [Self; 4] = [
        Self::DroppedAtOnce,
        Self::DroppedAfterAbort,
        Self::Awaited,
        Self::AwaitedByAnotherTask,
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Here,
    Elsewhere,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    panics: Panics,
    aborts: Aborts,
    handles: Handles,
    place: Place,
}

/// What happened to one subject.
#[derive(Default)]
struct Log {
    outputs_made: AtomicUsize,
    outputs_dropped: AtomicUsize,
    futures_dropped: AtomicUsize,
    /// Where the future and the output were dropped.
    threads: std::sync::Mutex<Vec<ThreadId>>,
    /// The first poll is over; the future may go on; it was dropped; the output was dropped.
    polled: Notify,
    go: Notify,
    future_gone: Notify,
    output_gone: Notify,
}

impl Log {
    fn count(counter: &AtomicUsize) {
        counter.fetch_add(1, Ordering::SeqCst);
    }

    fn read(counter: &AtomicUsize) -> usize {
        counter.load(Ordering::SeqCst)
    }

    fn note_thread(&self) {
        self.threads.lock().unwrap().push(thread::current().id());
    }
}

struct Output {
    log: Arc<Log>,
    is_armed: bool,
}

impl Drop for Output {
    fn drop(&mut self) {
        self.log.note_thread();
        Log::count(&self.log.outputs_dropped);
        self.log.output_gone.notify_one();
        if self.is_armed {
            resume_unwind(Box::new("planned: drop of output"));
        }
    }
}

type Steps = Pin<Box<dyn Future<Output = Output>>>;

/// The future under test. What it does is in `steps`; it is dropped as one thing, after its end.
struct Subject {
    steps: Option<Steps>,
    log: Arc<Log>,
    panics: Panics,
}

impl Future for Subject {
    type Output = Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Output> {
        self.steps.as_mut().unwrap().as_mut().poll(cx)
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        self.steps = None;
        self.log.note_thread();
        Log::count(&self.log.futures_dropped);
        self.log.future_gone.notify_one();
        if self.panics.in_drop_of_future() {
            resume_unwind(Box::new("planned: drop of future"));
        }
    }
}

fn subject(case: Case, log: Arc<Log>, abort: oneshot::Receiver<AbortHandle>) -> Subject {
    let own = log.clone();
    let steps = async move {
        let abort = abort.await.expect("sent right after the spawn");
        own.polled.notify_one();
        if case.aborts == Aborts::InPendingPoll {
            abort.abort();
            pending::<()>().await;
        }
        own.go.notified().await;
        if case.aborts == Aborts::InLastPoll {
            abort.abort();
        }
        if case.panics == Panics::InPoll {
            resume_unwind(Box::new("planned: poll"));
        }
        Log::count(&own.outputs_made);
        Output {
            log: own.clone(),
            is_armed: case.panics.in_drop_of_output(),
        }
    };
    Subject {
        steps: Some(Box::pin(steps)),
        log,
        panics: case.panics,
    }
}

enum AnyHandle {
    Here(JoinHandle<Output>),
    Elsewhere(RemoteJoinHandle<Output>),
}

impl AnyHandle {
    fn abort_handle(&self) -> AbortHandle {
        match self {
            Self::Here(handle) => handle.abort_handle(),
            Self::Elsewhere(handle) => handle.abort_handle(),
        }
    }

    async fn join(self) -> Result<Output, JoinError> {
        match self {
            Self::Here(handle) => handle.await,
            Self::Elsewhere(handle) => handle.await,
        }
    }
}

/// What the handle resolves to, `None` if it was dropped.
async fn run(case: Case, log: &Arc<Log>) -> Option<Result<Output, JoinError>> {
    let (sender, receiver) = oneshot::channel();
    let theirs = log.clone();
    let handle = match case.place {
        Place::Here => AnyHandle::Here(spawn(subject(case, theirs, receiver))),
        Place::Elsewhere => AnyHandle::Elsewhere(
            Handle::current()
                .unwrap()
                .spawn_on(1, move || subject(case, theirs, receiver)),
        ),
    };
    let abort = handle.abort_handle();
    let mut handle = Some(handle);
    let mut joiner = None;
    match case.handles {
        Handles::DroppedAtOnce => handle = None,
        Handles::AwaitedByAnotherTask => joiner = handle.take().map(|handle| spawn(handle.join())),
        Handles::DroppedAfterAbort | Handles::Awaited => {}
    }
    // Kept unused if the task is not to come so far.
    let mut sender = Some(sender);
    if case.aborts == Aborts::BeforeFirstPoll {
        abort.abort();
    } else {
        let sent = sender.take().map(|sender| sender.send(abort.clone()));
        assert!(matches!(sent, Some(Ok(()))), "the task waits for it");
        log.polled.notified().await;
        pass(case.place).await;
    }
    if case.aborts == Aborts::WhilePending {
        abort.abort();
    }
    if case.handles == Handles::DroppedAfterAbort && case.aborts != Aborts::AfterTheEnd {
        handle = None;
    }
    log.go.notify_one();
    log_future_gone(case, log).await;
    if case.aborts == Aborts::AfterTheEnd {
        // The outcome is in the cell, or on its way, by the end of the poll.
        yield_now().await;
        abort.abort();
    }
    if case.handles == Handles::DroppedAfterAbort {
        handle = None;
    }
    match (handle, joiner) {
        (Some(handle), _) => Some(handle.join().await),
        (None, Some(joiner)) => Some(joiner.await.unwrap()),
        (None, None) => None,
    }
}

/// Waits until whatever runs in that place, and what was sent there, is over.
async fn pass(place: Place) {
    if place == Place::Elsewhere {
        let past = Handle::current().unwrap().spawn_on(1, || async {});
        past.await.unwrap();
    }
}

async fn log_future_gone(case: Case, log: &Log) {
    if case.aborts == Aborts::BeforeFirstPoll && case.place == Place::Elsewhere {
        // The factory was dropped unused, or the future was.
        pass(case.place).await;
    } else {
        log.future_gone.notified().await;
    }
}

async fn check(case: Case, homes: [ThreadId; 2]) {
    let log = Arc::new(Log::default());
    let outcome = run(case, &log).await;
    let home = homes[usize::from(case.place == Place::Elsewhere)];

    match &outcome {
        None => {}
        Some(Err(error)) if case.aborts.cancels() => assert!(error.is_cancelled(), "{error}"),
        Some(Err(error)) if case.panics == Panics::InPoll => {
            assert!(error.to_string().ends_with("planned: poll"), "{error}");
        }
        Some(Err(error)) => {
            assert!(case.panics.in_drop_of_future(), "{error}");
            assert!(error.to_string().ends_with("drop of future"), "{error}");
        }
        Some(Ok(_)) => {
            assert!(!case.aborts.cancels(), "it was to be cancelled");
            assert!(!case.panics.in_drop_of_future() && case.panics != Panics::InPoll);
        }
    }
    let was_given = matches!(outcome, Some(Ok(_)));
    if let Some(Ok(mut output)) = outcome {
        output.is_armed = false;
    }

    let made = Log::read(&log.outputs_made);
    assert_eq!(
        made,
        usize::from(!case.aborts.cancels() && case.panics != Panics::InPoll)
    );
    if made == 1 {
        log.output_gone.notified().await;
    }
    assert_eq!(Log::read(&log.outputs_dropped), made);
    let futures = Log::read(&log.futures_dropped);
    if case.aborts == Aborts::BeforeFirstPoll && case.place == Place::Elsewhere {
        assert!(futures <= 1, "the factory may have been dropped instead");
    } else {
        assert_eq!(futures, 1);
    }
    // An output that was sent home before its handle was dropped is dropped with the handle.
    let may_travel = was_given || case.place == Place::Elsewhere;
    let threads = log.threads.lock().unwrap().clone();
    let at_home = threads.iter().filter(|thread| **thread == home).count();
    assert!(
        at_home == threads.len() || (may_travel && at_home + 1 == threads.len()),
        "dropped away from home"
    );
}

#[test]
fn every_end_of_a_task_is_told_and_drops_everything_once() {
    let runtime = Builder::new().shards(2).start().unwrap();
    let cases = runtime.run_on(0, || async {
        let there = Handle::current().unwrap();
        let elsewhere = there.spawn_on(1, || async { thread::current().id() });
        let homes = [thread::current().id(), elsewhere.await.unwrap()];
        let before = ShardCounts::current().unwrap().tasks;
        let mut cases = 0;
        for panics in Panics::ALL {
            for aborts in Aborts::ALL {
                for handles in Handles::ALL {
                    for place in [Place::Here, Place::Elsewhere] {
                        let case = Case {
                            panics,
                            aborts,
                            handles,
                            place,
                        };
                        // A case that fails, or never ends, is named.
                        let checked = spawn(check(case, homes));
                        let limit = std::time::Duration::from_secs(20);
                        match greenroom_runtime::time::timeout(limit, checked).await {
                            Ok(Ok(())) => cases += 1,
                            Ok(Err(error)) => panic!("{case:?}: {error}"),
                            Err(_) => panic!("{case:?} does not end"),
                        }
                    }
                }
            }
        }
        assert_eq!(ShardCounts::current().unwrap().tasks, before);
        let left = there.spawn_on(1, || async { ShardCounts::current().unwrap().tasks });
        assert_eq!(left.await.unwrap(), 1, "the one that asks");
        cases
    });
    assert_eq!(cases, 5 * 6 * 4 * 2);
}
