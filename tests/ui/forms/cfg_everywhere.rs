//! Conditions on the block, on methods of every role, and inside of `cfg_attr`.

#![allow(dead_code)]
#![deny(warnings)]
#![allow(unexpected_cfgs)]

use greenroom::prelude::*;

struct A(u8);
#[cfg(all())]
#[actor(trait = AApi)]
#[cfg(any(unix, windows))]
impl A {
    #[cfg(any())]
    pub fn gone(&self, x: Missing) -> Missing {
        x
    }

    #[cfg(all())]
    pub fn here(&self) -> u8 {
        self.0
    }

    #[cfg_attr(all(), cfg(any()))]
    pub fn gone2(&self, x: Missing) -> Missing {
        x
    }

    #[cfg_attr(any(), cfg(any()))]
    pub fn here2(&self) -> u8 {
        self.0
    }

    #[cfg(any())]
    #[message(local)]
    fn gone3(&self, x: Missing) -> Missing {
        x
    }

    #[cfg(any())]
    #[message(concurrent)]
    async fn gone4(&self, x: Missing) -> Missing {
        x
    }

    #[cfg(any())]
    #[message(batch)]
    async fn gone5(&self, x: greenroom::Batch<Missing>) {
        drop(x)
    }

    #[cfg(any())]
    #[message(boxed)]
    async fn gone6(
        &self,
        #[key]
        #[into]
        x: Missing,
    ) -> Result<Missing, Missing> {
        drop(x)
    }

    #[cfg(any())]
    #[on(started)]
    fn s1(&mut self) -> Missing {}
    #[cfg(not(any()))]
    #[on(started)]
    fn s2(&mut self) {
        self.0 = 7
    }

    #[cfg(any())]
    #[on(down)]
    fn d1(&mut self, m: Missing) {}
    #[cfg(any())]
    #[on(stopping)]
    async fn d2(&mut self) {
        missing()
    }

    #[cfg(any())]
    #[every(MISSING)]
    async fn e2(&mut self) {
        missing()
    }

    #[cfg(all())]
    #[every(100s)]
    async fn e3(&mut self) {}
    #[cfg(any())]
    #[skip]
    pub fn skipped(&self) -> Missing {}
    #[cfg(all())]
    #[cfg(any())]
    pub fn two(&self) -> Missing {}
    #[cfg_attr(
        all(),
        doc = "documented",
        allow(unused),
        inline,
        must_use,
        cold,
        track_caller
    )]
    pub fn docs(&self) -> u8 {
        1
    }

    #[cfg_attr(all(), expect(clippy::all), deprecated = "x")]
    pub fn depr(&self) -> u8 {
        1
    }
}

#[cfg(any())]
#[actor]
impl Gone {
    pub fn x(&self) {}
}

struct B;

#[actor]
#[cfg(any())]
impl B {
    pub fn x(&self) -> Missing {}
}

#[actor]
#[cfg(not(any()))]
impl B {
    pub fn x(&self) -> u8 {
        1
    }
}

struct C;

#[actor]
impl C {
    #![cfg(all())]

    pub fn x(&self) -> u8 {
        1
    }
}

struct D;
#[cfg_attr(all(), actor(mailbox = 3))]
impl D {
    pub fn x(&self) -> u8 {
        1
    }

    #[cfg_attr(any(), inline)]
    pub fn y(&self) {}
}

struct E;
#[cfg_attr(all(), greenroom::actor)]
impl E {
    pub fn x(&self) -> u8 {
        1
    }
}

struct OnlyGone(u8);

#[actor]
impl OnlyGone {
    #[cfg(any())]
    pub fn x(&self) -> Missing {}
    #[cfg(any())]
    #[message(local)]
    pub fn y(&self) -> Missing {}
    #[cfg(any())]
    #[message(concurrent)]
    pub async fn z(&self) -> Missing {}
    #[on(started)]
    fn s(&mut self) {
        self.0 = 1
    }
}

pub(crate) fn main() -> Result<(), greenroom::Error> {
    let system = System::start(1)?;
    system.run_on(0, || async {
        let a = greenroom::spawn(A(1));
        assert_eq!(a.here().await?, 7);
        assert_eq!(a.here2().await?, 7);
        let _ = a.docs().await?;
        #[expect(deprecated)]
        let _ = a.depr().await?;
        greenroom::spawn(B).x().await?;
        greenroom::spawn(C).x().await?;
        greenroom::spawn(D).x().await?;
        greenroom::spawn(D).y().await?;
        greenroom::spawn(E).x().await?;
        greenroom::spawn(OnlyGone(0));
        Ok(())
    })
}
