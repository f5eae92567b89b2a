//! RESP2 on the wire: bytes to commands.
//!
//! [`Parser`] owns nothing of the stream. It is handed the bytes that follow the last complete command, and answers
//! with the next command as slices of those bytes, or with nothing when more bytes are needed. What it found in an
//! unfinished command is remembered, so a command of a million arguments that arrives in small reads is scanned once.
//!
//! A length that a peer declares is only compared with a limit: memory is taken by bytes that arrived, never by a
//! promise of bytes.

use std::fmt;
use std::ops::Index;

use crate::integer;

/// The longest argument.
pub(crate) const BULK_BYTES_MAX: usize = 512 << 20;
/// The most arguments one command has.
pub(crate) const ARGUMENTS_MAX: usize = 1 << 20;
/// The longest inline command.
pub(crate) const INLINE_BYTES_MAX: usize = 64 << 10;
/// The longest command, framing included. It also lets a [`Span`] be two `u32`.
pub(crate) const REQUEST_BYTES_MAX: usize = 1 << 30;

/// A place in a buffer of fewer than 4 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        let narrow = |offset| u32::try_from(offset).expect("requests are limited far below 4 GiB");
        Span {
            start: narrow(start),
            end: narrow(end),
        }
    }

    fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..self.end as usize]
    }
}

/// The arguments of one command, as places in a buffer.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Arguments<'a> {
    pub(crate) fn new(bytes: &'a [u8], spans: &'a [Span]) -> Self {
        Arguments { bytes, spans }
    }

    pub(crate) fn len(self) -> usize {
        self.spans.len()
    }

    pub(crate) fn first(self) -> Option<&'a [u8]> {
        self.iter().next()
    }

    /// All but the first `count` arguments.
    pub(crate) fn skip(self, count: usize) -> Arguments<'a> {
        Arguments::new(self.bytes, self.spans.get(count..).unwrap_or_default())
    }

    pub(crate) fn iter(self) -> impl ExactSizeIterator<Item = &'a [u8]> + DoubleEndedIterator {
        self.spans.iter().map(move |span| span.of(self.bytes))
    }

    /// Groups of `size` arguments.
    pub(crate) fn groups(self, size: usize) -> impl ExactSizeIterator<Item = Arguments<'a>> {
        let bytes = self.bytes;
        self.spans
            .chunks(size)
            .map(move |spans| Arguments::new(bytes, spans))
    }
}

impl Index<usize> for Arguments<'_> {
    type Output = [u8];

    #[track_caller]
    fn index(&self, index: usize) -> &[u8] {
        self.spans[index].of(self.bytes)
    }
}

impl fmt::Debug for Arguments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.iter().map(<[u8]>::escape_ascii))
            .finish()
    }
}

/// One command and how many bytes of the input it took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// The name of the command and what follows it; empty for a blank line, which asks for nothing.
    pub(crate) arguments: Arguments<'a>,
    pub(crate) length: usize,
}

/// The stream is no RESP2; nothing after it can be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProtocolError {
    MultibulkLength,
    BulkLength,
    BulkExpected(u8),
    BulkUnterminated,
    InlineTooLong,
    UnbalancedQuotes,
    RequestTooLong,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProtocolError::MultibulkLength => "invalid multibulk length",
            ProtocolError::BulkLength => "invalid bulk length",
            ProtocolError::BulkUnterminated => "bulk string without end of line",
            ProtocolError::InlineTooLong => "too big inline request",
            ProtocolError::UnbalancedQuotes => "unbalanced quotes in request",
            ProtocolError::RequestTooLong => "too big request",
            ProtocolError::BulkExpected(found) => {
                return write!(f, "expected '$', got '{}'", found.escape_ascii());
            }
        })
    }
}

/// Finds commands in a stream of bytes.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    /// Arguments found in the unfinished command.
    spans: Vec<Span>,
    /// What the quotes and escapes of an inline command stand for.
    unquoted: Vec<u8>,
    /// How far the unfinished command was read.
    ///
    /// Invariant: zero between commands, and never past the input of the last call.
    at: usize,
    /// Arguments the unfinished command still lacks; zero between commands and for an inline command.
    missing: usize,
}

