//! Bank transaction: a thousand accounts, fifty thousand transfers. The account that pays is busy until the other has the
//! money.

use futures_util::stream::{self, StreamExt, TryStreamExt};
use greenroom::Error;
use greenroom::prelude::*;

use crate::harness::{Size, check, start, start_many};
use crate::random::Random;

const BALANCE: i64 = 1_000_000;
/// How many transfers a teller has under way at once.
const UNDER_WAY: usize = 1_000;

struct Account {
    cents: i64,
}

#[actor]
impl Account {
    pub async fn transfer(&mut self, cents: i64, to: Addr<Account>) -> Result<(), Error> {
        self.cents -= cents;
        to.deposit(cents).await?;
        Ok(())
    }

    pub fn deposit(&mut self, cents: i64) {
        self.cents += cents;
    }

    pub fn balance(&self) -> i64 {
        self.cents
    }
}

struct Teller {
    accounts: Vec<Addr<Account>>,
    random: Random,
}

#[actor]
impl Teller {
    /// Makes so many transfers. Money only goes to accounts of a higher number: accounts that paid each other would wait
    /// for each other.
    pub async fn work(&mut self, transfers: usize) -> Result<(), Error> {
        let (accounts, random) = (&self.accounts, &mut self.random);
        let transfers = (0..transfers).map(|_| {
            let from = random.below(accounts.len() / 10 * 8);
            let to = from + 1 + random.below(accounts.len() - from - 1);
            let cents = 1 + i64::try_from(random.below(1000)).expect("it is small");
            accounts[from].transfer(cents, accounts[to]).into_future()
        });
        stream::iter(transfers)
            .buffer_unordered(UNDER_WAY)
            .try_collect::<()>()
            .await?;
        Ok(())
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let (count, transfers) = size.pick((1_000, 50_000), (20, 200));
    let accounts = start_many(count, |_| Account { cents: BALANCE }).await?;
    let all = accounts.clone();
    let teller = start(0, move || Teller {
        accounts: all,
        random: Random::new(123_456),
    })
    .await?;
    teller.work(transfers).await?;
    let mut sum = 0;
    for account in &accounts {
        sum += account.balance().await?;
    }
    let expected = BALANCE * i64::try_from(count).expect("it is small");
    check("the money in the bank", sum, expected)?;
    Ok(4 * transfers as u64)
}
