//! The books of the accounts of one shard: what outlives the actors, and stands in for a database.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use greenroom::prelude::*;

/// Names a transfer, for ever.
pub(crate) type TransferId = (u64, u64);

/// A line in a book. Written twice, it stands there once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Money leaves the account, and is on its way.
    Withdraw { transfer: TransferId, amount: u64 },
    /// Money arrives.
    Deposit { transfer: TransferId, amount: u64 },
    /// What was on its way has arrived.
    Settle { transfer: TransferId },
}

/// There is not enough in the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    balance: u64,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there are {} coins in the account", self.balance)
    }
}

/// The book of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Book {
    balance: u64,
    /// What has left and has not arrived, as far as this account knows.
    on_its_way: BTreeMap<TransferId, u64>,
    /// What has left or arrived, to tell when it comes again.
    known: BTreeSet<TransferId>,
}

impl Book {
    /// Writes an entry, unless it is there.
    pub(crate) fn write(&mut self, entry: Entry) -> Result<(), Refused> {
        match entry {
            Entry::Withdraw { transfer, amount } if !self.known.contains(&transfer) => {
                let refused = Refused {
                    balance: self.balance,
                };
                self.balance = self.balance.checked_sub(amount).ok_or(refused)?;
                self.on_its_way.insert(transfer, amount);
                self.known.insert(transfer);
            }
            Entry::Deposit { transfer, amount } if self.known.insert(transfer) => {
                self.balance += amount;
            }
            Entry::Settle { transfer } => {
                self.on_its_way.remove(&transfer);
            }
            Entry::Withdraw { .. } | Entry::Deposit { .. } => {}
        }
        Ok(())
    }

    pub(crate) fn balance(&self) -> u64 {
        self.balance
    }

    /// What this account has to answer for.
    pub(crate) fn sum(&self) -> u64 {
        self.balance + self.on_its_way.values().sum::<u64>()
    }
}

/// The books of a shard.
#[derive(Debug)]
pub(crate) struct Vault {
    books: BTreeMap<u64, Book>,
    opening: u64,
    accounts: u64,
}

impl Vault {
    pub(crate) fn new(accounts: u64, opening: u64) -> Self {
        Vault {
            books: BTreeMap::new(),
            opening,
            accounts,
        }
    }

    fn book(&mut self, number: u64) -> &mut Book {
        let balance = if number < self.accounts {
            self.opening
        } else {
            0
        };
        self.books.entry(number).or_insert_with(|| Book {
            balance,
            ..Book::default()
        })
    }
}

#[actor]
impl Vault {
    pub(crate) fn read(&mut self, #[key] number: u64) -> Book {
        self.book(number).clone()
    }

    pub(crate) fn write(&mut self, #[key] number: u64, entry: Entry) -> Result<(), Refused> {
        self.book(number).write(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_is_written_twice_stands_once() {
        let mut book = Book {
            balance: 10,
            ..Book::default()
        };
        let transfer = (0, 1);
        for _ in 0..2 {
            book.write(Entry::Withdraw {
                transfer,
                amount: 7,
            })
            .unwrap();
            assert_eq!((book.balance(), book.sum()), (3, 10));
        }
        for _ in 0..2 {
            book.write(Entry::Settle { transfer }).unwrap();
            assert_eq!((book.balance(), book.sum()), (3, 3));
        }
        let transfer = (0, 2);
        for _ in 0..2 {
            book.write(Entry::Deposit {
                transfer,
                amount: 7,
            })
            .unwrap();
            assert_eq!(book.sum(), 10);
        }
        let transfer = (0, 3);
        let refused = book.write(Entry::Withdraw {
            transfer,
            amount: 11,
        });
        assert_eq!(refused, Err(Refused { balance: 10 }));
        assert_eq!(book.sum(), 10);
    }
}
