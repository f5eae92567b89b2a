//! Cutting what a client sends into lines.

/// The longest line that is taken. The rest of a longer one is dropped.
pub(crate) const LINE_BYTES: usize = 512;

/// What was read of a line that has not ended.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    unfinished: Vec<u8>,
}

impl Lines {
    /// Takes what was read, and returns the lines that it ends.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match part.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (part, false),
            };
            let room = LINE_BYTES.saturating_sub(self.unfinished.len());
            self.unfinished.extend(text.iter().take(room));
            if ends {
                let line = std::mem::take(&mut self.unfinished);
                let line = String::from_utf8_lossy(&line);
                lines.push(line.trim_end_matches('\r').to_owned());
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_wherever_a_read_ends() {
        let text = b"one\r\ntwo\n\nthree";
        for cut in 0..text.len() {
            let mut lines = Lines::default();
            let mut found = lines.read(&text[..cut]);
            found.extend(lines.read(&text[cut..]));
            assert_eq!(found, ["one", "two", ""]);
            assert_eq!(lines.read(b"\n"), ["three"]);
        }
    }

    #[test]
    fn a_line_without_end_takes_no_more_than_its_bound() {
        let mut lines = Lines::default();
        for _ in 0..100 {
            assert!(lines.read(&[b'x'; 100]).is_empty());
        }
        let found = lines.read(b"\nnext\n");
        assert_eq!((found[0].len(), found[1].as_str()), (LINE_BYTES, "next"));
    }
}
