//! The system calls that do not go through a ring: the doorbell, CPU affinity, signals, processes, a random seed, and what is tried
//! on a socket without waiting.

#![expect(unsafe_code, reason = "the only libc calls outside the ring")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Makes the eventfd that wakes a sleeping shard. Blocking, so that a ring read waits instead of failing.
pub(crate) fn new_doorbell() -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, and owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Adds one to a doorbell. Never blocks: the count is at most one per sleep of the shard.
pub(crate) fn ring(doorbell: RawFd) {
    let one = 1_u64.to_ne_bytes();
    loop {
        // SAFETY: `one` is 8 readable bytes.
        let written = unsafe { libc::write(doorbell, one.as_ptr().cast(), one.len()) };
        if written >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            // Any other error means the descriptor is no eventfd, which the registry's invariant rules out.
            debug_assert!(written == 8, "writing to doorbell {doorbell} failed");
            return;
        }
    }
}

/// Waits until a doorbell was rung and takes the count; `None` if nothing came within the time.
pub(crate) fn await_ring(doorbell: &OwnedFd, timeout_ms: i32) -> Option<u64> {
    let mut poll = libc::pollfd {
        fd: doorbell.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: `poll` is one valid pollfd.
    let ready = unsafe { libc::poll(&raw mut poll, 1, timeout_ms) };
    if ready != 1 {
        return None;
    }
    let mut count = [0_u8; 8];
    // SAFETY: `count` is 8 writable bytes.
    let read = unsafe { libc::read(doorbell.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    (read == 8).then(|| u64::from_ne_bytes(count))
}

/// The CPUs this process may run on, in rising order. Empty if the kernel does not tell.
pub(crate) fn allowed_cpus() -> Vec<usize> {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: the pointer is valid for the size given.
    let result =
        unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr()) };
    if result != 0 {
        return Vec::new();
    }
    // SAFETY: zeroed above, and all bit patterns are valid.
    let set = unsafe { set.assume_init() };
    let count = usize::try_from(libc::CPU_SETSIZE).expect("a positive constant");
    // SAFETY: the index is below CPU_SETSIZE.
    (0..count)
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
        .collect()
}

/// Pins the calling thread to one CPU.
pub(crate) fn pin_to(cpu: usize) -> io::Result<()> {
    allow(&[cpu])
}

/// Lets the calling thread run on these CPUs and no others. They come from [`allowed_cpus`].
pub(crate) fn allow(cpus: &[usize]) -> io::Result<()> {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: zeroed just now, and all bit patterns are valid.
    let set = unsafe { set.assume_init_mut() };
    let count = usize::try_from(libc::CPU_SETSIZE).expect("a positive constant");
    for &cpu in cpus.iter().filter(|&&cpu| cpu < count) {
        // SAFETY: the index is below CPU_SETSIZE.
        unsafe { libc::CPU_SET(cpu, set) };
    }
    // SAFETY: the pointer is valid for the size given.
    let result =
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const *set) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Whether a signal does to this process what it does by default.
pub(crate) fn has_default_action(signal: i32) -> io::Result<bool> {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is installed, and the pointer is to a sigaction to write to.
    if unsafe { libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, and zeroed memory was valid before.
    let now = unsafe { now.assume_init() };
    Ok(now.sa_sigaction == libc::SIG_DFL)
}

/// The flags a descriptor was opened with; zero if the kernel does not tell.
pub(crate) fn open_flags(fd: &OwnedFd) -> i32 {
    // SAFETY: takes no pointers.
    let flags = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) };
    flags.max(0)
}

/// Sends a signal to a process. It is one that was not waited for, so the number is still its own.
pub(crate) fn send_signal(process: u32, signal: i32) -> io::Result<()> {
    let process = libc::pid_t::try_from(process).map_err(io::Error::other)?;
    // SAFETY: takes no pointers.
    match unsafe { libc::kill(process, signal) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A descriptor that is readable once the process has ended. It is one that was not waited for, see [`send_signal`].
pub(crate) fn open_process(process: u32) -> io::Result<OwnedFd> {
    const FLAGS: libc::c_uint = 0;
    // SAFETY: takes no pointers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, process, FLAGS) };
    let fd = RawFd::try_from(fd).map_err(io::Error::other)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, and owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A seed that differs from run to run.
pub(crate) fn random_seed() -> u64 {
    let mut seed = [0_u8; 8];
    // SAFETY: `seed` is 8 writable bytes.
    let got = unsafe { libc::getrandom(seed.as_mut_ptr().cast(), seed.len(), 0) };
    debug_assert!(got == 8, "getrandom gave {got} of 8 bytes");
    u64::from_ne_bytes(seed)
}

/// Receives what is there, without waiting.
pub(crate) fn recv_now(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    recv_with(socket, buffer, libc::MSG_DONTWAIT)
}

/// Copies what is there and leaves it there, without waiting.
pub(crate) fn peek_now(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    recv_with(socket, buffer, libc::MSG_DONTWAIT | libc::MSG_PEEK)
}

fn recv_with(socket: BorrowedFd<'_>, buffer: &mut [u8], flags: libc::c_int) -> io::Result<usize> {
    // SAFETY: the buffer is writable for its length; with `MSG_DONTWAIT` the call never blocks the shard.
    let count = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            flags,
        )
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Sends what the socket takes, without waiting and without a signal.
pub(crate) fn send_now(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the bytes are readable for their length.
    let count = unsafe {
        libc::send(
            socket.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            flags,
        )
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// The kernel's number of the calling thread.
pub(crate) fn thread_id() -> i32 {
    // SAFETY: takes no arguments, and cannot fail.
    unsafe { libc::gettid() }
}

/// Nanoseconds of the monotonic clock.
pub(crate) fn monotonic_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a valid timespec to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let seconds = u64::try_from(now.tv_sec).expect("the monotonic clock is not negative");
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).expect("nanoseconds are not negative")
}

/// Sends a message without waiting. Returns the count or a negated `errno`, as a ring would.
///
/// # Safety
///
/// The header and what it points to are valid for reads.
pub(crate) unsafe fn send_message(fd: RawFd, message: *const libc::msghdr) -> i32 {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: by this function's contract.
    as_completion(|| unsafe { libc::sendmsg(fd, message, flags) })
}

/// Receives a message without waiting. Returns the count or a negated `errno`, as a ring would.
///
/// # Safety
///
/// The header is valid for reads and writes, what it points to for writes.
pub(crate) unsafe fn receive_message(fd: RawFd, message: *mut libc::msghdr, flags: i32) -> i32 {
    // SAFETY: by this function's contract.
    as_completion(|| unsafe { libc::recvmsg(fd, message, flags | libc::MSG_DONTWAIT) })
}

/// Calls until no signal comes in between.
fn as_completion(call: impl Fn() -> isize) -> i32 {
    loop {
        let result = call();
        if result >= 0 {
            // The kernel moves less than 2 GiB in one call.
            return i32::try_from(result).unwrap_or(i32::MAX);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return -error.raw_os_error().unwrap_or(libc::EIO);
        }
    }
}

/// Asks who is at the other end of a Unix socket: the process and its user and group, when it connected.
pub(crate) fn peer_credentials(socket: BorrowedFd<'_>) -> io::Result<libc::ucred> {
    let mut credentials = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut len = libc::socklen_t::try_from(size_of::<libc::ucred>()).expect("a small constant");
    // SAFETY: both pointers are valid for writes, the first for as many bytes as the second says.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut len,
        )
    };
    if result == 0 {
        Ok(credentials)
    } else {
        Err(io::Error::last_os_error())
    }
}
