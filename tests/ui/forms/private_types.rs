//! Private types in messages that few may send.

#![allow(dead_code)]
#![deny(
    warnings,
    private_interfaces,
    private_bounds,
    unreachable_pub,
    unnameable_types
)]
use greenroom::prelude::*;

mod deep {
    use greenroom::prelude::*;

    pub(crate) mod er {
        use greenroom::prelude::*;

        #[derive(Debug, Clone, PartialEq)]
        pub(in crate::private_types::deep) struct Hidden(pub(in crate::private_types::deep) u8);
        pub(crate) struct Inner(pub(crate) u8);

        #[actor(trait = InnerApi)]
        impl Inner {
            pub(in crate::private_types::deep) fn hidden(&self, h: Hidden) -> Hidden {
                h
            }

            pub(super) fn up(&self) -> u8 {
                self.0
            }

            pub(self) fn only(&self) -> u8 {
                self.0
            }

            pub(crate) fn all(&self) -> u8 {
                self.0
            }

            #[message]
            fn mine(&self, p: Priv) -> Priv {
                p
            }

            #[message(local)]
            fn mine_l(&self, p: Priv) -> Priv {
                p
            }

            #[message(boxed)]
            fn mine_b(&self, p: Priv) -> Result<Priv, Priv> {
                Ok(p)
            }

            #[message(batch)]
            fn mine_bb(&self, p: greenroom::Batch<Priv>) {
                drop(p);
            }

            #[message(concurrent)]
            async fn mine_c(&self, #[key] p: Priv) {
                drop(p);
            }
        }

        #[derive(Hash)]
        struct Priv;
        pub(crate) async fn go(a: Addr<Inner>) -> Result<(), greenroom::Error> {
            a.only().await?;
            a.mine(Priv).await?;
            a.mine_b(Priv)
                .await
                .map_err(|_| greenroom::Error::from(std::fmt::Error))
                .map(drop)?;
            a.mine_bb(Priv).await?;
            a.mine_c(Priv).await?;
            Addr::local(a).unwrap().mine_l(Priv).await?;
            Ok(())
        }
    }

    pub(crate) async fn go(a: Addr<er::Inner>) -> Result<(), greenroom::Error> {
        assert_eq!(a.hidden(er::Hidden(3)).await?, er::Hidden(3));
        assert_eq!(a.up().await?, 1);
        Ok(())
    }
}

pub(crate) fn main() -> Result<(), greenroom::Error> {
    let system = System::start(1)?;
    system.run_on(0, || async {
        let a = greenroom::spawn(deep::er::Inner(1));
        a.all().await?;
        deep::er::go(a).await?;
        deep::go(a).await
    })
}
