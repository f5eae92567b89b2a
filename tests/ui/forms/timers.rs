//! Periods may be written in several ways, and methods that timers call may be messages of any kind.

#![deny(warnings, clippy::all)]

use std::time::Duration;

use greenroom::prelude::*;

struct Clock<T> {
    last: Option<T>,
}

mod periods {
    pub(crate) const LONG: std::time::Duration = std::time::Duration::from_secs(60);
}

#[actor]
impl<T: Send + Clone + 'static> Clock<T> {
    const PERIOD: Duration = Duration::from_millis(5);

    #[every(5ms)]
    fn tick(&mut self) {}

    #[every(1_000us, missed = skip)]
    pub fn also_for_others(&self) -> Option<T> {
        self.last.clone()
    }

    #[every(Self::PERIOD, missed = burst,)]
    async fn later(&mut self, _: &mut Ctx<Self>) -> Result<(), String> {
        Ok(())
    }

    #[every(periods::LONG * 2, missed = delay)]
    #[cfg(all())]
    fn seldom(&mut self) {}

    #[greenroom::every({ Duration::from_secs(1) })]
    #[cfg(any())]
    fn never(&mut self) {}
}

pub fn main() {}
