//! Messages that waited together and are handled together.

use std::{fmt, iter, slice, vec};

use greenroom_runtime::mesh::AskNote;

use crate::__rt::answer_flat;
use crate::actor::Actor;
use crate::call::IsResult;
use crate::context::Ctx;
use crate::handling;
use crate::mailbox::{Mailbox, Next};
use crate::reply::{Carries, Reply};

/// The messages that a `#[message(batch)]` handler takes at once: one or more, in the order they were sent.
///
/// `T` is what one call passes: its argument, or a tuple of its arguments. Callers make one call for each message and know
/// nothing of batches. A batch is what waits in the mailbox without another message in between: at most 64 messages, or
/// as many as `#[message(batch = 256)]` says.
///
/// How the calls are answered is up to the signature:
/// * The handler returns a value: every call is answered with a clone of it.
/// * The item ends with a [`Reply`], as in `Batch<(Key, Reply<bool>)>`: each call is answered through its own.
///
/// # Cost
/// The handler is run once for all of them. A batch of one allocates nothing, a larger one allocates once. Messages are
/// not handled on the asker's stack, as those of other handlers may be: they wait for their turn, and so for each other.
/// Each message counts when the actor has to let others have their turn.
///
/// # Errors
/// Each caller of a batch hears what becomes of it: of the panic of its handler, of a kill. A batch that was begun is not begun
/// again, also not by a restarted actor. The error of a `Result` goes to every caller; for those that told it is counted, and
/// shown to the hook `#[on(error)]`, once each.
///
/// # Deadlines
/// What the handler of a batch of several asks itself has the limit of the system, or its own: the batch is there for all of
/// them, and inherits the hurry of none.
///
/// # Examples
/// ```
/// use greenroom::prelude::*;
/// use greenroom::Batch;
///
/// #[derive(Default)]
/// struct Journal { lines: Vec<String>, syncs: usize }
///
/// #[actor]
/// impl Journal {
///     /// Appends a line; answered when it is safe.
///     #[message(batch)]
///     pub async fn append(&mut self, lines: Batch<String>) {
///         self.lines.extend(lines);
///         self.syncs += 1;                       // one for all of them
///     }
///
///     /// Appends a line that is not empty.
///     #[message(batch)]
///     pub fn append_some(&mut self, lines: Batch<(String, Reply<bool>)>) {
///         for (line, reply) in lines {
///             reply.send(!line.is_empty());
///             if !line.is_empty() { self.lines.push(line) }
///         }
///     }
///
///     pub fn counts(&self) -> (usize, usize) { (self.lines.len(), self.syncs) }
/// }
///
/// let system = System::start(1)?;
/// system.run_on(0, || async {
///     let journal = greenroom::spawn(Journal::default());
///     let line = |number: u32| journal.append(number.to_string()).into_future();
///     let (first, second, third) = futures_util::join!(line(1), line(2), line(3));
///     first.and(second).and(third)?;
///     assert_eq!(journal.counts().await?, (3, 1));
///     assert!(!journal.append_some(String::new()).await?);
///     Ok::<(), greenroom::Error>(())
/// })?;
/// # Ok::<(), greenroom::Error>(())
/// ```
#[must_use = "the messages of a batch are handled nowhere else"]
pub struct Batch<T> {
    /// A batch of one needs no memory of its own.
    first: T,
    rest: Vec<T>,
}

impl<T> Batch<T> {
    /// How many messages there are: at least one.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        1 + self.rest.len()
    }

    /// The messages in their order.
    pub fn iter(&self) -> iter::Chain<iter::Once<&T>, slice::Iter<'_, T>> {
        iter::once(&self.first).chain(&self.rest)
    }
}

impl<T> IntoIterator for Batch<T> {
    type Item = T;
    type IntoIter = iter::Chain<iter::Once<T>, vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        iter::once(self.first).chain(self.rest)
    }
}

