//! Letting clients in, on every shard.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::runtime::net::TcpListener;
use greenroom::runtime::time;

use crate::room::Room;
use crate::session::Session;

/// How long no connection is accepted after one could not be, say for want of descriptors.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Listens on all shards, at one address that they share; returns it.
pub(crate) async fn listen(
    system: &System,
    address: &str,
    rooms: &Keyed<String, Room>,
) -> Result<SocketAddr, greenroom::Error> {
    let nowhere = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let mut address = address.to_socket_addrs()?.next().ok_or_else(nowhere)?;
    for shard in system.shards() {
        let rooms = rooms.clone();
        // The first one takes a port, the others join it there.
        let listening = system.runtime().spawn_on(shard, move || async move {
            let listener = TcpListener::bind_reuse_port(address)?;
            let address = listener.local_addr()?;
            greenroom::runtime::spawn(accept_all(listener, rooms)).detach();
            Ok::<_, io::Error>(address)
        });
        address = listening.await??;
    }
    Ok(address)
}

async fn accept_all(listener: TcpListener, rooms: Keyed<String, Room>) {
    let runtime = greenroom::runtime::Handle::current().expect("on a shard");
    let mut clients = 0_u64;
    while !runtime.is_shutting_down() {
        match listener.accept().await {
            Ok((stream, _)) => {
                clients += 1;
                let shard = greenroom::runtime::current_shard().map_or(0, |shard| shard.index());
                let nick = format!("guest{clients}.{shard}");
                greenroom::spawn(Session::new(stream, nick, rooms.clone()));
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) => time::sleep(RETRY_AFTER).await,
        }
    }
}
