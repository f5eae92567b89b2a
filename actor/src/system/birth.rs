//! How an actor comes into being on the calling shard.

use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_channel::oneshot;

use crate::actor::Actor;
use crate::address::{Addr, Remote};
use crate::error::{SpawnError, SpawnErrorKind};
use crate::fate;
use crate::life::{self, Newborn};
use crate::mailbox::Mailbox;

/// Makes an actor on the calling shard, and waits until its start hook has run. `adopt` sees its mailbox before anything
/// is sent to it; an actor that is refused there is killed before it has begun.
pub(crate) async fn bear<A: Actor>(
    make: impl FnOnce() -> A,
    adopt: impl FnOnce(&Mailbox<A>) -> Result<(), SpawnErrorKind>,
) -> Result<Newborn<A>, SpawnErrorKind> {
    let actor = catch_unwind(AssertUnwindSafe(make))
        .map_err(|payload| SpawnErrorKind::Panicked(fate::report(payload)))?;
    let (started, outcome) = oneshot::channel();
    let addr = life::start(actor, Some(started)).expect("this runs on a shard");
    let id = addr.id();
    let born = Newborn::new(id);
    if let Some(Err(refused)) = id.visit(adopt) {
        Addr::kill(addr);
        return Err(refused);
    }
    born.started(outcome).await
}

/// Starts an actor on the calling shard, and waits until its start hook has run.
///
/// # Errors
/// The future resolves to a [`SpawnError`] if the start hook panics or refuses.
///
/// # Panics
/// If the calling thread is no shard.
///
/// # Cancel safety
/// Dropping the future stops the actor, whose address nobody has then.
///
/// # Examples
/// ```
/// use greenroom::prelude::*;
///
/// struct Door { is_locked: bool }
///
/// #[actor]
/// impl Door {
///     #[on(started)]
///     fn open(&mut self) -> Result<(), &'static str> {
///         if self.is_locked { Err("it is locked") } else { Ok(()) }
///     }
/// }
///
/// let system = System::start(1)?;
/// let door = system.run_on(0, || async { greenroom::spawn_started(Door { is_locked: true }).await });
/// assert_eq!(door.unwrap_err().to_string(), "Door did not start on shard 0: it is locked");
/// # Ok::<(), greenroom::Error>(())
/// ```
pub async fn spawn_started<A: Actor>(actor: A) -> Result<Addr<A>, SpawnError> {
    let shard = greenroom_runtime::current_shard().unwrap_or_else(|| {
        panic!("`greenroom::spawn_started` was called on a thread that is no shard: use `System::spawn_on`")
    });
    let born = bear(|| actor, |_| Ok(()))
        .await
        .map_err(|kind| SpawnError {
            actor: A::NAME,
            shard,
            kind,
        })?;
    Ok(Addr::from_port(Remote::new(born.grown_up())))
}

/// Starts an actor on the calling shard. Its address is good at once: what is sent before the start hook has run waits.
///
/// # Panics
/// If the calling thread is no shard.
///
/// # Examples
/// ```
/// use greenroom::prelude::*;
///
/// struct Pong;
///
/// #[actor]
/// impl Pong {
///     pub fn ping(&self) -> &'static str { "pong" }
/// }
///
/// let system = System::start(1)?;
/// let answer = system.run_on(0, || async { greenroom::spawn(Pong).ping().await });
/// assert_eq!(answer?, "pong");
/// # Ok::<(), greenroom::Error>(())
/// ```
#[track_caller]
pub fn spawn<A: Actor>(actor: A) -> Addr<A> {
    let Some(addr) = life::start(actor, None) else {
        panic!("`greenroom::spawn` was called on a thread that is no shard: use `System::spawn_on`")
    };
    addr
}
