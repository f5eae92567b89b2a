//! What the benchmarks have in common.

use std::fmt;

use greenroom::prelude::*;
use greenroom::{Actor, Error, Handle, ShardId, SpawnError};

use crate::random::Random;

/// One of the suite.
pub struct Benchmark {
    pub name: &'static str,
    /// Does the work once, checks the result, and returns how many messages it took, answers included.
    pub run: fn(&System, Size) -> Result<u64, Error>,
}

/// How much work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The parameters of the suite.
    Suite,
    /// As little as shows that the benchmark works.
    Small,
}

impl Size {
    /// One parameter of a benchmark.
    pub fn pick<T>(self, suite: T, small: T) -> T {
        match self {
            Self::Suite => suite,
            Self::Small => small,
        }
    }
}

/// A benchmark that came to a wrong result.
#[derive(Debug)]
pub struct Wrong {
    what: &'static str,
    found: String,
    expected: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            found,
            expected,
        } = self;
        write!(
            f,
            "wrong result: {what} is {found} and should be {expected}"
        )
    }
}

impl std::error::Error for Wrong {}

/// Fails unless the result is as it should be.
#[expect(
    clippy::needless_pass_by_value,
    reason = "a check reads better without references"
)]
pub fn check<T: PartialEq + fmt::Debug>(
    what: &'static str,
    found: T,
    expected: T,
) -> Result<(), Wrong> {
    if found == expected {
        return Ok(());
    }
    Err(Wrong {
        what,
        found: format!("{found:?}"),
        expected: format!("{expected:?}"),
    })
}

/// Fails unless the result is as it should be, but for such a part of it.
pub fn check_close(
    what: &'static str,
    found: f64,
    expected: f64,
    tolerance: f64,
) -> Result<(), Wrong> {
    let is_close = (found - expected).abs() <= tolerance * expected.abs();
    check(what, if is_close { expected } else { found }, expected)
}

/// Keeps the shard busy for so many random numbers.
pub fn busy_wait(effort: usize) {
    let mut random = Random::new(effort as u64);
    for _ in 0..effort {
        std::hint::black_box(random.next());
    }
}

/// The shard of a number: they are dealt out in turn.
pub fn place(number: usize) -> ShardId {
    let system = Handle::current().expect("the benchmarks run on shards");
    system.shard(number)
}

/// Starts an actor on the shard of a number.
pub async fn start<A: Actor>(
    number: usize,
    make: impl FnOnce() -> A + Send + 'static,
) -> Result<Addr<A>, SpawnError> {
    let system = Handle::current().expect("the benchmarks run on shards");
    system.spawn_on(place(number), make).await
}

/// Starts so many actors, dealt out to the shards in turn. All are on their way before the first is waited for.
pub async fn start_many<A, F>(count: usize, make: F) -> Result<Vec<Addr<A>>, SpawnError>
where
    A: Actor,
    F: Fn(usize) -> A + Clone + Send + 'static,
{
    let starting: Vec<_> = (0..count)
        .map(|number| {
            let make = make.clone();
            start(number, move || make(number))
        })
        .collect();
    futures_util::future::try_join_all(starting).await
}
