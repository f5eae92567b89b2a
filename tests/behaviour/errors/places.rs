//! A panic of the framework is about the code that called it, and says where that is.

use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{Handle, Topic};
use greenroom_tests::on_shards;

const TOO_SHORT: Duration = Duration::from_micros(10);

/// Does what it should not, in one way after the other.
struct Careless {
    parts: Option<Sharded<Part>>,
}

#[derive(Default)]
struct Part;

#[actor]
impl Part {
    pub(crate) fn touch(&self) {}
}

#[actor]
impl Careless {
    pub(crate) fn ask_a_shard_that_is_not_there(&self) {
        let parts = self.parts.as_ref().unwrap();
        let _ = parts.on(999);
    }

    pub(crate) fn hurry(&self, ctx: &mut Ctx<Self>) {
        drop(ctx.every(TOO_SHORT).hurry());
    }

    pub(crate) fn listen_without_room(&self) {
        let topic: Topic<u8> = Topic::new(&Handle::current().unwrap());
        drop(topic.subscribe(0));
    }
}

struct Hasty;

#[actor]
impl Hasty {
    #[every(TOO_SHORT)]
    fn hurry(&self) {}
}

/// Where this file is, as a panic tells it.
fn here(text: &str) -> bool {
    text.contains(file!())
}

#[test]
fn a_panic_of_a_call_to_the_framework_is_where_the_call_is() {
    on_shards(&[1, 2], |system| {
        let careless = || {
            let parts = system.block_on(system.spawn_sharded(|_| Part)).unwrap();
            let spawned = system.spawn_on(0, || Careless { parts: Some(parts) });
            system.block_on(spawned).unwrap()
        };
        let errors = [
            careless().ask_a_shard_that_is_not_there().blocking(),
            careless().hurry().blocking(),
            careless().listen_without_room().blocking(),
        ];
        for error in errors.map(Result::unwrap_err) {
            let place = error.panic().unwrap().place().unwrap();
            assert!(here(place), "{error}");
        }
        let error = system.block_on(system.spawn_on(0, || Hasty)).unwrap_err();
        assert!(here(&error.to_string()), "{error}");
    });
}
