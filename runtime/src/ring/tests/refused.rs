//! What happens where the system refuses parts of io_uring. A seccomp filter on a thread of its own plays the system.

use std::thread;

use super::refusals::refuse;
use crate::ring::RingConfig;
use crate::ring::backend::AnyBackend;
use crate::ring::probe::BackendError;

/// The error of making a ring where `call` fails with `errno`.
fn error_when(call: libc::c_long, errno: i32) -> BackendError {
    let refused = thread::spawn(move || {
        refuse(call, errno);
        AnyBackend::uring(&RingConfig::default()).unwrap_err()
    });
    refused.join().unwrap()
}

#[test]
fn a_refused_setup_is_explained() {
    let error = error_when(libc::SYS_io_uring_setup, libc::EPERM);
    assert!(error.is_permission_denied());
    assert!(error.to_string().contains("seccomp profile"), "{error}");
    let error = error_when(libc::SYS_io_uring_setup, libc::ENOSYS);
    assert!(error.is_unsupported() && !error.is_permission_denied());
}

#[test]
fn the_search_for_a_ring_ends() {
    let error = error_when(libc::SYS_io_uring_setup, libc::ENOMEM);
    assert!(
        error.is_limit() && error.to_string().contains("RLIMIT_MEMLOCK"),
        "{error}"
    );
    let error = error_when(libc::SYS_io_uring_setup, libc::EINVAL);
    assert!(
        !error.is_limit() && !error.is_permission_denied(),
        "{error}"
    );
}

#[test]
fn a_ring_that_cannot_be_probed_is_refused() {
    let error = error_when(libc::SYS_io_uring_register, libc::EINVAL);
    assert!(error.is_unsupported(), "{error}");
}

#[test]
fn a_ring_that_completes_nothing_is_refused() {
    for errno in [libc::EPERM, libc::EINTR, libc::EAGAIN] {
        let error = error_when(libc::SYS_io_uring_enter, errno);
        assert!(error.to_string().contains("did not complete"), "{error}");
    }
}
