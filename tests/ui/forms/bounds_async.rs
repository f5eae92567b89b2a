//! Actors over asynchronous closures and traits with asynchronous functions.

#![deny(warnings)]
#![allow(dead_code)]

use greenroom::prelude::*;

struct Job<F>(F);

#[actor]
impl<F: AsyncFnMut(u8) -> u8 + 'static> Job<F> {
    pub async fn run(&mut self, x: u8) -> u8 {
        (self.0)(x).await
    }
}

trait Store {
    async fn load(&self, k: u8) -> u8;
}

struct Mem;

impl Store for Mem {
    async fn load(&self, k: u8) -> u8 {
        k + 1
    }
}

struct Uses<S>(S);

#[actor]
impl<S: Store + 'static> Uses<S> {
    pub async fn load(&mut self, x: u8) -> u8 {
        self.0.load(x).await
    }

    #[message(concurrent)]
    pub async fn load_c(&self, x: u8) -> u8 {
        self.0.load(x).await
    }
}

pub(crate) fn main() -> Result<(), greenroom::Error> {
    let system = System::start(1)?;
    system.run_on(0, || async {
        assert_eq!(greenroom::spawn(Job(async |x| x + 1)).run(3).await?, 4);
        assert_eq!(greenroom::spawn(Uses(Mem)).load(3).await?, 4);
        assert_eq!(greenroom::spawn(Uses(Mem)).load_c(3).await?, 4);
        Ok(())
    })
}
