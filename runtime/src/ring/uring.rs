//! The io_uring backend.
//!
//! The ring is made on the thread that uses it and never leaves it: with deferred task work the kernel refuses every
//! other thread. Three habits of the kernel shape this file:
//!
//! * A ring with deferred task work completes nothing until it is entered with `GETEVENTS`. The crate's `submit` leaves
//!   that flag out in some cases, so every enter here is spelled out, flag included.
//! * One enter runs about twenty deferred completions, then returns and leaves `TASKRUN` set. Looking at the completion
//!   queue alone would miss the rest: [`Backend::wants_enter`] looks at the flags too.
//! * A wait with an operation pending counts as waiting for a disk and shows as 100 % iowait, unless the kernel is
//!   told otherwise (`NO_IOWAIT`, since 6.15).
#![expect(
    unsafe_code,
    reason = "maps entries to submission queue entries and enters the kernel"
)]

use std::fmt;
use std::io;
use std::mem;
use std::ptr::NonNull;
use std::rc::Rc;
use std::time::Duration;

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{
    CompletionQueue, EnterFlags, IoUring, Probe, SubmissionQueue, Submitter, cqueue, opcode,
};

use super::RingConfig;
use super::backend::{Backend, Entry, Wait};
use super::op::{BufferId, Completion, Flags};
use super::pool::{BufferPool, BufferPoolConfig};
use super::probe::{self, BackendError};
use super::translate::{Abilities, POOL_GROUP, translate};

/// The smallest queues worth having. Halving stops here.
const SUBMISSION_ENTRIES_MIN: u32 = 32;
const COMPLETION_ENTRIES_MIN: u32 = 128;

/// The most helper threads of the kernel for the file operations of one ring. The kernel's own limit is four for each CPU of
/// the machine, for each ring: with a shard on each CPU that is a square.
const FILE_WORKERS_MAX: u32 = 16;

/// A limit for waits that have none, where the kernel wants one. Whoever wakes up early goes to sleep again.
const FOREVER: Duration = Duration::from_secs(1 << 30);

/// One ring.
pub(crate) struct Uring {
    /// Invariant: from [`Box::leak`], freed in `drop` only. Only shared references to the ring are made, so that the
    /// one in `submitter` stays valid.
    ring: NonNull<IoUring>,
    /// Borrows `*ring`; it remembers the registered descriptor of the ring. `None` only while dropping.
    submitter: Option<Submitter<'static>>,
    flavour: Flavour,
    abilities: Abilities,
    /// Flags for an enter that waits.
    wait_flags: EnterFlags,
    /// The kernel can wait for several completions with a limit of its own (6.12).
    gathers: bool,
    /// The receive buffers the kernel takes from. Kept here until the ring is closed.
    pool: Option<Rc<BufferPool>>,
}

impl Abilities {
    fn of(flavour: Flavour, probe: &Probe) -> Abilities {
        // Flags of operations cannot be asked for. They came with the same kernels as these.
        let is_5_19 = flavour != Flavour::Plain;
        let is_6_0 = probe.is_supported(opcode::SendZc::CODE);
        Abilities {
            poll_first: is_5_19,
            repeated_accept: is_5_19,
            repeated_recv: is_6_0,
            zero_copy: is_6_0,
        }
    }
}

/// How completions get into the queue: the rungs of the ladder, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flavour {
    /// Deferred to our own enter, without the indirection array (6.6).
    DeferNoArray,
    /// Deferred to our own enter (6.1).
    Defer,
    /// At the next system call, without an interrupt (5.19).
    Cooperative,
    /// Whenever the kernel likes.
    Plain,
}

impl Flavour {
    const LADDER: [Flavour; 4] = [
        Flavour::DeferNoArray,
        Flavour::Defer,
        Flavour::Cooperative,
        Flavour::Plain,
    ];

    fn build(self, sq_entries: u32, cq_entries: u32) -> io::Result<IoUring> {
        let mut builder = IoUring::builder();
        builder.dontfork().setup_cqsize(cq_entries).setup_clamp();
        match self {
            Flavour::DeferNoArray => {
                builder
                    .setup_single_issuer()
                    .setup_defer_taskrun()
                    .setup_taskrun_flag();
                builder.setup_submit_all().setup_no_sqarray();
            }
            Flavour::Defer => {
                builder
                    .setup_single_issuer()
                    .setup_defer_taskrun()
                    .setup_taskrun_flag();
                builder.setup_submit_all();
            }
            Flavour::Cooperative => {
                builder
                    .setup_coop_taskrun()
                    .setup_taskrun_flag()
                    .setup_submit_all();
            }
            Flavour::Plain => {}
        }
        builder.build(sq_entries)
    }
}

