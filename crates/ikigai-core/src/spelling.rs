//! Escapes for characters that control a terminal, reorder text or are invisible.
//!
//! [`clean`] is for output of any kind and leaves all scripts readable. [`spell_out`] is for text
//! that a user approves: two different texts never look the same.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Longest run of blanks that [`spell_out`] leaves unchanged.
const MOST_BLANKS: usize = 32;

/// Most combining marks that [`spell_out`] leaves on one character.
const MOST_MARKS: usize = 2;

/// Escapes characters that control a terminal; `\n` and `\t` stay, `\r\n` becomes `\n`.
///
/// Control characters become pictures such as `␛`. Bidirectional controls, line separators and
/// invisible characters become their code points such as `⟨U+202E⟩`. Joiners and variation
/// selectors stay where emoji and scripts need them.
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut cleaned: Option<String> = None;
    let mut previous = None;
    for (at, character) in text.char_indices() {
        let is_ending = character == '\r' && text[at..].starts_with("\r\n");
        let is_kept = matches!(character, '\n' | '\t')
            || !(character.is_control()
                || is_hidden(character)
                || is_joiner(character) && !joins(previous, character));
        previous = Some(character);
        match &mut cleaned {
            None if is_kept => {}
            Some(cleaned) if is_kept => cleaned.push(character),
            _ => {
                let cleaned = cleaned.get_or_insert_with(|| text[..at].to_owned());
                if !is_ending {
                    push_name(cleaned, character);
                }
            }
        }
    }
    cleaned.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Cleans a text into one line: line ends and tabs become spaces.
pub fn clean_line(text: &str) -> Cow<'_, str> {
    let cleaned = clean(text);
    if cleaned.contains(['\n', '\t']) {
        return Cow::Owned(cleaned.replace(['\n', '\t'], " "));
    }
    cleaned
}

/// Escapes a text that a user approves; only `\n` stays unchanged.
///
/// Everything without a distinct visible form is escaped: tabs and a `\r` before `\n`, unusual
/// blanks, joiners, letters without a cell, marks on ASCII letters, private and unassigned code
/// points, long runs of blanks. Signs that this function writes itself are escaped where the text has them.
pub fn spell_out(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len());
    let mut blanks = 0;
    let mut marks = 0;
    let mut previous = None;
    for character in text.chars() {
        if character == ' ' {
            blanks += 1;
            previous = Some(character);
            continue;
        }
        push_blanks(&mut spelled, std::mem::take(&mut blanks));
        let is_mark = is_unprintable(character) && !is_hidden(character) && !is_joiner(character);
        marks = if is_mark { marks + 1 } else { 0 };
        let stands = previous.is_some_and(|base: char| !base.is_ascii() && base.is_alphanumeric());
        let is_kept = match character {
            '\n' | '!'..='~' => true,
            // Signs of this function itself, and a blank that `char` counts as printable.
            '⟨' | '\u{2400}'..='\u{2426}' | '\u{2800}' => false,
            _ if is_hidden(character) || is_joiner(character) || character.is_control() => false,
            _ if has_no_cell(character) => false,
            _ if is_mark => stands && marks <= MOST_MARKS && is_extending(character),
            _ => true,
        };
        if is_kept {
            spelled.push(character);
        } else {
            push_name(&mut spelled, character);
        }
        if !is_mark {
            previous = Some(character);
        }
    }
    push_blanks(&mut spelled, blanks);
    spelled
}

/// Joins the lines of a call or command for lists and previews: a line end becomes ` ⏎ `.
///
/// `text` is already escaped.
pub fn one_line(text: &str) -> Cow<'_, str> {
    let text = text.trim_end();
    if text.contains(['\n', '\t']) {
        let line = text.replace('\n', " ⏎ ").replace('\t', " ");
        return Cow::Owned(clean(&line).into_owned());
    }
    clean(text)
}

/// Escapes JSON so that no character can control a terminal; its meaning stays.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let is_escaped = |character: char| match character {
        '\n' | '\t' => false,
        _ => character.is_control() || is_hidden(character),
    };
    if json.bytes().all(is_plain) || !json.chars().any(is_escaped) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if is_escaped(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

/// Appends the name of a character: its control picture or its code point.
fn push_name(text: &mut String, character: char) {
    let picture = match character {
        // The pictures begin at U+2400 in the same order.
        '\0'..'\u{20}' => char::from_u32(0x2400 + u32::from(character)),
        '\u{7f}' => Some('\u{2421}'),
        _ => None,
    };
    match picture {
        Some(picture) => text.push(picture),
        None => drop(write!(text, "⟨U+{:04X}⟩", u32::from(character))),
    }
}

fn push_blanks(text: &mut String, count: usize) {
    if count > MOST_BLANKS {
        let _ = write!(text, "⟨U+0020 × {count}⟩");
    } else {
        text.extend(std::iter::repeat_n(' ', count));
    }
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t')
}

/// Returns true for characters without a visible form that no script needs.
fn is_hidden(character: char) -> bool {
    let code = u32::from(character);
    matches!(
        character,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180e}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fdd0}'..='\u{fdef}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e00ff}'
        | '\u{e01f0}'..='\u{e0fff}'
    ) || code & 0xfffe == 0xfffe
}

/// Returns true for letters and signs that a terminal shows as nothing.
///
/// Terminals join vowels and finals of Hangul and prefixed letters with a neighbour, or drop them.
/// The others are blanks in their scripts.
fn has_no_cell(character: char) -> bool {
    matches!(
        character,
        '\u{d4e}'
        | '\u{1160}'..='\u{11ff}'
        | '\u{a8fa}'
        | '\u{d7b0}'..='\u{d7ff}'
        | '\u{111c2}'..='\u{111c3}'
        | '\u{113d1}'
        | '\u{1193f}'
        | '\u{11941}'
        | '\u{11a84}'..='\u{11a89}'
        | '\u{11d46}'
        | '\u{11f02}'
        | '\u{13441}'..='\u{13442}'
        | '\u{16fe4}'
        | '\u{1d159}'
    )
}

/// Returns true for zero-width characters that emoji and several scripts need.
fn is_joiner(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200d}') || is_selector(character)
}

fn is_selector(character: char) -> bool {
    matches!(
        character,
        '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}'
    )
}

/// Returns true if a joiner can have an effect after `previous`; always at the start of a text.
fn joins(previous: Option<char>, joiner: char) -> bool {
    match previous {
        None => true,
        Some('0'..='9' | '#' | '*') => joiner == '\u{fe0f}',
        Some(previous) if previous.is_ascii() => false,
        Some(previous) if is_selector(previous) => !is_selector(joiner),
        Some(previous) => !is_joiner(previous),
    }
}

/// Returns true if Rust escapes the character: formats, blanks, marks, unassigned.
fn is_unprintable(character: char) -> bool {
    !character.is_ascii() && character.escape_debug().len() > 1
}

/// Returns true if an unprintable character is a mark on the previous one, not unassigned.
fn is_extending(character: char) -> bool {
    // `str` escapes a mark only if it has no base character.
    let mut text = [0; 5];
    text[0] = b'a';
    let length = 1 + character.encode_utf8(&mut text[1..]).len();
    str::from_utf8(text.get(..length).unwrap_or_default())
        .is_ok_and(|text| text.escape_debug().count() == 2)
}

#[cfg(test)]
mod tests;
