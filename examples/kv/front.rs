//! The actor that lets clients in on one shard.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use greenroom::ShardId;
use greenroom::prelude::*;
use greenroom::runtime::net::{TcpListener, TcpStream};
use greenroom::runtime::{spawn, time};

use crate::client::Client;
use crate::connection::Connection;
use crate::gate::{Gate, Pass};
use crate::routing::{Routing, ShardIndex};
use crate::session::{Facts, Session};
use crate::shard::Store;

/// How long a client may take to hear its last answers after the gate was closed.
const GRACE: Duration = Duration::from_secs(5);

/// How long no connection is accepted after one could not be, say for want of descriptors.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Listens on one shard, and knows the connections there.
#[derive(Debug)]
pub(crate) struct Front {
    store: Sharded<Store>,
    shard: ShardIndex,
    gate: Gate,
}

impl Front {
    pub(crate) fn new(store: Sharded<Store>, shard: ShardId) -> Self {
        Front {
            store,
            shard: u16::try_from(shard.index()).expect("a system has at most 1024 shards"),
            gate: Gate::default(),
        }
    }
}

#[actor]
impl Front {
    /// Begins to accept connections, at an address that the fronts of all shards share.
    ///
    /// # Errors
    /// The address is not to be had.
    pub(crate) fn listen(
        &mut self,
        address: SocketAddr,
        backend: &'static str,
    ) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind_reuse_port(address)?;
        let address = listener.local_addr()?;
        let shards = self.store.shard_count();
        let host = Host {
            store: self.store.clone(),
            shard: self.shard,
            routing: Routing::new(u16::try_from(shards).expect("a system has at most 1024 shards")),
            facts: Arc::new(Facts {
                shards,
                backend,
                port: address.port(),
            }),
            clients: 0,
        };
        spawn(host.accept_all(listener, self.gate.enter())).detach();
        Ok(address)
    }

    /// Accepts and reads no more, and waits until what was read is answered, unless that takes too long.
    #[on(stopping)]
    async fn close(&mut self) {
        // Whoever has not heard its answers by now is cut off with the shard.
        let _ = time::timeout(GRACE, self.gate.close()).await;
    }
}

/// What it takes to make a connection of a stream.
#[derive(Debug)]
struct Host {
    store: Sharded<Store>,
    shard: ShardIndex,
    routing: Routing,
    facts: Arc<Facts>,
    /// How many clients there were so far.
    clients: i64,
}

impl Host {
    async fn accept_all(mut self, listener: TcpListener, pass: Pass) {
        while let Some(accepted) = pass.unless_closed(listener.accept()).await {
            match accepted {
                Ok((stream, _)) => self.receive(stream, pass.gate()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    pass.unless_closed(time::sleep(RETRY_AFTER)).await;
                }
            }
        }
    }

    fn receive(&mut self, stream: TcpStream, gate: &Gate) {
        // Only makes answers slower where it fails.
        let _ = stream.set_nodelay(true);
        let session = Session::new(self.next_id(), Arc::clone(&self.facts));
        let client = Client::new(session, self.routing.clone());
        let Some(connection) = Connection::new(stream, self.store.clone(), self.shard) else {
            return;
        };
        let pass = gate.enter();
        // How a connection ended concerns nobody but its client.
        spawn(async move { connection.serve(client, &pass).await }).detach();
    }

    /// A number that no other client of any shard has.
    fn next_id(&mut self) -> i64 {
        let shards = i64::from(self.routing.shards());
        self.clients += 1;
        (self.clients - 1) * shards + i64::from(self.shard) + 1
    }
}