impl Uring {
    /// Makes a ring for the calling thread, checks that it can do what is needed, and runs one no-op through it.
    pub(crate) fn new(config: &RingConfig) -> Result<Uring, BackendError> {
        let (ring, flavour) = build(config)?;
        probe::check_features(ring.params())?;
        let operations = probe::check_operations(&ring.submitter())?;
        let wait_flags = if ring.params().is_feature_no_iowait() {
            EnterFlags::GETEVENTS | EnterFlags::NO_IOWAIT
        } else {
            EnterFlags::GETEVENTS
        };
        let gathers = ring.params().is_feature_min_timeout();
        let ring = NonNull::from(Box::leak(Box::new(ring)));
        // SAFETY: leaked just above, and freed only in `drop`, after the submitter.
        let mut submitter = unsafe { ring.as_ref() }.submitter();
        // Saves a descriptor look-up with each enter. Older kernels do without.
        submitter.register_ring_fd().ok();
        if let Some(cpus) = cpu_set(&config.worker_cpus) {
            // The kernel's helper threads inherit the one CPU the shard is pinned to, and would compete with it.
            // Older kernels cannot be told otherwise, and work all the same.
            submitter.register_iowq_aff(&cpus).ok();
        }
        // The second number, of helpers for what may wait for ever, stays as it is. Kernels before 5.15 do not know.
        submitter
            .register_iowq_max_workers(&mut [FILE_WORKERS_MAX, 0])
            .ok();
        let mut uring = Uring {
            ring,
            submitter: Some(submitter),
            flavour,
            abilities: Abilities::of(flavour, &operations),
            wait_flags,
            gathers,
            pool: None,
        };
        probe::round_trip(&mut uring)?;
        Ok(uring)
    }

    fn ring(&self) -> &IoUring {
        // SAFETY: by the invariant of `ring`.
        unsafe { self.ring.as_ref() }
    }

    fn submission(&self) -> SubmissionQueue<'_> {
        // SAFETY: the queue is made and dropped within one method call of this `!Sync` type, so no second exists.
        unsafe { self.ring().submission_shared() }
    }

    fn completion(&self) -> CompletionQueue<'_> {
        // SAFETY: as a method of a `!Sync` type that lets none of the queues out, and never nests them.
        unsafe { self.ring().completion_shared() }
    }

    fn enter_kernel<T>(
        &self,
        min_complete: u32,
        flags: EnterFlags,
        argument: Option<&T>,
    ) -> io::Result<usize> {
        let to_submit =
            u32::try_from(self.submission().len()).expect("a queue of at most 2^15 entries");
        let submitter = self
            .submitter
            .as_ref()
            .expect("the submitter lives as long as the ring");
        // SAFETY: `argument` is what `flags` says: `SubmitArgs` with `EXT_ARG`, else nothing. The addresses in the
        // submitted entries are kept valid by the records they come from.
        unsafe { submitter.enter(to_submit, min_complete, flags.bits(), argument) }
    }
}

impl Backend for Uring {
    fn push(&mut self, entry: &Entry) -> bool {
        let entry = translate(entry.kind, self.abilities).user_data(entry.token);
        // SAFETY: the record that the entry describes keeps its addresses valid until the final completion.
        unsafe { self.submission().push(&entry) }.is_ok()
    }

    fn enter(&mut self, wait: Wait) -> io::Result<()> {
        let entered = match wait {
            Wait::Poll | Wait::Until(Some(Duration::ZERO)) => {
                self.enter_kernel::<libc::sigset_t>(0, EnterFlags::GETEVENTS, None)
            }
            Wait::Gather {
                count,
                window,
                until,
            } if self.gathers => {
                let until = Timespec::from(until.unwrap_or(FOREVER));
                let window_us = u32::try_from(window.as_micros()).unwrap_or(u32::MAX);
                let arguments = SubmitArgs::new().timespec(&until).min_wait_usec(window_us);
                let flags = self.wait_flags | EnterFlags::EXT_ARG;
                self.enter_kernel(count, flags, Some(&arguments))
            }
            Wait::Gather { until, .. } => return self.enter(Wait::Until(until)),
            Wait::Until(None) => self.enter_kernel::<libc::sigset_t>(1, self.wait_flags, None),
            Wait::Until(Some(timeout)) => {
                let timeout = Timespec::from(timeout);
                let arguments = SubmitArgs::new().timespec(&timeout);
                self.enter_kernel(1, self.wait_flags | EnterFlags::EXT_ARG, Some(&arguments))
            }
        };
        let Err(error) = entered else { return Ok(()) };
        match error.raw_os_error() {
            // A signal, or the end of the time: nothing was lost. Out of memory for requests, or completions piled
            // up: what was not taken stays in the queue, and reaping makes room.
            Some(libc::EINTR | libc::ETIME | libc::EAGAIN | libc::EBUSY) => Ok(()),
            Some(libc::EBADR) => Err(io::Error::other(
                "the kernel dropped a completion for want of memory",
            )),
            _ => Err(error),
        }
    }

