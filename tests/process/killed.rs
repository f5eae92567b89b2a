//! An actor that is killed in the middle of its I/O leaves no descriptor, and nothing hangs.

use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, mpsc};
use std::time::Duration;

use futures_util::future::join3;
use greenroom::prelude::*;
use greenroom::runtime::Backend;
use greenroom::runtime::fs::File;
use greenroom::runtime::net::{TcpListener, TcpStream};
use greenroom_tests::{PATIENCE, bounded, bounded_wait, hear, last_shard};

use crate::TURNS;

/// Owns descriptors of several kinds.
struct Owner {
    listener: TcpListener,
    file: Option<File>,
    stream: Option<TcpStream>,
}

#[actor]
impl Owner {
    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    pub(crate) async fn open(&mut self, path: PathBuf) {
        self.file = Some(File::open(path).await.unwrap());
    }

    pub(crate) async fn accept(&mut self) {
        let (stream, _) = self.listener.accept().await.unwrap();
        self.stream = Some(stream);
    }

    /// Reads what never comes, waits for a connection that nobody makes, and reads a file again and again.
    pub(crate) async fn read(&mut self, begun: mpsc::Sender<()>) {
        let stream = self.stream.as_mut().expect("accepted");
        let file = self.file.as_ref().expect("opened");
        let read = async {
            let (read, _) = stream.read(vec![0; 4096]).await;
            panic!("nobody writes: {read:?}");
        };
        let accept = async {
            let accepted = self.listener.accept().await;
            panic!("nobody connects: {accepted:?}");
        };
        let read_file = async {
            let mut buffer = vec![0; 4096];
            loop {
                let (read, back) = file.read_at(buffer, 0).await;
                assert_eq!(read.unwrap(), 4096);
                buffer = back;
                // All three were polled: those before this one wait.
                begun.send(()).ok();
            }
        };
        join3(read, accept, read_file).await;
    }
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn start(backend: Backend, shards: usize) -> System {
    let builder = System::builder().shards(shards).pin(false);
    // One that is asked to stop is killed, as what it waits for never comes.
    let builder = builder.stop_grace(Duration::from_millis(1));
    let builder = builder.runtime(|runtime| runtime.backend(backend));
    builder.start().unwrap()
}

/// An owner in the middle of its reads, and the other end of its connection.
fn owner(system: &System, path: &Path) -> (Addr<Owner>, std::net::TcpStream) {
    let spawned = system.spawn_on(last_shard(system), || Owner {
        listener: TcpListener::bind("127.0.0.1:0").unwrap(),
        file: None,
        stream: None,
    });
    let owner = system.block_on(spawned).unwrap();
    owner.open(path.to_path_buf()).blocking().unwrap();
    let peer = std::net::TcpStream::connect(owner.address().blocking().unwrap()).unwrap();
    owner.accept().blocking().unwrap();
    let (begun, has_begun) = mpsc::channel();
    owner.read(begun).tell().blocking().unwrap();
    for _ in 0..3 {
        hear(&has_begun);
    }
    (owner, peer)
}

/// The other end hears of the end.
fn until_closed(mut peer: std::net::TcpStream) {
    peer.set_read_timeout(Some(PATIENCE)).unwrap();
    match peer.read(&mut [0; 16]) {
        Ok(0) => {}
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
        other => panic!("the connection is there: {other:?}"),
    }
}

#[test]
fn an_actor_that_is_killed_while_it_reads_leaves_no_descriptor() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let path = std::env::temp_dir().join(format!("greenroom-killed-{}", std::process::id()));
    fs::write(&path, [7; 4096]).unwrap();
    for backend in [Backend::IoUring, Backend::Epoll] {
        for shards in [1, 2] {
            let path = path.clone();
            bounded("the kills", move || {
                let outside = descriptors();
                let system = start(backend, shards);
                let before = descriptors();
                for end in [Addr::kill as fn(_), Addr::stop] {
                    let owners: Vec<_> = (0..8).map(|_| owner(&system, &path)).collect();
                    // Listener, file, both ends of the connection.
                    assert!(descriptors() >= before + 8 * 4);
                    for (owner, _) in &owners {
                        end(*owner);
                    }
                    for (owner, peer) in owners {
                        system.block_on(Addr::stopped(owner));
                        until_closed(peer);
                    }
                    bounded_wait(|| descriptors() <= before);
                }
                // In the middle of it all.
                let (last, peer) = owner(&system, &path);
                let report = system.shutdown(Duration::from_millis(1));
                assert_eq!((report.killed().len(), report.leaked_operations()), (1, 0));
                assert_eq!(report.killed()[0].method(), Some("read"));
                until_closed(peer);
                assert!(last.address().blocking().unwrap_err().is_stopped());
                bounded_wait(|| descriptors() <= outside);
            });
        }
    }
    fs::remove_file(&path).unwrap();
}