impl<'a, T> IntoIterator for &'a Batch<T> {
    type Item = &'a T;
    type IntoIter = iter::Chain<iter::Once<&'a T>, slice::Iter<'a, T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: fmt::Debug> fmt::Debug for Batch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

/// Takes what stands behind a message and belongs to its batch, up to `max` with it. For generated code.
///
/// `is_wanted` and `take` are of generated code too, and agree about which messages there are to take.
pub fn gather<A: Actor, T>(
    first: T,
    ctx: &Ctx<A>,
    max: usize,
    is_wanted: impl Fn(&A::LocalMsg) -> bool,
    take: impl Fn(A::LocalMsg) -> Option<T>,
) -> Batch<T> {
    gather_noting(first, ctx, max, is_wanted, take, |_, _| {})
}

/// `note` sees what was taken.
fn gather_noting<A: Actor, T>(
    first: T,
    ctx: &Ctx<A>,
    max: usize,
    is_wanted: impl Fn(&A::LocalMsg) -> bool,
    take: impl Fn(A::LocalMsg) -> Option<T>,
    note: impl Fn(&Mailbox<A>, &A::LocalMsg),
) -> Batch<T> {
    let mut rest = Vec::new();
    ctx.resident().visit(|mailbox| {
        // What nobody waits for any more is no part of the batch, but it took its time.
        for _ in 1..max {
            match mailbox.pop_if(&is_wanted) {
                Next::Message(message) => {
                    mailbox.join_message(&message);
                    note(mailbox, &message);
                    rest.push(take(message).expect("it was wanted"));
                }
                Next::Skipped => {}
                Next::Other | Next::Empty => break,
            }
        }
        if !rest.is_empty() {
            mailbox.note_beside(rest.len());
            handling::serve_several();
        }
    });
    Batch { first, rest }
}

/// The same for a batch whose messages have one answer. For generated code.
pub fn gather_answered<A: Actor, T, R>(
    first: (T, Reply<R>),
    ctx: &Ctx<A>,
    max: usize,
    is_wanted: impl Fn(&A::LocalMsg) -> bool,
    take: impl Fn(A::LocalMsg) -> Option<(T, Reply<R>)>,
) -> (Batch<T>, Replies<R>) {
    let note = |mailbox: &Mailbox<A>, message: &A::LocalMsg| {
        let ask = message.carried().reply().note().and_then(AskNote::ask);
        if let Some(ask) = ask {
            mailbox.note_owed(ask);
        }
    };
    let Batch { first, rest } = gather_noting(first, ctx, max, is_wanted, take, note);
    let (first, first_reply) = first;
    let (rest, rest_replies) = rest.into_iter().unzip();
    let replies = Batch {
        first: first_reply,
        rest: rest_replies,
    };
    (Batch { first, rest }, Replies(replies))
}

/// Who waits for the answer of a batch. Dropped, each hears why there is none.
#[derive(Debug)]
pub struct Replies<R: 'static>(Batch<Reply<R>>);

/// What every call of a batch can be answered with.
#[diagnostic::on_unimplemented(
    message = "the value of a `#[message(batch)]` handler answers every call, but `{Self}` is not `Clone`",
    note = "answer each call on its own: take `Batch<(.., Reply<{Self}>)>`"
)]
pub trait SharedAnswer: Clone {}

#[diagnostic::do_not_recommend]
impl<R: Clone> SharedAnswer for R {}

impl<R: SharedAnswer + 'static> Replies<R> {
    /// Gives each its value. The last one gets the value itself.
    fn each(self, value: R, mut give: impl FnMut(Reply<R>, R)) {
        let Batch { first, rest } = self.0;
        let mut others = rest.into_iter();
        let Some(last) = others.next_back() else {
            return give(first, value);
        };
        give(first, value.clone());
        for reply in others {
            give(reply, value.clone());
        }
        give(last, value);
    }
}

/// Answers all calls of a batch with a handler's value. For generated code.
pub fn answer_all<R: SharedAnswer + 'static>(replies: Replies<R>, value: R) {
    replies.each(value, Reply::send);
}

/// Answers all calls of a batch with a handler's `Result`; told messages each have its error as if it were theirs alone. For
/// generated code.
pub fn answer_all_flat<A: Actor, R: SharedAnswer + IsResult>(
    show: fn(&R) -> Option<String>,
    replies: Replies<R>,
    value: R,
    ctx: &mut Ctx<A>,
    method: &'static str,
) {
    replies.each(value, |reply, value| {
        answer_flat(show, reply, value, ctx, method);
    });
}