impl Parser {
    /// Finds the command `input` starts with, or `None` while its end has not arrived.
    ///
    /// After `None` the next input starts with the same bytes and has more of them; after a command it starts behind
    /// that command.
    ///
    /// # Errors
    /// The parser is of no use after an error: the place of the next command is unknown.
    pub(crate) fn next<'a>(
        &'a mut self,
        input: &'a [u8],
    ) -> Result<Option<Request<'a>>, ProtocolError> {
        if self.missing == 0 {
            match input.first() {
                None => return Ok(None),
                Some(b'*') => {}
                Some(_) => return self.inline(input),
            }
            let Some((count, length)) = number(&input[1..], ProtocolError::MultibulkLength)? else {
                return Ok(None);
            };
            let count = usize::try_from(count).unwrap_or(0);
            if count > ARGUMENTS_MAX {
                return Err(ProtocolError::MultibulkLength);
            }
            self.spans.clear();
            self.at = 1 + length;
            self.missing = count;
        }
        while self.missing > 0 {
            let Some((span, end)) = bulk(input, self.at)? else {
                return Ok(None);
            };
            self.spans.push(span);
            self.at = end;
            self.missing -= 1;
        }
        let length = std::mem::take(&mut self.at);
        Ok(Some(Request {
            arguments: Arguments::new(input, &self.spans),
            length,
        }))
    }

    /// Frees what an unusually large command left behind.
    pub(crate) fn trim(&mut self, arguments_max: usize) {
        if self.missing == 0 && self.spans.capacity() > arguments_max {
            self.spans = Vec::new();
        }
    }

    fn inline<'a>(&'a mut self, input: &'a [u8]) -> Result<Option<Request<'a>>, ProtocolError> {
        let end = input[self.at..].iter().position(|byte| *byte == b'\n');
        let end = end.map(|found| self.at + found);
        if end.unwrap_or(input.len()) > INLINE_BYTES_MAX {
            return Err(ProtocolError::InlineTooLong);
        }
        let Some(end) = end else {
            self.at = input.len();
            return Ok(None);
        };
        self.at = 0;
        let line = &input[..end];
        self.unquote(line.strip_suffix(b"\r").unwrap_or(line))?;
        Ok(Some(Request {
            arguments: Arguments::new(&self.unquoted, &self.spans),
            length: end + 1,
        }))
    }

    /// Splits a line at white space, with the quotes and escapes of a shell.
    fn unquote(&mut self, mut line: &[u8]) -> Result<(), ProtocolError> {
        self.spans.clear();
        self.unquoted.clear();
        loop {
            line = line.trim_ascii_start();
            if line.is_empty() {
                return Ok(());
            }
            let start = self.unquoted.len();
            line = self.unquote_word(line)?;
            self.spans.push(Span::new(start, self.unquoted.len()));
        }
    }

    /// Appends the word `line` starts with and returns what follows it.
    fn unquote_word<'l>(&mut self, mut line: &'l [u8]) -> Result<&'l [u8], ProtocolError> {
        while let [byte, rest @ ..] = line {
            if byte.is_ascii_whitespace() {
                break;
            }
            line = match byte {
                b'"' => self.unquote_double(rest)?,
                b'\'' => self.unquote_single(rest)?,
                _ => {
                    self.unquoted.push(*byte);
                    rest
                }
            };
        }
        Ok(line)
    }

    fn unquote_single<'l>(&mut self, mut line: &'l [u8]) -> Result<&'l [u8], ProtocolError> {
        loop {
            let (byte, rest) = match line {
                [b'\\', b'\'', rest @ ..] => (b'\'', rest),
                [b'\'', rest @ ..] => return closed(rest),
                [byte, rest @ ..] => (*byte, rest),
                [] => return Err(ProtocolError::UnbalancedQuotes),
            };
            self.unquoted.push(byte);
            line = rest;
        }
    }

    fn unquote_double<'l>(&mut self, mut line: &'l [u8]) -> Result<&'l [u8], ProtocolError> {
        loop {
            let (byte, rest) = match line {
                [b'\\', b'x', high, low, rest @ ..]
                    if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
                {
                    (hex(*high) << 4 | hex(*low), rest)
                }
                [b'\\', escaped, rest @ ..] => (unescape(*escaped), rest),
                [b'"', rest @ ..] => return closed(rest),
                [byte, rest @ ..] => (*byte, rest),
                [] => return Err(ProtocolError::UnbalancedQuotes),
            };
            self.unquoted.push(byte);
            line = rest;
        }
    }
}

/// What follows a closing quote; a word must end there.
fn closed(rest: &[u8]) -> Result<&[u8], ProtocolError> {
    match rest.first() {
        Some(byte) if !byte.is_ascii_whitespace() => Err(ProtocolError::UnbalancedQuotes),
        _ => Ok(rest),
    }
}

fn unescape(escaped: u8) -> u8 {
    match escaped {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

/// Reads `$length\r\n`, that many bytes and `\r\n` at `at`; returns the place of the bytes and where they end.
fn bulk(input: &[u8], at: usize) -> Result<Option<(Span, usize)>, ProtocolError> {
    match input.get(at) {
        None => return Ok(None),
        Some(b'$') => {}
        Some(other) => return Err(ProtocolError::BulkExpected(*other)),
    }
    let Some((length, header)) = number(&input[at + 1..], ProtocolError::BulkLength)? else {
        return Ok(None);
    };
    let length = match usize::try_from(length) {
        Ok(length) if length <= BULK_BYTES_MAX => length,
        _ => return Err(ProtocolError::BulkLength),
    };
    let start = at + 1 + header;
    let end = start + length;
    if end + 2 > REQUEST_BYTES_MAX {
        return Err(ProtocolError::RequestTooLong);
    }
    match input.get(end..end + 2) {
        None => Ok(None),
        Some(b"\r\n") => Ok(Some((Span::new(start, end), end + 2))),
        Some(_) => Err(ProtocolError::BulkUnterminated),
    }
}

/// Reads a number and `\r\n`; returns the number and the length of both.
fn number(line: &[u8], invalid: ProtocolError) -> Result<Option<(i64, usize)>, ProtocolError> {
    let line = &line[..line.len().min(integer::BYTES_MAX + 2)];
    let Some(end) = line.iter().position(|byte| *byte == b'\r') else {
        return if line.len() > integer::BYTES_MAX {
            Err(invalid)
        } else {
            Ok(None)
        };
    };
    match line.get(end + 1) {
        None if end <= integer::BYTES_MAX => Ok(None),
        Some(b'\n') => match integer::parse(&line[..end]) {
            Some(value) => Ok(Some((value, end + 2))),
            None => Err(invalid),
        },
        _ => Err(invalid),
    }
}
