//! Macros that make types, methods, whole blocks, and the attribute itself.

#![allow(dead_code)]
#![deny(warnings)]

mod mac_items {
    use greenroom::prelude::*;

    macro_rules! const_of {
        ($e:expr) => {
            $e
        };
    }

    macro_rules! type_alias_free {
        () => {};
    }

    macro_rules! ty { ($t:ty) => { Vec<$t> }; () => { u8 } }
    macro_rules! helper {
        ($n:ident) => {
            fn $n(&self) -> u8 {
                self.0
            }
        };
    }

    struct A(u8);

    #[actor(trait = AApi)]
    impl A {
        helper!(h1);
        helper! { h2 }
        self::pathmac::helper2!(h3);
        pub fn a(&self, x: ty!(u8), y: ty!()) -> ty!(u8) {
            let mut x = x;
            x.push(y);
            x.push(self.h1() + self.h2() + self.h3());
            x
        }

        pub fn b(&self, x: Option<ty!(ty!())>) -> Result<ty!(u8), ty!()> {
            x.ok_or(1)
        }

        #[message(local)]
        pub fn c(&self, x: std::rc::Rc<ty!()>) -> ty!(std::rc::Rc<u8>) {
            vec![x]
        }

        pub fn arr(&self, x: [u8; const_of!(2)]) -> [u8; const_of!(2)] {
            x
        }

        type_alias_free! {}
    }

    mod pathmac {
        macro_rules! helper2 {
            ($n:ident) => {
                fn $n(&self) -> u8 {
                    self.0
                }
            };
        }

        pub(crate) use helper2;
    }

    pub fn main() -> Result<(), greenroom::Error> {
        let system = System::start(1)?;
        system.run_on(0, || async {
            let a = greenroom::spawn(A(1));
            assert_eq!(a.a(vec![1], 2).await?, [1, 2, 3]);
            a.b(None).await.unwrap_err();
            Addr::local(a).unwrap().c(std::rc::Rc::new(1)).await?;
            a.arr([1, 2]).await?;
            Ok(())
        })
    }
}

mod from_macro_attr {
    use greenroom::prelude::*;

    macro_rules! as_item {
        ($i:item) => {
            $i
        };
    }

    struct A(u8);
    as_item! { #[actor] impl A { pub fn x(&self) -> u8 { self.0 } } }
    macro_rules! attr_item {
        ($a:meta, $i:item) => {
            #[$a]
            $i
        };
    }

    struct B(u8);
    attr_item! { actor(mailbox = 4), impl B { pub fn x(&self) -> u8 { self.0 } } }
    macro_rules! items { ($($i:item)*) => { $(#[actor] $i)* } }
    struct C(u8);
    struct D(u8);
    items! { impl C { pub fn x(&self) -> u8 { self.0 } } impl D { /// docs
    #[message(local)] pub fn x(&self) -> u8 { self.0 } pub fn y(&mut self, #[into] #[key] z: String) -> String { z } } }
    macro_rules! fns { ($($f:item)*) => { struct E(u8); #[actor] impl E { $($f)* } } }
    fns! { pub fn yes(&self) -> u8 { self.0 } fn not() {} #[message] fn mm(&self) {} }
    mod m {
        macro_rules! local {
            () => {
                struct F;
                #[greenroom::actor]
                impl F {
                    pub fn x(&self) {}
                }

                fn chk(a: greenroom::Addr<F>) {
                    drop(a.x())
                }
            };
        }

        local!();
        pub fn c() {
            let _ = chk;
        }
    }

    pub fn main() -> Result<(), greenroom::Error> {
        m::c();
        let system = System::start(1)?;
        system.run_on(0, || async {
            greenroom::spawn(A(1)).x().await?;
            greenroom::spawn(B(1)).x().await?;
            greenroom::spawn(C(1)).x().await?;
            assert_eq!(greenroom::spawn(D(1)).y("a").await?, "a");
            Ok(())
        })
    }
}

pub(crate) fn main() -> Result<(), greenroom::Error> {
    mac_items::main()?;
    from_macro_attr::main()?;
    Ok(())
}
