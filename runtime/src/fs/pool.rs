//! What the kernel does not do for a ring: such calls run on the threads of the blocking pool.

use std::io;
use std::panic::resume_unwind;

use crate::blocking::{self, BlockingHandle};
use crate::ring::is_interrupted;
use crate::shard::context;

/// Hands a call to the pool.
///
/// Dropping the handle takes the call out of the line. Once it runs it goes on to its end, and its result is dropped.
pub(super) fn start<T: Send + 'static>(
    call: impl FnOnce() -> T + Send + 'static,
) -> io::Result<BlockingHandle<T>> {
    let pool = context::with(|shard| shard.team().blocking().clone());
    let pool = pool.ok_or_else(|| context::no_shard("files belong to one"))?;
    Ok(blocking::submit(&pool, call))
}

/// Waits for a call. A panic of it goes on here.
pub(super) async fn finish<T>(handle: &mut BlockingHandle<T>) -> io::Result<T> {
    match handle.await {
        Ok(returned) => Ok(returned),
        Err(error) => match error.try_into_panic() {
            Ok(payload) => resume_unwind(payload),
            Err(_cancelled) => Err(io::Error::other(
                "the blocking pool did not run it: it is shutting down, or no thread could be made",
            )),
        },
    }
}

/// Runs a call on the pool, and again if a signal came in between.
pub(super) async fn call<T: Send + 'static>(
    call: impl FnOnce() -> io::Result<T> + Clone + Send + 'static,
) -> io::Result<T> {
    loop {
        let mut handle = start(call.clone())?;
        let result = finish(&mut handle).await?;
        if !is_interrupted(&result) {
            return result;
        }
    }
}
