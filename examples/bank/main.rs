//! A bank whose accounts are killed while it works, and that never loses or makes a coin:
//! `cargo run --example bank -- --shards 2 --accounts 100 --transfers 2000`.
//!
//! Every account is an actor, started by its first message on the shard of its number, and gone when it is idle. Tellers on
//! all shards move money between accounts, most of it from shard to shard, while a vandal kills accounts in the middle of
//! what they do. After each round the books are added up: the sum must be what it was in the beginning.
//!
//! What makes it hold, from below:
//! * [`vault`]: what is written in the books stays, whatever happens to accounts. An entry is made once, however often it is
//!   sent.
//! * [`account`]: the actor; there are never two of one number, so nobody writes over what another one wrote.
//! * [`teller`]: a transfer is a few entries; one that was cut off is sent again.

mod account;
mod teller;
mod vault;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use futures_channel::oneshot;
use futures_util::future::join_all;
use greenroom::prelude::*;

use crate::account::Account;
use crate::teller::{Done, Random, Teller};
use crate::vault::Vault;

/// What every account has in the beginning.
const OPENING: u64 = 1000;

/// For how long an account may be idle: short, so that many come and go.
const IDLE: Duration = Duration::from_millis(20);

/// A bank whose accounts are killed while it works.
#[derive(Clone, Debug, Parser)]
struct Options {
    /// How many shards the bank has.
    #[arg(long, default_value_t = 2)]
    shards: usize,
    /// How many accounts there are.
    #[arg(long, default_value_t = 100)]
    accounts: u64,
    /// Transfers in a round.
    #[arg(long, default_value_t = 2000)]
    transfers: u64,
    /// How often the books are added up.
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    /// Tellers on each shard.
    #[arg(long, default_value_t = 4)]
    tellers: u64,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // If nobody can be told, the exit code still tells.
            let _ = writeln!(io::stderr(), "bank: {error:?}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the bank; false if the books are wrong.
fn run(options: &Options) -> Result<bool, greenroom::Error> {
    let system = System::builder()
        .shards(options.shards)
        .pin(false)
        .start()?;
    let right = system.block_on(async {
        let accounts = options.accounts;
        let vaults = system
            .spawn_sharded(move |_shard| Vault::new(accounts, OPENING))
            .await?;
        let books = vaults.clone();
        let bank = system
            .keyed_with(async move |number: &u64| Account::open(*number, &books).await)
            .idle_after(IDLE)
            .start()
            .await?;
        for round in 1..=options.rounds {
            let done = play(&system, &bank, options, round).await?;
            let sum = add_up(&vaults, accounts).await?;
            writeln!(
                io::stdout(),
                "round {round}: {} transfers, {} refused, {} accounts killed, {} alive, {sum} coins",
                done.made,
                done.refused,
                done.killed,
                bank.live(),
            )?;
            if sum != accounts * OPENING {
                writeln!(io::stdout(), "the books are wrong: {} coins were there", accounts * OPENING)?;
                return Ok(false);
            }
        }
        bank.stop().await;
        Ok::<_, greenroom::Error>(true)
    })?;
    system.shutdown(Duration::from_secs(5));
    Ok(right)
}

/// One round: all tellers work, and somebody kills accounts meanwhile.
async fn play(
    system: &System,
    bank: &Keyed<u64, Account>,
    options: &Options,
    round: u64,
) -> Result<Done, greenroom::Error> {
    let tellers = options.tellers * options.shards as u64;
    let working: Vec<_> = (0..tellers)
        .zip(system.shards().collect::<Vec<_>>().into_iter().cycle())
        .map(|(number, shard)| {
            let share = options.transfers / tellers;
            let teller = Teller::new(bank.clone(), options.accounts, round * tellers + number);
            system.runtime().spawn_on(shard, move || teller.work(share))
        })
        .collect();
    let (bank, accounts) = (bank.clone(), options.accounts);
    let (rest, closed) = oneshot::channel::<()>();
    let vandal = system
        .runtime()
        .spawn_on(0, move || rage(bank, accounts, round, closed));
    let mut done = Done::default();
    for worked in join_all(working).await {
        done.add(worked?);
    }
    drop(rest);
    done.killed = vandal.await?;
    Ok(done)
}

/// Kills one account after the other, whatever it does, until the bank closes; says how many.
async fn rage(
    bank: Keyed<u64, Account>,
    accounts: u64,
    seed: u64,
    mut closed: oneshot::Receiver<()>,
) -> u64 {
    let mut random = Random::new(seed);
    let mut killed = 0;
    // Nothing is ever sent: the end is the drop of the other side.
    while let Ok(None) = closed.try_recv() {
        let number = random.below(accounts);
        if let Ok(account) = bank.at(&number).address().await {
            Addr::kill(account);
            killed += 1;
        }
        greenroom::runtime::yield_now().await;
    }
    killed
}

/// The sum of all books.
async fn add_up(vaults: &Sharded<Vault>, accounts: u64) -> Result<u64, greenroom::Error> {
    let mut sum = 0;
    for number in 0..accounts {
        sum += vaults.route().read(number).await?.sum();
    }
    Ok(sum)
}
