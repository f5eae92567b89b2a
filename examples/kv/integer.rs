//! Decimal integers as the protocol writes them.

/// The longest integer: a sign and nineteen digits.
pub(crate) const BYTES_MAX: usize = 20;

/// Reads an integer in its one canonical form: no plus sign, no blanks, no leading zero, nothing that does not fit.
pub(crate) fn parse(text: &[u8]) -> Option<i64> {
    let (digits, negative) = match text {
        [b'-', digits @ ..] => (digits, true),
        digits => (digits, false),
    };
    match digits {
        [] => return None,
        [b'0'] => return (!negative).then_some(0),
        [b'0', ..] => return None,
        _ if digits.len() >= BYTES_MAX => return None,
        _ => {}
    }
    let mut magnitude = 0u64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        // Nineteen digits are fewer than 2^64.
        magnitude = magnitude * 10 + u64::from(digit - b'0');
    }
    if negative {
        0i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    }
}

/// Appends `value` in decimal.
pub(crate) fn write(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_canonical_form_is_an_integer() {
        let good = [
            "0",
            "1",
            "-1",
            "42",
            "9223372036854775807",
            "-9223372036854775808",
        ];
        for text in good {
            assert_eq!(parse(text.as_bytes()), text.parse().ok(), "{text}");
        }
        let bad = [
            "",
            "-",
            "+1",
            "-0",
            "00",
            "01",
            "-01",
            " 1",
            "1 ",
            "1a",
            "a",
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999",
        ];
        for text in bad {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for value in [0, 1, -1, 10, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            write(&mut out, value);
            assert_eq!(parse(&out), Some(value));
        }
    }
}
