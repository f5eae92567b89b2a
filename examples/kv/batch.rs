//! What one connection asks of one shard in one message, and what the shard answers in the same memory.
//!
//! A batch travels to its shard with commands and comes home with replies, already in the form that goes to the client.
//! Whoever reads a batch of replies copies bytes and looks at none. Its buffers are used again for the next commands,
//! so that a command in steady traffic allocates nothing on its way.

use crate::command::Execute;
use crate::keyspace::Keyspace;
use crate::protocol::{Arguments, Span};
use crate::reply;

/// A shard stops working on a batch when its replies have grown to this size; the rest waits until they are written
/// to the client. So one message asks for that much and one reply more, however often it asks for a large value.
pub(crate) const REPLY_BYTES_MAX: usize = 256 << 10;

/// A buffer that grew larger is not kept for the next commands.
pub(crate) const KEPT_BYTES_MAX: usize = 1 << 20;

/// Commands for one shard and their replies.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The bytes of all arguments, where `spans` point to.
    bytes: Vec<u8>,
    spans: Vec<Span>,
    calls: Vec<Call>,
    /// How many of `calls` were done.
    done: usize,
    replies: Vec<u8>,
    /// Where each reply of `replies` ends.
    ends: Vec<usize>,
    /// How many of `ends` were taken.
    taken: usize,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    execute: Execute,
    /// Where the arguments of this call end in `spans`; they start where those of the call before it end.
    spans_end: usize,
}

impl Batch {
    /// Adds a command.
    pub(crate) fn push(&mut self, execute: Execute, arguments: Arguments<'_>) {
        for argument in arguments.iter() {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(argument);
            self.spans.push(Span::new(start, self.bytes.len()));
        }
        self.calls.push(Call {
            execute,
            spans_end: self.spans.len(),
        });
    }

    /// Executes commands until none is left or the replies are many.
    pub(crate) fn execute(&mut self, keyspace: &mut Keyspace) {
        let mut start = match self.done.checked_sub(1) {
            Some(last) => self.calls[last].spans_end,
            None => 0,
        };
        for call in &self.calls[self.done..] {
            if self.replies.len() >= REPLY_BYTES_MAX {
                break;
            }
            let arguments = Arguments::new(&self.bytes, &self.spans[start..call.spans_end]);
            if let Err(error) = (call.execute)(keyspace, arguments, &mut self.replies) {
                reply::error(&mut self.replies, error);
            }
            self.ends.push(self.replies.len());
            self.done += 1;
            start = call.spans_end;
        }
    }

    /// Whether commands wait to be executed while all replies were taken.
    pub(crate) fn is_due(&self) -> bool {
        self.done < self.calls.len() && self.taken == self.ends.len()
    }

    /// Forgets the replies that were taken, for the commands that are left.
    pub(crate) fn clear_replies(&mut self) {
        self.replies.clear();
        self.ends.clear();
        self.taken = 0;
    }

    /// Takes the next replies, at most `count`: their bytes and how many they are.
    pub(crate) fn take(&mut self, count: usize) -> (&[u8], usize) {
        let from = self.taken;
        self.taken = self.ends.len().min(from + count);
        (
            &self.replies[self.start_of(from)..self.start_of(self.taken)],
            self.taken - from,
        )
    }

    /// Takes all replies, if none was taken and they are `count`, by exchanging buffers with an empty `out`.
    pub(crate) fn take_all(&mut self, count: usize, out: &mut Vec<u8>) -> bool {
        let whole = out.is_empty() && self.taken == 0 && self.ends.len() == count;
        if whole {
            self.taken = count;
            std::mem::swap(out, &mut self.replies);
        }
        whole
    }

    /// Forgets everything but its memory, unless that is unusually much.
    pub(crate) fn reset(&mut self) {
        self.clear_replies();
        self.done = 0;
        clear(&mut self.bytes);
        clear(&mut self.spans);
        clear(&mut self.calls);
        clear(&mut self.replies);
        clear(&mut self.ends);
    }

    fn start_of(&self, reply: usize) -> usize {
        match reply.checked_sub(1) {
            Some(before) => self.ends[before],
            None => 0,
        }
    }
}

/// Empties a buffer, and frees it when it is unusually large.
pub(crate) fn clear<T>(buffer: &mut Vec<T>) {
    if buffer.capacity() > KEPT_BYTES_MAX / size_of::<T>() {
        *buffer = Vec::new();
    } else {
        buffer.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Command, Route};
    use crate::keyspace::Expiry;

    fn execute_of(name: &str) -> Execute {
        match Command::find(name.as_bytes()).unwrap().route {
            Route::Key(execute) => execute,
            ref other => panic!("{name} is routed by {other:?}"),
        }
    }

    #[test]
    fn large_replies_are_given_in_portions() {
        const VALUE_BYTES: usize = REPLY_BYTES_MAX / 4;
        let mut keyspace = Keyspace::new(1);
        keyspace.set(b"k", &[b'x'; VALUE_BYTES], Expiry::Never);
        let mut batch = Batch::default();
        for _ in 0..10 {
            batch.push(execute_of("get"), Arguments::new(b"k", &[Span::new(0, 1)]));
        }
        let mut replies = 0;
        let mut portions = 0;
        while replies < 10 {
            batch.execute(&mut keyspace);
            let (bytes, count) = batch.take(usize::MAX - 10);
            assert!(bytes.len() <= REPLY_BYTES_MAX + VALUE_BYTES + 100);
            assert!(count > 0);
            replies += count;
            portions += 1;
            assert_eq!(batch.is_due(), replies < 10);
            batch.clear_replies();
        }
        assert_eq!((replies, portions), (10, 3));
    }

    #[test]
    fn all_replies_at_once_need_no_copy() {
        let mut keyspace = Keyspace::new(1);
        let mut batch = Batch::default();
        for _ in 0..2 {
            batch.push(execute_of("incr"), Arguments::new(b"k", &[Span::new(0, 1)]));
        }
        batch.execute(&mut keyspace);
        let mut out = Vec::new();
        assert!(!batch.take_all(1, &mut out));
        assert!(batch.take_all(2, &mut out));
        assert_eq!(out, b":1\r\n:2\r\n");
        assert!(!batch.is_due());
    }
}
