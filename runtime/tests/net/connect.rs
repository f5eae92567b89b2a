//! Connecting to hosts, through the public API.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener as StdListener, TcpStream as StdStream};
use std::pin::pin;
use std::time::Duration;

use greenroom_runtime::net::{
    ConnectError, Connector, LookupError, TcpListener, TcpStream, lookup_host,
};
use greenroom_runtime::{Builder, spawn};
use socket2::{Domain, Socket, Type};

use crate::support::{on_shard, start, turns};

/// Listens at an address where no connection is taken any more: whoever connects gets no answer.
struct Silent {
    address: SocketAddr,
    _listener: Socket,
    _queued: Vec<StdStream>,
}

impl Silent {
    fn new() -> io::Result<Silent> {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())?;
        listener.listen(0)?;
        let address = listener.local_addr()?.as_socket().unwrap();
        let mut queued = Vec::new();
        // A queue of zero has room for one; the kernel may round that up.
        while let Ok(stream) = StdStream::connect_timeout(&address, Duration::from_millis(50)) {
            queued.push(stream);
            assert!(queued.len() < 100, "the queue never fills");
        }
        Ok(Silent {
            address,
            _listener: listener,
            _queued: queued,
        })
    }
}

/// An address that nobody listens at.
fn vacant() -> io::Result<SocketAddr> {
    StdListener::bind("127.0.0.1:0")?.local_addr()
}

fn connect_error(error: &io::Error) -> &ConnectError {
    error.get_ref().unwrap().downcast_ref().unwrap()
}

#[test]
fn a_name_is_looked_up_and_connected_to() {
    on_shard(|| async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        for host in [format!("localhost:{port}"), format!("127.0.0.1:{port}")] {
            let client = spawn(TcpStream::connect(host));
            let (_, peer) = listener.accept().await?;
            assert_eq!(client.await.unwrap()?.local_addr()?, peer);
        }
        let found = lookup_host(("localhost", port)).await?;
        assert!(found.contains(&listener.local_addr()?));
        Ok(())
    });
}

#[test]
fn literal_addresses_never_see_the_pool() {
    let runtime = Builder::new().shards(1).start().unwrap();
    runtime.run_on(0, || async {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(lookup_host(address.to_string()).await.unwrap(), [address]);
        TcpStream::connect((address.ip().to_string(), address.port()))
            .await
            .unwrap();
        TcpStream::connect(vec![address, address]).await.unwrap();
    });
    assert_eq!(runtime.handle().blocking_counts().threads, 0);
}

#[test]
fn a_name_that_is_not_found_is_named() {
    on_shard(|| async {
        // No label of a name may be that long, so no server is asked.
        let name = "x".repeat(64);
        for error in [
            lookup_host((name.as_str(), 80)).await.unwrap_err(),
            TcpStream::connect((name.as_str(), 80)).await.unwrap_err(),
        ] {
            let found: &LookupError = error.get_ref().unwrap().downcast_ref().unwrap();
            assert_eq!(found.host(), name);
            assert!(error.to_string().contains(&name), "{error}");
        }
        let error = TcpStream::connect("no port").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        Ok(())
    });
}

#[test]
fn an_address_that_refuses_is_followed_by_the_next() {
    on_shard(|| async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let connector = Connector::new().stagger(Duration::from_secs(3600));
        let stream = connector.connect(vec![vacant()?, address]).await?;
        assert_eq!(stream.peer_addr()?, address);
        Ok(())
    });
}

#[test]
fn a_silent_address_is_overtaken_and_its_socket_closed() {
    on_shard(|| async {
        let silent = Silent::new()?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let connector = Connector::new().stagger(Duration::from_millis(1));
        let stream = connector.connect(vec![silent.address, address]).await?;
        assert_eq!(stream.peer_addr()?, address);
        Ok(())
    });
}

#[test]
fn every_attempt_is_told_when_none_succeeds() {
    on_shard(|| async {
        let addresses = vec![vacant()?, vacant()?];
        let error = TcpStream::connect(addresses.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let attempts = connect_error(&error).attempts();
        assert_eq!([attempts[0].0, attempts[1].0], [addresses[0], addresses[1]]);
        let text = error.to_string();
        assert!(
            text.contains("`2 addresses`") && text.contains(&addresses[1].to_string()),
            "{text}"
        );

        let error = TcpStream::connect(Vec::<SocketAddr>::new())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        Ok(())
    });
}

#[test]
fn a_limit_ends_a_connect_and_names_the_host() {
    on_shard(|| async {
        let silent = Silent::new()?;
        let limit = Duration::from_millis(20);
        let error = TcpStream::connect_timeout(silent.address, limit)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert_eq!(connect_error(&error).host(), silent.address.to_string());
        assert!(error.to_string().contains("within 20 ms"), "{error}");
        Ok(())
    });
}

#[test]
fn a_connect_leaves_from_the_address_it_was_bound_to() {
    on_shard(|| async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let local: SocketAddr = "127.0.0.3:0".parse().unwrap();
        let connector = Connector::new().bind(local)?;
        let stream = connector.connect(listener.local_addr()?).await?;
        assert_eq!(stream.local_addr()?.ip(), local.ip());

        let v6: SocketAddr = "[::1]:1".parse().unwrap();
        let error = connector.connect(v6).await.unwrap_err();
        assert!(
            error.to_string().contains("no address of the family"),
            "{error}"
        );
        let foreign = Connector::new().bind("192.0.2.1:0")?;
        let error = foreign.connect(listener.local_addr()?).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
        assert!(Connector::new().bind("localhost:0").is_err());
        Ok(())
    });
}

#[test]
fn a_dropped_connect_closes_its_socket() {
    on_shard(|| async {
        let silent = Silent::new()?;
        let local = vacant()?;
        let connector = Connector::new().bind(local)?;
        {
            let mut connect = pin!(connector.connect(silent.address));
            start(connect.as_mut()).await;
            turns().await;
            assert_eq!(
                StdListener::bind(local).unwrap_err().kind(),
                ErrorKind::AddrInUse
            );
        }
        turns().await;
        StdListener::bind(local).map(drop)
    });
}
