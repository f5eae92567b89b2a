//! An account: the actor of one book.

use greenroom::prelude::*;

use crate::vault::{Book, Entry, Refused, Vault};

/// Knows its book, and writes into it. Its vault is on the same shard: equal keys have equal shards.
#[derive(Debug)]
pub(crate) struct Account {
    number: u64,
    book: Book,
    vault: Addr<Vault>,
}

impl Account {
    /// Opens the account as it was left.
    pub(crate) async fn open(number: u64, vaults: &Sharded<Vault>) -> Result<Self, CallError> {
        let vault = vaults.by_key(&number);
        let book = vault.read(number).await?;
        Ok(Account {
            number,
            book,
            vault,
        })
    }
}

#[actor]
impl Account {
    /// Makes an entry, or finds that it was made before.
    ///
    /// The vault comes first. If the account is killed in between, the next one reads what was written.
    pub(crate) async fn enter(&mut self, entry: Entry) -> Result<(), Refused> {
        match self.vault.write(self.number, entry).await {
            Ok(()) => self.book.write(entry),
            Err(CallError::Handler(refused)) => Err(refused),
            Err(error) => panic!("an account is no use without its vault: {error}"),
        }
    }

    pub(crate) fn balance(&self) -> u64 {
        self.book.balance()
    }

    /// The address of this very instance, for whoever means it harm.
    pub(crate) fn address(&self, ctx: &mut Ctx<Self>) -> Addr<Self> {
        ctx.addr()
    }
}
