//! An actor is a struct, an enum or a union, with fields or without, of known parameters or not.

#![deny(warnings)]
#![allow(dead_code)]

use greenroom::prelude::*;

enum En {
    A(u8),
    B { x: u8 },
}

#[actor]
impl En {
    pub fn get(&self) -> u8 {
        match self {
            En::A(x) | En::B { x } => *x,
        }
    }

    pub fn flip(&mut self) {
        *self = Self::B { x: 3 }
    }
}

#[derive(Clone, Copy)]
union Un {
    a: u32,
    b: [u8; 4],
}

#[actor]
impl Un {
    pub fn get(&self) -> u32 {
        unsafe { self.a }
    }

    pub fn set(&mut self, b: [u8; 4]) {
        self.b = b
    }
}

struct Tup(u8, String);

#[actor]
impl Tup {
    pub fn get(&self) -> (u8, String) {
        (self.0, self.1.clone())
    }
}

struct Unit;

#[actor]
impl Unit {
    pub fn get(&self) {}
}

enum Never {}
#[actor]
impl Never {
    pub fn get(&self) -> u8 {
        match *self {}
    }
}

struct Unsized0<T: ?Sized>(Box<T>);

#[actor]
impl<T: ?Sized + std::fmt::Debug + Send + 'static> Unsized0<T> {
    pub fn show(&self) -> String {
        format!("{:?}", self.0)
    }

    pub fn take(&mut self, b: Box<T>) {
        self.0 = b
    }
}

struct Ar<T, const N: usize, const B: bool, const C: char>([T; N]);

#[actor]
impl<T: Copy + Send + 'static, const N: usize, const C: char> Ar<T, N, true, C> {
    pub fn get(&self) -> ([T; N], char) {
        (self.0, C)
    }
}

struct Spec<T>(T);

#[actor]
impl Spec<Vec<u8>> {
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

struct Dflt<T = u8, const N: usize = 2>([T; N]);

#[actor]
impl Dflt {
    pub fn get(&self) -> [u8; 2] {
        self.0
    }
}

pub(crate) fn main() -> Result<(), greenroom::Error> {
    let system = System::start(1)?;
    system.run_on(0, || async {
        let e = greenroom::spawn(En::A(1));
        e.flip().await?;
        assert_eq!(e.get().await?, 3);
        let u = greenroom::spawn(Un { a: 1 });
        u.set([0; 4]).await?;
        assert_eq!(u.get().await?, 0);
        assert_eq!(greenroom::spawn(Tup(1, "a".into())).get().await?.0, 1);
        greenroom::spawn(Unit).get().await?;
        let _: Option<Addr<Never>> = None;
        assert_eq!(
            greenroom::spawn(Ar::<u8, 1, true, 'x'>([1])).get().await?,
            ([1], 'x')
        );
        assert_eq!(greenroom::spawn(Spec(vec![1])).len().await?, 1);
        assert_eq!(greenroom::spawn(Dflt([1, 2])).get().await?, [1, 2]);
        Ok(())
    })
}
