//! The branches of a group or a topic, and the ways to them.

use std::fmt;
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use greenroom_runtime::mesh::{
    self, Admission, Lane, Origin, Refusal, Resident, ResidentId, Route,
};

use crate::system::Handle;

/// The branches of all shards. Their residents end with this.
pub(super) struct Branches<R: Resident> {
    pub(super) system: Handle,
    shards: Box<[Branch<R>]>,
}

struct Branch<R: Resident> {
    /// Set by its own shard, when somebody comes there for the first time.
    id: OnceLock<ResidentId<R>>,
    /// Who is there. Written by its own shard alone.
    count: AtomicUsize,
}

impl<R: Resident> Branches<R> {
    pub(super) fn new(system: &Handle) -> Self {
        Self {
            system: system.clone(),
            shards: system
                .shards()
                .map(|_| Branch {
                    id: OnceLock::new(),
                    count: AtomicUsize::new(0),
                })
                .collect(),
        }
    }

    /// The branch of the calling shard, made if it is not there.
    ///
    /// # Panics
    /// If the calling thread is no shard of the system.
    #[track_caller]
    pub(super) fn here(&self, make: impl FnOnce() -> R) -> ResidentId<R> {
        let branch = self.branch_here();
        *branch.id.get_or_init(|| mesh::settle(Rc::new(make())))
    }

    /// The branch of the calling shard, if it is there.
    #[track_caller]
    pub(super) fn known_here(&self) -> Option<ResidentId<R>> {
        self.branch_here().id.get().copied()
    }

    #[track_caller]
    fn branch_here(&self) -> &Branch<R> {
        let here = greenroom_runtime::current_shard();
        let Some(shard) = here.filter(|_| self.system.runtime().is_own_shard()) else {
            panic!("only shards of the system have members of it: this thread is none")
        };
        &self.shards[shard.index()]
    }

    /// How many there are on the calling shard now.
    pub(super) fn set_count_here(&self, count: usize) {
        // ORDERING: Relaxed; whoever knows of a member otherwise than through this number learned of it after this store.
        self.branch_here().count.store(count, Ordering::Relaxed);
    }

    pub(super) fn count(&self) -> usize {
        // ORDERING: Relaxed; as above.
        let counts = self
            .shards
            .iter()
            .map(|branch| branch.count.load(Ordering::Relaxed));
        counts.sum()
    }

    /// The branches with somebody there, in the order of their shards.
    pub(super) fn inhabited(&self) -> impl Iterator<Item = (usize, ResidentId<R>)> + '_ {
        self.shards
            .iter()
            .enumerate()
            // ORDERING: Relaxed; as above.
            .filter(|(_, branch)| branch.count.load(Ordering::Relaxed) > 0)
            .filter_map(|(shard, branch)| Some((shard, *branch.id.get()?)))
    }
}

impl<R: Resident> Drop for Branches<R> {
    fn drop(&mut self) {
        for id in self.shards.iter().filter_map(|branch| branch.id.get()) {
            let id = *id;
            if id.route() == Route::Here {
                mesh::evict(id);
            } else {
                // A shard that is gone has none.
                drop(id.run_there(Box::new(move || mesh::evict(id))));
            }
        }
    }
}

impl<R: Resident> fmt::Debug for Branches<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Branches")
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

/// Sends to a branch if that needs no waiting. `build` runs only then; false if it did not, for want of room.
pub(super) fn try_send<R: Resident>(
    branch: ResidentId<R>,
    build: impl FnOnce() -> R::Message,
) -> bool {
    match branch.route() {
        Route::Here => {
            let message = build();
            deliver(branch, message);
            true
        }
        Route::Peer(_) => branch.try_send(Lane::Normal, build) != Err(Refusal::Full),
        Route::Outside => {
            let pass = match branch.enter_outside() {
                Ok(pass) => pass,
                Err(Refusal::Full) => return false,
                // A shard that is gone has no members.
                Err(Refusal::Gone) => return true,
            };
            let message = build();
            // It may have gone just now.
            drop(branch.run_there(Box::new(move || {
                deliver(branch, message);
                drop(pass);
            })));
            true
        }
    }
}

/// Sends to a branch when it is this sender's turn.
pub(super) fn poll_send<R: Resident>(
    branch: ResidentId<R>,
    admission: &mut Admission,
    cx: &Context<'_>,
    build: impl FnOnce() -> R::Message,
) -> Poll<()> {
    match branch.route() {
        // A branch that is gone has nobody to wait for.
        Route::Peer(_) => branch
            .poll_send(Lane::Normal, admission, cx, build)
            .map(drop),
        Route::Here => {
            mesh::leave(admission);
            deliver(branch, build());
            Poll::Ready(())
        }
        Route::Outside => {
            mesh::leave(admission);
            let message = build();
            drop(branch.run_there(Box::new(move || deliver(branch, message))));
            Poll::Ready(())
        }
    }
}

fn deliver<R: Resident>(branch: ResidentId<R>, message: R::Message) {
    let gone = branch.visit_with(message, |resident, message| {
        resident.deliver(message, Origin::Direct);
    });
    if let Err(message) = gone {
        R::undeliverable(message);
    }
}
