//! Width of text in cells. Wrapping, cutting and drawing all use this module, so that they agree.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Longest grapheme in bytes; a family of emoji with skin tones has 41.
/// Bytes beyond it, which can only be stacked combining marks, are dropped.
pub const LONGEST_PIECE: usize = 63;

/// Bytes searched for the end of a grapheme.
/// Without a limit, an endless grapheme would be read to its end for each cell.
const WINDOW: usize = 256;

/// A character with its marks, in one cell or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WidthPiece<'a> {
    /// The text, from 1 to [`LONGEST_PIECE`] bytes.
    pub text: &'a str,
    /// Its cells: 1 or 2.
    pub width: u16,
    /// Start of the next piece, in bytes.
    pub end: usize,
}

/// Splits text into the graphemes of its cells.
/// Skips control characters, and zero-width characters without a base.
pub fn pieces(text: &str) -> Pieces<'_> {
    Pieces { text, at: 0 }
}

/// Returns the number of cells of a text.
pub fn width(text: &str) -> usize {
    pieces(text).map(|piece| usize::from(piece.width)).sum()
}

/// Cuts text to a number of cells.
pub fn cut(text: &str, cells: usize) -> &str {
    let mut used = 0;
    let mut end = 0;
    for piece in pieces(text) {
        used += usize::from(piece.width);
        if used > cells {
            return text.get(..end).unwrap_or_default();
        }
        end = piece.end;
    }
    text
}

/// The pieces of a text, from left to right.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = WidthPiece<'a>;

    fn next(&mut self) -> Option<WidthPiece<'a>> {
        loop {
            let rest = self.text.get(self.at..)?;
            let first = rest.chars().next()?;
            let plain =
                matches!(first, ' '..='~') && rest.as_bytes().get(1).is_none_or(u8::is_ascii);
            if plain {
                return self.take(rest, 1, 1, 1);
            }
            if first.width().unwrap_or(0) == 0 {
                self.at += first.len_utf8();
                continue;
            }
            let window = head(rest, WINDOW);
            let whole = window.graphemes(true).next()?;
            let width = whole.width();
            if width <= 2 {
                let width = if width == 2 { 2 } else { 1 };
                return self.take(rest, head(whole, LONGEST_PIECE).len(), width, whole.len());
            }
            // Some scripts join more than two cells: the wider part gets separate cells.
            let until = |end: usize| whole.get(..end).map_or(0, UnicodeWidthStr::width);
            let end = whole
                .char_indices()
                .skip(1)
                .filter(|(_, char)| char.width().unwrap_or(0) > 0)
                .find(|(at, char)| until(at + char.len_utf8()) > until(*at))
                .map_or(whole.len(), |(end, _)| end);
            let width = if whole.get(..end)?.width() == 1 { 1 } else { 2 };
            return self.take(rest, end.min(head(whole, LONGEST_PIECE).len()), width, end);
        }
    }
}

impl<'a> Pieces<'a> {
    fn take(
        &mut self,
        rest: &'a str,
        kept: usize,
        width: u16,
        length: usize,
    ) -> Option<WidthPiece<'a>> {
        self.at += length;
        Some(WidthPiece {
            text: rest.get(..kept)?,
            width,
            end: self.at,
        })
    }
}

/// Returns the prefix of a text, in whole characters.
fn head(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

#[cfg(test)]
mod tests;
