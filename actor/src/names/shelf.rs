//! Where books of names are kept, and the claims on names in them.

use std::any::Any;
use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_channel::oneshot;
use greenroom_runtime::ShardId;
use greenroom_runtime::mesh::ResidentId;

use super::book::{Book, Found, Holder};
use super::error::{LookupError, LookupErrorKind, RegisterError, RegisterErrorKind};
use crate::actor::Actor;
use crate::mailbox::Mailbox;

/// Keeps books, and opens the one a name is in.
pub(super) trait Shelf: Clone + 'static {
    fn open<R>(&self, name: &str, look: impl FnOnce(&mut Book) -> R) -> R;
}

const BOOKS: usize = 16;

/// The names of a system, in several books so that shards seldom meet at one.
#[derive(Default)]
pub(super) struct SystemShelf {
    books: [Mutex<Book>; BOOKS],
}

impl SystemShelf {
    /// Reads all books, one after the other.
    pub(super) fn each(&self, mut read: impl FnMut(&Book)) {
        for book in &self.books {
            read(&book.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl Shelf for Arc<SystemShelf> {
    fn open<R>(&self, name: &str, look: impl FnOnce(&mut Book) -> R) -> R {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let index = usize::try_from(hasher.finish() % BOOKS as u64).expect("less than 16");
        // No foreign code runs under the lock, so it is never poisoned by one.
        look(
            &mut self.books[index]
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }
}

/// The names of a shard.
#[derive(Default)]
pub(super) struct ShardShelf {
    book: RefCell<Book>,
}

impl ShardShelf {
    pub(super) fn read<R>(&self, read: impl FnOnce(&Book) -> R) -> R {
        read(&self.book.borrow())
    }
}

impl Shelf for Rc<ShardShelf> {
    fn open<R>(&self, _: &str, look: impl FnOnce(&mut Book) -> R) -> R {
        look(&mut self.book.borrow_mut())
    }
}

/// A name that was taken. It is free again when this is dropped.
pub(super) struct Claim<S: Shelf> {
    shelf: S,
    name: Arc<str>,
    number: u64,
}

impl<S: Shelf> Claim<S> {
    /// Takes a free name for an actor of a type, on the calling shard, that is to be made.
    pub(super) fn take<A: Actor>(
        shelf: &S,
        name: Arc<str>,
        shard: ShardId,
    ) -> Result<Self, RegisterError> {
        match shelf.open(&name, |book| book.claim(&name, shard)) {
            Ok(number) => Ok(Self {
                shelf: shelf.clone(),
                name,
                number,
            }),
            Err(holder) => Err(RegisterError {
                name,
                actor: A::NAME,
                kind: RegisterErrorKind::Taken(Box::new(holder)),
            }),
        }
    }

    /// Gives the name to an actor of the calling shard, until it ends. One that has ended does not get it.
    pub(super) fn give_to<A: Actor>(self, mailbox: &Mailbox<A>) -> Result<(), RegisterError> {
        let (shelf, name, number) = (self.shelf.clone(), self.name.clone(), self.number);
        let Ok(belonging) = mailbox.own(Box::new(self)) else {
            return Err(RegisterError {
                name,
                actor: A::NAME,
                kind: RegisterErrorKind::Ended,
            });
        };
        let holder = Holder::new(mailbox.id(), belonging);
        let waiters = shelf.open(&name, |book| book.fill(&name, number, holder));
        // Dropped, and so told, with no lock held.
        drop(waiters);
        Ok(())
    }
}

/// The name, if what an actor owns is one.
pub(crate) fn name_of(owned: &dyn Any) -> Option<&str> {
    if let Some(claim) = owned.downcast_ref::<Claim<Arc<SystemShelf>>>() {
        Some(&claim.name)
    } else {
        let claim = owned.downcast_ref::<Claim<Rc<ShardShelf>>>()?;
        Some(&claim.name)
    }
}

impl<S: Shelf> Drop for Claim<S> {
    fn drop(&mut self) {
        self.shelf
            .open(&self.name, |book| book.release(&self.name, self.number));
    }
}

/// Gives a name to an actor that is there already; at once if it has it.
pub(super) fn register<A: Actor, S: Shelf>(
    shelf: &S,
    name: Arc<str>,
    mailbox: &Mailbox<A>,
    shard: ShardId,
) -> Result<(), RegisterError> {
    let holder = shelf.open(&name, |book| {
        book.find(&name, |holder| holder.is(mailbox.id()))
    });
    if let Found::Held(true, _) = holder {
        return Ok(());
    }
    Claim::take::<A>(shelf, name, shard)?.give_to(mailbox)
}

/// Takes a name from its holder, if that is the actor of this mailbox; says whether it was.
pub(super) fn unregister<A: Actor, S: Shelf>(shelf: &S, name: &str, mailbox: &Mailbox<A>) -> bool {
    let belonging = shelf.open(name, |book| {
        book.find(name, |holder| {
            holder.is(mailbox.id()).then_some(holder.belonging)
        })
    });
    let Found::Held(Some(belonging), _) = belonging else {
        return false;
    };
    // The drop of the claim frees the name.
    mailbox.disown(belonging).is_some()
}

/// Looks up the actor that holds a name.
pub(super) fn lookup<A: Actor, S: Shelf>(
    shelf: &S,
    name: &str,
) -> Result<ResidentId<Mailbox<A>>, LookupError> {
    let found = shelf.open(name, |book| book.find(name, Holder::of_type::<A>));
    let kind = match found {
        Found::Held(Some(id), _) => return Ok(id),
        Found::Held(None, holder) => LookupErrorKind::WrongType(Box::new(holder)),
        Found::Claimed => LookupErrorKind::Claimed,
        Found::Free => LookupErrorKind::Free,
    };
    Err(not_found::<A>(name.into(), kind))
}

pub(super) fn not_found<A: Actor>(name: Arc<str>, kind: LookupErrorKind) -> LookupError {
    LookupError {
        name,
        wanted: A::NAME,
        wanted_type: std::any::type_name::<A>(),
        kind,
    }
}

/// Waits until a name is held.
pub(super) struct Awaited<S: Shelf> {
    shelf: S,
    name: Arc<str>,
    place: Option<(u64, oneshot::Receiver<()>)>,
}

impl<S: Shelf> Awaited<S> {
    pub(super) fn new(shelf: S, name: Arc<str>) -> Self {
        Self {
            shelf,
            name,
            place: None,
        }
    }

    /// Looks the name up; `Pending` if nobody holds it.
    pub(super) fn poll_lookup<A: Actor>(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ResidentId<Mailbox<A>>, LookupError>> {
        loop {
            if let Some((_, told)) = &mut self.place {
                if Pin::new(told).poll(cx).is_pending() {
                    return Poll::Pending;
                }
                self.place = None;
            }
            let (waiter, told) = oneshot::channel();
            let mut waiter = Some(waiter);
            // Looks and joins under one lock: no holder comes in between.
            let looked = self.shelf.open(&self.name, |book| {
                let found = book.find(&self.name, Holder::of_type::<A>);
                let waits = !matches!(found, Found::Held(..));
                let joined = waiter.take_if(|_| waits);
                (found, joined.map(|waiter| book.wait(&self.name, waiter)))
            });
            match looked {
                (Found::Held(Some(id), _), _) => return Poll::Ready(Ok(id)),
                (Found::Held(None, holder), _) => {
                    let kind = LookupErrorKind::WrongType(Box::new(holder));
                    return Poll::Ready(Err(not_found::<A>(self.name.clone(), kind)));
                }
                (_, number) => {
                    self.place = Some((number.expect("joined when nobody holds it"), told));
                }
            }
        }
    }
}

impl<S: Shelf> Drop for Awaited<S> {
    fn drop(&mut self) {
        if let Some((number, _)) = self.place.take() {
            let waiter = self
                .shelf
                .open(&self.name, |book| book.leave(&self.name, number));
            drop(waiter);
        }
    }
}
