//! What can be done with an address about the life of its actor.

use futures_channel::oneshot;
use greenroom_runtime::mesh::Route;

use super::LifeState;
use super::control::{Control, erase};
use super::exit::{ActorId, Down, ExitReason};
use super::watch::{Gone, Watcher};
use crate::actor::Actor;
use crate::address::{Addr, Direct};
use crate::mailbox::{Mailbox, Parcel};

impl<A: Actor, P: Direct<Actor = A>> Addr<A, P> {
    /// Asks the actor to stop once it has handled what it was sent before, by this caller in particular.
    ///
    /// Does not wait; see [`Addr::stopped`]. Later sends are refused.
    ///
    /// # Shard affinity
    /// Any thread.
    pub fn stop(this: Self) {
        let id = this.id();
        // An actor whose shard is gone has stopped.
        if id.route() == Route::Outside {
            drop(id.run_there(Box::new(move || Mailbox::<A>::stop_outside(id))));
        } else {
            let _gone: Result<(), _> = id.post(Parcel::Stop);
        }
    }

    /// Stops the actor after the message it is handling; what waits goes back to its senders as errors.
    ///
    /// Does not wait. Its stopping hook runs, and its children stop; an actor that takes longer than its grace is killed.
    ///
    /// # Shard affinity
    /// Any thread.
    pub fn stop_now(this: Self) {
        erase(this.id()).post(Control::StopNow);
    }

    /// Ends the actor now: the call it is in is cancelled at its await point, and what waits in the mailbox goes back
    /// to its senders as errors.
    ///
    /// On the actor's own shard it takes effect before this returns, unless called from inside the actor.
    pub fn kill(this: Self) {
        // An actor whose shard is gone has ended.
        drop(this.id().post(Parcel::Kill));
    }

    /// Waits until the actor has ended; at once if it has already.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect on the actor.
    pub fn stopped(this: Self) -> impl Future<Output = ()> + Send {
        let down = Self::watch(this);
        async move {
            down.await;
        }
    }

    /// Waits until the actor has ended, and says why.
    ///
    /// It watches from this call on, not from the first poll. A restart is no end. Of an actor that had ended before, the reason is
    /// [`ExitReason::Unknown`]. Whoever hears of the end finds the state dropped, the name free and the mailbox empty.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect on the actor.
    ///
    /// # Examples
    /// ```
    /// use greenroom::prelude::*;
    ///
    /// struct Fuse;
    ///
    /// #[actor]
    /// impl Fuse {
    ///     pub fn blow(&mut self) { panic!("too much current") }
    /// }
    ///
    /// let system = System::start(1)?;
    /// system.block_on(async {
    ///     let fuse = system.spawn_on(0, || Fuse).await?;
    ///     let down = Addr::watch(fuse);
    ///     fuse.blow().tell().await?;
    ///     let down = down.await;
    ///     assert_eq!(down.reason.panic().map(|panic| panic.text()), Some("too much current"));
    ///     Ok::<(), greenroom::Error>(())
    /// })?;
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    pub fn watch(this: Self) -> impl Future<Output = Down> + Send {
        let gone = this.gone();
        let (watcher, down) = Watcher::future(gone);
        erase(this.id()).post(Control::Watch(watcher));
        async move {
            // A watcher always tells; one that could not was dropped with the memory it lay in.
            down.await
                .unwrap_or_else(|oneshot::Canceled| gone.down(ExitReason::Unknown))
        }
    }

    /// How far the life of the actor has come: [`LifeState::Stopped`] if it has ended.
    pub fn state(this: Self) -> impl Future<Output = LifeState> + Send {
        let (asked, state) = oneshot::channel();
        erase(this.id()).post(Control::State(asked));
        async move { state.await.unwrap_or(LifeState::Stopped) }
    }

    /// The identity of the actor, whatever its type.
    #[must_use]
    pub fn actor_id(this: Self) -> ActorId {
        ActorId::new(this.id().number())
    }

    pub(crate) fn gone(&self) -> Gone {
        let id = self.id();
        Gone {
            id: ActorId::new(id.number()),
            name: A::NAME,
            shard: id.place(),
        }
    }
}
