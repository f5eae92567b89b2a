//! The commands of one read: collected into one batch for each shard, their replies put back in the client's order.
//!
//! Each command that is collected leaves *steps*, which say how its reply is made: copy the next reply of a shard, add
//! it up, pass over it, or copy text that needed no shard. Steps of neighbours join, so a pipeline of a hundred
//! commands for one shard is one step.
//!
//! **Order.** A shard does its batch in the order of the client. A command with parts on several shards stands at its
//! place in the batch of each of them, so all that a client does in one pipeline happens, key by key, in the client's
//! order: no round trip is spent to wait before a command for all shards or after it. What several connections do at
//! the same time on different shards has no common order, and parts of one command may be seen one by one.

use std::fmt::Display;

use crate::batch::{self, Batch};
use crate::command::{self, Command, Execute, Merge, Route};
use crate::protocol::Arguments;
use crate::reply;
use crate::routing::{Routing, ShardIndex};
use crate::session::Session;

/// The commands of one read.
#[derive(Debug)]
pub(crate) struct Pipeline {
    routing: Routing,
    parts: Vec<Part>,
    steps: Vec<Step>,
    /// How many of `steps` are done.
    steps_done: usize,
    /// The text of [`Step::Text`].
    texts: Vec<u8>,
    texts_done: usize,
    /// The sum of the replies that [`Step::Add`] took.
    sum: i64,
}

#[derive(Debug)]
struct Part {
    /// The batch, unless it is with its shard.
    ///
    /// It is in a box because it moves at least four times a round.
    batch: Option<Box<Batch>>,
    used: bool,
}

/// How the next piece of the output is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Copy so many bytes of `texts`.
    Text(usize),
    Reply {
        shard: ShardIndex,
        take: Take,
        count: usize,
    },
    /// Write the sum.
    Sum,
}

/// What happens to a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Take {
    Copy,
    Add,
    Skip,
}

/// How far [`Pipeline::merge`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Merged {
    /// The output is complete and the pipeline empty.
    All,
    /// The output goes on with replies this shard has not given yet.
    Until(ShardIndex),
}

impl Pipeline {
    pub(crate) fn new(routing: Routing) -> Self {
        let part = || Part {
            batch: Some(Box::default()),
            used: false,
        };
        Pipeline {
            parts: (0..routing.shards()).map(|_| part()).collect(),
            routing,
            steps: Vec::new(),
            steps_done: 0,
            texts: Vec::new(),
            texts_done: 0,
            sum: 0,
        }
    }

    /// Collects one command, its name included. Commands that need no shard are done at once.
    pub(crate) fn push(&mut self, session: &mut Session, words: Arguments<'_>) {
        let Some(name) = words.first() else {
            return;
        };
        let arguments = words.skip(1);
        let Some(command) = Command::find(name) else {
            return self.refuse(command::unknown(name, arguments));
        };
        if let Err(error) = command.check_arity(arguments) {
            return self.refuse(error);
        }
        match command.route {
            Route::Connection(converse) => {
                let before = self.texts.len();
                if let Err(error) = converse(session, arguments, &mut self.texts) {
                    reply::error(&mut self.texts, error);
                }
                self.add_text(self.texts.len() - before);
            }
            Route::Key(execute) => {
                let shard = self.routing.shard(&arguments[0]);
                self.ask(shard, execute, arguments, Take::Copy);
            }
            Route::EachKey {
                group,
                merge,
                execute,
            } => {
                let parts = arguments.groups(group);
                self.begin(merge, parts.len());
                for (index, part) in parts.enumerate() {
                    let shard = self.routing.shard(&part[0]);
                    self.ask(shard, execute, part, Take::part(merge, index));
                }
                self.end(merge);
            }
            Route::EveryShard { merge, execute } => {
                self.begin(merge, self.parts.len());
                for shard in 0..self.routing.shards() {
                    self.ask(shard, execute, arguments, Take::part(merge, shard.into()));
                }
                self.end(merge);
            }
        }
    }

    /// Adds an error that needs no shard.
    pub(crate) fn refuse(&mut self, error: impl Display) {
        let before = self.texts.len();
        reply::error(&mut self.texts, error);
        self.add_text(self.texts.len() - before);
    }

    /// The shards that have something to do, ending with `last` if it is one of them.
    pub(crate) fn shards(&self, last: ShardIndex) -> impl Iterator<Item = ShardIndex> {
        let shards = self.routing.shards();
        let in_turn = (0..shards).map(move |step| (last + 1 + step) % shards);
        in_turn.filter(|shard| self.parts[usize::from(*shard)].used)
    }

