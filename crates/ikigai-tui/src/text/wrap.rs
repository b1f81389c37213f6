//! Wrapping of lines into rows.

use unicode_width::UnicodeWidthChar;

use crate::line::{TextLine, TextSpan};
use crate::width::{pieces, width};

/// Distance between tab stops in columns.
const TAB: usize = 4;

/// Source of the spaces that a line break removed.
const SPACES: &str = "                                                                ";

/// Minimum number of columns for text, however wide the lead is.
const LEAST_ROOM: usize = 8;

/// Replacement for a character wider than the whole row.
const TOO_WIDE: &str = "?";

/// Breaks a line into rows of at most `width` columns, between words where possible.
/// A word is broken only if it is longer than a row. The first row has the line's own lead, all
/// others have `hanging`.
///
/// `joined` of a row holds the text removed between it and the row above, so that rows rejoin to
/// the text, except for trailing spaces and characters of no width. Tabs become spaces. Cost is
/// linear.
pub fn wrap(line: &TextLine, width: u16, hanging: &[TextSpan]) -> Vec<TextLine> {
    WrappedRows::new(line, width, hanging).collect()
}

/// Returns the first `most` rows, and the start of the next one if any.
pub fn wrap_some(
    line: &TextLine,
    width: u16,
    hanging: &[TextSpan],
    most: usize,
) -> (Vec<TextLine>, Option<WrapPosition>) {
    let mut rows = WrappedRows::new(line, width, hanging);
    let lines = rows.by_ref().take(most).collect();
    (lines, rows.place())
}

/// Cuts a line to one row, with `mark` at the end if it was longer.
pub fn cut(line: &TextLine, columns: u16, mark: &str) -> TextLine {
    let whole = usize::from(columns);
    let mut taken = Assembled::default();
    let mut used = 0;
    // The last position at which the mark still fits.
    let mut end = (0, taken.end());
    let mut at = WrapPosition::default();
    while let Some((here, cell)) = cell_at(line, at, used, whole) {
        let Some(span) = line.spans.get(here.span) else {
            break;
        };
        if used + cell.width > whole {
            taken.truncate(end.1);
            if end.0 + width(mark) <= whole {
                taken.push(here.span, &TextSpan::new("", span.look), mark);
            }
            break;
        }
        taken.push(here.span, span, cell.text);
        used += cell.width;
        if used + width(mark) <= whole {
            end = (used, taken.end());
        }
        at = here.after(cell);
    }
    taken.line(line.lead, line.joined)
}

/// Start of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrapPosition {
    span: usize,
    byte: usize,
    /// Spaces removed before the row; none for the first row.
    joined: Option<&'static str>,
}

impl WrapPosition {
    fn after(self, cell: WrapCell<'_>) -> Self {
        Self {
            byte: self.byte + cell.bytes,
            ..self
        }
    }

    fn joined(self, by: &'static str) -> Self {
        Self {
            joined: Some(by),
            ..self
        }
    }
}

/// Iterator over the rows of a line.
#[derive(Clone, Debug)]
pub struct WrappedRows<'a> {
    line: &'a TextLine,
    hanging: &'a [TextSpan],
    width: u16,
    next: Option<WrapPosition>,
}

impl<'a> WrappedRows<'a> {
    /// Iterates over all rows of a line.
    pub fn new(line: &'a TextLine, width: u16, hanging: &'a [TextSpan]) -> Self {
        let place = WrapPosition {
            span: line.lead.min(line.spans.len()),
            ..WrapPosition::default()
        };
        Self::from(line, width, hanging, place)
    }

    /// Iterates over rows from a position, which must belong to this line and width.
    pub fn from(
        line: &'a TextLine,
        width: u16,
        hanging: &'a [TextSpan],
        place: WrapPosition,
    ) -> Self {
        Self {
            line,
            hanging,
            width: width.max(1),
            next: Some(place),
        }
    }

    /// Returns the start of the next row, if there is one.
    pub fn place(&self) -> Option<WrapPosition> {
        self.next
    }

    fn row_at(&mut self, start: WrapPosition) -> TextLine {
        let whole = usize::from(self.width);
        let own = self.line.spans.get(..self.line.lead).unwrap_or_default();
        let lead = match start.joined {
            None => own,
            Some(_) => self.hanging,
        };
        let lead = shorten(lead, whole - LEAST_ROOM.min(whole));
        let used: usize = lead.iter().map(|span| width(&span.text)).sum();
        let mut row = RowBuilder {
            line: self.line,
            room: whole - used,
            used: 0,
            taken: Assembled::default(),
            is_indent: true,
            before: ("", ""),
            space: None,
            last: None,
        };
        self.next = row.fill(start);
        let joined = start.joined.or(self.line.joined);
        let mut line = row.taken.line(0, joined);
        line.lead = lead.len();
        line.spans.splice(0..0, lead);
        line
    }
}

