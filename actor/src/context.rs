//! What a handler may do besides its work.

use std::fmt;
use std::marker::PhantomData;

use greenroom_runtime::ShardId;
use greenroom_runtime::mesh::ResidentId;

use crate::actor::Actor;
use crate::address::{Addr, Here, Local, Remote};
use crate::mailbox::Mailbox;
use crate::system::Handle;

/// The context of an actor, for any handler that takes a `&mut Ctx<Self>`.
///
/// # Examples
/// ```
/// use greenroom::prelude::*;
///
/// struct Once;
///
/// #[actor]
/// impl Once {
///     pub fn last(&mut self, ctx: &mut Ctx<Self>) -> &'static str {
///         ctx.stop();
///         "goodbye"
///     }
/// }
///
/// let system = System::start(1)?;
/// system.block_on(async {
///     let once = system.spawn_on(0, || Once).await?;
///     assert_eq!(once.last().await?, "goodbye");
///     Addr::stopped(once).await;
///     assert!(once.last().await.unwrap_err().is_stopped());
///     Ok::<(), greenroom::Error>(())
/// })?;
/// # Ok::<(), greenroom::Error>(())
/// ```
pub struct Ctx<A: Actor> {
    id: ResidentId<Mailbox<A>>,
    /// Keeps it on the actor's shard.
    stays: PhantomData<*const ()>,
}

impl<A: Actor> Ctx<A> {
    pub(crate) fn new(id: ResidentId<Mailbox<A>>) -> Self {
        Self {
            id,
            stays: PhantomData,
        }
    }

    pub(crate) fn mailbox_id(&self) -> ResidentId<Mailbox<A>> {
        self.id
    }

    /// The actor's own address.
    #[must_use]
    pub fn addr(&self) -> Addr<A> {
        Addr::from_port(Remote::new(self.id))
    }

    /// The actor's own handle for its shard, which takes local messages too.
    #[must_use]
    pub fn local(&self) -> Local<A> {
        Addr::from_port(Here::new(self.id))
    }

    /// The shard the actor lives on.
    #[must_use]
    pub fn shard(&self) -> ShardId {
        greenroom_runtime::current_shard().expect("an actor runs on its shard")
    }

    /// The system the actor belongs to.
    #[must_use]
    pub fn system(&self) -> Handle {
        Handle::current().expect("an actor runs on a shard of its system")
    }

    pub(crate) fn resident(&self) -> ResidentId<Mailbox<A>> {
        self.id
    }
}

impl<A: Actor> fmt::Debug for Ctx<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ctx")
            .field("actor", &A::NAME)
            .finish_non_exhaustive()
    }
}
