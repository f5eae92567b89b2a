//! The commands: what each is called, how many arguments it takes, where it goes and what it does.
//!
//! Reading order: this table, then `server` (what concerns the connection alone), `keys`, `strings`, `lists`, `hashes`
//! and `sets` (what is done to the keys of one shard).

use std::sync::LazyLock;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::error::CommandError;
use crate::keyspace::Keyspace;
use crate::protocol::Arguments;
use crate::session::Session;

mod hashes;
mod keys;
mod lists;
mod server;
mod sets;
mod strings;

/// Does a command on the shard of its keys. The arguments are those behind the name; an error means that nothing was
/// done and nothing was appended.
pub(crate) type Execute =
    fn(&mut Keyspace, Arguments<'_>, &mut Vec<u8>) -> Result<(), CommandError>;

/// Does a command that concerns the connection alone.
pub(crate) type Converse =
    fn(&mut Session, Arguments<'_>, &mut Vec<u8>) -> Result<(), CommandError>;

/// One command.
#[derive(Debug)]
pub(crate) struct Command {
    /// The name in lower case.
    pub(crate) name: &'static str,
    /// How many arguments it takes, the name included; if negative, how many at least.
    pub(crate) arity: i8,
    pub(crate) access: Access,
    pub(crate) route: Route,
}

/// What a command does to keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    Nothing,
}

/// Where a command is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Route {
    /// On the connection.
    Connection(Converse),
    /// On the shard of the first argument.
    Key(Execute),
    /// In parts, one for each `group` arguments, on the shard of the first of them.
    EachKey {
        group: usize,
        merge: Merge,
        execute: Execute,
    },
    /// On all shards.
    EveryShard { merge: Merge, execute: Execute },
}

/// How the answers of the parts become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merge {
    /// An array of the answers.
    Array,
    /// The sum of integers.
    Sum,
    /// All are alike; the first one stands for all.
    Alike,
}

/// All commands.
pub(crate) static COMMANDS: &[Command] = &[
    connection("client", -2, server::client),
    connection("command", -1, server::command),
    connection("config", -2, server::config),
    connection("echo", 2, server::echo),
    connection("hello", -1, server::hello),
    connection("info", -1, server::info),
    connection("ping", -1, server::ping),
    connection("quit", -1, server::quit),
    connection("select", 2, server::select),
    each_key("del", -2, Access::Write, 1, Merge::Sum, keys::del),
    each_key("exists", -2, Access::Read, 1, Merge::Sum, keys::exists),
    each_key("mget", -2, Access::Read, 1, Merge::Array, strings::mget),
    each_key("mset", -3, Access::Write, 2, Merge::Alike, strings::mset),
    every_shard("dbsize", 1, Access::Read, Merge::Sum, keys::dbsize),
    every_shard("flushall", -1, Access::Write, Merge::Alike, keys::flush),
    every_shard("flushdb", -1, Access::Write, Merge::Alike, keys::flush),
    key("append", 3, Access::Write, strings::append),
    key("decr", 2, Access::Write, strings::decr),
    key("decrby", 3, Access::Write, strings::decrby),
    key("expire", -3, Access::Write, keys::expire),
    key("get", 2, Access::Read, strings::get),
    key("getdel", 2, Access::Write, strings::getdel),
    key("hdel", -3, Access::Write, hashes::hdel),
    key("hget", 3, Access::Read, hashes::hget),
    key("hgetall", 2, Access::Read, hashes::hgetall),
    key("hset", -4, Access::Write, hashes::hset),
    key("incr", 2, Access::Write, strings::incr),
    key("incrby", 3, Access::Write, strings::incrby),
    key("llen", 2, Access::Read, lists::llen),
    key("lpop", -2, Access::Write, lists::lpop),
    key("lpush", -3, Access::Write, lists::lpush),
    key("lrange", 4, Access::Read, lists::lrange),
    key("persist", 2, Access::Write, keys::persist),
    key("pexpire", -3, Access::Write, keys::pexpire),
    key("pttl", 2, Access::Read, keys::pttl),
    key("rpop", -2, Access::Write, lists::rpop),
    key("rpush", -3, Access::Write, lists::rpush),
    key("sadd", -3, Access::Write, sets::sadd),
    key("scard", 2, Access::Read, sets::scard),
    key("set", -3, Access::Write, strings::set),
    key("sismember", 3, Access::Read, sets::sismember),
    key("smembers", 2, Access::Read, sets::smembers),
    key("spop", -2, Access::Write, sets::spop),
    key("srem", -3, Access::Write, sets::srem),
    key("strlen", 2, Access::Read, strings::strlen),
    key("ttl", 2, Access::Read, keys::ttl),
    key("type", 2, Access::Read, keys::kind),
];

