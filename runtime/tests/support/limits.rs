//! A process with fewer rights.
#![expect(unsafe_code, reason = "changes the limits and the user of the process")]

/// Limits the memory that the process may lock, for ever. The limit binds no privileged user, so it becomes another.
pub(crate) fn lock_no_more_than(bytes: u64) {
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: bytes,
    };
    // SAFETY: a valid limit to read.
    let limited = unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) };
    assert_eq!(limited, 0);
    // SAFETY: takes no pointers.
    if unsafe { libc::geteuid() } == 0 {
        const NOBODY: libc::uid_t = 65534;
        // SAFETY: takes no pointers.
        let changed = unsafe { libc::setuid(NOBODY) };
        assert_eq!(changed, 0);
    }
}
