//! Actors written by `macro_rules!`, whose fragments arrive in groups without delimiters.

#![forbid(unsafe_code)]
#![deny(warnings)]

use greenroom::prelude::*;

macro_rules! holder {
    (
        $(#[$meta:meta])*
        $vis:vis $name:ident<$t:ty>, $method:ident, $param:ident: $arg:ty, $reply:ty, $body:block
    ) => {
        struct $name($t);

        #[actor]
        impl $name {
            $(#[$meta])*
            $vis fn $method(&mut self, $param: $arg) -> $reply {
                self.0 = $param;
                self.twice();
                self.0.clone()
            }

            pub async fn run(&mut self) $body

            fn twice(&mut self) {
                let twice = self.0.clone();
                self.0 = twice;
            }
        }
    };
}

holder!(
    /// Documented.
    #[allow(clippy::missing_errors_doc)]
    pub Text<String>, set, value: String, String, {}
);
holder!(pub(crate) Number<u8>, put, args: u8, u8, {});

/// The type, the context, the reply and an expression are fragments.
macro_rules! for_type {
    ($t:ty, $ctx:ty, $reply:ty, $result:ty, $room:expr, $item:item) => {
        #[actor(mailbox = $room)]
        impl $t {
            pub fn get(&mut self, _ctx: $ctx) -> $result {
                Ok(1)
            }

            pub fn later(&mut self, reply: $reply) {
                reply.send(2);
            }
        }

        #[actor]
        $item
    };
}

struct Typed;
struct Whole;

for_type!(
    Typed,
    &mut Ctx<Typed>,
    Reply<u8>,
    Result<u8, ()>,
    4 + 4,
    impl Whole {
        pub fn ping(&self) {}
    }
);

/// `self` comes from the macro, the body from its caller.
macro_rules! with_self {
    ($self:ident, $($body:tt)*) => {
        struct Bodies(u8);

        #[actor]
        impl Bodies {
            pub fn value(&$self) -> u8 {
                $($body)*
            }
        }
    };
}

with_self!(self, self.0);

fn calls(text: Addr<Text>, number: Addr<Number>, typed: Addr<Typed>, whole: Addr<Whole>) {
    drop(text.set(String::new()));
    drop(text.run());
    drop(number.put(1));
    drop(typed.get());
    drop(typed.later());
    drop(whole.ping());
}

fn main() {
    let _ = (calls, Bodies(1).0);
}
