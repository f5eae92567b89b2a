//! Nothing is told.

use std::any::Any;

use crate::observe::Stall;
use crate::ring::BackendError;
use crate::shard::ShardId;
use crate::task::Info;

/// Would be the span of a task.
#[derive(Debug, Default)]
pub(crate) struct TaskSpan;

/// Would be the span that a shard is in.
#[derive(Debug)]
pub(crate) struct Current;

impl Current {
    pub(crate) fn new() -> Self {
        Self
    }

    #[inline]
    pub(crate) fn open(&self, _task: &Info<'_>) -> TaskSpan {
        TaskSpan
    }

    #[inline]
    pub(crate) fn enter(&self, _span: &TaskSpan) {}

    #[inline]
    pub(crate) fn exit(&self, _span: &TaskSpan) {}
}

impl TaskSpan {
    #[inline]
    pub(crate) fn close(self) {}
}

#[inline]
pub(crate) fn backend_chosen(_backend: &str, _shards: usize, _refused: Option<&BackendError>) {}

#[inline]
pub(crate) fn shard_started(_shard: ShardId) {}

#[inline]
pub(crate) fn shard_stopped(_shard: ShardId) {}

#[inline]
pub(crate) fn parking(_shard: ShardId) -> bool {
    false
}

#[inline]
pub(crate) fn unparked(_shard: ShardId) {}

#[inline]
pub(crate) fn stalled(_stall: &Stall) -> bool {
    false
}

#[inline]
pub(crate) fn panicked(_payload: &(dyn Any + Send)) {}
