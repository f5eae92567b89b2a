//! Patterns as parameters: nested, bound, ranges, references, in messages of each kind.

#![allow(dead_code)]
#![deny(warnings)]

use greenroom::prelude::*;

struct P {
    a: u8,
    b: (u8, String),
    c: [u8; 2],
}

struct W<T>(T);
struct A(u8);
const K: u8 = 3;

#[actor]
impl A {
    pub fn a(
        &self,
        P {
            a, b: (c, ref d), ..
        }: P,
    ) -> u8 {
        let _ = d;
        a + c
    }

    pub fn b(&self, W(W(W(mut x))): W<W<W<u8>>>) -> u8 {
        x += 1;
        x
    }

    pub fn c(&self, [a, rest @ ..]: [u8; 3], (_, .., z): (u8, u8, u8)) -> u8 {
        a + rest[0] + z
    }

    pub fn d(&self, x @ (0..=255): u8, y @ _: u8) -> u8 {
        x + y
    }

    pub fn e(&self, a: u8, (true | false): bool) -> u8 {
        a
    }

    pub fn f(&self, _: u8, _: u8, _: &mut Ctx<Self>, _: Vec<u8>) {}
    pub fn g(&self, ref x: u8, ref mut y: u8, mut z: u8) -> u8 {
        *y += 1;
        z += 1;
        *x + *y + z
    }

    pub fn h(&self, &x: &'static u8, &(ref y, _): &'static (String, u8)) -> u8 {
        x + y.len() as u8
    }

    #[allow(unused_parens)]
    pub fn i(&self, (x): u8) -> u8 {
        x
    }

    pub fn j(&self, P { a, c: [_, c], b: _ }: P, (): (), W(()): W<()>) -> u8 {
        a + c
    }

    pub fn k(
        &self,
        self::P { a, .. }: self::P,
        crate::patterns_of_each_kind::W::<u8>(b): crate::patterns_of_each_kind::W<u8>,
    ) -> u8 {
        a + b
    }

    #[message(boxed)]
    pub fn l(&self, (a, b): (u8, u8), _: [u64; 32], mut c: String) -> String {
        c.push_str(&format!("{}", a + b));
        c
    }

    #[message(local)]
    pub fn m(&self, (a, b): (std::rc::Rc<u8>, u8), _: std::rc::Rc<u8>) -> u8 {
        *a + b
    }

    #[message(concurrent)]
    pub async fn n(&self, (a, b): (u8, u8), mut c: u8) -> u8 {
        c += 1;
        a + b + c
    }

    #[message(batch)]
    pub fn o(&self, mut b: greenroom::Batch<(u8, (u8, u8))>) -> usize {
        let n = b.len();
        let c = &mut b;
        let _ = c;
        drop(b);
        n
    }

    pub fn p(
        &self,
        #[into] mut s: String,
        #[into] (a, b): (u8, u8),
        #[key]
        #[into]
        [x, y]: [u8; 2],
    ) -> u8 {
        s.push('x');
        a + b + x + y
    }

    pub fn q(&self, mut reply: Reply<u8>, W(x): W<u8>) {
        let r = &mut reply;
        let _ = r;
        reply.send(x)
    }

    pub fn r(&self, (0..K | K..): u8) {}
    pub fn arg(&self, arg1: u8, _: u8, arg0: u8, (a, b): (u8, u8), arg4: u8) -> u8 {
        arg1 + arg0 + a + b + arg4
    }
}

pub(crate) fn main() -> Result<(), greenroom::Error> {
    let system = System::start(1)?;
    let p = || P {
        a: 1,
        b: (2, "x".into()),
        c: [3, 4],
    };
    system.run_on(0, move || async move {
        let a = greenroom::spawn(A(1));
        assert_eq!(a.a(p()).await?, 3);
        assert_eq!(a.b(W(W(W(1)))).await?, 2);
        assert_eq!(a.c([1, 2, 3], (1, 2, 3)).await?, 6);
        a.d(1, 2).await?;
        a.e(1, true).await?;
        a.f(1, 2, vec![]).await?;
        assert_eq!(a.g(1, 2, 3).await?, 8);
        a.h(&3, Box::leak(Box::new(("a".into(), 1)))).await?;
        a.i(1).await?;
        assert_eq!(a.j(p(), (), W(())).await?, 5);
        a.k(p(), W(2)).await?;
        assert_eq!(a.l((1, 2), [0; 32], "x".into()).await?, "x3");
        Addr::local(a)
            .unwrap()
            .m((std::rc::Rc::new(1), 2), std::rc::Rc::new(3))
            .await?;
        a.n((1, 2), 3).await?;
        a.o(1, (2, 3)).await?;
        assert_eq!(a.p("x", (1, 2), [3, 4]).await?, 10);
        assert_eq!(a.q(W(7)).await?, 7);
        a.r(3).await?;
        assert_eq!(a.arg(1, 2, 3, (4, 5), 6).await?, 19);
        Ok(())
    })
}
