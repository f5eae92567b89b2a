//! Options for the lanes of a mailbox and for what happens when one is full.

#![forbid(unsafe_code)]
#![deny(warnings)]

use greenroom::prelude::*;

const ROOM: usize = 8;

struct Waits;

#[actor(overflow = wait, mailbox = ROOM)]
impl Waits {
    #[message(urgent)]
    pub fn alarm(&self) {}

    #[message(local, urgent)]
    pub fn local_alarm(&self) {}

    #[message(urgent, result)]
    pub async fn checked_alarm(&self) -> Result<(), String> {
        Ok(())
    }
}

struct Rejects;

#[actor(overflow = reject)]
impl Rejects {
    pub fn work(&self) {}
}

struct DropsOldest;

#[actor(overflow = drop_oldest, mailbox = 2 * ROOM)]
impl DropsOldest {
    pub fn work(&self) {}
}

struct DropsNewest;

#[actor(mailbox = 1, overflow = drop_newest)]
impl DropsNewest {
    pub fn work(&self) {}
}

struct Unbounded;

#[actor(mailbox = unbounded)]
impl Unbounded {
    pub fn work(&self) {}
}

pub fn main() -> Result<(), greenroom::Error> {
    let system = System::start(1)?;
    system.block_on(async {
        let waits = system.spawn_on(0, || Waits).await?;
        waits.alarm().await?;
        waits.alarm().urgent().urgent().timeout(std::time::Duration::from_secs(60)).await?;
        waits.checked_alarm().await?;
        waits.alarm().tell().await?;
        let unbounded = system.spawn_on(0, || Unbounded).await?;
        unbounded.work().try_tell()?;
        system.spawn_on(0, || Rejects).await?.work().await?;
        system.spawn_on(0, || DropsOldest).await?.work().await?;
        system.spawn_on(0, || DropsNewest).await?.work().await?;
        Ok::<(), greenroom::Error>(())
    })
}
