//! Commands on hashes.

use crate::error::CommandError;
use crate::keyspace::Keyspace;
use crate::protocol::Arguments;
use crate::reply;
use crate::value::Hash;

type Result = std::result::Result<(), CommandError>;

pub(crate) fn hset(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    let pairs = arguments.skip(1);
    if !pairs.len().is_multiple_of(2) {
        return Err(CommandError::Arity("hset"));
    }
    let hash = keys.write_or_make::<Hash>(&arguments[0])?;
    let mut added = 0;
    for pair in pairs.groups(2) {
        if let Some(value) = hash.get_mut(&pair[0]) {
            *value = pair[1].into();
        } else {
            hash.insert(pair[0].into(), pair[1].into());
            added += 1;
        }
    }
    reply::integer(out, added);
    Ok(())
}

pub(crate) fn hget(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    let hash = keys.read::<Hash>(&arguments[0])?;
    let value = hash.and_then(|hash| hash.get(&arguments[1]));
    reply::bulk_or_nil(out, value.map(|value| &**value));
    Ok(())
}

pub(crate) fn hdel(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    let mut removed = 0;
    if let Some(hash) = keys.write::<Hash>(&arguments[0])? {
        for field in arguments.skip(1).iter() {
            removed += i64::from(hash.swap_remove(field).is_some());
        }
    }
    keys.remove_if_empty::<Hash>(&arguments[0]);
    reply::integer(out, removed);
    Ok(())
}

pub(crate) fn hgetall(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    let Some(hash) = keys.read::<Hash>(&arguments[0])? else {
        reply::array(out, 0);
        return Ok(());
    };
    reply::array(out, hash.len() * 2);
    for (field, value) in hash {
        reply::bulk(out, field);
        reply::bulk(out, value);
    }
    Ok(())
}
