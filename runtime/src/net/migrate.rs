//! Moving a connection to another shard.
//!
//! A stream is made of things that stay on its shard: operations in the ring, buffers of the pool, tasks that wait. To
//! move, it lets go of all of them. What remains is the descriptor and what was received and not asked for yet, and that
//! is what crosses.
//!
//! ```text
//!  TcpStream ── detach ──► DetachedStream ── attach ──► TcpStream
//!   shard 0     every         any thread                 shard 1
//!               operation
//!               has ended
//! ```
//!
//! Between the two the connection belongs to whoever holds the value; dropped there, it is closed like any other. A
//! hand-over to a shard that is gone gives it back, from whatever queue it had got into.

use std::error::Error;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use futures_channel::oneshot;

use super::receiver::Receiver;
use crate::ring::ops::recv::StreamSocket;
use crate::ring::received::{Leftover, Received};
use crate::ring::socket::Socket;
use crate::{Handle, ShardId, spawn};

/// A connection that belongs to no shard, on its way to one. Dropping it closes the connection.
///
/// Bytes that were received and not asked for travel along: the stream it becomes reads them first.
///
/// # Examples
///
/// ```
/// use std::io::Read;
/// use greenroom_runtime::Builder;
/// use greenroom_runtime::net::TcpStream;
///
/// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
/// let address = listener.local_addr()?;
/// let runtime = Builder::new().shards(2).start()?;
/// let detached = runtime.run_on(0, move || async move {
///     TcpStream::connect(address).await.unwrap().detach().await
/// })?;
/// runtime.run_on(1, || async { detached.attach().write_all("from shard 1").await.0 })?;
/// let mut text = String::new();
/// listener.accept()?.0.read_to_string(&mut text)?;
/// assert_eq!(text, "from shard 1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping it closes the connection"]
pub struct DetachedStream<S> {
    fd: OwnedFd,
    leftover: Leftover,
    whole: PhantomData<fn() -> S>,
}

/// A stream that can be moved between shards. Implemented by the streams of this module and by nothing else.
pub trait Migrate: sealed::Attach + Sized + 'static {}

impl<S: sealed::Attach + 'static> Migrate for S {}

pub(super) mod sealed {
    use super::DetachedStream;

    /// Can be made of what crosses, and turned into it.
    #[expect(
        unnameable_types,
        reason = "sealed: only the streams of this module can let go of their shard"
    )]
    pub trait Attach: Sized {
        fn attach(detached: DetachedStream<Self>) -> Self;

        fn detach(self) -> impl Future<Output = std::io::Result<DetachedStream<Self>>>;
    }
}

/// Waits until nothing is in flight on a stream, and takes it apart.
pub(super) async fn detach<S>(
    mut receiver: Receiver,
    socket: Rc<StreamSocket>,
) -> io::Result<DetachedStream<S>> {
    receiver.disarm();
    // The handle is here, so nobody waits for what still runs; each lane is free when the last of its direction has ended.
    let lanes = (socket.take_inbound().await, socket.take_outbound().await);
    drop(lanes);
    let leftover = socket.with_kept(Received::take_leftover);
    let fd = Socket::into_fd(socket).map_err(|_| io::Error::other("the socket is still in use"))?;
    Ok(DetachedStream {
        fd,
        leftover,
        whole: PhantomData,
    })
}

/// Makes a socket of the current shard.
pub(super) fn attach<S>(detached: DetachedStream<S>) -> Rc<StreamSocket> {
    let socket = Socket::new(detached.fd);
    socket.with_kept(|received| *received = Received::from_leftover(detached.leftover));
    socket
}

impl<S: Migrate> DetachedStream<S> {
    /// Makes it a stream of the shard that calls.
    pub fn attach(self) -> S {
        S::attach(self)
    }

    /// Hands it to a task on a shard. Resolves when it has arrived there.
    ///
    /// The closure crosses with it; the future it makes need not be `Send`. That future runs as a task of its own.
    ///
    /// # Errors
    ///
    /// Gives it back if the shard is gone, was never there, or shuts down before it takes it.
    ///
    /// # Cancel safety
    ///
    /// It goes on its way when this is called first. If nobody waits for it any more and the shard is gone, it is closed.
    pub async fn hand_over<F, Fut>(
        self,
        runtime: &Handle,
        shard: impl Into<ShardId>,
        serve: F,
    ) -> Result<(), ShardGone<S>>
    where
        F: FnOnce(S) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let shard = shard.into();
        let (receipt, arrived) = oneshot::channel();
        let parcel = Parcel {
            content: Some((self, receipt)),
            on_return: |(stream, receipt): (DetachedStream<S>, Receipt<S>)| {
                // If nobody waits for it, it is closed here.
                drop(receipt.send(Err(stream)));
            },
        };
        let job = move || {
            let (stream, receipt) = parcel.open();
            drop(receipt.send(Ok(())));
            spawn(async move { serve(stream.attach()).await }).detach();
        };
        // A shard that is gone drops the job, and with it the parcel, which returns.
        runtime.run(shard, Box::new(job));
        match arrived.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(stream)) => Err(ShardGone { shard, stream }),
            Err(oneshot::Canceled) => unreachable!("a parcel is opened or returned"),
        }
    }
}

