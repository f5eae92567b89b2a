//! What `#[greenroom::main]` and `#[greenroom::test]` call: a system around one function.
//!
//! The function's future runs on shard 0, so everything that needs a shard works in it. Its value is reported there
//! too, as the standard library would report it: a `Result` with an error that is not `Send` need not cross.

use std::process::{ExitCode, Termination};
use std::time::Duration;

use crate::error::Error;
use crate::system::{Builder, Handle, System};

/// Runs the body of `main`, and shuts the system down when it has returned.
pub fn main<Fut>(
    builder: Builder,
    grace: Duration,
    body: impl FnOnce(Handle) -> Fut + Send + 'static,
) -> ExitCode
where
    Fut: Future + 'static,
    Fut::Output: Termination,
{
    match builder.start() {
        Ok(system) => run(system, grace, body),
        Err(error) => Err::<(), Error>(error.into()).report(),
    }
}

/// Runs the body of a test in a system of its own.
///
/// # Panics
/// If the system does not start.
#[track_caller]
pub fn test<Fut>(
    builder: Builder,
    grace: Duration,
    body: impl FnOnce(Handle) -> Fut + Send + 'static,
) -> ExitCode
where
    Fut: Future + 'static,
    Fut::Output: Termination,
{
    match builder.start() {
        Ok(system) => run(system, grace, body),
        Err(error) => panic!("there is no system for this test: {error}"),
    }
}

/// A panic of the body ends the system without grace, and goes on in the caller.
fn run<Fut>(
    system: System,
    grace: Duration,
    body: impl FnOnce(Handle) -> Fut + Send + 'static,
) -> ExitCode
where
    Fut: Future + 'static,
    Fut::Output: Termination,
{
    let handle = system.handle().clone();
    let code = system.run_on(0, move || {
        let body = body(handle);
        async move { body.await.report() }
    });
    drop(system.shutdown(grace));
    code
}
