//! Where a task comes from, for people who look at it.

use std::borrow::Cow;
use std::panic::Location;

use super::id::Id;
use super::ready::Class;
use crate::shard::ShardId;

/// What a person calls a task. Few tasks have a name, so it takes one word in those that have none.
#[derive(Debug)]
pub(crate) struct TaskName(Box<Cow<'static, str>>);

impl TaskName {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// When a task is polled for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstPoll {
    /// In the shard's next run of tasks.
    Soon,
    /// When it is woken. If it never is, its future is dropped when it is aborted or its shard ends.
    WhenWoken,
}

/// What is said of a task when it is spawned, beside its future.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(super) name: Option<TaskName>,
    pub(super) place: &'static Location<'static>,
    pub(crate) class: Class,
    pub(crate) first_poll: FirstPoll,
}

impl Origin {
    /// A task without a name, spawned where the caller was called.
    #[track_caller]
    pub(crate) fn here() -> Self {
        Self {
            name: None,
            place: Location::caller(),
            class: Class::Default,
            first_poll: FirstPoll::Soon,
        }
    }

    /// A task without a name, spawned at a place that was noted before.
    pub(crate) fn at(place: &'static Location<'static>) -> Self {
        Self {
            name: None,
            place,
            class: Class::Default,
            first_poll: FirstPoll::Soon,
        }
    }

    pub(super) fn of_class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    #[inline]
    pub(super) fn polled_first(mut self, first_poll: FirstPoll) -> Self {
        self.first_poll = first_poll;
        self
    }

    pub(super) fn named(mut self, name: Option<Cow<'static, str>>) -> Self {
        self.name = name.map(|name| TaskName(Box::new(name)));
        self
    }
}

/// A task, as hooks see it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Info<'a> {
    /// Its id.
    pub id: Id,
    /// The name it was given, if any.
    pub name: Option<&'a str>,
    /// Its shard.
    pub shard: ShardId,
    /// The call that spawned it.
    pub spawned_at: &'static Location<'static>,
}