const fn connection(name: &'static str, arity: i8, converse: Converse) -> Command {
    Command {
        name,
        arity,
        access: Access::Nothing,
        route: Route::Connection(converse),
    }
}

const fn key(name: &'static str, arity: i8, access: Access, execute: Execute) -> Command {
    Command {
        name,
        arity,
        access,
        route: Route::Key(execute),
    }
}

const fn each_key(
    name: &'static str,
    arity: i8,
    access: Access,
    group: usize,
    merge: Merge,
    execute: Execute,
) -> Command {
    Command {
        name,
        arity,
        access,
        route: Route::EachKey {
            group,
            merge,
            execute,
        },
    }
}

const fn every_shard(
    name: &'static str,
    arity: i8,
    access: Access,
    merge: Merge,
    execute: Execute,
) -> Command {
    Command {
        name,
        arity,
        access,
        route: Route::EveryShard { merge, execute },
    }
}

impl Command {
    /// The command of a name in any case.
    pub(crate) fn find(name: &[u8]) -> Option<&'static Command> {
        static BY_NAME: LazyLock<HashMap<&'static [u8], &'static Command, FixedState>> =
            LazyLock::new(|| {
                let named = COMMANDS
                    .iter()
                    .map(|command| (command.name.as_bytes(), command));
                named.collect()
            });
        const NAME_BYTES_MAX: usize = 16;

        let mut lower = [0; NAME_BYTES_MAX];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        BY_NAME.get(&*lower).copied()
    }

    /// Whether `arguments`, without the name, are as many as the command takes.
    ///
    /// # Errors
    /// They are too few, too many, or not in whole groups.
    pub(crate) fn check_arity(&self, arguments: Arguments<'_>) -> Result<(), CommandError> {
        let given = arguments.len() + 1;
        let needed = usize::from(self.arity.unsigned_abs());
        let whole = match self.route {
            Route::EachKey { group, .. } => arguments.len().is_multiple_of(group),
            _ => true,
        };
        if given < needed || (self.arity > 0 && given > needed) || !whole {
            return Err(CommandError::Arity(self.name));
        }
        Ok(())
    }
}

/// The error for a name that is no command.
pub(crate) fn unknown(name: &[u8], arguments: Arguments<'_>) -> CommandError {
    const SHOWN_BYTES_MAX: usize = 128;
    let mut shown = String::new();
    for argument in arguments.iter() {
        let Some(room) = SHOWN_BYTES_MAX
            .checked_sub(shown.len())
            .filter(|room| *room > 0)
        else {
            break;
        };
        let argument = &argument[..argument.len().min(room)];
        shown.push('\'');
        shown.push_str(&String::from_utf8_lossy(argument));
        shown.push_str("' ");
    }
    let name = &name[..name.len().min(SHOWN_BYTES_MAX)];
    CommandError::Unknown(String::from_utf8_lossy(name).into_owned(), shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_in_any_case() {
        for command in COMMANDS {
            for name in [command.name.to_owned(), command.name.to_uppercase()] {
                assert_eq!(Command::find(name.as_bytes()).unwrap().name, command.name);
            }
            assert!(command.arity != 0);
        }
        assert!(Command::find(b"").is_none());
        assert!(Command::find(b"gets").is_none());
        assert!(Command::find(&[b'g'; 100]).is_none());
    }
}
