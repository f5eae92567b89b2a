//! A system that refuses things.
#![expect(unsafe_code, reason = "installs seccomp filters")]

/// Makes one system call fail with one error on the calling thread and those it starts, for ever.
pub(crate) fn refuse(call: libc::c_long, errno: i32) {
    refuse_with(call, errno, 0);
}

/// As [`refuse`], with flags of seccomp(2): `SECCOMP_FILTER_FLAG_TSYNC` means all threads there are.
pub(crate) fn refuse_with(call: libc::c_long, errno: i32, flags: libc::c_ulong) {
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
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const filter,
        )
    };
    assert_eq!(installed, 0);
}
