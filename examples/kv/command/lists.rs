//! Commands on lists.

use std::ops::Range;

use crate::bytes::Bytes;
use crate::error::CommandError;
use crate::integer;
use crate::keyspace::Keyspace;
use crate::protocol::Arguments;
use crate::reply;
use crate::value::List;

type Result = std::result::Result<(), CommandError>;

pub(crate) fn lpush(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    push(keys, arguments, List::push_front, out)
}

pub(crate) fn rpush(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    push(keys, arguments, List::push_back, out)
}

pub(crate) fn lpop(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    pop(keys, arguments, List::pop_front, "lpop", out)
}

pub(crate) fn rpop(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    pop(keys, arguments, List::pop_back, "rpop", out)
}

pub(crate) fn llen(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    reply::count(out, keys.read::<List>(&arguments[0])?.map_or(0, List::len));
    Ok(())
}

pub(crate) fn lrange(keys: &mut Keyspace, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    let start = integer::parse(&arguments[1]).ok_or(CommandError::NotAnInteger)?;
    let last = integer::parse(&arguments[2]).ok_or(CommandError::NotAnInteger)?;
    let Some(list) = keys.read::<List>(&arguments[0])? else {
        reply::array(out, 0);
        return Ok(());
    };
    let range = resolve(start, last, list.len());
    reply::array(out, range.len());
    for element in list.range(range) {
        reply::bulk(out, element);
    }
    Ok(())
}

fn push(
    keys: &mut Keyspace,
    arguments: Arguments<'_>,
    push: fn(&mut List, Bytes),
    out: &mut Vec<u8>,
) -> Result {
    let list = keys.write_or_make::<List>(&arguments[0])?;
    for element in arguments.skip(1).iter() {
        push(list, element.into());
    }
    reply::count(out, list.len());
    Ok(())
}

fn pop(
    keys: &mut Keyspace,
    arguments: Arguments<'_>,
    pop: fn(&mut List) -> Option<Bytes>,
    name: &'static str,
    out: &mut Vec<u8>,
) -> Result {
    if arguments.len() > 2 {
        return Err(CommandError::Arity(name));
    }
    let count = arguments.skip(1).first().map(parse_count).transpose()?;
    let Some(list) = keys.write::<List>(&arguments[0])? else {
        out.extend_from_slice(if count.is_some() {
            reply::NIL_ARRAY
        } else {
            reply::NIL
        });
        return Ok(());
    };
    let taken = count.unwrap_or(1).min(list.len());
    if count.is_some() {
        reply::array(out, taken);
    }
    for element in (0..taken).map_while(|_| pop(list)) {
        reply::bulk(out, &element);
    }
    if list.is_empty() {
        keys.remove(&arguments[0]);
    }
    Ok(())
}

/// Reads how many elements are to be taken; there may be fewer.
pub(crate) fn parse_count(text: &[u8]) -> std::result::Result<usize, CommandError> {
    let count = integer::parse(text).and_then(|count| usize::try_from(count).ok());
    count.ok_or(CommandError::NotPositive)
}

/// The elements from `start` to `last` of a list of `count`, where negative numbers count from the end.
fn resolve(start: i64, last: i64, count: usize) -> Range<usize> {
    let from_front = |index: i64| {
        let distance = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
        if index < 0 {
            count.checked_sub(distance)
        } else {
            Some(distance)
        }
    };
    let start = from_front(start).unwrap_or(0).min(count);
    let end = from_front(last)
        .map_or(0, |last| last.saturating_add(1))
        .min(count);
    start..end.max(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_to_the_list() {
        assert_eq!(resolve(0, -1, 3), 0..3);
        assert_eq!(resolve(-2, -1, 3), 1..3);
        assert_eq!(resolve(-9, 1, 3), 0..2);
        assert_eq!(resolve(1, 99, 3), 1..3);
        assert_eq!(resolve(2, 1, 3), 2..2);
        assert_eq!(resolve(5, 9, 3), 3..3);
        assert_eq!(resolve(0, -4, 3), 0..0);
        assert_eq!(resolve(i64::MIN, i64::MAX, 3), 0..3);
        assert_eq!(resolve(0, -1, 0), 0..0);
    }
}
