//! The server as a whole: how its shards come and go.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{ShardId, runtime};

use crate::clock::Clock;
use crate::front::Front;
use crate::shard::Store;

/// How long the stores may take to stop. They have nothing to do by then.
const GRACE: Duration = Duration::from_secs(1);

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    system: System,
    fronts: Sharded<Front>,
    address: SocketAddr,
}

impl Server {
    /// Starts a server that listens on all its shards, as many as there are CPUs if it is not said how many.
    ///
    /// # Errors
    /// The system did not start, or the address is not to be had.
    pub(crate) fn start(shards: Option<usize>, address: &str) -> Result<Self, greenroom::Error> {
        let refused = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot listen at {address}: {error}"))
        };
        let address = resolve(address).map_err(refused)?;
        let builder = System::builder();
        let system = match shards {
            Some(shards) => builder.shards(shards),
            None => builder,
        };
        let system = system.start()?;
        let clock = Clock::start();
        let (fronts, address) = system.block_on(async {
            let store = move |_| Store::new(runtime::random(), clock);
            let store = system.spawn_sharded(store).await?;
            let front = move |shard: ShardId| Front::new(store.clone(), shard);
            let fronts = system.spawn_sharded(front).await?;
            let mut address = address;
            // One after the other: if the first one takes a free port, the others share it.
            for front in fronts.each() {
                address = front.listen(address, system.backend()).await?;
            }
            Ok::<_, greenroom::Error>((fronts, address))
        })?;
        Ok(Server {
            system,
            fronts,
            address,
        })
    }

    /// Waits for something, such as a signal, while the shards serve.
    pub(crate) fn run_until(&self, end: impl Future) {
        self.system.block_on(end);
    }

    /// Stops the server when everything it has read is answered.
    pub(crate) fn stop(self) {
        // First the fronts: what they wait for is done by the stores.
        self.system.block_on(self.fronts.stop());
        self.system.shutdown(GRACE);
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shards = self.system.shard_count();
        let backend = self.system.backend();
        let address = self.address;
        write!(
            f,
            "listening at {address} with {shards} shards on {backend}"
        )
    }
}

/// Looks a name up, and makes sure that nobody listens there yet: listeners that share a port on purpose, as those of
/// the shards do, would share it with those of another server as well.
fn resolve(address: &str) -> io::Result<SocketAddr> {
    let nowhere = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let address = address.to_socket_addrs()?.next().ok_or_else(nowhere)?;
    if address.port() != 0 {
        TcpListener::bind(address)?;
    }
    Ok(address)
}
