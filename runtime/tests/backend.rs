//! Which backend a runtime runs on, and what it says about that.
//!
//! What depends on the environment or on a refusal of the kernel is tried in a process of its own.

#[path = "support/alone.rs"]
mod alone;
#[path = "support/limits.rs"]
mod limits;
#[path = "support/refusals.rs"]
mod refusals;

use std::io::{Read, Write};

use alone::alone;
use greenroom_runtime::net::TcpListener;
use greenroom_runtime::{Backend, Builder, Runtime, StartError};
use refusals::refuse;

fn start(backend: Backend) -> Result<Runtime, StartError> {
    Builder::new().shards(2).pin(false).backend(backend).start()
}

/// Has each shard accept a connection and echo over it.
fn check_works(runtime: &Runtime) {
    for shard in 0..2 {
        let address = runtime.run_on(shard, || async {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            greenroom_runtime::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (received, bytes) = stream.read(vec![0; 64]).await;
                assert_eq!(received.unwrap(), 5);
                let (sent, _) = stream.write_all(bytes).await;
                sent.unwrap();
            })
            .detach();
            address
        });
        let mut client = std::net::TcpStream::connect(address).unwrap();
        client.write_all(b"hello").unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"hello");
    }
}

#[test]
fn each_backend_can_be_asked_for() {
    for (backend, name) in [(Backend::IoUring, "io_uring"), (Backend::Epoll, "epoll")] {
        let runtime = start(backend).unwrap();
        assert_eq!(runtime.backend(), name);
        assert!(runtime.backend_reason().is_none());
        check_works(&runtime);
        assert_eq!(runtime.shutdown().leaked_operations(), 0);
    }
}

#[test]
fn io_uring_is_chosen_where_it_works() {
    alone("io_uring_is_chosen_where_it_works", None, || {
        let runtime = start(Backend::Auto).unwrap();
        assert_eq!(runtime.backend(), "io_uring");
        assert!(runtime.backend_reason().is_none());
    });
}

#[test]
fn the_environment_decides_what_the_program_left_open() {
    alone(
        "the_environment_decides_what_the_program_left_open",
        Some("epoll"),
        || {
            assert_eq!(start(Backend::Auto).unwrap().backend(), "epoll");
            assert_eq!(start(Backend::IoUring).unwrap().backend(), "io_uring");
        },
    );
}

#[test]
fn an_unknown_name_in_the_environment_stops_the_start() {
    alone(
        "an_unknown_name_in_the_environment_stops_the_start",
        Some("iouring"),
        || {
            let error = start(Backend::Auto).unwrap_err();
            assert!(error.is_config() && !error.is_backend());
            let text = error.to_string();
            assert!(text.contains("GREENROOM_BACKEND is \"iouring\""), "{text}");
            assert!(
                text.contains("\"io_uring\", \"epoll\" or \"auto\""),
                "{text}"
            );
            assert!(start(Backend::Epoll).is_ok());
        },
    );
}

#[test]
fn where_io_uring_is_forbidden_epoll_is_chosen_and_the_reason_kept() {
    alone(
        "where_io_uring_is_forbidden_epoll_is_chosen_and_the_reason_kept",
        None,
        || {
            refuse(libc::SYS_io_uring_setup, libc::EPERM);
            let runtime = start(Backend::Auto).unwrap();
            assert_eq!(runtime.backend(), "epoll");
            let reason = runtime.backend_reason().unwrap();
            assert!(reason.is_permission_denied());
            assert!(reason.to_string().contains("seccomp profile"), "{reason}");
            check_works(&runtime);
            assert_eq!(runtime.shutdown().leaked_operations(), 0);
        },
    );
}

#[test]
fn where_there_is_no_io_uring_epoll_is_chosen() {
    alone("where_there_is_no_io_uring_epoll_is_chosen", None, || {
        refuse(libc::SYS_io_uring_setup, libc::ENOSYS);
        let runtime = start(Backend::Auto).unwrap();
        assert_eq!(runtime.backend(), "epoll");
        assert!(runtime.backend_reason().unwrap().is_unsupported());
        check_works(&runtime);
    });
}

#[test]
fn a_ring_that_does_not_run_is_no_ring() {
    alone("a_ring_that_does_not_run_is_no_ring", None, || {
        refuse(libc::SYS_io_uring_enter, libc::EPERM);
        let runtime = start(Backend::Auto).unwrap();
        assert_eq!(runtime.backend(), "epoll");
        check_works(&runtime);
    });
}

#[test]
fn who_insists_on_io_uring_is_told_why_not_and_what_to_change() {
    alone(
        "who_insists_on_io_uring_is_told_why_not_and_what_to_change",
        None,
        || {
            refuse(libc::SYS_io_uring_setup, libc::EPERM);
            let error = start(Backend::IoUring).unwrap_err();
            assert!(error.is_backend() && error.backend().unwrap().is_permission_denied());
            let text = error.to_string();
            assert!(
                text.contains("seccomp profile")
                    && text.contains("or run on epoll, with Backend::Auto"),
                "{text}"
            );
        },
    );
}

#[test]
fn one_shard_without_a_ring_brings_all_to_epoll() {
    alone("one_shard_without_a_ring_brings_all_to_epoll", None, || {
        // The smallest ring takes 8 KiB on kernels that count rings: there is room for one.
        limits::lock_no_more_than(12 * 1024);
        let runtime = start(Backend::Auto).unwrap();
        check_works(&runtime);
        if let Some(reason) = runtime.backend_reason() {
            assert_eq!(runtime.backend(), "epoll");
            assert!(reason.is_limit(), "{reason}");
            let text = reason.to_string();
            assert!(
                text.contains("RLIMIT_MEMLOCK is 12288 bytes") && text.contains("ulimit -l"),
                "{text}"
            );
            assert!(
                start(Backend::IoUring)
                    .unwrap_err()
                    .backend()
                    .unwrap()
                    .is_limit()
            );
        }
    });
}
