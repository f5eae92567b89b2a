//! The crate under another path.

#![forbid(unsafe_code)]
#![deny(warnings)]

mod vendored {
    pub use greenroom as actors;
}

use vendored::actors::prelude::*;

struct Renamed;

#[vendored::actors::actor(crate = crate::vendored::actors, mailbox = 3)]
impl Renamed {
    #[vendored::actors::message(local)]
    pub fn ping(&self) {}

    #[actors::skip]
    pub fn pong(&self) {}
}

fn calls(address: Local<Renamed>) {
    drop(address.ping());
}

fn main() {
    let _ = calls;
    Renamed.pong();
    assert_eq!(<Renamed as vendored::actors::Actor>::MAILBOX, 3);
}