impl Iterator for WrappedRows<'_> {
    type Item = TextLine;

    fn next(&mut self) -> Option<TextLine> {
        let start = self.next?;
        Some(self.row_at(start))
    }
}

/// Returns the part of a lead that fits into `columns`.
fn shorten(lead: &[TextSpan], columns: usize) -> Vec<TextSpan> {
    let mut left = columns;
    let mut fits = Vec::with_capacity(lead.len());
    for span in lead {
        let text = crate::width::cut(&span.text, left);
        left -= width(text);
        if text.len() < span.text.len() {
            left = 0;
        }
        if !text.is_empty() {
            fits.push(TextSpan {
                text: text.to_owned(),
                ..span.clone()
            });
        }
    }
    fits
}

/// Row under assembly.
struct RowBuilder<'a> {
    line: &'a TextLine,
    room: usize,
    used: usize,
    taken: Assembled,
    /// Only spaces so far.
    is_indent: bool,
    /// The two cells before.
    before: (&'a str, &'a str),
    /// Last run of spaces: its start in the row, and its length.
    space: Option<(RowEnd, usize)>,
    /// Last possible break: end of the row, and start of the next one.
    last: Option<(RowEnd, WrapPosition)>,
}

impl RowBuilder<'_> {
    /// Takes in as much as fits; returns the start of the next row.
    fn fill(&mut self, start: WrapPosition) -> Option<WrapPosition> {
        let mut at = start;
        while let Some((here, cell)) = cell_at(self.line, at, self.used, self.room) {
            let is_space = cell.is_space();
            if !is_space {
                self.note_break(here, cell.text);
            }
            if self.used + cell.width > self.room {
                if is_space && !self.is_indent {
                    return self.eat(here);
                }
                if let Some((end, next)) = self.last {
                    self.taken.truncate(end);
                    return Some(next);
                }
                if self.taken.is_empty() {
                    self.take(here, TOO_WIDE);
                    let next = cell_at(self.line, here.after(cell), 0, self.room);
                    return next.map(|(next, _)| next.joined(""));
                }
                return Some(here.joined(""));
            }
            if is_space && !self.is_indent {
                let (end, count) = self.space.unwrap_or((self.taken.end(), 0));
                self.space = Some((end, count + cell.width));
            }
            self.is_indent &= is_space;
            self.take(here, cell.text);
            self.used += cell.width;
            self.before = (self.before.1, cell.text);
            at = here.after(cell);
        }
        None
    }

    fn take(&mut self, at: WrapPosition, text: &str) {
        if let Some(span) = self.line.spans.get(at.span) {
            self.taken.push(at.span, span, text);
        }
    }

    /// Records a possible break before this cell.
    fn note_break(&mut self, at: WrapPosition, text: &str) {
        if let Some((end, count)) = self.space.take() {
            let eaten = SPACES.get(..count);
            // If there are more spaces than `SPACES` holds, they stay at the end of the row.
            let (end, eaten) = eaten.map_or((self.taken.end(), ""), |eaten| (end, eaten));
            self.last = Some((end, at.joined(eaten)));
        } else if !self.is_indent && may_break(self.before, text) {
            self.last = Some((self.taken.end(), at.joined("")));
        }
    }

    /// Ends the row before the spaces that begin in it or here, and removes them.
    fn eat(&mut self, mut at: WrapPosition) -> Option<WrapPosition> {
        let (end, mut count) = self.space.take().unwrap_or((self.taken.end(), 0));
        if count > SPACES.len() {
            return Some(at.joined(""));
        }
        self.taken.truncate(end);
        loop {
            // At the start of a row, so that a tab has its full width.
            let (here, cell) = cell_at(self.line, at, 0, self.room)?;
            let eaten = SPACES.get(..count).unwrap_or_default();
            if !cell.is_space() || count + cell.width > SPACES.len() {
                return Some(here.joined(eaten));
            }
            count += cell.width;
            at = here.after(cell);
        }
    }
}

/// Smallest unit of wrapping, never split.
#[derive(Clone, Copy)]
struct WrapCell<'a> {
    text: &'a str,
    width: usize,
    /// Bytes of the span that it takes.
    bytes: usize,
}

impl WrapCell<'_> {
    fn is_space(self) -> bool {
        self.text.bytes().all(|byte| byte == b' ')
    }
}

