//! A call is as visible as its method.

#![forbid(unsafe_code)]
#![deny(warnings, unreachable_pub)]

use greenroom::prelude::*;

mod inner {
    use greenroom::prelude::*;

    pub(crate) struct Door {
        pub(crate) is_open: bool,
    }

    #[actor]
    impl Door {
        pub(crate) fn open(&mut self) {
            self.is_open = true;
        }

        pub(super) fn close(&mut self) {
            self.is_open = false;
        }

        pub(in crate::inner) fn lock(&mut self) {}

        #[message]
        fn knock(&self) -> bool {
            self.is_open
        }
    }

    pub(crate) fn calls(door: Addr<Door>) {
        drop(door.lock());
        drop(door.knock());
    }
}

fn calls(door: Addr<inner::Door>) {
    drop(door.open());
    drop(door.close());
    inner::calls(door);
}

fn main() {
    let _ = calls;
    let _ = inner::Door { is_open: false };
}
