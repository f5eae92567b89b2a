//! Parameters of each kind, some of them called like those of generated code.

#![allow(dead_code)]
#![deny(warnings)]

use greenroom::prelude::*;
use std::marker::PhantomData;

struct P<P, T = P>(P, PhantomData<T>);

#[actor]
impl<P: Send + Clone + 'static, T: 'static> P0<P, T> {
    pub fn x(&self, p: P) -> P {
        p
    }
}

type P0<A, B> = P<A, B>;
struct L<P1, L1, I>(PhantomData<(P1, L1, I)>);

#[actor]
impl<P1: 'static, L1: 'static, I: 'static> L<P1, L1, I> {
    pub fn x(&self, #[into] a: String, #[into] b: String) -> String {
        a + &b
    }

    #[message(local)]
    pub fn l(&self) {}
}

struct R<R, E>(PhantomData<(R, E)>);

#[actor]
impl<R1: Send + Clone + 'static, E1: Send + 'static> R<R1, E1> {
    pub fn x(&self, r: Result<R1, E1>) -> Result<R1, E1> {
        r
    }

    pub fn y(&self, r: R1, reply: Reply<R1>) {
        reply.send(r)
    }

    #[on(started)]
    fn s(&mut self, _: &mut Ctx<Self>) {}
}

struct Cn<const A: bool, const B: i128, const C: char, const D: usize>;

#[actor(mailbox = D + 1, name = "cn")]
impl<const A: bool, const B: i128, const C: char, const D: usize> Cn<A, B, C, D> {
    pub fn x(&self, a: [u8; D]) -> (bool, i128, char, [u8; D]) {
        (A, B, C, a)
    }

    #[message(local)]
    fn l(&self, a: [u8; D]) -> [u8; D] {
        a
    }

    #[message(concurrent)]
    async fn c(&self) -> usize {
        D
    }

    #[message(batch)]
    fn b(&self, b: greenroom::Batch<[u8; D]>) {
        drop(b)
    }
}

struct Wc<T>(T);

#[actor(trait = WcApi)]
impl<T> Wc<T>
where
    T: Iterator + 'static,
    T::Item: Send + Clone + PartialEq,
    Vec<T::Item>: Send,
    for<'a> &'a T::Item: PartialEq,
    (): Sized,
{
    pub fn x(&mut self, i: T::Item) -> Option<T::Item> {
        self.0.find(|j| *j == i)
    }
}

struct Dyn<T: ?Sized>(Box<T>);
trait Speak: Send {
    fn s(&self) -> u8;
}

#[actor]
impl Dyn<dyn Speak> {
    pub fn x(&self) -> u8 {
        self.0.s()
    }

    pub fn y(&mut self, n: Box<dyn Speak>) {
        self.0 = n
    }
}

struct S8;

impl Speak for S8 {
    fn s(&self) -> u8 {
        8
    }
}

struct TT<T>(PhantomData<T>);

#[actor]
impl<T> TT<T>
where
    T: 'static,
{
    pub fn x(&self) -> &'static str {
        std::any::type_name::<T>()
    }

    pub fn own(&self) -> usize {
        size_of::<T>()
    }

    #[every(100s)]
    fn t(&mut self) {}
}

struct Fp<A, B>(fn(A) -> B);

#[actor]
impl<A: Send + 'static, B: Send + 'static> Fp<A, B> {
    pub fn x(&self, a: A) -> B {
        (self.0)(a)
    }

    pub fn set(&mut self, f: fn(A) -> B) {
        self.0 = f
    }
}

struct Bd<T: std::fmt::Debug + Clone>(T);

#[actor]
impl<T: std::fmt::Debug + Clone> Bd<T> {
    pub fn x(&self) -> String {
        format!("{:?}", self.0)
    }
}

pub(crate) fn main() -> Result<(), greenroom::Error> {
    let system = System::start(1)?;
    system.run_on(0, || async {
        assert_eq!(greenroom::spawn(P(1u8, PhantomData::<u8>)).x(3).await?, 3);
        let l = greenroom::spawn(L::<u8, u8, u8>(PhantomData));
        assert_eq!(l.x("a", 'b').await?, "ab");
        Addr::local(l).unwrap().l().await?;
        let r = greenroom::spawn(R::<u8, u8>(PhantomData));
        assert_eq!(r.x(Ok(1)).await.unwrap(), 1);
        assert_eq!(r.y(1).await?, 1);
        let c = greenroom::spawn(Cn::<true, -1, 'x', 2>);
        assert_eq!(c.x([1, 2]).await?, (true, -1, 'x', [1, 2]));
        c.c().await?;
        c.b([1, 2]).await?;
        assert_eq!(greenroom::spawn(Wc(0u8..9)).x(3).await?, Some(3));
        let d = greenroom::spawn(Dyn::<dyn Speak>(Box::new(S8)));
        assert_eq!(d.x().await?, 8);
        d.y(Box::new(S8)).await?;
        assert_eq!(
            greenroom::spawn(TT::<std::rc::Rc<u8>>(PhantomData))
                .own()
                .await?,
            8
        );
        assert_eq!(greenroom::spawn(Fp(|x: u8| x as u16)).x(3).await?, 3u16);
        assert_eq!(greenroom::spawn(Bd(1)).x().await?, "1");
        Ok(())
    })
}
