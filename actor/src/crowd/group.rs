//! Groups: actors of one type that are called together.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_channel::oneshot;
use greenroom_runtime::ShardId;
use greenroom_runtime::mesh::{self, Admission, Origin, Resident, ResidentId};

use super::branches::{Branches, poll_send, try_send};
use super::by_name::{ByName, CrowdError, Listed};
use crate::actor::Actor;
use crate::address::{Addr, Direct, Remote};
use crate::call::{Call, Method, ReplyMode, Tell};
use crate::context::Ctx;
use crate::life::contain;
use crate::mailbox::Mailbox;
use crate::observe::{DeadLetterReason, report_call};
use crate::system::Handle;

/// Actors of one type, from all shards: to be called together, or one by one.
///
/// An actor joins with [`Ctx::join`], and is a member until it leaves or ends. A call to all is one record to each shard with
/// members. It is a handle: cloning it is cheap, and it can be sent anywhere. The group is there as long as a handle or a
/// member is.
///
/// # Examples
/// ```
/// use greenroom::prelude::*;
/// use greenroom::Group;
///
/// #[derive(Default)]
/// struct Cache { version: u32 }
///
/// #[actor]
/// impl Cache {
///     #[on(started)]
///     fn started(&mut self, ctx: &mut Ctx<Self>) -> Result<(), greenroom::CrowdError> {
///         ctx.join(&ctx.system().group("caches")?);
///         Ok(())
///     }
///     pub fn renew(&mut self, version: u32) { self.version = version; }
///     pub fn version(&self) -> u32 { self.version }
/// }
///
/// let system = System::start(2)?;
/// system.block_on(async {
///     for shard in system.shards() {
///         system.spawn_on(shard, Cache::default).await?;
///     }
///     let caches: Group<Cache> = system.group("caches")?;
///     assert_eq!(caches.broadcast(|cache| cache.renew(7)).await, 2);
///     for cache in caches.members() {
///         assert_eq!(cache.version().await?, 7);
///     }
///     Ok::<(), greenroom::Error>(())
/// })?;
/// # Ok::<(), greenroom::Error>(())
/// ```
pub struct Group<A: Actor> {
    shared: Arc<GroupShared<A>>,
}

struct GroupShared<A: Actor> {
    branches: Branches<Porter>,
    /// By shard, in the order in which they came. Changed by their shard alone; behind a mutex, so that all can look.
    members: Box<[Mutex<Vec<Member<A>>>]>,
    /// Frees the name.
    _listed: Option<Listed<GroupKind>>,
}

enum GroupKind {}

struct Member<A: Actor> {
    id: ResidentId<Mailbox<A>>,
    /// Among the belongings of its mailbox.
    belonging: u64,
}

/// The branch of a group: does what is brought to it.
struct Porter;

impl Resident for Porter {
    type Message = Box<dyn FnOnce() + Send>;

    fn deliver(&self, job: Box<dyn FnOnce() + Send>, _: Origin) {
        contain(job);
    }

    fn undeliverable(job: Box<dyn FnOnce() + Send>) {
        contain(|| drop(job));
    }
}

impl<A: Actor> GroupShared<A> {
    fn new(system: &Handle, listed: Option<Listed<GroupKind>>) -> Self {
        Self {
            branches: Branches::new(system),
            members: system.shards().map(|_| Mutex::default()).collect(),
            _listed: listed,
        }
    }