    fn reap(&mut self, mut sink: impl FnMut(Completion)) {
        for entry in self.completion() {
            sink(Completion {
                token: entry.user_data(),
                result: entry.result(),
                flags: flags_of(entry.flags()),
            });
        }
    }

    fn has_completions(&self) -> bool {
        !self.completion().is_empty()
    }

    fn wants_enter(&self) -> bool {
        let queue = self.submission();
        !queue.is_empty() || queue.taskrun() || queue.cq_overflow()
    }

    fn make_pool(&mut self, config: &BufferPoolConfig) -> io::Result<Rc<BufferPool>> {
        debug_assert!(self.pool.is_none(), "a shard has one pool");
        let pool = BufferPool::with_ring(config)?;
        let ring = pool.ring().expect("made with a ring");
        let (address, count) = ring.registration();
        let submitter = self
            .submitter
            .as_ref()
            .expect("the submitter lives as long as the ring");
        // SAFETY: the ring lies at the start of a page, has that many entries, and is kept until it is unregistered. So
        // are the buffers it names.
        unsafe { submitter.register_buf_ring_with_flags(address, count, POOL_GROUP, 0) }?;
        self.pool = Some(Rc::clone(&pool));
        Ok(pool)
    }

    fn has_zero_copy(&self) -> bool {
        self.abilities.zero_copy
    }

    /// The kernel raises a flag in shared memory.
    fn is_blind(&self) -> bool {
        false
    }

    fn name(&self) -> &'static str {
        "io_uring"
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        if let Some(mut submitter) = self.submitter.take() {
            if self.pool.is_some() {
                // Only to give up the pages now rather than some time after the ring was closed.
                submitter.unregister_buf_ring(POOL_GROUP).ok();
            }
            // Fails where registering failed.
            submitter.unregister_ring_fd().ok();
        }
        // SAFETY: leaked from a box in `new`; the submitter, the only borrow, is gone.
        drop(unsafe { Box::from_raw(self.ring.as_ptr()) });
    }
}

impl fmt::Debug for Uring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uring")
            .field("flavour", &self.flavour)
            .field("params", self.ring().params())
            .finish_non_exhaustive()
    }
}

/// Climbs down the ladder until the kernel takes the flags, with smaller queues each time memory is short.
fn build(config: &RingConfig) -> Result<(IoUring, Flavour), BackendError> {
    let mut submission = config.sq_entries.max(1);
    let mut completion = config.cq_entries.max(submission.saturating_mul(2));
    loop {
        let mut error = io::Error::from_raw_os_error(libc::EINVAL);
        for flavour in Flavour::LADDER {
            match flavour.build(submission, completion) {
                Ok(ring) => return Ok((ring, flavour)),
                Err(refused) => error = refused,
            }
            if error.raw_os_error() != Some(libc::EINVAL) {
                break;
            }
        }
        let is_smallest =
            submission <= SUBMISSION_ENTRIES_MIN && completion <= COMPLETION_ENTRIES_MIN;
        if error.raw_os_error() != Some(libc::ENOMEM) || is_smallest {
            return Err(BackendError::setup(error));
        }
        submission = (submission / 2).max(SUBMISSION_ENTRIES_MIN.min(submission));
        completion = (completion / 2).max(COMPLETION_ENTRIES_MIN.min(completion));
    }
}

/// The CPUs as the kernel takes them; `None` for an empty list.
fn cpu_set(cpus: &[usize]) -> Option<libc::cpu_set_t> {
    let set_size = usize::try_from(libc::CPU_SETSIZE).expect("a positive constant");
    // SAFETY: a bit set, for which all zeroes is the empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    for &cpu in cpus.iter().filter(|&&cpu| cpu < set_size) {
        // SAFETY: the index is within the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    (!cpus.is_empty()).then_some(set)
}

