//! A scripted kernel: nothing completes until the test says so, and every answer is the test's choice.
//!
//! It writes into the memory it was given like the real one, after checking that the memory is still alive: the
//! buffers of the tests announce themselves in [`memory`].
#![expect(
    unsafe_code,
    reason = "plays the kernel, which writes through addresses"
)]

use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use super::backend::{AnyBackend, Backend, Entry, EntryKind, Wait};
use super::driver::Driver;
use super::op::{BufferId, Completion, Flags, Token};
use super::pool::{BufferPool, BufferPoolConfig};

/// What the fake kernel writes everywhere.
pub(super) const PATTERN: u8 = 0xA5;

/// A backend that runs on commands of the test.
#[derive(Debug)]
pub(crate) struct FakeKernel {
    /// How many entries fit between two enters.
    queue_max: usize,
    queue: VecDeque<Entry>,
    /// Operations the kernel has.
    running: Vec<Entry>,
    /// Cancels the kernel has not answered.
    cancels: Vec<Entry>,
    completions: VecDeque<Completion>,
    /// Every entry that was ever handed over, in order.
    pub(super) history: Vec<Entry>,
    pub(super) enters: Vec<Wait>,
    pub(super) pool: Option<Rc<BufferPool>>,
}

impl FakeKernel {
    pub(super) fn new(queue_max: usize) -> FakeKernel {
        FakeKernel {
            queue_max,
            queue: VecDeque::new(),
            running: Vec::new(),
            cancels: Vec::new(),
            completions: VecDeque::new(),
            history: Vec::new(),
            enters: Vec::new(),
            pool: None,
        }
    }

    /// A driver on a fresh fake kernel.
    pub(super) fn driver(queue_max: usize) -> Driver {
        let pool = BufferPoolConfig {
            count: 4,
            buffer_bytes: 16,
        };
        Driver::new(AnyBackend::Fake(FakeKernel::new(queue_max)), pool)
    }

    /// The kernel under a driver.
    pub(super) fn of(driver: &mut Driver) -> &mut FakeKernel {
        match driver.backend_mut() {
            AnyBackend::Fake(fake) => fake,
            AnyBackend::Uring(_) | AnyBackend::Epoll(_) => {
                panic!("the driver runs on the real kernel")
            }
        }
    }

    pub(super) fn running_count(&self) -> usize {
        self.running.len()
    }

    pub(super) fn cancel_count(&self) -> usize {
        self.cancels.len()
    }

    /// How many operations the driver must count as live on account of the kernel.
    pub(super) fn held_count(&self) -> usize {
        let queued = self.queue.iter().filter(|entry| !is_cancel(entry)).count();
        let unreaped = self
            .completions
            .iter()
            .filter(|completion| is_final(completion))
            .count();
        queued + self.running.len() + unreaped
    }

    /// Ends an operation. Writes into its memory as far as the result says.
    pub(super) fn complete(&mut self, index: usize, result: i32) -> u64 {
        let entry = self.running.remove(index);
        write_through(&entry, result);
        self.post(entry.token, result, Flags::default());
        entry.token
    }

    /// Reports on an operation that goes on.
    pub(super) fn complete_more(&mut self, index: usize, result: i32) -> u64 {
        let entry = self.running[index];
        write_through(&entry, result);
        self.post(entry.token, result, Flags::MORE);
        entry.token
    }

    /// Reports on an operation with a buffer of the pool, filled as far as the result says. Without a free buffer the
    /// operation ends with `ENOBUFS`. Returns what it reported.
    pub(super) fn complete_with_buffer(
        &mut self,
        index: usize,
        result: i32,
        flags: Flags,
    ) -> Completion {
        let entry = self.running[index];
        let pool = self.pool.as_ref().expect("a pool was asked for");
        let (result, flags) = match pool.take() {
            Some(id) => {
                self.fill(id, result);
                (result, flags.with_buffer(id))
            }
            None => (-libc::ENOBUFS, Flags::default()),
        };
        if !flags.contains(Flags::MORE) {
            self.running.remove(index);
        }
        self.post(entry.token, result, flags);
        self.completions.back().copied().expect("just posted")
    }

    fn fill(&self, id: BufferId, result: i32) {
        let pool = self.pool.as_ref().expect("a pool was asked for");
        if let Ok(count) = usize::try_from(result) {
            assert!(count <= pool.buffer_bytes() as usize);
            // SAFETY: within a buffer that was free, so nobody else has it.
            unsafe { pool.address(id).write_bytes(PATTERN, count) };
        }
    }

    /// Answers a cancel. What becomes of its target is up to other calls.
    pub(super) fn answer_cancel(&mut self, index: usize, result: i32) {
        let entry = self.cancels.remove(index);
        self.post(entry.token, result, Flags::default());
    }

