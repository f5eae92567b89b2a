//! The runtime of the peers that run on tokio's: of one thread on one core, of two workers on two.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

use super::pin;

fn runtime(cores: usize) -> Runtime {
    if cores == 1 {
        pin(0);
        return Builder::new_current_thread().enable_all().build().unwrap();
    }
    let next = AtomicUsize::new(0);
    Builder::new_multi_thread()
        .worker_threads(cores)
        .on_thread_start(move || pin(next.fetch_add(1, Ordering::Relaxed) % cores))
        .enable_all()
        .build()
        .unwrap()
}

/// Runs the work on a new runtime, in a task like any other, and says how long it took.
pub fn time<F: Future<Output = ()> + Send + 'static>(cores: usize, work: F) -> Duration {
    let runtime = runtime(cores);
    let start = Instant::now();
    runtime.block_on(async { tokio::spawn(work).await.unwrap() });
    start.elapsed()
}
