//! What the tests of files have in common.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom_runtime::{Builder, ShardCounts, yield_now};

/// Runs a test on a shard of its own.
pub(crate) fn on_a_shard<T: Send + 'static, F>(test: impl FnOnce() -> F + Send + 'static) -> T
where
    F: Future<Output = T> + 'static,
{
    Builder::new().shards(1).start().unwrap().run_on(0, test)
}

/// Waits until the shard has no operation left but its doorbell.
pub(crate) async fn quiet() {
    for _ in 0..1_000_000 {
        if ShardCounts::current().unwrap().live_operations == 1 {
            return;
        }
        yield_now().await;
    }
    panic!("operations do not end: {:?}", ShardCounts::current());
}

/// Bytes that tell where they belong.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n % 251).to_le_bytes()[0]).collect()
}

/// A fresh directory, removed with all that is in it when dropped.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes one in the system's place for temporary files.
    pub(crate) fn new() -> Scratch {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        // ORDERING: Relaxed; only the numbers have to differ.
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("greenroom-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    /// The path of something in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}
