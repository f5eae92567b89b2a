//! One listener that serves all shards.
//!
//! Listeners that share a port leave it to a hash of the addresses which shard gets a connection, and the hash knows
//! nothing of load or of data. Here one shard accepts and hands each connection to the shard that a policy names. That
//! costs a hand-over for each connection, and buys an even spread.

use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_channel::mpsc;
use futures_core::Stream;

use super::migrate::{DetachedStream, Parcel, sealed::Attach};
use super::tcp_listener::TcpListener;
use super::tcp_stream::TcpStream;
use crate::time::sleep;
use crate::{Handle, ShardId, spawn};

/// Connections on their way to one shard at most. A shard that is that far behind gets no more until it has caught up.
const QUEUED_MAX: usize = 128;
/// How long the listener waits when every shard is that far behind.
const PAUSE: Duration = Duration::from_millis(1);

/// Which shard gets a connection.
enum Policy {
    RoundRobin,
    LeastConnections,
    By(Box<dyn Fn(SocketAddr) -> ShardId>),
}

/// Accepts from one listener and hands the connections to the shards of the runtime.
///
/// # Shard affinity
///
/// Accepts on the shard that runs it; a connection is served on the shard that it was handed to.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::net::{Distributor, TcpListener, TcpStream};
/// use greenroom_runtime::{Builder, current_shard, spawn};
///
/// let runtime = Builder::new().shards(2).start()?;
/// runtime.run_on(0, || async {
///     let listener = TcpListener::bind("127.0.0.1:0")?;
///     let address = listener.local_addr()?;
///     let server = Distributor::new(listener).least_connections();
///     spawn(server.run(|mut stream: TcpStream, _peer| async move {
///         let shard = current_shard().unwrap().index();
///         stream.write_all(format!("{shard}")).await.0.ok();
///     }))
///     .detach();
///     let mut seen = Vec::new();
///     for _ in 0..4 {
///         let mut client = TcpStream::connect(address).await?;
///         let (result, shard) = client.read_exact([0]).await;
///         result?;
///         seen.push((shard[0], client));
///     }
///     assert_eq!(seen.iter().filter(|(shard, _)| *shard == b'1').count(), 2);
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Distributor {
    listener: TcpListener,
    policy: Policy,
}

impl Distributor {
    /// Hands the connections of a listener to all shards in turn.
    #[must_use]
    pub fn new(listener: TcpListener) -> Distributor {
        Distributor {
            listener,
            policy: Policy::RoundRobin,
        }
    }

    /// Hands each connection to the shard that serves the fewest; to each in turn while they are equal.
    ///
    /// A connection counts from its hand-over until the future that serves it ends.
    #[must_use]
    pub fn least_connections(mut self) -> Distributor {
        self.policy = Policy::LeastConnections;
        self
    }

    /// Hands each connection to the shard that the closure names for its peer.
    ///
    /// If there is no such shard any more, or it is too far behind, the next one that can take it gets it.
    #[must_use]
    pub fn by_peer(mut self, choose: impl Fn(SocketAddr) -> ShardId + 'static) -> Distributor {
        self.policy = Policy::By(Box::new(choose));
        self
    }