    /// Reports on anything at all.
    pub(super) fn post(&mut self, token: u64, result: i32, flags: Flags) {
        self.completions.push_back(Completion {
            token,
            result,
            flags,
        });
    }

    /// Checks that all memory the kernel was given is alive.
    pub(super) fn check_memory(&self) {
        for entry in self.queue.iter().chain(&self.running) {
            if let Some((ptr, len)) = memory_of(entry) {
                memory::assert_alive(ptr, len);
            }
        }
    }
}

impl Backend for FakeKernel {
    fn push(&mut self, entry: &Entry) -> bool {
        let has_room = self.queue.len() < self.queue_max;
        if has_room {
            self.queue.push_back(*entry);
        }
        has_room
    }

    fn enter(&mut self, wait: Wait) -> io::Result<()> {
        self.enters.push(wait);
        for entry in self.queue.drain(..) {
            self.history.push(entry);
            if is_cancel(&entry) {
                self.cancels.push(entry);
            } else {
                self.running.push(entry);
            }
        }
        Ok(())
    }

    fn reap(&mut self, sink: impl FnMut(Completion)) {
        self.completions.drain(..).for_each(sink);
    }

    fn has_completions(&self) -> bool {
        !self.completions.is_empty()
    }

    fn wants_enter(&self) -> bool {
        !self.queue.is_empty()
    }

    fn make_pool(&mut self, config: &BufferPoolConfig) -> io::Result<Rc<BufferPool>> {
        let pool = BufferPool::with_list(config)?;
        self.pool = Some(Rc::clone(&pool));
        Ok(pool)
    }

    fn has_zero_copy(&self) -> bool {
        true
    }

    fn is_blind(&self) -> bool {
        false
    }

    fn name(&self) -> &'static str {
        "fake"
    }
}

fn is_cancel(entry: &Entry) -> bool {
    matches!(entry.kind, EntryKind::Cancel { .. })
}

fn is_final(completion: &Completion) -> bool {
    matches!(Token::decode(completion.token), Token::Operation(_))
        && !completion.flags.contains(Flags::MORE)
}

fn memory_of(entry: &Entry) -> Option<(*mut u8, usize)> {
    match entry.kind {
        EntryKind::Read { ptr, len, .. } | EntryKind::Recv { ptr, len, .. } => {
            Some((ptr, len as usize))
        }
        _ => None,
    }
}

fn write_through(entry: &Entry, result: i32) {
    if let (Some((ptr, len)), Ok(count)) = (memory_of(entry), usize::try_from(result)) {
        memory::assert_alive(ptr, len);
        assert!(count <= len, "a result of {count} for {len} bytes");
        // SAFETY: within memory that was just found alive, and that belongs to the operation until it ends.
        unsafe { ptr.write_bytes(PATTERN, count) };
    }
}

/// The memory that the fake kernel may touch: what the buffers of the tests announced.
pub(super) mod memory {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    thread_local! {
        /// Length by address.
        static ALIVE: RefCell<BTreeMap<usize, usize>> = const { RefCell::new(BTreeMap::new()) };
    }

    /// A heap buffer the kernel may touch while it lives.
    #[derive(Debug)]
    pub(in crate::ring) struct Tracked(Box<[u8]>);

    impl Tracked {
        pub(in crate::ring) fn new(len: usize) -> Tracked {
            let bytes = vec![0; len].into_boxed_slice();
            let known = ALIVE.with_borrow_mut(|alive| alive.insert(bytes.as_ptr().addr(), len));
            assert_eq!(known, None, "an address was given out twice");
            Tracked(bytes)
        }

        pub(in crate::ring) fn as_mut_ptr(&mut self) -> *mut u8 {
            self.0.as_mut_ptr()
        }

        pub(in crate::ring) fn bytes(&self) -> &[u8] {
            &self.0
        }
    }

    impl Drop for Tracked {
        fn drop(&mut self) {
            let known = ALIVE.with_borrow_mut(|alive| alive.remove(&self.0.as_ptr().addr()));
            assert_eq!(known, Some(self.0.len()), "a buffer was dropped twice");
        }
    }

    /// How many buffers live.
    pub(in crate::ring) fn alive_count() -> usize {
        ALIVE.with_borrow(BTreeMap::len)
    }

    pub(super) fn assert_alive(ptr: *const u8, len: usize) {
        let known = ALIVE.with_borrow(|alive| alive.get(&ptr.addr()).copied());
        assert_eq!(
            known,
            Some(len),
            "the kernel was given memory that is not alive"
        );
    }
}
