//! Parts of actors that come through `macro_rules!`, of each kind of fragment.

#![allow(dead_code)]
#![deny(warnings)]

use greenroom::prelude::*;

macro_rules! pieces {
    ($vis:vis $name:ident, $self:ident, $t:ty, $e:expr, $b:block, $p:pat, $lit:literal, $every:expr, $attr:meta, $($rest:tt)*) => {
        struct $name(u8);

        #[actor(mailbox = $e, name = $lit)]
        impl $name {
            #[$attr]
            $vis fn pat(&$self, $p: $t) -> u8 { $self.0 }
            $vis async fn blk(&mut $self) -> $t $b
            #[every($every)] fn tick(&mut $self) {}
            #[every($every, missed = burst)] fn tick2(&mut $self) {}
            $($rest)*
        }
    };
}

pieces!(pub(crate) P1, self, (u8, u8), 3 + 4, { (1, 2) }, (_, _), "p1", std::time::Duration::from_secs(100), inline, pub fn more(&self) -> u8 { 3 } #[message(local)] fn lo(&self, x: std::rc::Rc<u8>) -> std::rc::Rc<u8> { x });
pieces!(pub P2, self, [u8; 2], usize::MAX, { [1, 2] }, [_, ..], "p2", 100s, message,);
pieces!(pub P3, self, Vec<u8>, unbounded, { vec![] }, mut _x, "p3", std::time::Duration::new(100, 1), message(urgent), #[on(started)] fn st(&mut self) -> Result<(), String> { self.0 = 9; Ok(()) });
macro_rules! outer { ($($body:tt)*) => { inner! { struct Nest(u8); { $($body)* } } } }
macro_rules! inner { (struct $n:ident($t:ty); { $($body:tt)* }) => { struct $n($t); #[actor] impl $n { $($body)* } } }
outer! { pub fn a(&self, x: u8) -> u8 { self.0 + x } #[skip] pub fn b(&self) -> &u8 { &self.0 } pub fn c(&self, s: Box<Self>) -> Option<Self> { Some(*s) } }
macro_rules! gener { ($n:ident<$($p:ident : $b:path),*>, const $c:ident: $ct:ty) => {
    pub struct $n<$($p,)* const $c: $ct>($($p),*);

    #[actor(trait = GenApi)]
    impl<$($p: $b + Send + 'static,)* const $c: $ct> $n<$($p,)* $c> { pub fn put(&mut self, $(#[allow(unused)] $p: $p),*) -> $ct { $c } }
} }
#[allow(non_snake_case)]
mod gg {
    use greenroom::prelude::*;

    gener!(Gn<A: Clone, B: std::fmt::Debug>, const N: usize);
    pub fn mk() -> Gn<u8, u8, 3> {
        Gn(1, 2)
    }
}

macro_rules! meth { ($($n:ident => $t:ty = $e:expr),*) => { struct Many; #[actor] impl Many { $(pub fn $n(&self) -> $t { $e })* } } }
meth!(one => u8 = 1, two => Result<u8, ()> = Ok(2), three => std::io::Result<()> = Ok(()), four => Option<&'static str> = None);
macro_rules! vis { ($v:vis) => { struct V; #[actor] impl V { #[message] $v fn a(&self) {} } } }
vis!(pub(crate));
macro_rules! empty_vis { ($v:vis, $x:ident) => { struct EV; #[actor] impl EV { $v fn a(&self) {} pub fn b(&self) { self.a() } } } }
empty_vis!(, x);
macro_rules! two_same {
    ($n:ident) => {
        pub struct $n;
        #[greenroom::actor]
        impl $n {
            pub fn x(&self) -> &'static str {
                stringify!($n)
            }
        }
    };
}

two_same!(T1);
two_same!(T2);
macro_rules! dollar_crate {
    ($n:ident) => {
        struct $n;

        #[actor(crate = $crate::macro_fragments::fw)]
        impl $n {
            #[$crate::macro_fragments::fw::skip]
            pub fn s(&self) -> &u8 {
                &1
            }

            #[fw::message]
            fn x(&self) -> u8 {
                1
            }
        }
    };
}

pub use greenroom as fw;
dollar_crate!(Dc);
pub(crate) fn main() -> Result<(), greenroom::Error> {
    let system = System::start(1)?;
    system.run_on(0, || async {
        let p = greenroom::spawn(P1(1));
        assert_eq!(p.pat((1, 2)).await?, 1);
        assert_eq!(p.blk().await?, (1, 2));
        p.more().await?;
        Addr::local(p).unwrap().lo(std::rc::Rc::new(1)).await?;
        let p = greenroom::spawn(P2(1));
        assert_eq!(p.pat([1, 2]).await?, 1);
        p.blk().await?;
        let p = greenroom::spawn(P3(1));
        assert_eq!(p.pat(vec![]).await?, 9);
        p.blk().await?;
        let n = greenroom::spawn(Nest(1));
        assert_eq!(n.a(1).await?, 2);
        n.c(Box::new(Nest(1))).await?;
        Nest(1).b();
        assert_eq!(greenroom::spawn(gg::mk()).put(3, 4).await?, 3);
        let m = greenroom::spawn(Many);
        m.one().await?;
        m.two().await.unwrap();
        m.three().await.unwrap();
        m.four().await?;
        greenroom::spawn(V).a().await?;
        greenroom::spawn(EV).b().await?;
        greenroom::spawn(T1).x().await?;
        greenroom::spawn(T2).x().await?;
        greenroom::spawn(Dc).x().await?;
        Dc.s();
        Ok(())
    })
}
