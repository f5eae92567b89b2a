//! What a start says when the machine refuses a thread, a CPU or a descriptor; each in a process of its own.

#[path = "support/alone.rs"]
mod alone;
#[path = "support/refusals.rs"]
mod refusals;

use std::error::Error;
use std::io;
use std::time::Duration;

use alone::alone;
use greenroom_runtime::{Backend, Builder, StartError};
use refusals::{refuse, refuse_with};

const BACKENDS: [Backend; 2] = [Backend::IoUring, Backend::Epoll];

fn builder(backend: Backend) -> Builder {
    Builder::new().shards(2).pin(false).backend(backend)
}

/// Checks what is said, and that the kernel's own error is behind it.
#[track_caller]
fn check(error: &StartError, says: &str, errno: i32) {
    assert!(!error.is_config() && !error.is_backend() && !error.is_panic());
    let text = error.to_string();
    assert!(text.ends_with(says), "{text}");
    assert_eq!(format!("{error:?}"), text);
    if let Some(shard) = error.shard() {
        assert!(
            text.starts_with(&format!("{shard} did not start: ")),
            "{text}"
        );
    }
    let cause = error.source().expect("the kernel's error");
    let cause: &io::Error = cause.downcast_ref().expect("an error of the kernel");
    assert_eq!(cause.raw_os_error(), Some(errno));
}

#[test]
fn a_thread_that_cannot_be_made() {
    alone("a_thread_that_cannot_be_made", None, || {
        refuse(libc::SYS_clone3, libc::EAGAIN);
        for backend in BACKENDS {
            let error = builder(backend).start().unwrap_err();
            assert_eq!(error.shard(), Some(0.into()));
            let says = "its thread could not be made; raise the limit on processes (ulimit -u)";
            check(&error, says, libc::EAGAIN);
        }
    });
}

#[test]
fn a_watchdog_that_cannot_be_made() {
    alone("a_watchdog_that_cannot_be_made", None, || {
        // When a shard starts, the threads of the shards are there, and that of the watchdog is not.
        let hooked = builder(Backend::Auto)
            .watchdog(Duration::from_secs(60))
            .on_shard_start(|shard| {
                if shard.index() == 0 {
                    let everywhere = libc::SECCOMP_FILTER_FLAG_TSYNC;
                    refuse_with(libc::SYS_clone3, libc::EAGAIN, everywhere);
                }
            });
        let error = hooked.start().unwrap_err();
        assert_eq!(error.shard(), None);
        check(
            &error,
            "the watchdog's thread could not be made; raise the limit on processes (ulimit -u)",
            libc::EAGAIN,
        );
    });
}

#[test]
fn a_cpu_that_cannot_be_had() {
    alone("a_cpu_that_cannot_be_had", None, || {
        refuse(libc::SYS_sched_setaffinity, libc::EPERM);
        for backend in BACKENDS {
            let error = builder(backend).shards(1).pin(true).start().unwrap_err();
            assert_eq!(error.shard(), Some(0.into()));
            let text = error.to_string();
            assert!(text.contains("could not be pinned to CPU "), "{text}");
            let says = "; call `pin(false)` on the builder to run unpinned";
            check(&error, says, libc::EPERM);
            // The cure is one.
            builder(backend).start().unwrap();
        }
    });
}

#[test]
fn a_doorbell_that_cannot_be_made() {
    alone("a_doorbell_that_cannot_be_made", None, || {
        for backend in BACKENDS {
            // When it starts, a shard has its backend, which may have descriptors of that kind too.
            let hooked = builder(backend).on_shard_start(|shard| {
                if shard.index() == 1 {
                    refuse(libc::SYS_eventfd2, libc::EMFILE);
                }
            });
            let error = hooked.start().unwrap_err();
            assert_eq!(error.shard(), Some(1.into()));
            let says = "its eventfd could not be made; raise the limit on open files (ulimit -n)";
            check(&error, says, libc::EMFILE);
        }
    });
}