    /// No foreign code runs under the lock.
    fn on_shard<R>(&self, shard: usize, look: impl FnOnce(&mut Vec<Member<A>>) -> R) -> R {
        look(
            &mut self.members[shard]
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    fn ids(&self, shard: usize) -> Vec<ResidentId<Mailbox<A>>> {
        self.on_shard(shard, |members| {
            members.iter().map(|member| member.id).collect()
        })
    }

    /// Joins for a mailbox of the calling shard; false if it is a member already, or has ended.
    fn join(self: &Arc<Self>, mailbox: &Mailbox<A>) -> bool {
        let Some(shard) = greenroom_runtime::current_shard().map(ShardId::index) else {
            return false;
        };
        let id = mailbox.id();
        self.branches.here(|| Porter);
        if self.on_shard(shard, |members| {
            members.iter().any(|member| member.id == id)
        }) {
            return false;
        }
        let membership = Membership {
            group: self.clone(),
            shard,
            id,
        };
        let Ok(belonging) = mailbox.own(Box::new(membership)) else {
            return false;
        };
        let count = self.on_shard(shard, |members| {
            members.push(Member { id, belonging });
            members.len()
        });
        self.branches.set_count_here(count);
        true
    }

    fn leave(&self, mailbox: &Mailbox<A>) -> bool {
        let Some(shard) = greenroom_runtime::current_shard().map(ShardId::index) else {
            return false;
        };
        let belonging = self.on_shard(shard, |members| {
            let mut found = members.iter().filter(|member| member.id == mailbox.id());
            found.next().map(|member| member.belonging)
        });
        let membership = belonging.and_then(|belonging| mailbox.disown(belonging));
        // Its drop takes the member out.
        membership.is_some()
    }
}

/// Among the belongings of a member.
struct Membership<A: Actor> {
    group: Arc<GroupShared<A>>,
    shard: usize,
    id: ResidentId<Mailbox<A>>,
}

impl<A: Actor> Drop for Membership<A> {
    fn drop(&mut self) {
        let count = self.group.on_shard(self.shard, |members| {
            members.retain(|member| member.id != self.id);
            members.len()
        });
        if self.group.branches.system.runtime().is_own_shard() {
            self.group.branches.set_count_here(count);
        }
    }
}

impl Handle {
    /// The group of a name, made if there is none.
    ///
    /// # Errors
    /// [`CrowdError`] if the group of this name has members of another type.
    pub fn group<A: Actor>(&self, name: &str) -> Result<Group<A>, CrowdError> {
        let groups = self.runtime().extension(ByName::<GroupKind>::default);
        let shared =
            groups.get_or_make::<A, _>(name, |listed| GroupShared::new(self, Some(listed)));
        shared.map(|shared| Group { shared })
    }
}

impl<A: Actor> Group<A> {
    /// A group without a name.
    #[must_use]
    pub fn new(system: &Handle) -> Self {
        Self {
            shared: Arc::new(GroupShared::new(system, None)),
        }
    }

    /// Makes an actor a member until it leaves or ends. The future is true if it was not, and has not ended.
    ///
    /// An actor joins by itself with [`Ctx::join`], at once.
    ///
    /// # Cancel safety
    /// Dropped before it is done, the actor may be a member or not.
    pub fn join<P: Direct<Actor = A>>(
        &self,
        member: Addr<A, P>,
    ) -> impl Future<Output = bool> + Send + use<A, P> {
        self.at_home(member.id(), |group, mailbox| group.join(mailbox))
    }

    /// Makes an actor no member. The future is true if it was one.
    ///
    /// # Cancel safety
    /// Dropped before it is done, the actor may be a member or not.
    pub fn leave<P: Direct<Actor = A>>(
        &self,
        member: Addr<A, P>,
    ) -> impl Future<Output = bool> + Send + use<A, P> {
        self.at_home(member.id(), |group, mailbox| group.leave(mailbox))
    }

    fn at_home(
        &self,
        id: ResidentId<Mailbox<A>>,
        act: fn(&Arc<GroupShared<A>>, &Mailbox<A>) -> bool,
    ) -> impl Future<Output = bool> + Send + use<A> {
        let shared = self.shared.clone();
        async move {
            let (answer, acted) = oneshot::channel();
            let job = move || {
                let acted = id.visit(|mailbox| act(&shared, mailbox));
                // Whoever asked may be gone.
                let _unheard: Result<(), bool> = answer.send(acted == Some(true));
            };
            drop(id.run_there(Box::new(job)));
            acted.await.unwrap_or(false)
        }
    }

    /// The members there are now, in the order of their shards, and then of their coming.
    #[must_use]
    pub fn members(&self) -> Vec<Addr<A>> {
        let shards = 0..self.shared.members.len();
        let ids = shards.flat_map(|shard| self.shared.ids(shard));
        ids.map(|id| Addr::from_port(Remote::new(id))).collect()
    }

    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> usize {
        let shards = 0..self.shared.members.len();
        shards
            .map(|shard| self.shared.on_shard(shard, |members| members.len()))
            .sum()
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells all members the same, and waits until their mailboxes have room.
    ///
    /// `call` makes the call to a member; it is called on the member's shard. The future resolves to the number of members
    /// that took the message. Members are those who are there when it arrives at their shard.
    ///
    /// Between two broadcasts of one sender, and a broadcast and other messages of its, the order is kept.
    ///
    /// # Cancel safety
    /// Dropped before it is done, some shards may have got it and others not.
    pub fn broadcast<F, M, B, Args>(&self, call: F) -> Broadcast
    where
        F: Fn(Addr<A>) -> Call<Remote<A>, M, Args, B> + Clone + Send + 'static,
        M: ReplyMode + 'static,
        B: Method<Remote<A>, M, Args> + 'static,
        Args: 'static,
    {
        let branches = self.shared.branches.inhabited();
        let jobs = branches.map(|(shard, porter)| {
            let (shared, call) = (self.shared.clone(), call.clone());
            let (answer, told) = oneshot::channel();
            let job: Box<dyn FnOnce() + Send> = Box::new(move || {
                tell_all(shared.ids(shard), &call, answer);
            });
            (porter, job, told)
        });
        Broadcast {
            unsent: jobs.collect(),
            admission: Admission::default(),
            waiting: Vec::new(),
            told: 0,
        }
    }

    /// Tells all members the same, and does not wait: a mailbox without room does not get it.
    ///
    /// Such messages are counted as dead letters. If there is no room on the way to a shard its members do not get it.
    /// Returns whether it is on its way to all shards with members.
    pub fn try_broadcast<F, M, B, Args>(&self, call: F) -> bool
    where
        F: Fn(Addr<A>) -> Call<Remote<A>, M, Args, B> + Clone + Send + 'static,
        M: ReplyMode + 'static,
        B: Method<Remote<A>, M, Args> + 'static,
        Args: 'static,
    {
        let mut all = true;
        for (shard, porter) in self.shared.branches.inhabited() {
            let (shared, call) = (self.shared.clone(), call.clone());
            all &= try_send(porter, move || {
                Box::new(move || {
                    for id in shared.ids(shard) {
                        if let Err(error) = call(Addr::from_port(Remote::new(id))).try_tell() {
                            let reason = if error.is_full() {
                                DeadLetterReason::Overflow
                            } else {
                                DeadLetterReason::Late
                            };
                            report_call::<A>(B::NAME, reason);
                        }
                    }
                })
            });
        }
        all
    }
}

/// Tells the members of this shard, and reports how many took it. Each stands in its line before this returns.
fn tell_all<A, F, M, B, Args>(
    members: Vec<ResidentId<Mailbox<A>>>,
    call: &F,
    answer: oneshot::Sender<usize>,
) where
    A: Actor,
    F: Fn(Addr<A>) -> Call<Remote<A>, M, Args, B>,
    M: ReplyMode + 'static,
    B: Method<Remote<A>, M, Args> + 'static,
    Args: 'static,
{
    let mut told = 0;
    let mut waiting: Vec<Tell<Remote<A>, M, Args, B>> = Vec::new();
    for id in members {
        let mut tell = call(Addr::from_port(Remote::new(id))).tell();
        match Pin::new(&mut tell).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => waiting.push(tell),
            Poll::Ready(sent) => told += usize::from(sent.is_ok()),
        }
    }
    if waiting.is_empty() {
        // The sender may have given up.
        let _unheard: Result<(), usize> = answer.send(told);
        return;
    }
    greenroom_runtime::spawn(async move {
        for tell in waiting {
            told += usize::from(tell.await.is_ok());
        }
        let _unheard: Result<(), usize> = answer.send(told);
    })
    .detach();
}

impl<A: Actor> Clone for Group<A> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<A: Actor> fmt::Debug for Group<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("actor", &A::NAME)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// The future of [`Group::broadcast`].
#[must_use = "a broadcast is sent when the future is awaited"]
pub struct Broadcast {
    /// In reverse order of being sent.
    unsent: Vec<(ResidentId<Porter>, Job, oneshot::Receiver<usize>)>,
    admission: Admission,
    waiting: Vec<oneshot::Receiver<usize>>,
    told: usize,
}

impl Unpin for Broadcast {}

impl Future for Broadcast {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        let this = &mut *self;
        while let Some((porter, job, told)) = this.unsent.pop() {
            let mut job = Some(job);
            let build = || job.take().expect("built once");
            if poll_send(porter, &mut this.admission, cx, build).is_pending() {
                let job = job.expect("not built");
                this.unsent.push((porter, job, told));
                return Poll::Pending;
            }
            this.waiting.push(told);
        }
        while let Some(waiting) = this.waiting.last_mut() {
            match Pin::new(waiting).poll(cx) {
                Poll::Pending => return Poll::Pending,
                // A shard that is gone has told nobody.
                Poll::Ready(told) => this.told += told.unwrap_or(0),
            }
            this.waiting.pop();
        }
        Poll::Ready(this.told)
    }
}

impl Drop for Broadcast {
    fn drop(&mut self) {
        mesh::leave(&mut self.admission);
    }
}

impl fmt::Debug for Broadcast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broadcast")
            .field("unsent", &self.unsent.len())
            .finish_non_exhaustive()
    }
}

impl<A: Actor> Ctx<A> {
    /// Makes this actor a member of a group until it leaves or ends; false if it is one already.
    pub fn join(&self, group: &Group<A>) -> bool {
        let joined = self
            .local()
            .id()
            .visit(|mailbox| group.shared.join(mailbox));
        joined == Some(true)
    }

    /// Makes this actor no member of a group; false if it is none.
    pub fn leave(&self, group: &Group<A>) -> bool {
        let left = self
            .local()
            .id()
            .visit(|mailbox| group.shared.leave(mailbox));
        left == Some(true)
    }
}