    /// The shard that has something to do, if it is one alone.
    pub(crate) fn only_shard(&self) -> Option<ShardIndex> {
        let mut shards = self.shards(0);
        shards.next().filter(|_| shards.next().is_none())
    }

    /// Hands out the batch of a shard, which is to be executed and [put back](Self::put_back).
    pub(crate) fn take(&mut self, shard: ShardIndex) -> Box<Batch> {
        let batch = self.parts[usize::from(shard)].batch.take();
        batch.expect("a batch is taken once and then put back")
    }

    pub(crate) fn put_back(&mut self, shard: ShardIndex, batch: Box<Batch>) {
        self.parts[usize::from(shard)].batch = Some(batch);
    }

    /// Appends replies to `out`, in the order of the commands, as far as they are there.
    pub(crate) fn merge(&mut self, out: &mut Vec<u8>) -> Merged {
        while let Some(step) = self.steps.get_mut(self.steps_done) {
            match step {
                Step::Text(length) => {
                    let end = self.texts_done + *length;
                    out.extend_from_slice(&self.texts[self.texts_done..end]);
                    self.texts_done = end;
                }
                Step::Sum => reply::integer(out, std::mem::take(&mut self.sum)),
                Step::Reply { shard, take, count } => {
                    let batch = self.parts[usize::from(*shard)].batch.as_mut();
                    let batch = batch.expect("batches are put back before replies are merged");
                    *count -= take.replies(batch, *count, out, &mut self.sum);
                    if *count > 0 {
                        debug_assert!(
                            batch.is_due(),
                            "shard {shard} owes {count} replies to no command"
                        );
                        batch.clear_replies();
                        return Merged::Until(*shard);
                    }
                }
            }
            self.steps_done += 1;
        }
        self.reset();
        Merged::All
    }

    fn begin(&mut self, merge: Merge, parts: usize) {
        if merge == Merge::Array {
            let before = self.texts.len();
            reply::array(&mut self.texts, parts);
            self.add_text(self.texts.len() - before);
        }
    }

    fn end(&mut self, merge: Merge) {
        if merge == Merge::Sum {
            self.steps.push(Step::Sum);
        }
    }

    fn ask(&mut self, shard: ShardIndex, execute: Execute, arguments: Arguments<'_>, take: Take) {
        let part = &mut self.parts[usize::from(shard)];
        let batch = part.batch.as_mut();
        batch
            .expect("batches are at home while commands are collected")
            .push(execute, arguments);
        part.used = true;
        match self.steps.last_mut() {
            Some(Step::Reply {
                shard: last,
                take: last_take,
                count,
            }) if (*last, *last_take) == (shard, take) => *count += 1,
            _ => self.steps.push(Step::Reply {
                shard,
                take,
                count: 1,
            }),
        }
    }

    fn add_text(&mut self, bytes: usize) {
        match self.steps.last_mut() {
            Some(Step::Text(length)) => *length += bytes,
            _ => self.steps.push(Step::Text(bytes)),
        }
    }

    fn reset(&mut self) {
        for part in self.parts.iter_mut().filter(|part| part.used) {
            part.used = false;
            if let Some(batch) = &mut part.batch {
                batch.reset();
            }
        }
        batch::clear(&mut self.steps);
        batch::clear(&mut self.texts);
        self.steps_done = 0;
        self.texts_done = 0;
    }
}

impl Take {
    /// What happens to the reply of one part of a command.
    fn part(merge: Merge, index: usize) -> Self {
        match merge {
            Merge::Array => Take::Copy,
            Merge::Sum => Take::Add,
            Merge::Alike if index == 0 => Take::Copy,
            Merge::Alike => Take::Skip,
        }
    }

    /// Takes at most `count` replies of a batch and returns how many there were.
    fn replies(self, batch: &mut Batch, count: usize, out: &mut Vec<u8>, sum: &mut i64) -> usize {
        match self {
            Take::Copy if batch.take_all(count, out) => count,
            Take::Copy => {
                let (replies, taken) = batch.take(count);
                out.extend_from_slice(replies);
                taken
            }
            Take::Skip => batch.take(count).1,
            Take::Add => {
                for taken in 0..count {
                    let (reply, 1) = batch.take(1) else {
                        return taken;
                    };
                    let value = reply::integer_value(reply);
                    *sum += value.expect("commands that are summed up answer with integers");
                }
                count
            }
        }
    }
}
