//! One cell of a screen, kept small: a screen has thousands of them, twice.

use crate::look::Look;
use crate::width::LONGEST_PIECE;

/// Inline capacity of a cell in bytes.
const SHORT: usize = 14;

/// Contents of one cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridCell {
    symbol: Symbol,
    look: Look,
    /// Index into a table of links, from 1.
    pub(super) link: u16,
    width: u8,
}

/// A short text without a heap in most cases. Bytes beyond the length are 0, so that equal texts
/// are equal values.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Symbol {
    Short {
        length: u8,
        bytes: [u8; SHORT],
    },
    Long {
        length: u8,
        bytes: Box<[u8; LONGEST_PIECE]>,
    },
}

impl GridCell {
    /// Creates a blank cell with the background of a look.
    pub(super) const fn blank(look: Look) -> Self {
        let mut bytes = [0; SHORT];
        bytes[0] = b' ';
        Self {
            symbol: Symbol::Short { length: 1, bytes },
            look,
            link: 0,
            width: 1,
        }
    }

    /// Creates a cell of a grapheme; one that is too long becomes blank.
    pub(super) fn new(text: &str, width: u16, look: Look, link: u16) -> Self {
        let symbol = Symbol::new(text);
        Self {
            width: if width == 2 && symbol.is_some() { 2 } else { 1 },
            symbol: symbol.unwrap_or(Self::blank(look).symbol),
            look,
            link,
        }
    }

    /// Returns the right half of a wide cell.
    pub(super) fn tail(&self) -> Self {
        Self {
            symbol: Symbol::Short {
                length: 0,
                bytes: [0; SHORT],
            },
            look: self.look,
            link: self.link,
            width: 0,
        }
    }

    /// Returns the text of the cell; empty for the right half of a wide one.
    pub fn symbol(&self) -> &str {
        let bytes = match &self.symbol {
            Symbol::Short { length, bytes } => bytes.get(..usize::from(*length)),
            Symbol::Long { length, bytes } => bytes.get(..usize::from(*length)),
        };
        // Invariant: it holds whole texts only.
        std::str::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
    }

    /// Returns the style of the cell.
    pub fn look(&self) -> Look {
        self.look
    }

    /// Returns the width: 1, 2, or 0 for the right half of a wide cell.
    pub fn width(&self) -> u16 {
        u16::from(self.width)
    }

    /// Returns true if it contains only its background.
    pub fn is_blank(&self) -> bool {
        matches!(&self.symbol, Symbol::Short { length: 1, bytes } if bytes[0] == b' ')
    }

    pub(super) fn set_look(&mut self, look: Look) {
        self.look = look;
    }

    /// Hashes the cell; equal cells have equal digests.
    pub(super) fn digest(&self) -> u64 {
        let (length, bytes) = match &self.symbol {
            Symbol::Short { length, bytes } => (*length, bytes.as_slice()),
            Symbol::Long { length, bytes } => (*length, bytes.as_slice()),
        };
        let mut digest = u64::from(self.look.role as u8) << 32
            | u64::from(self.look.set_off) << 24
            | u64::from(self.link) << 8
            | u64::from(self.width);
        for byte in bytes.iter().take(usize::from(length)) {
            digest = mix(digest, u64::from(*byte));
        }
        digest
    }
}

/// Takes one more number into a digest.
pub(super) fn mix(digest: u64, more: u64) -> u64 {
    (digest.rotate_left(5) ^ more).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Symbol {
    fn new(text: &str) -> Option<Self> {
        let length = u8::try_from(text.len()).ok()?;
        let mut short = [0; SHORT];
        if let Some(room) = short.get_mut(..text.len()) {
            room.copy_from_slice(text.as_bytes());
            return Some(Self::Short {
                length,
                bytes: short,
            });
        }
        let mut bytes = Box::new([0; LONGEST_PIECE]);
        bytes
            .get_mut(..text.len())?
            .copy_from_slice(text.as_bytes());
        Some(Self::Long { length, bytes })
    }
}
