//! Conversion of arbitrary bytes to text that is safe for a screen.

use std::iter::Peekable;
use std::str::Chars;

/// Returns the text that a terminal would show for `bytes`.
///
/// Control sequences are applied or removed, `\r` restarts the line, `\r\n` ends it. Invalid UTF-8
/// becomes `�`. The only control characters left are `\n` and `\t`. The number of lines stays the
/// same: a sequence ends with its line, so an unfinished one cannot swallow the next line.
pub fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if !text.contains(is_removed) {
        return text.into_owned();
    }
    let mut cleaned = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, ending) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.contains(is_removed) {
            cleaned.extend(TerminalRow::default().written(line));
        } else {
            cleaned.push_str(line);
        }
        cleaned.push_str(ending);
    }
    cleaned
}

/// Returns a part of one line with every byte visible.
///
/// Control characters other than `\t` become symbols such as `␛`, and invalid UTF-8 becomes `�`.
pub fn visible(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|character| match character {
            '\t' => '\t',
            '\u{7f}' => '\u{2421}',
            // Their symbols start at U+2400 in the same order.
            '\0'..'\u{20}' => char::from_u32(0x2400 + u32::from(character)).unwrap_or('\u{fffd}'),
            '\u{80}'..'\u{a0}' => '\u{fffd}',
            other => other,
        })
        .collect()
}

fn is_removed(character: char) -> bool {
    character.is_control() && character != '\n' && character != '\t'
}

/// Row of a screen that is being written.
#[derive(Default)]
struct TerminalRow {
    cells: Vec<char>,
    cursor: usize,
}

impl TerminalRow {
    fn written(mut self, line: &str) -> Vec<char> {
        let mut rest = line.chars().peekable();
        while let Some(character) = rest.next() {
            match character {
                '\u{1b}' => self.escape(&mut rest),
                '\u{9b}' => self.control_sequence(&mut rest),
                '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut rest),
                '\r' => self.cursor = 0,
                '\u{8}' => self.cursor = self.cursor.saturating_sub(1),
                other if is_removed(other) => {}
                other => self.put(other),
            }
        }
        self.cells
    }

    fn put(&mut self, character: char) {
        if let Some(cell) = self.cells.get_mut(self.cursor) {
            *cell = character;
        } else {
            self.cells.resize(self.cursor, ' ');
            self.cells.push(character);
        }
        self.cursor += 1;
    }

    fn escape(&mut self, rest: &mut Peekable<Chars<'_>>) {
        match rest.peek() {
            Some('[') => {
                rest.next();
                self.control_sequence(rest);
            }
            Some(']' | 'P' | 'X' | '^' | '_') => {
                rest.next();
                skip_string(rest);
            }
            Some(' '..='/') => {
                while rest.next_if(|next| (' '..='/').contains(next)).is_some() {}
                rest.next_if(|next| ('0'..='~').contains(next));
            }
            Some('0'..='~') => {
                rest.next();
            }
            // Not a sequence: the next character is literal.
            _ => {}
        }
    }

    /// Applies a sequence after `CSI`. Only erasing within the line shows in plain text.
    fn control_sequence(&mut self, rest: &mut Peekable<Chars<'_>>) {
        let mut parameters = String::new();
        while let Some(next) = rest.next_if(|next| (' '..='?').contains(next)) {
            parameters.push(next);
        }
        let Some(last) = rest.next_if(|next| ('@'..='~').contains(next)) else {
            return;
        };
        match (parameters.as_str(), last) {
            ("" | "0", 'K') => self.cells.truncate(self.cursor),
            ("2", 'K') => self.cells.clear(),
            _ => {}
        }
    }
}

/// Skips a string for the terminal itself, such as a title or a picture.
fn skip_string(rest: &mut Peekable<Chars<'_>>) {
    while let Some(next) = rest.next() {
        match next {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' if rest.next_if_eq(&'\\').is_some() => return,
            _ => {}
        }
    }
}
