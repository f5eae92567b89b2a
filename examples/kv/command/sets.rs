//! Commands on sets.

use crate::command::lists::parse_count;
use crate::error::CommandError;
use crate::keyspace::Keyspace;
use crate::protocol::Arguments;
use crate::reply;
use crate::value::Set;

type Result = std::result::Result<(), CommandError>;

pub(crate) fn sadd(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    let set = keys.write_or_make::<Set>(&arguments[0])?;
    let mut added = 0;
    for member in arguments.skip(1).iter() {
        // Looking first spares the copy of a member that is there.
        if !set.contains(member) {
            set.insert(member.into());
            added += 1;
        }
    }
    reply::integer(out, added);
    Ok(())
}

pub(crate) fn srem(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    let mut removed = 0;
    if let Some(set) = keys.write::<Set>(&arguments[0])? {
        for member in arguments.skip(1).iter() {
            removed += i64::from(set.swap_remove(member));
        }
    }
    keys.remove_if_empty::<Set>(&arguments[0]);
    reply::integer(out, removed);
    Ok(())
}

pub(crate) fn scard(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    reply::count(out, keys.read::<Set>(&arguments[0])?.map_or(0, Set::len));
    Ok(())
}

pub(crate) fn sismember(
    keys: &mut Keyspace,
    arguments: Arguments<'_>,
    out: &mut Vec<u8>,
) -> Result {
    let set = keys.read::<Set>(&arguments[0])?;
    reply::integer(
        out,
        set.is_some_and(|set| set.contains(&arguments[1])).into(),
    );
    Ok(())
}

pub(crate) fn smembers(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    let Some(set) = keys.read::<Set>(&arguments[0])? else {
        reply::array(out, 0);
        return Ok(());
    };
    reply::array(out, set.len());
    for member in set {
        reply::bulk(out, member);
    }
    Ok(())
}

pub(crate) fn spop(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    if arguments.len() > 2 {
        return Err(CommandError::Syntax);
    }
    let key = &arguments[0];
    let count = arguments.skip(1).first().map(parse_count).transpose()?;
    let held = keys.read::<Set>(key)?.map_or(0, Set::len);
    let taken = count.unwrap_or(1).min(held);
    match count {
        Some(_) => reply::array(out, taken),
        None if taken == 0 => out.extend_from_slice(reply::NIL),
        None => {}
    }
    for left in (held - taken..held).rev() {
        let index = keys.random().below(left + 1);
        let member = keys
            .write::<Set>(key)?
            .and_then(|set| set.swap_remove_index(index));
        reply::bulk_or_nil(out, member.as_deref());
    }
    if taken == held {
        keys.remove_if_empty::<Set>(key);
    }
    Ok(())
}
