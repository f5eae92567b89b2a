//! Commands on keys of any kind.

use crate::error::CommandError;
use crate::integer;
use crate::keyspace::Keyspace;
use crate::protocol::Arguments;
use crate::reply;

type Result = std::result::Result<(), CommandError>;

pub(crate) fn del(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    reply::integer(out, keys.remove(&arguments[0]).is_some().into());
    Ok(())
}

pub(crate) fn exists(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    reply::integer(out, keys.value(&arguments[0]).is_some().into());
    Ok(())
}

pub(crate) fn kind(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    let kind = keys
        .value(&arguments[0])
        .map_or("none", |value| value.kind());
    reply::status(out, kind);
    Ok(())
}

pub(crate) fn dbsize(keys: &mut Keyspace, _: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    reply::count(out, keys.len());
    Ok(())
}

pub(crate) fn flush(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    let way = arguments.first().unwrap_or(b"sync");
    let known = way.eq_ignore_ascii_case(b"sync") || way.eq_ignore_ascii_case(b"async");
    if arguments.len() > 1 || !known {
        return Err(CommandError::Syntax);
    }
    keys.clear();
    out.extend_from_slice(reply::OK);
    Ok(())
}

pub(crate) fn ttl(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    reply_ttl(keys, &arguments[0], 1000, out);
    Ok(())
}

pub(crate) fn pttl(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    reply_ttl(keys, &arguments[0], 1, out);
    Ok(())
}

pub(crate) fn persist(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    let ends = matches!(keys.deadline_ms(&arguments[0]), Some(Some(_)));
    if ends {
        keys.set_deadline_ms(&arguments[0], None);
    }
    reply::integer(out, ends.into());
    Ok(())
}

pub(crate) fn expire(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    expire_in(keys, arguments, 1000, "expire", out)
}

pub(crate) fn pexpire(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    expire_in(keys, arguments, 1, "pexpire", out)
}

/// The instant `span` units of `unit_ms` from now, if it can be told; the past is told as zero.
pub(crate) fn deadline_ms(now_ms: u64, span: i64, unit_ms: i64) -> Option<u64> {
    let now_ms = i64::try_from(now_ms).ok()?;
    let deadline_ms = span.checked_mul(unit_ms)?.checked_add(now_ms)?;
    Some(u64::try_from(deadline_ms).unwrap_or(0))
}

fn expire_in(
    keys: &mut Keyspace,
    arguments: Arguments<'_>,
    unit_ms: i64,
    name: &'static str,
    out: &mut Vec<u8>,
) -> Result {
    let condition = Condition::parse(arguments.skip(2))?;
    let span = integer::parse(&arguments[1]).ok_or(CommandError::NotAnInteger)?;
    let deadline_ms =
        deadline_ms(keys.now_ms(), span, unit_ms).ok_or(CommandError::ExpireTime(name))?;
    let key = &arguments[0];
    let applies = keys
        .deadline_ms(key)
        .is_some_and(|current| condition.allows(current, deadline_ms));
    if applies && deadline_ms <= keys.now_ms() {
        keys.remove(key);
    } else if applies {
        keys.set_deadline_ms(key, Some(deadline_ms));
    }
    reply::integer(out, applies.into());
    Ok(())
}

/// When an end may be set, given the one before it.
#[derive(Clone, Copy, Debug, Default)]
struct Condition {
    none_before: bool,
    some_before: bool,
    later: bool,
    earlier: bool,
}

impl Condition {
    fn parse(options: Arguments<'_>) -> std::result::Result<Self, CommandError> {
        let mut condition = Condition::default();
        for option in options.iter() {
            let flag = match &*option.to_ascii_lowercase() {
                b"nx" => &mut condition.none_before,
                b"xx" => &mut condition.some_before,
                b"gt" => &mut condition.later,
                b"lt" => &mut condition.earlier,
                _ => {
                    return Err(CommandError::ExpireOption(
                        String::from_utf8_lossy(option).into_owned(),
                    ));
                }
            };
            *flag = true;
        }
        if condition.none_before && (condition.some_before || condition.later || condition.earlier)
        {
            return Err(CommandError::ExpireExclusive);
        }
        if condition.later && condition.earlier {
            return Err(CommandError::ExpireGreaterLess);
        }
        Ok(condition)
    }

    fn allows(self, current_ms: Option<u64>, next_ms: u64) -> bool {
        // No end is later than every end.
        let end_ms = current_ms.unwrap_or(u64::MAX);
        !(self.none_before && current_ms.is_some()
            || self.some_before && current_ms.is_none()
            || self.later && next_ms <= end_ms
            || self.earlier && next_ms >= end_ms)
    }
}

fn reply_ttl(keys: &Keyspace, key: &[u8], unit_ms: u64, out: &mut Vec<u8>) {
    let left = match keys.deadline_ms(key) {
        None => -2,
        Some(None) => -1,
        Some(Some(deadline_ms)) => {
            let left_ms = deadline_ms.saturating_sub(keys.now_ms());
            i64::try_from((left_ms + unit_ms / 2) / unit_ms).unwrap_or(i64::MAX)
        }
    };
    reply::integer(out, left);
}
