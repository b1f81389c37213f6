//! Text with folded pieces, for editing, kill ring and undo.

use std::ops::Range;
use std::sync::Arc;

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

/// Text with folds. A fold appears as its label, and is never split.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clip {
    text: String,
    /// In order, without overlaps.
    folds: Vec<ClipFold>,
}

/// Folded piece of text, shown as its label.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ClipFold {
    /// Start of its label.
    start: usize,
    end: usize,
    /// Full text behind the label.
    whole: Arc<str>,
}

impl Clip {
    /// Creates text without folds.
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            folds: Vec::new(),
        }
    }

    /// Folds a text to a label.
    pub(super) fn folded(whole: &str, label: String) -> Self {
        let fold = ClipFold {
            start: 0,
            end: label.len(),
            whole: whole.into(),
        };
        Self {
            text: label,
            folds: vec![fold],
        }
    }

    /// Returns the text with folds as labels.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the length with folds as labels.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the full text, with folds expanded.
    pub(super) fn whole(&self) -> String {
        let mut whole = String::with_capacity(self.whole_len());
        let mut from = 0;
        for fold in &self.folds {
            whole.push_str(&self.text[from..fold.start]);
            whole.push_str(&fold.whole);
            from = fold.end;
        }
        whole.push_str(&self.text[from..]);
        whole
    }

    /// Returns the length of the full text, with folds expanded.
    pub(super) fn whole_len(&self) -> usize {
        let folded: usize = self.folds.iter().map(|fold| fold.whole.len()).sum();
        let labels: usize = self.folds.iter().map(|fold| fold.end - fold.start).sum();
        self.text.len() - labels + folded
    }

    /// Copies a part whose ends are outside folds.
    pub(super) fn part(&self, range: Range<usize>) -> Self {
        let inside = |fold: &&ClipFold| range.start <= fold.start && fold.end <= range.end;
        let folds = self.folds.iter().filter(inside).map(|fold| ClipFold {
            start: fold.start - range.start,
            end: fold.end - range.start,
            whole: Arc::clone(&fold.whole),
        });
        Self {
            folds: folds.collect(),
            text: self.text[range].to_owned(),
        }
    }

    /// Replaces a part whose ends are outside folds; returns the old part.
    pub(super) fn replace(&mut self, range: Range<usize>, by: &Self) -> Self {
        let removed = self.part(range.clone());
        let first = self.folds.partition_point(|fold| fold.start < range.start);
        let last = first + removed.folds.len();
        let put = by.folds.iter().map(|fold| ClipFold {
            start: fold.start + range.start,
            end: fold.end + range.start,
            whole: Arc::clone(&fold.whole),
        });
        self.folds.splice(first..last, put);
        for fold in self.folds.iter_mut().skip(first + by.folds.len()) {
            fold.start = fold.start - removed.len() + by.len();
            fold.end = fold.end - removed.len() + by.len();
        }
        self.text.replace_range(range, &by.text);
        removed
    }

    /// Appends text.
    pub(super) fn append(&mut self, other: &Self) {
        self.replace(self.len()..self.len(), other);
    }

    /// Prepends text.
    pub(super) fn prepend(&mut self, other: &Self) {
        self.replace(0..0, other);
    }

    /// Returns the fold that contains a place; its ends are outside.
    pub(super) fn fold_around(&self, at: usize) -> Option<Range<usize>> {
        let next = self.folds.partition_point(|fold| fold.end <= at);
        let fold = self.folds.get(next)?;
        (fold.start < at).then_some(fold.start..fold.end)
    }

    /// Returns the end of the piece at a place; true for a fold. A piece is a fold, or text up to a
    /// fold.
    pub(super) fn piece_end(&self, at: usize) -> (usize, bool) {
        let next = self.folds.partition_point(|fold| fold.end <= at);
        match self.folds.get(next) {
            Some(fold) if fold.start <= at => (fold.end, true),
            Some(fold) => (fold.start, false),
            None => (self.len(), false),
        }
    }

    /// Returns the start of the piece before a place; true for a fold.
    fn piece_start(&self, at: usize) -> (usize, bool) {
        let before = self.folds.partition_point(|fold| fold.start < at);
        match before.checked_sub(1).and_then(|last| self.folds.get(last)) {
            Some(fold) if fold.end >= at => (fold.start, true),
            Some(fold) => (fold.end, false),
            None => (0, false),
        }
    }

    /// Returns the next valid cursor position at or after a place.
    pub(super) fn cursor_place(&self, at: usize) -> usize {
        let at = self.text.ceil_char_boundary(at);
        if let Some(fold) = self.fold_around(at) {
            return fold.end;
        }
        let (start, behind_fold) = self.piece_start(at);
        let (end, before_fold) = self.piece_end(at);
        if behind_fold || before_fold {
            return at;
        }
        let mut cursor = GraphemeCursor::new(at - start, end - start, true);
        let piece = &self.text[start..end];
        match cursor.is_boundary(piece, 0) {
            Ok(false) => match cursor.next_boundary(piece, 0) {
                Ok(Some(next)) => start + next,
                _ => end,
            },
            _ => at,
        }
    }

    /// Returns the start of the grapheme or fold that ends at a place.
    pub(super) fn left(&self, at: usize) -> Option<usize> {
        if at == 0 {
            return None;
        }
        match self.piece_start(at) {
            (start, true) => Some(start),
            (start, false) => {
                let last = self.text[start..at].graphemes(true).next_back()?;
                Some(at - last.len())
            }
        }
    }

    /// Returns the end of the grapheme or fold that begins at a place.
    pub(super) fn right(&self, at: usize) -> Option<usize> {
        if at == self.len() {
            return None;
        }
        match self.piece_end(at) {
            (end, true) => Some(end),
            (end, false) => {
                let first = self.text[at..end].graphemes(true).next()?;
                Some(at + first.len())
            }
        }
    }

    /// Returns the start of the word before a place. A fold is a word.
    pub(super) fn word_left(&self, mut at: usize) -> usize {
        let mut within = false;
        while at > 0 {
            let (start, is_fold) = self.piece_start(at);
            if is_fold {
                return if within { at } else { start };
            }
            for grapheme in self.text[start..at].graphemes(true).rev() {
                if within && !is_word(grapheme) {
                    return at;
                }
                within |= is_word(grapheme);
                at -= grapheme.len();
            }
        }
        at
    }

    /// Returns the end of the word after a place. A fold is a word.
    pub(super) fn word_right(&self, mut at: usize) -> usize {
        let mut within = false;
        while at < self.len() {
            let (end, is_fold) = self.piece_end(at);
            if is_fold {
                return if within { at } else { end };
            }
            for grapheme in self.text[at..end].graphemes(true) {
                if within && !is_word(grapheme) {
                    return at;
                }
                within |= is_word(grapheme);
                at += grapheme.len();
            }
        }
        at
    }

    /// Returns the start of the line at a place.
    pub(super) fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// Returns the end of the line at a place, before its newline.
    pub(super) fn line_end(&self, at: usize) -> usize {
        self.text[at..]
            .find('\n')
            .map_or(self.len(), |length| at + length)
    }
}

fn is_word(grapheme: &str) -> bool {
    grapheme.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}
