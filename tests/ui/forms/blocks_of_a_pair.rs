//! Actors that one macro declares and that name each other.

#![allow(dead_code)]
#![deny(warnings)]

use greenroom::prelude::*;
macro_rules! pair {
    ($a:ident, $b:ident, $m:ident) => {
        struct $a {}
        #[actor]
        impl $a {
            pub fn $m(&mut self) -> $b {
                $b {}
            }
            pub async fn addr(&mut self, ctx: &mut Ctx<Self>) -> Addr<$b> {
                let _ = ctx;
                greenroom::spawn($b {})
            }
            #[message(local)]
            fn l(&self, x: Option<$b>) -> Option<std::rc::Rc<$b>> {
                x.map(std::rc::Rc::new)
            }
            #[on(started)]
            fn s(&mut self) {}
            #[every(100s)]
            fn t(&mut self) {}
            #[message(batch)]
            fn bb(&self, x: greenroom::Batch<(u8, $b)>) {
                drop(x)
            }
        }
        struct $b {}
        #[actor(trait = Shown)]
        impl $b {
            pub fn $m(
                &mut self,
                #[into]
                #[key]
                name: String,
            ) -> Result<String, $a> {
                Ok(name)
            }
            #[message(concurrent)]
            async fn cc(&self) -> Option<$a> {
                None
            }
        }
    };
}
pair!(First, Second, finish);
pub(crate) fn main() -> Result<(), greenroom::Error> {
    let system = System::start(1)?;
    system.run_on(0, || async {
        let f = greenroom::spawn(First {});
        let _ = f.finish().await?;
        let s = f.addr().await?;
        assert_eq!(s.finish("x").await.unwrap_or_default(), "x");
        let _ = s.cc().await?;
        f.bb(1, Second {}).await?;
        Addr::local(f).unwrap().l(None).await?;
        Ok(())
    })
}
