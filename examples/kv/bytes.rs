//! Strings of bytes that lie in place while they are short.
//!
//! Keys, fields, members and counters are short, and a table whose keys lie in it is searched without a second look
//! at memory far away. Both types are three words, as a `Vec` is.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// A string of bytes that does not change.
#[derive(Clone)]
pub(crate) enum Bytes {
    Short {
        length: u8,
        bytes: [u8; Bytes::SHORT_MAX],
    },
    Long(Box<[u8]>),
}

impl Bytes {
    const SHORT_MAX: usize = 22;
}

impl From<&[u8]> for Bytes {
    fn from(source: &[u8]) -> Self {
        let mut bytes = [0; Bytes::SHORT_MAX];
        match (u8::try_from(source.len()), bytes.get_mut(..source.len())) {
            (Ok(length), Some(place)) => {
                place.copy_from_slice(source);
                Bytes::Short { length, bytes }
            }
            _ => Bytes::Long(source.into()),
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Short { length, bytes } => &bytes[..usize::from(*length)],
            Bytes::Long(bytes) => bytes,
        }
    }
}

impl Borrow<[u8]> for Bytes {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Bytes {}

impl PartialOrd for Bytes {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bytes {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Bytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}

/// A string of bytes that is overwritten and grows.
#[derive(Clone)]
pub(crate) enum Text {
    Short {
        length: u8,
        bytes: [u8; Text::SHORT_MAX],
    },
    Long(Vec<u8>),
}

impl Text {
    /// What fits beside the part of a `Vec` that tells the two cases apart.
    const SHORT_MAX: usize = 15;

    /// Replaces all bytes, in the old memory when that is of a fitting size.
    pub(crate) fn overwrite(&mut self, source: &[u8]) {
        match self {
            Text::Long(bytes)
                if source.len() > Text::SHORT_MAX && bytes.capacity() <= source.len() * 2 =>
            {
                bytes.clear();
                bytes.extend_from_slice(source);
            }
            _ => *self = source.into(),
        }
    }

    /// Adds bytes at the end.
    pub(crate) fn append(&mut self, tail: &[u8]) {
        match self {
            Text::Long(bytes) => bytes.extend_from_slice(tail),
            Text::Short { .. } => *self = (&*[&**self, tail].concat()).into(),
        }
    }
}

impl From<&[u8]> for Text {
    fn from(source: &[u8]) -> Self {
        let mut bytes = [0; Text::SHORT_MAX];
        match (u8::try_from(source.len()), bytes.get_mut(..source.len())) {
            (Ok(length), Some(place)) => {
                place.copy_from_slice(source);
                Text::Short { length, bytes }
            }
            _ => Text::Long(source.into()),
        }
    }
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Text::Short { length, bytes } => &bytes[..usize::from(*length)],
            Text::Long(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_three_words() {
        assert_eq!((size_of::<Bytes>(), size_of::<Text>()), (24, 24));
    }

    #[test]
    fn bytes_of_any_length_are_kept() {
        for length in 0..40u8 {
            let source: Vec<u8> = (0..length).collect();
            assert_eq!(*Bytes::from(&*source), *source);
            assert_eq!(*Text::from(&*source), *source);
        }
    }

    #[test]
    fn a_text_is_overwritten_and_grows() {
        for (first, second) in [
            (0, 3),
            (3, 30),
            (30, 3),
            (30, 31),
            (300, 30),
            (10, 5),
            (10, 6),
        ] {
            let (before, after) = (vec![1; first], vec![2; second]);
            let mut text = Text::from(&*before);
            text.append(&after);
            assert_eq!(*text, [&*before, &*after].concat());
            text.overwrite(&after);
            assert_eq!(*text, *after);
        }
    }

    #[test]
    fn an_overwritten_text_keeps_only_memory_of_a_fitting_size() {
        let mut text = Text::from(&[1; 100][..]);
        let place = text.as_ptr();
        text.overwrite(&[2; 90]);
        assert_eq!((text.as_ptr(), text.len()), (place, 90));
        text.overwrite(&[3; 30]);
        assert!(matches!(text, Text::Long(bytes) if bytes.capacity() < 90));
    }
}
