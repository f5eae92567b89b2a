//! What is told, and how.

use std::any::Any;
use std::cell::Cell;

use tracing::span::Id as SpanId;
use tracing::{Level, Span, enabled, event, span};

use crate::observe::Stall;
use crate::ring::BackendError;
use crate::shard::ShardId;
use crate::task::{Info, contain_silently, panic_text};

/// The span of a task, if anyone wants it.
///
/// Boxed, so that tasks without one pay a word for it.
#[derive(Debug, Default)]
pub(crate) struct TaskSpan(Option<Box<Span>>);

/// The span of the task that a shard polls.
pub(crate) struct Current(Cell<Option<SpanId>>);

impl Current {
    pub(crate) fn new() -> Self {
        Self(Cell::new(None))
    }

    /// Makes the span of a task that was just spawned.
    #[inline]
    pub(crate) fn open(&self, task: &Info<'_>) -> TaskSpan {
        let mut span = Span::none();
        contain_silently(|| span = new_span(task));
        // Nothing is kept of a span that nobody wants.
        if span.is_disabled() {
            return TaskSpan(None);
        }
        let spawner = self.0.take();
        self.0.set(spawner.clone());
        contain_silently(|| {
            span.follows_from(spawner);
        });
        TaskSpan(Some(Box::new(span)))
    }

    #[inline]
    pub(crate) fn enter(&self, span: &TaskSpan) {
        if let Some(span) = &span.0 {
            self.0.set(span.id());
            contain_silently(|| {
                span.with_subscriber(|(id, dispatch)| dispatch.enter(id));
            });
        }
    }

    #[inline]
    pub(crate) fn exit(&self, span: &TaskSpan) {
        if let Some(span) = &span.0 {
            self.0.set(None);
            contain_silently(|| {
                span.with_subscriber(|(id, dispatch)| dispatch.exit(id));
            });
        }
    }
}

fn new_span(task: &Info<'_>) -> Span {
    span!(
        target: "greenroom::task",
        parent: None,
        Level::DEBUG,
        "task",
        id = %task.id,
        name = task.name,
        location = %task.spawned_at,
        shard = task.shard.index(),
    )
}

impl std::fmt::Debug for Current {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Current").finish_non_exhaustive()
    }
}

impl TaskSpan {
    #[inline]
    pub(crate) fn close(self) {
        if let Some(span) = self.0 {
            contain_silently(|| drop(span));
        }
    }
}

/// Tells on which backend a runtime starts, and why not on a ring if that was tried.
pub(crate) fn backend_chosen(backend: &str, shards: usize, refused: Option<&BackendError>) {
    contain_silently(|| {
        event!(
            target: "greenroom::shard",
            Level::INFO,
            backend,
            shards,
            refused = refused.map(tracing::field::display),
            "backend chosen",
        );
    });
}

pub(crate) fn shard_started(shard: ShardId) {
    let shard = shard.index();
    contain_silently(
        || event!(target: "greenroom::shard", parent: None, Level::INFO, shard, "shard started"),
    );
}

pub(crate) fn shard_stopped(shard: ShardId) {
    let shard = shard.index();
    contain_silently(
        || event!(target: "greenroom::shard", parent: None, Level::INFO, shard, "shard stopped"),
    );
}

/// Tells that a shard is about to rest. True if someone heard it, who may have made work.
#[inline]
pub(crate) fn parking(shard: ShardId) -> bool {
    let mut heard = false;
    contain_silently(|| {
        heard = enabled!(target: "greenroom::shard", Level::TRACE);
        if heard {
            let shard = shard.index();
            event!(target: "greenroom::shard", parent: None, Level::TRACE, shard, "parking");
        }
    });
    heard
}

#[inline]
pub(crate) fn unparked(shard: ShardId) {
    let shard = shard.index();
    contain_silently(
        || event!(target: "greenroom::shard", parent: None, Level::TRACE, shard, "unparked"),
    );
}

/// Tells of a stall, from the watchdog's thread. True if someone heard it.
pub(crate) fn stalled(stall: &Stall) -> bool {
    let lasted_ms = u64::try_from(stall.lasted.as_millis()).unwrap_or(u64::MAX);
    let mut heard = false;
    contain_silently(|| {
        heard = enabled!(target: "greenroom::shard", Level::WARN);
        if heard {
            event!(
                target: "greenroom::shard",
                parent: None,
                Level::WARN,
                shard = stall.shard.index(),
                task = stall.task.as_ref().map(|task| tracing::field::display(task.id)),
                lasted_ms,
                thread = stall.thread,
                "{stall}",
            );
        }
    });
    heard
}

/// Tells of a panic that goes no further.
#[cold]
pub(crate) fn panicked(payload: &(dyn Any + Send)) {
    let text = panic_text(payload);
    contain_silently(
        || event!(target: "greenroom::panic", Level::ERROR, panic = text, "contained a panic: {text}"),
    );
}
