//! What may stand in the block besides messages, and traits with methods of the same names.

#![allow(dead_code)]
#![deny(warnings)]

use greenroom::prelude::*;

#[derive(Debug)]
struct A(u8);

#[actor]
impl A {
    pub const X: u8 = 3;
    pub(crate) const Y: fn(u8) -> u8 = |x| x + 1;
    const Z: [u8; 2] = [1, { 2 }];
    pub const fn cf() -> u8 {
        1
    }

    pub fn make() -> Self {
        Self(1)
    }

    pub async fn amake() -> Self {
        Self(1)
    }

    pub unsafe fn us() {}
    pub extern "C" fn ex() {}
    pub fn gen_fn<T: Default>() -> T {
        T::default()
    }

    pub fn with_impl(_x: impl Sized) -> impl Sized {}
    pub fn other(this: &Self) -> u8 {
        this.0
    }

    fn by_value(self) -> u8 {
        self.0
    }

    fn boxed(self: Box<Self>) -> u8 {
        self.0
    }

    fn borrowed<'a>(&'a self, x: &'a str) -> &'a str {
        x
    }

    fn generic<T>(&self, x: T) -> T {
        x
    }

    fn priv_fn(&self) -> impl Iterator<Item = u8> + '_ {
        std::iter::once(self.0)
    }

    unsafe fn uns(&self) {}
    pub fn typed(self: &Self, y: u8) -> u8 {
        self.0 + y
    }

    pub fn typed_mut(self: &mut Self, y: u8) {
        self.0 += y
    }

    pub fn lt<'a>(&'a self) -> u8 {
        self.0
    }

    pub fn lt2<'a, 'b: 'a>(self: &'a Self, y: &'static str) -> u8 {
        let _: &'b str = y;
        self.0
    }

    pub async fn am(&self) -> u8 {
        self.0
    }

    pub async fn amm(&mut self, x: u8) -> u8 {
        self.0 = x;
        self.0
    }

    #[skip]
    pub fn sk(&self) -> &u8 {
        &self.0
    }

    #[skip]
    pub fn sk2<T>(self, x: T) -> T {
        x
    }

    #[message]
    fn private(&self) -> u8 {
        self.0
    }
}

impl A {
    pub fn plain(&self) -> u8 {
        self.0
    }
}

impl std::fmt::Display for A {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

trait Tr {
    fn am(&self) -> u8;
    fn typed(&mut self, y: u8) -> u8;
    fn private(self) -> u8;
}

impl Tr for A {
    fn am(&self) -> u8 {
        100
    }

    fn typed(&mut self, _: u8) -> u8 {
        100
    }

    fn private(self) -> u8 {
        100
    }
}

pub(crate) fn main() -> Result<(), greenroom::Error> {
    let _ = (
        A::X,
        A::Y,
        A::Z,
        A::cf(),
        A::gen_fn::<u8>(),
        A::with_impl(1),
        A::other(&A(1)),
        A(1).by_value(),
        Box::new(A(1)).boxed(),
        A(1).borrowed("").len(),
        A(1).generic(1),
        A(1).priv_fn().count(),
        A::ex(),
    );
    unsafe {
        A::us();
        A(1).uns();
    }

    let _ = (
        A(1).sk(),
        A(1).sk2(1),
        A(1).plain(),
        A(1).to_string(),
        Tr::am(&A(1)),
        Tr::typed(&mut A(1), 1),
        Tr::private(A(1)),
    );
    let system = System::start(1)?;
    system.run_on(0, || async {
        let a = greenroom::spawn(A::amake().await);
        let _ = A::make();
        assert_eq!(a.typed(1).await?, 2);
        a.typed_mut(1).await?;
        assert_eq!(a.lt().await?, 2);
        a.lt2("a").await?;
        assert_eq!(a.am().await?, 2);
        a.amm(1).await?;
        assert_eq!(a.private().await?, 1);
        Ok(())
    })
}