    /// Accepts and hands over until no shard is left. Each connection is served by a task of its own on its shard.
    ///
    /// Errors of accepting (mostly that the process has too many open files) are waited out, as
    /// [`TcpListener::accept`] does between errors. At most 128 connections are on their way to one shard; while all
    /// shards are that far behind, connections wait in the backlog of the listener.
    ///
    /// # Panics
    ///
    /// If the calling thread is no shard.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the listener. What was handed over is served.
    pub async fn run<F, Fut>(self, serve: F)
    where
        F: Fn(TcpStream, SocketAddr) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let runtime = Handle::current().expect("connections live on shards: this thread is none");
        let (returns, mut returned) = mpsc::unbounded();
        let mut shards = Shards::new(&runtime);
        let serve = Arc::new(serve);
        let is_blocked = |shard| runtime.team().shared(shard).is_blocked();
        loop {
            let (stream, peer) = next(&self.listener, &mut returned, &mut shards).await;
            let place = loop {
                let able = match &self.policy {
                    Policy::RoundRobin => shards.in_turn(),
                    Policy::LeastConnections => shards.least_loaded(is_blocked),
                    Policy::By(choose) => shards.nearest(choose(peer)),
                };
                match able {
                    Some(place) => break place,
                    None if shards.are_all_gone() => return,
                    None => sleep(PAUSE).await,
                }
            };
            let parcel = Parcel {
                content: Some((stream, peer, shards.takes_one(place))),
                on_return: {
                    let returns = returns.clone();
                    move |(stream, peer, place): (DetachedStream<TcpStream>, SocketAddr, Place)| {
                        // Without a listener the connection is closed here.
                        returns.unbounded_send((stream, peer, place.shard)).ok();
                    }
                },
            };
            let serve = Arc::clone(&serve);
            let job = move || {
                let (stream, peer, mut place) = parcel.open();
                place.arrived();
                spawn(async move {
                    let _counted = place;
                    serve(TcpStream::attach(stream), peer).await;
                })
                .detach();
            };
            runtime.run(shards.id(place), Box::new(job));
        }
    }
}

impl fmt::Debug for Distributor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Distributor")
            .field("listener", &self.listener)
            .finish_non_exhaustive()
    }
}

type Returned = (DetachedStream<TcpStream>, SocketAddr, ShardId);

/// The next connection to hand over: one that came back, or a new one.
async fn next(
    listener: &TcpListener,
    returned: &mut mpsc::UnboundedReceiver<Returned>,
    shards: &mut Shards,
) -> (DetachedStream<TcpStream>, SocketAddr) {
    loop {
        let mut accept = pin!(listener.accept());
        let found = poll_fn(|cx| {
            if let Poll::Ready(Some(back)) = pin!(&mut *returned).poll_next(cx) {
                return Poll::Ready(Err(back));
            }
            accept.as_mut().poll(cx).map(Ok)
        });
        match found.await {
            Ok(Ok((stream, peer))) => {
                // Nothing was in flight on it yet: this lets go at once.
                if let Ok(detached) = stream.detach().await {
                    return (detached, peer);
                }
            }
            Ok(Err(_)) => {}
            Err((stream, peer, shard)) => {
                shards.is_gone(shard);
                return (stream, peer);
            }
        }
    }
}

/// The shards that take connections.
struct Shards {
    places: Vec<Shard>,
    /// Whose turn it is.
    turn: usize,
}

struct Shard {
    id: ShardId,
    load: Arc<Load>,
    is_gone: bool,
}

/// What one shard has in hand.
#[derive(Debug, Default)]
struct Load {
    /// Connections that it serves or that are on their way to it.
    open: AtomicUsize,
    /// Of these, those on their way.
    queued: AtomicUsize,
}

impl Shards {
    fn new(runtime: &Handle) -> Shards {
        let places = runtime.shards().map(|id| Shard {
            id,
            load: Arc::default(),
            is_gone: false,
        });
        Shards {
            places: places.collect(),
            turn: 0,
        }
    }

    fn id(&self, place: usize) -> ShardId {
        self.places[place].id
    }

    fn is_gone(&mut self, shard: ShardId) {
        self.places[shard.index()].is_gone = true;
    }

    fn are_all_gone(&self) -> bool {
        self.places.iter().all(|shard| shard.is_gone)
    }

    /// The places from `first` on, around the ring.
    fn from(&self, first: usize) -> impl Iterator<Item = usize> + use<> {
        let count = self.places.len();
        (0..count).map(move |step| (first + step) % count)
    }

    fn in_turn(&mut self) -> Option<usize> {
        let found = self
            .from(self.turn)
            .find(|&at| self.places[at].can_take())?;
        self.turn = found + 1;
        Some(found)
    }

