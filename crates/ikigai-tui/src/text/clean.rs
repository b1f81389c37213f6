//! Text from outside made harmless: nothing in it can steer a terminal or turn words around.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with everything visible that a terminal would obey or hide: control characters become
/// their symbols such as `␛`, so that escape sequences are read and not followed; what turns the
/// direction of text, ends lines or takes no place is spelled out, such as `<U+202E>`.
///
/// `\n` and `\t` stay, and `\r\n` becomes `\n`.
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.bytes().all(is_plain) || !text.chars().any(is_shown) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len() + text.len() / 4);
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\r' if rest.peek() == Some(&'\n') => {}
            '\u{7f}' => cleaned.push('\u{2421}'),
            // The symbols of these begin at U+2400 in the same order.
            '\0'..'\u{20}' if is_shown(character) => {
                let symbol = char::from_u32(0x2400 + u32::from(character));
                cleaned.push(symbol.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            '\u{80}'..'\u{a0}' => cleaned.push(char::REPLACEMENT_CHARACTER),
            _ if is_shown(character) => {
                let _ = write!(cleaned, "<U+{:04X}>", u32::from(character));
            }
            other => cleaned.push(other),
        }
    }
    Cow::Owned(cleaned)
}

/// The same on one line: line ends and tabs become spaces.
pub fn clean_line(text: &str) -> Cow<'_, str> {
    let cleaned = clean(text);
    if cleaned.contains(['\n', '\t']) {
        return Cow::Owned(cleaned.replace(['\n', '\t'], " "));
    }
    cleaned
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t')
}

fn is_shown(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        // A soft hyphen, marks and overrides of direction, ends of lines, invisible operators, the
        // mark of byte order, annotations. Joiners stay: emoji and several scripts need them.
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' => true,
        other => other.is_control(),
    }
}
