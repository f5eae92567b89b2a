//! Who moves money.

use greenroom::prelude::*;

use crate::account::Account;
use crate::vault::{Entry, Refused, TransferId};

/// What was done in a round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    pub(crate) made: u64,
    pub(crate) refused: u64,
    pub(crate) killed: u64,
}

impl Done {
    pub(crate) fn add(&mut self, other: Done) {
        self.made += other.made;
        self.refused += other.refused;
        self.killed += other.killed;
    }
}

/// Moves money between accounts that it draws.
#[derive(Debug)]
pub(crate) struct Teller {
    bank: Keyed<u64, Account>,
    accounts: u64,
    number: u64,
    random: Random,
}

impl Teller {
    pub(crate) fn new(bank: Keyed<u64, Account>, accounts: u64, number: u64) -> Self {
        Teller {
            bank,
            accounts,
            number,
            random: Random::new(number),
        }
    }

    /// Makes so many transfers, and insists on each: when it returns, nothing is on its way.
    pub(crate) async fn work(mut self, transfers: u64) -> Done {
        let mut done = Done::default();
        for count in 0..transfers {
            let from = self.random.below(self.accounts);
            let to = self.random.below(self.accounts);
            let amount = 1 + self.random.below(300);
            match self.transfer((self.number, count), from, to, amount).await {
                Ok(()) => done.made += 1,
                Err(Refused { .. }) => done.refused += 1,
            }
        }
        done
    }

    async fn transfer(
        &self,
        transfer: TransferId,
        from: u64,
        to: u64,
        amount: u64,
    ) -> Result<(), Refused> {
        if from == to {
            return Ok(());
        }
        self.insist(from, Entry::Withdraw { transfer, amount })
            .await?;
        self.insist(to, Entry::Deposit { transfer, amount }).await?;
        self.insist(from, Entry::Settle { transfer }).await
    }

    /// Sends an entry until it is heard that it was made: whoever was to make it may have been killed, before or after.
    async fn insist(&self, account: u64, entry: Entry) -> Result<(), Refused> {
        loop {
            match self.bank.at(&account).enter(entry).await {
                Ok(()) => return Ok(()),
                Err(CallError::Handler(refused)) => return Err(refused),
                Err(_) => {}
            }
        }
    }
}

/// Numbers that look random: xorshift.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        // Any state but zero.
        Random((seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
