//! What happens where the system refuses parts of io_uring. A seccomp filter on a thread of its own plays the system.
#![expect(unsafe_code, reason = "installs seccomp filters")]

use std::thread;

use crate::ring::RingConfig;
use crate::ring::driver::Driver;
use crate::ring::probe::BackendError;

/// Makes one system call fail with one error on the calling thread, for ever.
fn refuse(call: libc::c_long, errno: i32) {
    let statement = |code: u32, k: u32| libc::sock_filter {
        code: u16::try_from(code).unwrap(),
        jt: 0,
        jf: 0,
        k,
    };
    let verdict = libc::SECCOMP_RET_ERRNO | u32::try_from(errno).unwrap();
    let mut program = [
        // The number of the call is the first word of what the filter sees.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        libc::sock_filter {
            jf: 1,
            ..statement(
                libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                u32::try_from(call).unwrap(),
            )
        },
        statement(libc::BPF_RET | libc::BPF_K, verdict),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).unwrap(),
        filter: program.as_mut_ptr(),
    };
    // SAFETY: takes no pointers.
    let restricted = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(restricted, 0);
    // SAFETY: the filter points to a valid program, which the kernel copies.
    let installed = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const filter,
            0,
            0,
        )
    };
    assert_eq!(installed, 0);
}

/// The error of making a driver where `call` fails with `errno`.
fn error_when(call: libc::c_long, errno: i32) -> BackendError {
    let refused = thread::spawn(move || {
        refuse(call, errno);
        Driver::new(&RingConfig::default()).unwrap_err()
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
