//! Accepting when the process is out of descriptors. Alone in its process: the limit is everybody's.
#![expect(unsafe_code, reason = "lowers the limit on open files")]

use std::fs::File;
use std::io;
use std::net::TcpStream as StdStream;

use greenroom_runtime::net::TcpListener;
use greenroom_runtime::{Builder, ShardCounts};

/// Lowers the limit on open files to what is open now, and some.
fn limit_descriptors(spare: u64) {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().count();
    let limit = libc::rlimit {
        rlim_cur: u64::try_from(open).unwrap() + spare,
        rlim_max: libc::RLIM_INFINITY,
    };
    let mut before = limit;
    // SAFETY: valid for writes.
    let got = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut before) };
    let limit = libc::rlimit {
        rlim_max: before.rlim_max,
        ..limit
    };
    // SAFETY: valid for reads.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    assert_eq!((got, set), (0, 0));
}

fn enters() -> u64 {
    ShardCounts::current().unwrap().enters
}

#[test]
fn a_shortage_of_descriptors_is_told_without_spinning_and_passes() {
    let runtime = Builder::new().shards(1).start().unwrap();
    runtime.run_on(0, || async {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = StdStream::connect(listener.local_addr().unwrap()).unwrap();
        limit_descriptors(8);
        let mut hoard = Vec::new();
        while let Ok(file) = File::open("/dev/null") {
            hoard.push(file);
        }
        for _ in 0..4 {
            let before = enters();
            let error = listener.accept().await.unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
            assert_ne!(error.kind(), io::ErrorKind::WouldBlock);
            // One to ask again, and one for the timer, give or take.
            assert!(enters() - before < 20, "{} visits", enters() - before);
        }
        hoard.clear();
        let (_stream, peer) = listener.accept().await.unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
    });
}
