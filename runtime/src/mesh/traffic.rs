//! Whether anything is on its way to other shards.

use crate::shard::context;

/// What the current shard has sent to others, since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// Where the writing ends of its links stand, added up: changes with each record.
    pub position: usize,
    /// Whether something was sent that has not been taken, or waits to be sent.
    pub is_under_way: bool,
}

/// What the current shard has sent to others; `None` on a thread that is no shard.
///
/// # Examples
/// ```
/// use greenroom_runtime::mesh;
/// let runtime = greenroom_runtime::Builder::new().shards(2).start()?;
/// let traffic = runtime.run_on(0, || async { mesh::traffic() });
/// assert_eq!(traffic.map(|traffic| traffic.is_under_way), Some(false));
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[must_use]
pub fn traffic() -> Option<Traffic> {
    context::with(|shard| {
        let mut traffic = Traffic::default();
        for peer in shard.team().shards() {
            let link = shard.link(peer).borrow();
            let (position, is_under_way) = link.traffic();
            traffic.position = traffic.position.wrapping_add(position);
            traffic.is_under_way |= is_under_way;
        }
        traffic
    })
}
