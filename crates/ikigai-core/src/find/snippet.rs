//! Snippets: the line of a hit around the search terms.

use std::collections::HashSet;
use std::ops::Range;

use super::{TermPosition, Words};

/// Largest number of occurrences that are compared for the best line.
const WEIGHED_PLACES: usize = 256;

/// Characters before the first occurrence in a line.
const BEFORE_CHARS: usize = 24;

/// One line of a text with the occurrences of the search terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// The line, without line breaks and control characters.
    pub text: String,
    /// Byte ranges of the occurrences, in order and disjoint.
    pub marks: Vec<Range<usize>>,
}

impl Snippet {
    /// Makes the line of at most `chars` characters with the most terms.
    ///
    /// Without any of them it is the beginning of the text.
    pub fn of(text: &str, words: &Words, chars: usize) -> Self {
        let places = words.places(text, WEIGHED_PLACES);
        let first = best(&places, chars).map_or(0, |place| place.at.start);
        // An occurrence near the beginning is shown from the beginning.
        let is_near = text[..first].chars().take(chars).count() < chars / 2;
        let start = if is_near { 0 } else { before(text, first) };
        let mut line = SnippetLine::default();
        if start > 0 {
            line.push('…');
        }
        let mut upcoming = places.iter().filter(|place| place.at.start >= start);
        let mut next = upcoming.next();
        let mut open: Option<(usize, usize)> = None;
        for (at, c) in text[start..].char_indices() {
            let at = start + at;
            if line.chars >= chars {
                line.push('…');
                break;
            }
            while let Some(place) = next.filter(|place| place.at.start <= at) {
                let (from, to) = open.unwrap_or((line.text.len(), 0));
                open = Some((from, place.at.end.max(to)));
                next = upcoming.next();
            }
            line.push(c);
            if let Some((from, _)) = open.filter(|(_, to)| at + c.len_utf8() >= *to) {
                line.marks.push(from..line.text.len());
                open = None;
            }
        }
        if let Some((from, _)) = open {
            line.marks.push(from..line.text.len());
        }
        line.finish()
    }

    /// Returns true if the line has an occurrence.
    pub fn has_mark(&self) -> bool {
        !self.marks.is_empty()
    }
}

/// Returns the occurrence from which the most different terms fit into a line.
fn best(places: &[TermPosition], chars: usize) -> Option<&TermPosition> {
    let fits = |from: usize| {
        let near = places[from..]
            .iter()
            .take_while(|place| place.at.end - places[from].at.start < chars);
        near.map(|place| place.term).collect::<HashSet<_>>().len()
    };
    // The first of equals.
    let best = (0..places.len()).max_by_key(|from| (fits(*from), std::cmp::Reverse(*from)));
    best.and_then(|best| places.get(best))
}

/// Returns the start of a line: a few characters before `word`, at a word boundary.
fn before(text: &str, word: usize) -> usize {
    let mut earlier = text[..word].char_indices().rev();
    let Some((start, _)) = earlier.nth(BEFORE_CHARS) else {
        return 0;
    };
    let mut cut = text[start..word].char_indices();
    let space = cut.find(|(_, c)| c.is_whitespace());
    space.map_or(word, |(at, c)| start + at + c.len_utf8())
}

/// A line under construction.
#[derive(Default)]
struct SnippetLine {
    text: String,
    marks: Vec<Range<usize>>,
    chars: usize,
}

impl SnippetLine {
    fn push(&mut self, c: char) {
        if c.is_whitespace() {
            if self.text.is_empty() || self.text.ends_with([' ', '…']) {
                return;
            }
            self.text.push(' ');
        } else if c.is_control() {
            self.text.push('\u{fffd}');
        } else {
            self.text.push(c);
        }
        self.chars += 1;
    }

    fn finish(mut self) -> Snippet {
        let kept = self.text.trim_end().len();
        self.text.truncate(kept);
        for mark in &mut self.marks {
            mark.end = mark.end.min(kept);
        }
        self.marks.retain(|mark| mark.start < mark.end);
        Snippet {
            text: self.text,
            marks: self.marks,
        }
    }
}