fn flags_of(flags: u32) -> Flags {
    let mut seen = Flags::default();
    if cqueue::more(flags) {
        seen = seen.with(Flags::MORE);
    }
    if cqueue::sock_nonempty(flags) {
        seen = seen.with(Flags::SOCKET_NONEMPTY);
    }
    if let Some(buffer) = cqueue::buffer_select(flags) {
        seen = seen.with_buffer(BufferId(buffer));
    }
    seen
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::ring::backend::{EntryKind, Extent};

    /// Runs no-ops through a ring of one flavour.
    fn check_flavour(flavour: Flavour) {
        let ring = match flavour.build(8, 16) {
            Ok(ring) => ring,
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return,
            Err(error) => panic!("{flavour:?}: {error}"),
        };
        let ring = NonNull::from(Box::leak(Box::new(ring)));
        // SAFETY: leaked just above, and freed only in `drop`, after the submitter.
        let submitter = unsafe { ring.as_ref() }.submitter();
        let wait_flags = EnterFlags::GETEVENTS;
        let mut uring = Uring {
            ring,
            submitter: Some(submitter),
            flavour,
            abilities: Abilities::of(flavour, &Probe::new()),
            wait_flags,
            gathers: false,
            pool: None,
        };
        let mut seen = Vec::new();
        for token in 0..40 {
            let entry = Entry {
                kind: EntryKind::Nop,
                token,
            };
            if !uring.push(&entry) {
                uring.enter(Wait::Poll).unwrap();
                uring.reap(|completion| seen.push(completion.token));
                assert!(uring.push(&entry), "an enter makes room");
            }
        }
        while uring.wants_enter() || uring.has_completions() {
            uring.enter(Wait::Poll).unwrap();
            uring.reap(|completion| seen.push(completion.token));
        }
        assert_eq!(seen, (0..40).collect::<Vec<_>>(), "{flavour:?}");
        uring
            .enter(Wait::Until(Some(Duration::from_millis(1))))
            .unwrap();
    }

    #[test]
    fn every_rung_of_the_ladder_works() {
        for flavour in Flavour::LADDER {
            check_flavour(flavour);
        }
    }

    #[test]
    fn completions_that_overflow_the_queue_are_not_lost() {
        let config = RingConfig {
            sq_entries: 4,
            cq_entries: 8,
            ..RingConfig::default()
        };
        let mut uring = Uring::new(&config).unwrap();
        for token in 0..40 {
            let entry = Entry {
                kind: EntryKind::Nop,
                token,
            };
            while !uring.push(&entry) {
                uring.enter(Wait::Poll).unwrap();
            }
        }
        let mut seen = Vec::new();
        while uring.wants_enter() || uring.has_completions() {
            uring.enter(Wait::Poll).unwrap();
            uring.reap(|completion| seen.push(completion.token));
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..40).collect::<Vec<_>>());
    }

    #[test]
    fn sending_to_a_closed_peer_raises_no_signal() {
        static SIGNALS: AtomicUsize = AtomicUsize::new(0);
        extern "C" fn count(_signal: libc::c_int) {
            // ORDERING: Relaxed; raised on the thread that reads it.
            SIGNALS.fetch_add(1, Ordering::Relaxed);
        }
        let (socket, peer) = UnixStream::pair().unwrap();
        drop(peer);
        let mut uring = Uring::new(&RingConfig::default()).unwrap();
        let piece = libc::iovec {
            iov_base: (&raw const *"x").cast_mut().cast(),
            iov_len: 1,
        };
        // SAFETY: all zeroes is a message without pieces.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = (&raw const piece).cast_mut();
        message.msg_iovlen = 1;
        let (fd, ptr) = (socket.as_raw_fd(), "x".as_ptr());
        let handler: extern "C" fn(libc::c_int) = count;
        // SAFETY: the handler does nothing but add to an atomic.
        let before = unsafe { libc::signal(libc::SIGPIPE, handler as libc::sighandler_t) };
        let kinds = [
            EntryKind::Send {
                fd,
                ptr,
                len: 1,
                extent: Extent::Some,
            },
            EntryKind::Send {
                fd,
                ptr,
                len: 1,
                extent: Extent::All,
            },
            EntryKind::SendMessage {
                fd,
                message: &raw const message,
            },
        ];
        let mut results = Vec::new();
        for kind in kinds {
            assert!(uring.push(&Entry { kind, token: 0 }));
            uring.enter(Wait::Until(None)).unwrap();
            uring.reap(|completion| results.push(completion.result));
        }
        // SAFETY: puts back what was there.
        unsafe { libc::signal(libc::SIGPIPE, before) };
        assert_eq!(results, [-libc::EPIPE; 3]);
        // ORDERING: Relaxed; raised on this thread.
        assert_eq!(SIGNALS.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn helper_threads_may_leave_the_shards_cpu() {
        let set = cpu_set(&[0, 1, usize::MAX]).unwrap();
        // SAFETY: the index is within the set.
        assert!(unsafe { libc::CPU_ISSET(1, &set) });
        assert!(cpu_set(&[]).is_none());
        let config = RingConfig {
            worker_cpus: vec![0],
            ..RingConfig::default()
        };
        let uring = Uring::new(&config).unwrap();
        uring
            .submitter
            .as_ref()
            .unwrap()
            .register_iowq_aff(&cpu_set(&[0]).unwrap())
            .unwrap();
    }
}
