//! List of choices: visible part and selected entry.

use ikigai_engine::commands::Candidate;

use crate::line::{TextLine, TextSpan};
use crate::look::{Look, Tone};
use crate::text::{clean, cut};
use crate::width::width;

/// End of an entry that is cut.
const MORE: &str = "…";

/// Entries with one selected.
#[derive(Clone, Debug, Default)]
pub struct ChoiceList {
    entries: Vec<Candidate>,
    marked: usize,
    /// First visible entry.
    first: usize,
    /// Entries on the screen.
    rows: usize,
}

impl ChoiceList {
    /// Creates a list with its first entry selected.
    pub fn new(entries: Vec<Candidate>, rows: usize) -> Self {
        Self {
            entries,
            marked: 0,
            first: 0,
            rows,
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Sets the number of entries on the screen.
    pub fn set_rows(&mut self, rows: usize) {
        self.rows = rows;
        self.scroll();
    }

    /// Moves the selection; it wraps at the ends.
    pub fn mark(&mut self, by: isize) {
        let end = self.entries.len().saturating_sub(1);
        self.marked = match self.marked.checked_add_signed(by) {
            Some(marked) if marked <= end => marked,
            Some(_) if self.marked == end && by == 1 => 0,
            Some(_) => end,
            None if self.marked == 0 && by == -1 => end,
            None => 0,
        };
        self.scroll();
    }

    /// Selects the entry with this text, if there is one.
    pub fn mark_text(&mut self, text: &str) -> bool {
        let at = self.entries.iter().position(|entry| entry.text == text);
        self.marked = at.unwrap_or(self.marked);
        self.scroll();
        at.is_some()
    }

    /// Selects the entry that another list has selected, in the same row. Returns true if present.
    pub fn mark_as(&mut self, other: &Self) -> bool {
        self.first = other.first;
        let is_there = other.selected().is_some_and(|text| self.mark_text(text));
        if !is_there {
            self.first = 0;
        }
        is_there
    }

    /// Selects the entry in a visible row; returns false if there is none.
    pub fn click(&mut self, row: usize) -> bool {
        let entry = self.first + row;
        let is_there = row < self.rows && entry < self.entries.len();
        if is_there {
            self.marked = entry;
        }
        is_there
    }

    /// Returns the text of the selected entry.
    pub fn selected(&self) -> Option<&str> {
        self.entries
            .get(self.marked)
            .map(|entry| entry.text.as_str())
    }

    /// Returns the selected entry.
    pub fn into_marked(self) -> Option<Candidate> {
        self.entries.into_iter().nth(self.marked)
    }

    /// Returns the number of the selected entry, and of all: `3/37`.
    pub fn place(&self) -> String {
        let marked = (self.marked + 1).min(self.entries.len());
        format!("{marked}/{}", self.entries.len())
    }

    /// Returns the visible rows.
    pub fn lines(&self, columns: u16) -> Vec<TextLine> {
        let entries = self.entries.iter().enumerate();
        let shown = entries.skip(self.first).take(self.rows);
        let widest = shown.clone().map(|(_, entry)| width(&clean(&entry.text)));
        let most = usize::from(columns / 2).max(8);
        let texts = widest.max().unwrap_or(0).min(most);
        shown
            .map(|(index, entry)| {
                let line = row(entry, index == self.marked, texts);
                cut(&line, columns, MORE)
            })
            .collect()
    }

    /// Returns the rows; the last one counts all entries if some are hidden.
    pub fn counted_lines(&self, columns: u16) -> Vec<TextLine> {
        let mut lines = self.lines(columns);
        if self.entries.len() > self.rows
            && let Some(last) = lines.last_mut()
        {
            let count = format!(" {}", self.place());
            let room = usize::from(columns).saturating_sub(width(&count));
            let room = u16::try_from(room).unwrap_or(columns);
            let mut line = cut(last, room, MORE);
            let used = width(&line.text());
            let gap = " ".repeat(usize::from(room).saturating_sub(used));
            line.spans.push(TextSpan::new(gap, Tone::Text));
            line.spans.push(TextSpan::new(count, Tone::Faint));
            *last = cut(&line, columns, "");
        }
        lines
    }

    fn scroll(&mut self) {
        let lowest = self.entries.len().saturating_sub(self.rows);
        self.first = self
            .first
            .min(self.marked)
            .max((self.marked + 1).saturating_sub(self.rows))
            .min(lowest);
    }
}

fn row(entry: &Candidate, marked: bool, columns: usize) -> TextLine {
    let (plain, hit) = if marked {
        let marked = Look::of(Tone::Marked);
        (marked, marked.with(Look::BOLD).with(Look::UNDERLINE))
    } else {
        (Look::of(Tone::Text), Look::of(Tone::Match))
    };
    let sign = if marked { "> " } else { "  " };
    let mut text = TextLine::default();
    let mut hits = entry.matched.iter().copied().peekable();
    for (at, letter) in entry.text.char_indices() {
        let look = if hits.next_if_eq(&at).is_some() {
            hit
        } else {
            plain
        };
        let shown = &entry.text[at..at + letter.len_utf8()];
        match text.spans.last_mut() {
            Some(span) if span.look == look => span.text.push_str(shown),
            _ => text.spans.push(TextSpan::new(shown, look)),
        }
    }
    for span in &mut text.spans {
        span.text = clean(&span.text).into_owned();
    }
    let mut line = cut(&text, u16::try_from(columns).unwrap_or(u16::MAX), MORE);
    let used = width(&line.text());
    line.spans.insert(0, TextSpan::new(sign, plain));
    line.lead = 1;
    if !entry.help.is_empty() {
        let gap = columns.saturating_sub(used) + 2;
        let look = if marked { plain } else { Tone::Faint.into() };
        line.spans.push(TextSpan::new(" ".repeat(gap), look));
        let mut done = 0;
        for mark in &entry.marks {
            let before = entry.help.get(done..mark.start);
            line.spans.extend(before.map(|text| help(text, look)));
            let stands_out = entry.help.get(mark.clone());
            line.spans.extend(stands_out.map(|text| help(text, hit)));
            done = mark.end;
        }
        let rest = entry.help.get(done..);
        line.spans.extend(rest.map(|text| help(text, look)));
    }
    line
}

fn help(text: &str, look: Look) -> TextSpan {
    TextSpan::new(clean(text).replace(['\n', '\t'], " "), look)
}
