//! The calls of actors as traits: stand-ins, and one handle over several types.

#![forbid(unsafe_code)]
#![deny(warnings)]

use std::cell::Cell;
use std::io;

use greenroom::DynCall;
use greenroom::prelude::*;

/// A dog.
pub struct Dog;

#[actor(trait = Speaker)]
impl Dog {
    /// Says something.
    pub fn speak(&self, #[into] name: String) -> String {
        format!("{name}: wau")
    }

    /// Fails now and then.
    pub async fn fetch(&mut self, count: u32) -> io::Result<u32> {
        count.checked_sub(1).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    #[cfg(any())]
    pub fn missing(&self, nothing: Nothing) {}

    #[message(local)]
    pub fn wag(&self) {}

    pub(crate) fn sit(&mut self) {}
}

struct Cat;

#[actor(implements = Speaker(speak, fetch, sit))]
impl Cat {
    pub fn speak(&self, name: String) -> String {
        format!("{name}: miau")
    }

    pub fn fetch(&mut self, count: u32, reply: Reply<io::Result<u32>>) {
        let _ = count;
        reply.send(Err(io::ErrorKind::PermissionDenied.into()));
    }

    pub fn sit(&mut self) {}

    /// Not in the trait.
    pub fn scratch(&self) -> u8 {
        4
    }
}

/// Parameters of the actor are the trait's.
pub struct Cell2<K, const N: usize>(K);

#[actor(trait = pub(crate) CellApi, mailbox = 4)]
impl<K: Clone + Send + 'static, const N: usize> Cell2<K, N> {
    /// The key and the size.
    pub fn get(&self) -> (K, usize) {
        (self.0.clone(), N)
    }

    /// The type of the actor in a type of the trait.
    pub fn twin(&self) -> Option<Self> {
        None
    }
}

struct Puppet(Cell<u32>);

impl Speaker for Puppet {
    fn speak(&self, _: String) -> DynCall<String> {
        self.0.set(self.0.get() + 1);
        DynCall::stopped()
    }

    fn fetch(&self, count: u32) -> DynCall<u32, io::Error> {
        DynCall::ready(count)
    }

    fn sit(&self) -> DynCall<()> {
        DynCall::ready(())
    }
}

async fn sum(speakers: &[Box<dyn Speaker>]) -> u32 {
    let mut sum = 0;
    for speaker in speakers {
        sum += speaker.fetch(10).await.unwrap_or(1000);
    }
    sum
}

fn main() -> Result<(), greenroom::Error> {
    let system = System::start(2)?;
    system.block_on(async {
        let dog = system.spawn_on(0, || Dog).await?;
        let cat = system.spawn_on(1, || Cat).await?;
        let speakers: Vec<Box<dyn Speaker>> =
            vec![Box::new(*dog), Box::new(*cat), Box::new(Puppet(Cell::new(0)))];
        assert_eq!(sum(&speakers).await, 9 + 1000 + 10);
        assert!(speakers[2].speak("x".to_owned()).await.is_err_and(|error| error.is_stopped()));
        // The calls of the address itself are what they were.
        let call: greenroom::Call<_, _, (String,), _> = dog.speak("rex");
        assert_eq!(call.await?, "rex: wau");
        assert_eq!(cat.scratch().await?, 4);
        let cell = system.spawn_on(1, || Cell2::<_, 3>('k')).await?;
        let api: &dyn CellApi<char, 3> = &*cell;
        assert_eq!(api.get().await?, ('k', 3));
        assert!(api.twin().await?.is_none());
        Ok::<(), greenroom::Error>(())
    })
}