/// Returns the cell at a place and its start, skipping characters of no width.
/// A tab's width depends on the column and on the row's width.
fn cell_at(
    line: &TextLine,
    mut place: WrapPosition,
    column: usize,
    room: usize,
) -> Option<(WrapPosition, WrapCell<'_>)> {
    loop {
        let rest = line.spans.get(place.span)?.text.get(place.byte..);
        let rest = rest.unwrap_or_default();
        match rest.chars().next() {
            None => {
                place.span += 1;
                place.byte = 0;
            }
            Some('\t') => return Some((place, tab(column, room))),
            Some(first) if first.width().unwrap_or(0) == 0 => place.byte += first.len_utf8(),
            Some(_) => {
                let piece = pieces(rest).next()?;
                let cell = WrapCell {
                    text: piece.text,
                    width: usize::from(piece.width),
                    bytes: piece.end,
                };
                return Some((place, cell));
            }
        }
    }
}

/// Returns the spaces of a tab, at most a whole row.
fn tab(column: usize, room: usize) -> WrapCell<'static> {
    let left = room.saturating_sub(column).max(1);
    let width = (TAB - column % TAB).min(left);
    WrapCell {
        text: SPACES.get(..width).unwrap_or_default(),
        width,
        bytes: 1,
    }
}

/// Returns true if a row may end between these cells. None of them is a space.
fn may_break(before: (&str, &str), after: &str) -> bool {
    let (Some(left), Some(right)) = (before.1.chars().next(), after.chars().next()) else {
        return false;
    };
    match left {
        // A flag such as `--all` stays whole.
        '-' => right.is_alphabetic() && before.0.chars().all(char::is_alphanumeric),
        '\u{2010}' | '\u{2013}' | '\u{2014}' | '\u{200b}' => true,
        _ if opens(left) || closes(right) => false,
        _ => is_ideographic(left) || is_ideographic(right),
    }
}

/// Returns true if text may break next to it without a space: CJK and emoji.
fn is_ideographic(character: char) -> bool {
    matches!(
        u32::from(character),
        0x1100..=0x11ff | 0x2e80..=0xd7ff | 0xf900..=0xfaff | 0xfe30..=0xfe4f | 0xff00..=0xffef
        | 0x1f300..=0x1faff | 0x20000..=0x3ffff
    )
}

fn opens(character: char) -> bool {
    matches!(
        character,
        '(' | '['
            | '{'
            | '"'
            | '\''
            | '“'
            | '‘'
            | '「'
            | '『'
            | '（'
            | '【'
            | '《'
            | '〈'
            | '［'
            | '｛'
            | '〔'
    )
}

fn closes(character: char) -> bool {
    matches!(
        character,
        '.' | ','
            | ':'
            | ';'
            | '!'
            | '?'
            | ')'
            | ']'
            | '}'
            | '"'
            | '\''
            | '”'
            | '’'
            | '…'
            | '%'
            | '、'
            | '。'
            | '，'
            | '．'
            | '：'
            | '；'
            | '！'
            | '？'
            | '）'
            | '」'
            | '』'
            | '】'
            | '》'
            | '〉'
            | '］'
            | '｝'
            | '〕'
            | 'ー'
            | '々'
            | '～'
            | '・'
    )
}

/// Spans of a row so far.
#[derive(Default)]
struct Assembled {
    spans: Vec<TextSpan>,
    /// Index of the span that the last piece comes from.
    of: Option<usize>,
}

/// Saved length of a row under assembly.
#[derive(Clone, Copy)]
struct RowEnd {
    spans: usize,
    last: usize,
}

impl Assembled {
    fn push(&mut self, of: usize, like: &TextSpan, text: &str) {
        match self.spans.last_mut() {
            Some(last) if self.of == Some(of) && last.look == like.look => last.text.push_str(text),
            _ => {
                self.of = Some(of);
                self.spans.push(TextSpan {
                    text: text.to_owned(),
                    look: like.look,
                    link: like.link.clone(),
                });
            }
        }
    }

    fn end(&self) -> RowEnd {
        RowEnd {
            spans: self.spans.len(),
            last: self.spans.last().map_or(0, |span| span.text.len()),
        }
    }

    /// Removes everything after `end`.
    fn truncate(&mut self, end: RowEnd) {
        self.spans.truncate(end.spans);
        if let Some(last) = self.spans.last_mut() {
            last.text.truncate(end.last);
        }
    }

    fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    fn line(self, lead: usize, joined: Option<&'static str>) -> TextLine {
        TextLine {
            lead: lead.min(self.spans.len()),
            spans: self.spans,
            joined,
        }
    }
}