    /// One that blocks would keep the connection waiting, however few it has: it comes last.
    fn least_loaded(&mut self, is_blocked: impl Fn(ShardId) -> bool) -> Option<usize> {
        let able = self
            .from(self.turn)
            .filter(|&at| self.places[at].can_take());
        let found = able.min_by_key(|&at| {
            let shard = &self.places[at];
            (is_blocked(shard.id), shard.load.open())
        })?;
        self.turn = found + 1;
        Some(found)
    }

    fn nearest(&self, wanted: ShardId) -> Option<usize> {
        self.from(wanted.index())
            .find(|&at| self.places[at].can_take())
    }

    fn takes_one(&self, at: usize) -> Place {
        let shard = &self.places[at];
        // ORDERING: Relaxed, as every access of a load: each is a hint that nothing else is read by. The modification
        // order of the one counter is all that keeps it from falling below zero, and this comes first in it, because the
        // hand-over carries the place to whoever takes it off again.
        shard.load.open.fetch_add(1, Ordering::Relaxed);
        // ORDERING: Relaxed; as above.
        shard.load.queued.fetch_add(1, Ordering::Relaxed);
        Place {
            shard: shard.id,
            load: Arc::clone(&shard.load),
            has_arrived: false,
        }
    }
}

impl Shard {
    fn can_take(&self) -> bool {
        // ORDERING: Relaxed; see `takes_one`. Only this thread adds, so the bound holds whatever else is seen late.
        !self.is_gone && self.load.queued.load(Ordering::Relaxed) < QUEUED_MAX
    }
}

impl Load {
    fn open(&self) -> usize {
        // ORDERING: Relaxed; see `takes_one`.
        self.open.load(Ordering::Relaxed)
    }
}

/// A connection in the count of its shard. Leaves it when dropped.
struct Place {
    shard: ShardId,
    load: Arc<Load>,
    has_arrived: bool,
}

impl Place {
    fn arrived(&mut self) {
        self.has_arrived = true;
        // ORDERING: Relaxed; see `takes_one`.
        self.load.queued.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.has_arrived {
            self.arrived();
        }
        // ORDERING: Relaxed; see `takes_one`.
        self.load.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards(count: u16) -> Shards {
        let places = (0..count).map(|id| Shard {
            id: id.into(),
            load: Arc::default(),
            is_gone: false,
        });
        Shards {
            places: places.collect(),
            turn: 0,
        }
    }

    #[test]
    fn turns_go_around_and_pass_over_who_is_gone_or_behind() {
        let mut shards = shards(3);
        shards.is_gone(1.into());
        let _behind: Vec<Place> = (0..QUEUED_MAX).map(|_| shards.takes_one(2)).collect();
        for _ in 0..3 {
            assert_eq!(shards.in_turn(), Some(0));
        }
        assert_eq!(shards.nearest(1.into()), Some(0));
        assert_eq!(shards.nearest(7.into()), Some(0));
        shards.is_gone(0.into());
        assert_eq!((shards.in_turn(), shards.are_all_gone()), (None, false));
        shards.is_gone(2.into());
        assert!(shards.are_all_gone());
    }

    #[test]
    fn the_least_loaded_gets_the_next_and_places_leave_the_count() {
        let mut shards = shards(2);
        let first = shards.takes_one(0);
        assert_eq!(shards.least_loaded(|_| false), Some(1));
        let mut second = shards.takes_one(1);
        second.arrived();
        drop(first);
        assert_eq!(shards.least_loaded(|_| false), Some(0));
        assert_eq!(
            (shards.places[0].load.open(), shards.places[1].load.open()),
            (0, 1)
        );
        drop(second);
        assert_eq!(shards.places[1].load.open(), 0);
    }

    #[test]
    fn a_shard_that_blocks_takes_a_connection_only_when_no_other_can() {
        let mut shards = shards(2);
        let _busy = [shards.takes_one(1), shards.takes_one(1)];
        assert_eq!(shards.least_loaded(|shard| shard == 0.into()), Some(1));
        shards.is_gone(1.into());
        assert_eq!(shards.least_loaded(|shard| shard == 0.into()), Some(0));
    }
}
