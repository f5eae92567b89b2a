//! Commands on strings.

use crate::bytes::Text;
use crate::command::keys::deadline_ms;
use crate::error::CommandError;
use crate::integer;
use crate::keyspace::{Expiry, Keyspace};
use crate::protocol::{Arguments, BULK_BYTES_MAX};
use crate::reply;
use crate::value::Value;

type Result = std::result::Result<(), CommandError>;

pub(crate) fn get(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    let text = keys.read::<Text>(&arguments[0])?;
    reply::bulk_or_nil(out, text.map(|text| &**text));
    Ok(())
}

pub(crate) fn getdel(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    get(keys, arguments, out)?;
    keys.remove(&arguments[0]);
    Ok(())
}

pub(crate) fn mget(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    let text = match keys.value(&arguments[0]) {
        Some(Value::Text(text)) => Some(&**text),
        _ => None,
    };
    reply::bulk_or_nil(out, text);
    Ok(())
}

pub(crate) fn mset(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    keys.set(&arguments[0], &arguments[1], Expiry::Never);
    out.extend_from_slice(reply::OK);
    Ok(())
}

pub(crate) fn set(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    let (key, text) = (&arguments[0], &arguments[1]);
    let options = SetOptions::parse(arguments.skip(2), keys.now_ms())?;
    if options.condition.is_none() && !options.answers_before {
        keys.set(key, text, options.expiry);
        out.extend_from_slice(reply::OK);
        return Ok(());
    }
    if options.answers_before {
        get(keys, arguments, out)?;
    }
    let applies = match options.condition {
        None => true,
        Some(Presence::Absent) => keys.value(key).is_none(),
        Some(Presence::Present) => keys.value(key).is_some(),
    };
    if applies {
        keys.set(key, text, options.expiry);
    }
    if !options.answers_before {
        out.extend_from_slice(if applies { reply::OK } else { reply::NIL });
    }
    Ok(())
}

pub(crate) fn strlen(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    reply::count(
        out,
        keys.read::<Text>(&arguments[0])?
            .map_or(0, |text| text.len()),
    );
    Ok(())
}

pub(crate) fn append(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    let (key, tail) = (&arguments[0], &arguments[1]);
    let before = keys.read::<Text>(key)?.map_or(0, |text| text.len());
    if before + tail.len() > BULK_BYTES_MAX {
        return Err(CommandError::StringTooLong);
    }
    let text = keys.write_or_make::<Text>(key)?;
    text.append(tail);
    reply::count(out, text.len());
    Ok(())
}

pub(crate) fn incr(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    add(keys, &arguments[0], 1, out)
}

pub(crate) fn decr(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    add(keys, &arguments[0], -1, out)
}

pub(crate) fn incrby(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    let by = integer::parse(&arguments[1]).ok_or(CommandError::NotAnInteger)?;
    add(keys, &arguments[0], by, out)
}

pub(crate) fn decrby(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    let by = integer::parse(&arguments[1]).ok_or(CommandError::NotAnInteger)?;
    let by = by.checked_neg().ok_or(CommandError::DecrementOverflow)?;
    add(keys, &arguments[0], by, out)
}

fn add(keys: &mut Keyspace, key: &[u8], by: i64, out: &mut Vec<u8>) -> Result {
    let text = keys.write::<Text>(key)?;
    let before = match &text {
        Some(text) => integer::parse(text).ok_or(CommandError::NotAnInteger)?,
        None => 0,
    };
    let sum = before.checked_add(by).ok_or(CommandError::Overflow)?;
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(sum).as_bytes();
    match text {
        Some(text) => text.overwrite(digits),
        None => keys.set(key, digits, Expiry::Never),
    }
    reply::integer(out, sum);
    Ok(())
}

/// What must be true of a key for `SET` to write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Absent,
    Present,
}

#[derive(Debug)]
struct SetOptions {
    condition: Option<Presence>,
    expiry: Expiry,
    answers_before: bool,
}

impl SetOptions {
    fn parse(mut options: Arguments<'_>, now_ms: u64) -> std::result::Result<Self, CommandError> {
        let mut condition = None;
        let mut expiry = None;
        let mut answers_before = false;
        // All options are read before a number is looked at: a mistake in the syntax is told first.
        let mut span = None;
        while let Some(option) = options.first() {
            let value = options.skip(1).first();
            let mut taken = 1;
            match &*option.to_ascii_lowercase() {
                b"nx" if condition != Some(Presence::Present) => condition = Some(Presence::Absent),
                b"xx" if condition != Some(Presence::Absent) => condition = Some(Presence::Present),
                b"get" => answers_before = true,
                b"keepttl" if span.is_none() => expiry = Some(Expiry::Keep),
                unit @ (b"ex" | b"px") if expiry.is_none() && span.is_none() => {
                    let value = value.ok_or(CommandError::Syntax)?;
                    span = Some((value, if unit == b"ex" { 1000 } else { 1 }));
                    taken = 2;
                }
                _ => return Err(CommandError::Syntax),
            }
            options = options.skip(taken);
        }
        if let Some((text, unit_ms)) = span {
            let span = integer::parse(text).ok_or(CommandError::NotAnInteger)?;
            let deadline_ms = deadline_ms(now_ms, span, unit_ms).filter(|_| span > 0);
            expiry = Some(Expiry::At(
                deadline_ms.ok_or(CommandError::ExpireTime("set"))?,
            ));
        }
        Ok(SetOptions {
            condition,
            expiry: expiry.unwrap_or(Expiry::Never),
            answers_before,
        })
    }
}
