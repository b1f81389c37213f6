//! Keys as a program writes them.

use crate::key::TerminalEvent;
use crate::terminal::KeyDecoder;

/// Most keys of one request; longer text is pasted.
const MOST_KEYS: usize = 16_384;

/// Unescapes `\r \n \t \\ \xNN` in a text. Any other backslash is literal.
pub fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let (byte, left) = match after {
            [b'r', left @ ..] if first == b'\\' => (b'\r', left),
            [b'n', left @ ..] if first == b'\\' => (b'\n', left),
            [b't', left @ ..] if first == b'\\' => (b'\t', left),
            [b'\\', left @ ..] if first == b'\\' => (b'\\', left),
            [b'x', high, low, left @ ..] if first == b'\\' => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, left),
                _ => (first, after),
            },
            _ => (first, after),
        };
        bytes.push(byte);
        rest = left;
    }
    bytes
}

/// Returns the events of typed keys; none if they are too many.
pub(super) fn happenings(keys: &str) -> Option<Vec<TerminalEvent>> {
    let mut out = Vec::new();
    let mut decoder = KeyDecoder::default();
    decoder.feed(&unescape(keys), &mut out);
    decoder.finish(&mut out);
    (out.len() <= MOST_KEYS).then_some(out)
}

fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}
