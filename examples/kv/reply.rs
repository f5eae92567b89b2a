//! RESP2 on the wire: replies to bytes.

use std::fmt::Display;
use std::io::Write;

use crate::integer;

pub(crate) const OK: &[u8] = b"+OK\r\n";
pub(crate) const NIL: &[u8] = b"$-1\r\n";
pub(crate) const NIL_ARRAY: &[u8] = b"*-1\r\n";

/// Appends a status such as `+OK`.
pub(crate) fn status(out: &mut Vec<u8>, text: &str) {
    out.push(b'+');
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends an integer.
pub(crate) fn integer(out: &mut Vec<u8>, value: i64) {
    out.push(b':');
    integer::write(out, value);
    out.extend_from_slice(b"\r\n");
}

/// Appends a count of things in memory.
pub(crate) fn count(out: &mut Vec<u8>, value: usize) {
    length(out, b':', value);
}

/// Appends a string of any bytes.
pub(crate) fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    length(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Appends a string of any bytes, or nil.
pub(crate) fn bulk_or_nil(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => bulk(out, bytes),
        None => out.extend_from_slice(NIL),
    }
}

/// Appends the header of an array; its `count` elements follow.
pub(crate) fn array(out: &mut Vec<u8>, count: usize) {
    length(out, b'*', count);
}

/// Appends an error on one line, whatever bytes of a client are quoted in it.
pub(crate) fn error(out: &mut Vec<u8>, error: impl Display) {
    out.push(b'-');
    let start = out.len();
    write!(out, "{error}").expect("writing to memory does not fail");
    for byte in &mut out[start..] {
        if matches!(*byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Reads back an integer that [`integer`] or [`count`] wrote.
pub(crate) fn integer_value(reply: &[u8]) -> Option<i64> {
    integer::parse(reply.strip_prefix(b":")?.strip_suffix(b"\r\n")?)
}

fn length(out: &mut Vec<u8>, kind: u8, value: usize) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    out.extend_from_slice(b"\r\n");
}
