//! `Self` in types: its constants, its associated types, its functions.

#![deny(warnings)]
#![allow(dead_code)]

use greenroom::prelude::*;

trait Tr {
    type X;
    const C: usize;
    type G<T>;
}

struct S<T>(Vec<T>);

impl<T> Tr for S<T> {
    type X = Vec<T>;
    const C: usize = 3;
    type G<U> = Option<(T, U)>;
}

struct Flat(u8);

impl Tr for Flat {
    type X = u16;
    const C: usize = 2;
    type G<U> = Option<U>;
}

impl Flat {
    const N: usize = 4;
    const fn n() -> usize {
        4
    }
}

#[actor(trait = FlatApi, mailbox = Self::N)]
impl Flat {
    const M: usize = Self::N + <Self as Tr>::C;
    pub fn a(&self, x: [u8; Self::N], y: [u8; Self::M]) -> [u8; Self::N + 1] {
        let _ = (x, y);
        [0; 5]
    }

    pub fn b(&self, x: <Self as Tr>::X) -> <Self as Tr>::X {
        x
    }

    pub fn c(&self, x: [u8; <Self as Tr>::C]) -> <Self as Tr>::G<u8> {
        Some(x[0])
    }

    pub fn d(&self, x: [u8; Self::n()]) -> [u8; const { Self::N }] {
        x
    }

    pub fn e(&self, f: fn(&mut Self, &Self) -> Box<Self>) -> Option<Box<Self>> {
        let _ = f;
        None
    }

    pub fn f(&self, x: Box<dyn Fn(&Self) -> Self + Send>) -> Vec<Self> {
        let _ = x;
        vec![]
    }

    pub fn g(&self, a: Addr<Self>) -> Result<Addr<Self>, [u8; size_of::<Self>()]> {
        Ok(a)
    }

    pub fn h(&self, a: [u8; if Self::N > 3 { 1 } else { 2 }]) -> [u8; if true { 1 } else { 2 }] {
        a
    }
}

#[actor(trait = SApi)]
impl<T: Send + Clone + 'static> S<T> {
    pub fn x(&self, x: <Self as Tr>::X) -> <Self as Tr>::G<u8> {
        Some((x[0].clone(), 1))
    }

    pub fn y(&self, x: Box<Self>) -> Self {
        *x
    }

    pub fn z(&self, p: std::marker::PhantomData<fn(Self) -> Self>) -> usize {
        size_of_val(&p)
    }
}

pub(crate) fn main() -> Result<(), greenroom::Error> {
    let system = System::start(1)?;
    system.run_on(0, || async {
        let f = greenroom::spawn(Flat(1));
        assert_eq!(f.a([0; 4], [0; 6]).await?, [0; 5]);
        assert_eq!(f.b(3).await?, 3);
        assert_eq!(f.c([7; 2]).await?, Some(7));
        assert_eq!(f.d([7; 4]).await?, [7; 4]);
        assert!(f.e(|_, _| Box::new(Flat(1))).await?.is_none());
        assert!(f.f(Box::new(|f| Flat(f.0))).await?.is_empty());
        assert!(f.g(f).await.is_ok());
        assert_eq!(f.h([1]).await?, [1]);
        let s = greenroom::spawn(S(vec![1u8]));
        assert_eq!(s.x(vec![4]).await?, Some((4, 1)));
        assert_eq!(s.y(Box::new(S(vec![]))).await?.0.len(), 0);
        s.z(std::marker::PhantomData).await?;
        Ok(())
    })
}
