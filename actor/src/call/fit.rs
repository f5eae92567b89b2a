//! The limit on the size of a message, compared while the program is compiled.

/// Stops the compiler if the arguments of a message take more bytes than its actor allows.
///
/// # Panics
/// In a constant, which makes it a compile error at the method.
#[track_caller]
pub const fn message_fits(message: &str, bytes: usize, limit: usize) {
    if bytes <= limit {
        return;
    }
    let text = Text::new()
        .with("the arguments of message `")
        .with(message)
        .with("` take ")
        .with_number(bytes)
        .with(" bytes, and `max_message` allows ")
        .with_number(limit)
        .with(": mark the method `#[message(boxed)]`, or box its largest parameter");
    panic!("{}", text.as_str())
}

/// A text put together in a constant, where `format!` is not.
struct Text {
    bytes: [u8; Text::ROOM],
    len: usize,
}

impl Text {
    /// A name that leaves no room for the rest is cut off.
    const ROOM: usize = 512;

    const fn new() -> Self {
        Self {
            bytes: [0; Self::ROOM],
            len: 0,
        }
    }

    const fn with(mut self, text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut position = 0;
        while position < bytes.len() && self.len < Self::ROOM {
            self.bytes[self.len] = bytes[position];
            self.len += 1;
            position += 1;
        }
        self
    }

    const fn with_number(mut self, number: usize) -> Self {
        const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
        let mut unit = 1;
        while number / unit >= 10 {
            unit *= 10;
        }
        while unit > 0 {
            self = self.with(DIGITS[number / unit % 10]);
            unit /= 10;
        }
        self
    }

    const fn as_str(&self) -> &str {
        match std::str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => text,
            // Cut off inside of a letter.
            Err(_) => "a message is larger than `max_message`: mark the method `#[message(boxed)]`",
        }
    }
}

/// Stops the compiler if a mailbox has no room, or if none of the concurrent messages may run: what was sent would wait
/// for ever.
///
/// # Panics
/// In a constant, which makes it a compile error at the number.
#[track_caller]
pub const fn is_enough(number: usize, text: &str) {
    assert!(number > 0, "{}", text);
}

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn numbers_are_written_in_full() {
        for number in [0, 7, 10, 109, 1000, usize::MAX] {
            assert_eq!(Text::new().with_number(number).as_str(), number.to_string());
        }
    }

    #[test]
    fn a_text_without_end_is_cut_off_and_still_says_what_to_do() {
        let endless = "ä".repeat(400);
        assert!(
            Text::new()
                .with("x")
                .with(&endless)
                .as_str()
                .contains("boxed")
        );
    }
}
