//! The server on io_uring itself, without tasks: how much of it the kernel allows.
//!
//! Accepts and receives that repeat themselves, buffers the kernel takes from a ring, and all answers of a turn handed over
//! with the enter that waits for the next requests. Nothing is cancelled, and an answer that does not fit into the socket
//! is cut off: this is what a runtime is measured against, not a server.

use std::alloc::{Layout, alloc_zeroed};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU16, Ordering};

use greenroom_bench_peers::{READ_BYTES, address, answer};
use io_uring::types::{BufRingEntry, Fd};
use io_uring::{IoUring, cqueue, opcode, squeue};

const BUFFERS: u16 = 512;
const ACCEPT: u64 = 0;
const SEND: u64 = 1;
const RECV: u64 = 2;
/// `IORING_ENTER_GETEVENTS`.
const GETEVENTS: u32 = 1;

/// Buffers, and the ring through which the kernel is given them.
struct Buffers {
    entries: *mut BufRingEntry,
    memory: *mut u8,
    tail: u16,
}

impl Buffers {
    fn new() -> Buffers {
        let entries = Layout::from_size_align(usize::from(BUFFERS) * 16, 4096);
        let memory = Layout::from_size_align(usize::from(BUFFERS) * READ_BYTES, 4096);
        let (Ok(entries), Ok(memory)) = (entries, memory) else {
            unreachable!("constants")
        };
        // SAFETY: neither layout is empty.
        let (entries, memory) = unsafe { (alloc_zeroed(entries).cast(), alloc_zeroed(memory)) };
        let mut buffers = Buffers {
            entries,
            memory,
            tail: 0,
        };
        for id in 0..BUFFERS {
            buffers.give(id);
        }
        buffers
    }

    fn bytes(&self, id: u16, len: usize) -> &[u8] {
        // SAFETY: within the memory, and not in the ring: the kernel has just filled it.
        unsafe { std::slice::from_raw_parts(self.memory.add(usize::from(id) * READ_BYTES), len) }
    }

    fn give(&mut self, id: u16) {
        let at = usize::from(self.tail % BUFFERS);
        // SAFETY: within the ring, and not between its head and tail.
        let entry = unsafe { &mut *self.entries.add(at) };
        // SAFETY: within the memory.
        let address = unsafe { self.memory.add(usize::from(id) * READ_BYTES) };
        entry.set_addr(address.addr() as u64);
        entry.set_len(u32::try_from(READ_BYTES).expect("a small constant"));
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
    }

    fn publish(&self) {
        // SAFETY: the tail of the ring, which both sides access atomically.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.entries).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }
}

fn recv(fd: i32) -> squeue::Entry {
    let token = RECV << 32 | u64::from(fd.cast_unsigned());
    opcode::RecvMulti::new(Fd(fd), 0).build().user_data(token)
}

fn send(fd: i32, bytes: &'static [u8]) -> squeue::Entry {
    let len = u32::try_from(bytes.len()).expect("a short answer");
    opcode::Send::new(Fd(fd), bytes.as_ptr(), len)
        .build()
        .user_data(SEND << 32)
}

fn set_nodelay(fd: i32) {
    let on: i32 = 1;
    // SAFETY: points to an integer of the size that is told.
    unsafe {
        libc::setsockopt(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_NODELAY,
            (&raw const on).cast(),
            4,
        );
    }
}

/// Acts on one completion. Returns what is to be handed over because of it.
fn act(entry: &cqueue::Entry, buffers: &mut Buffers, next: &mut Vec<squeue::Entry>) {
    let result = entry.result();
    let fd = i32::try_from(entry.user_data() & u64::from(u32::MAX)).expect("a descriptor");
    match entry.user_data() >> 32 {
        ACCEPT if result >= 0 => {
            set_nodelay(result);
            next.push(recv(result));
        }
        RECV if result > 0 => {
            let id = cqueue::buffer_select(entry.flags()).expect("a buffer");
            let len = usize::try_from(result).expect("a length");
            next.push(send(fd, answer(buffers.bytes(id, len))));
            buffers.give(id);
            if !cqueue::more(entry.flags()) {
                next.push(recv(fd));
            }
        }
        RECV if result == -libc::ENOBUFS => next.push(recv(fd)),
        // SAFETY: of a connection that is not used any more.
        RECV => drop(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => {}
    }
}

fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind(address())?;
    let mut ring: IoUring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag()
        .setup_submit_all()
        .setup_cqsize(4096)
        .build(1024)?;
    let mut buffers = Buffers::new();
    // SAFETY: the ring is at the start of a page, and both live as long as the program.
    unsafe {
        ring.submitter().register_buf_ring_with_flags(
            buffers.entries.addr() as u64,
            BUFFERS,
            0,
            0,
        )?;
    }
    buffers.publish();
    let accept = opcode::AcceptMulti::new(Fd(listener.as_raw_fd()))
        .build()
        .user_data(ACCEPT << 32);
    let mut next = vec![accept];
    loop {
        for entry in &next {
            // SAFETY: what it points to lives as long as the program.
            while unsafe { ring.submission().push(entry) }.is_err() {
                ring.submit()?;
            }
        }
        next.clear();
        let queued = u32::try_from(ring.submission().len()).expect("a short queue");
        // SAFETY: no argument.
        unsafe {
            ring.submitter()
                .enter::<libc::sigset_t>(queued, 1, GETEVENTS, None)?;
        }
        for entry in ring.completion() {
            act(&entry, &mut buffers, &mut next);
        }
        buffers.publish();
    }
}
