//! Actors called like what generated code names, behind aliases and paths, twice in a file.

#![allow(dead_code)]
#![deny(warnings)]

use self::p::{Addr, actor};
use greenroom::prelude as p;

#[allow(non_camel_case_types)]
struct r#type(u8);

#[actor]
impl r#type {
    pub fn get(&self) -> u8 {
        self.0
    }
}

#[allow(non_camel_case_types)]
struct lower(u8);

#[actor]
impl lower {
    pub fn get(&self) -> u8 {
        self.0
    }
}

mod a {
    use greenroom::prelude::*;

    pub struct Actor(pub u8);

    #[actor]
    impl Actor {
        pub fn get(&self) -> u8 {
            self.0
        }
    }

    pub struct Call(pub u8);

    #[actor]
    impl Call {
        pub fn get(&self) -> u8 {
            self.0
        }
    }

    pub struct Remote(pub u8);

    #[actor]
    impl Remote {
        pub fn get(&self) -> u8 {
            self.0
        }
    }

    pub struct Self_(pub u8);

    #[actor]
    impl Self_ {
        pub fn get(&self) -> u8 {
            self.0
        }
    }

    pub struct Message(pub u8);

    #[actor(trait = Way)]
    impl Message {
        pub fn get(&self) -> u8 {
            self.0
        }
    }

    pub struct Result(pub u8);

    #[actor]
    impl Result {
        pub fn get(&self) -> u8 {
            self.0
        }

        pub fn r(&self) -> std::result::Result<u8, ()> {
            Ok(1)
        }

        pub fn s(&self, r: Box<Result>) -> u8 {
            r.0
        }
    }
}

mod b {
    use greenroom::prelude::actor;

    pub struct Addr(pub u8);

    #[actor]
    impl Addr {
        pub fn get(&self) -> u8 {
            self.0
        }
    }

    pub struct Ctx(pub u8);

    #[actor]
    impl self::Ctx {
        pub fn get(&self) -> u8 {
            self.0
        }
    }

    pub struct Option(pub u8);

    #[actor]
    impl crate::names_of_actors::b::Option {
        pub fn get(&self) -> u8 {
            self.0
        }

        pub fn on(&self, x: std::option::Option<u8>) -> u8 {
            x.unwrap()
        }
    }

    pub struct Reply(pub u8);

    #[actor]
    impl super::b::Reply {
        pub fn get(&self, r: Reply) -> Reply {
            r
        }
    }

    pub struct Box(pub u8);

    #[actor]
    impl Box {
        #[message(boxed)]
        pub fn get(&self, r: Box) -> Box {
            r
        }
    }

    pub struct String(pub u8);

    #[actor]
    impl String {
        #[on(started)]
        fn st(&mut self) -> Result<(), std::string::String> {
            Ok(())
        }

        pub fn get(&self, r: String) -> String {
            r
        }
    }

    pub struct __Counter(pub u8);

    #[actor]
    impl __Counter {
        pub fn get(&self) -> u8 {
            self.0
        }
    }

    #[allow(non_camel_case_types)]
    pub struct usized(pub u8);
    #[allow(non_camel_case_types)]
    #[actor(mailbox = 3)]
    impl usized {
        pub fn get(&self, #[key] x: u64) -> u64 {
            x
        }
    }
}

mod c {
    pub struct Counter(pub u8);
}

use c::Counter as Kounter;

#[actor]
impl Kounter {
    pub fn get(&self) -> u8 {
        self.0
    }
}

type Alias = d::Inner;
mod d {
    pub struct Inner(pub u8);
}

#[actor]
impl Alias {
    pub fn get(&self) -> u8 {
        self.0
    }
}

type GAlias<T> = d2::Inner<T, u8>;
mod d2 {
    pub struct Inner<A, B>(pub A, pub B);
}

#[actor]
impl<T: Clone + Send + 'static> GAlias<T> {
    pub fn get(&self) -> (T, u8) {
        (self.0.clone(), self.1)
    }
}

mod e {
    pub struct Twice;
    #[greenroom::actor]
    impl Twice {
        pub fn get(&self) -> u8 {
            1
        }
    }
}

mod f {
    pub struct Twice;
    #[greenroom::actor]
    impl Twice {
        pub fn get(&self) -> u8 {
            2
        }
    }
}

fn g() -> u8 {
    struct Twice(u8);

    #[actor]
    impl Twice {
        pub fn get(&self) -> u8 {
            self.0
        }
    }

    let t = Twice(1);
    let _: Option<Addr<Twice>> = None;
    t.get()
}

fn h() -> u8 {
    struct Twice(u8);

    impl Twice {
        fn more(&self) -> u8 {
            self.0
        }
    }

    #[actor(trait = Tw)]
    impl Twice {
        pub fn get(&self) -> u8 {
            self.more()
        }
    }

    let _: Option<Box<dyn Tw>> = None;
    Twice(1).get()
}

pub(crate) fn main() {
    g();
    h();
    let _ = |a: Addr<e::Twice>,
             b: Addr<f::Twice>,
             c: Addr<r#type>,
             d: Addr<lower>,
             e: Addr<Kounter>,
             f: Addr<Alias>,
             g: Addr<GAlias<u8>>| {
        let _ = (
            a.get(),
            b.get(),
            c.get(),
            d.get(),
            e.get(),
            f.get(),
            g.get(),
        );
    };
    let _ = |a: Addr<b::Addr>, b: Addr<b::Ctx>, c: Addr<b::Reply>, d: Addr<b::Box>| {
        let _ = (a.get(), b.get(), c.get(b::Reply(1)), d.get(b::Box(1)));
    };
    let _ = |a: Addr<b::String>, b: Addr<b::usized>| {
        let _ = (a.get(b::String(1)), b.get(1));
    };
}
