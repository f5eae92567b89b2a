//! Where a panic says it is, when a thread that is no shard calls what only shards may.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{PoisonError, mpsc};
use std::thread;

use greenroom::prelude::*;
use greenroom::{ShardNames, Topic};
use greenroom_tests::bounded;

use super::{TURNS, start};

struct Part;

#[actor]
impl Part {
    pub(crate) fn touch(&self) {}
}

#[test]
fn a_panic_off_the_shards_is_where_the_call_is() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    bounded("calls from a thread that is no shard", || {
        let system = start(2, "place");
        let parts = system.block_on(system.spawn_sharded(|_| Part)).unwrap();
        let topic: Topic<u8> = Topic::new(system.handle());

        // Only the hook of the process is told the place; for others it does what it did.
        let me = thread::current().id();
        let (seen, places) = mpsc::channel();
        let of_others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if thread::current().id() == me {
                drop(seen.send(info.location().map(ToString::to_string)));
            } else {
                of_others(info);
            }
        }));
        let wrong: [&dyn Fn(); 4] = [
            &|| _ = greenroom::spawn(Part),
            &|| _ = parts.local(),
            &|| drop(ShardNames::current()),
            &|| drop(topic.subscribe(1)),
        ];
        let outcomes = wrong.map(|call| panic::catch_unwind(AssertUnwindSafe(call)));
        drop(panic::take_hook());

        assert!(outcomes.iter().all(Result::is_err));
        let places: Vec<String> = places.try_iter().flatten().collect();
        let is_here = |place: &String| place.starts_with(file!());
        assert!(
            places.len() == 4 && places.iter().all(is_here),
            "{places:?}"
        );
    });
}