type Receipt<S> = oneshot::Sender<Result<(), DetachedStream<S>>>;

/// Something that is opened by who receives it, or else returns to its sender, wherever it is dropped.
pub(super) struct Parcel<T, F: FnMut(T)> {
    /// `None` once it was opened.
    pub(super) content: Option<T>,
    pub(super) on_return: F,
}

impl<T, F: FnMut(T)> Parcel<T, F> {
    pub(super) fn open(mut self) -> T {
        self.content.take().expect("opened once")
    }
}

impl<T, F: FnMut(T)> Drop for Parcel<T, F> {
    fn drop(&mut self) {
        if let Some(content) = self.content.take() {
            (self.on_return)(content);
        }
    }
}

/// Moves a connection to another shard, where a task goes on with it.
///
/// Everything that was in flight on it is cancelled and awaited here; no byte is lost or received twice. Bytes that were
/// received and not asked for are read first there. To move it by other ways, [`detach`](super::TcpStream::detach) it.
///
/// # Errors
///
/// [`MigrateError::ShardGone`] gives the connection back if the shard is gone, was never there, or shuts down before it
/// takes it.
///
/// # Panics
///
/// If the calling thread is no shard.
///
/// # Cancel safety
///
/// Not safe for the connection: a dropped migration closes it, unless it is on its way already.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::net::{TcpListener, TcpStream, migrate};
/// use greenroom_runtime::{Builder, spawn};
///
/// let runtime = Builder::new().shards(2).start()?;
/// runtime.run_on(0, || async {
///     let listener = TcpListener::bind("127.0.0.1:0")?;
///     let client = spawn(TcpStream::connect(listener.local_addr()?));
///     let (stream, _) = listener.accept().await?;
///     migrate(stream, 1, |mut stream| async move {
///         stream.write_all("served by shard 1").await.0.unwrap();
///     })
///     .await
///     .unwrap();
///     let (result, _) = client.await.unwrap()?.read_exact([0; 17]).await;
///     result
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn migrate<S, F, Fut>(
    stream: S,
    shard: impl Into<ShardId>,
    serve: F,
) -> Result<(), MigrateError<S>>
where
    S: Migrate,
    F: FnOnce(S) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    let runtime = Handle::current().expect("connections live on shards: this thread is none");
    let detached = stream.detach().await.map_err(MigrateError::Io)?;
    let arrived = detached.hand_over(&runtime, shard, serve).await;
    arrived.map_err(MigrateError::ShardGone)
}

/// A connection could not be handed over: the shard is gone, or never was. The connection is in here.
pub struct ShardGone<S> {
    shard: ShardId,
    stream: DetachedStream<S>,
}

impl<S> ShardGone<S> {
    /// The shard that did not take it.
    #[must_use]
    pub fn shard(&self) -> ShardId {
        self.shard
    }

    /// The connection.
    pub fn into_stream(self) -> DetachedStream<S> {
        self.stream
    }
}

impl<S> fmt::Debug for ShardGone<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardGone")
            .field("shard", &self.shard)
            .finish_non_exhaustive()
    }
}

impl<S> fmt::Display for ShardGone<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} took no connection: it has ended, or does not exist",
            self.shard
        )
    }
}

impl<S> Error for ShardGone<S> {}

/// Why a connection did not move.
#[non_exhaustive]
pub enum MigrateError<S> {
    /// The shard did not take it. The connection is in here.
    ShardGone(ShardGone<S>),
    /// It could not let go of its own shard, and is closed.
    Io(io::Error),
}

// By hand, as a derive would ask for streams that are `Debug`.
impl<S> fmt::Debug for MigrateError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MigrateError::ShardGone(gone) => f.debug_tuple("ShardGone").field(gone).finish(),
            MigrateError::Io(error) => f.debug_tuple("Io").field(error).finish(),
        }
    }
}

impl<S> fmt::Display for MigrateError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MigrateError::ShardGone(gone) => gone.fmt(f),
            MigrateError::Io(_) => f.write_str("the connection could not leave its shard"),
        }
    }
}

impl<S> Error for MigrateError<S> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            MigrateError::ShardGone(_) => None,
            MigrateError::Io(error) => Some(error),
        }
    }
}

impl<S> AsFd for DetachedStream<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl<S> fmt::Debug for DetachedStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DetachedStream")
            .field("fd", &self.fd)
            .field("leftover", &self.leftover)
            .finish()
    }
}
