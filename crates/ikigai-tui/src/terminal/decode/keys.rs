//! Which key a sequence is: the forms of xterm, of the kitty protocol and of older terminals.

use crate::key::{Code, Key};

/// The key of one byte below 128.
pub(super) fn plain(byte: u8) -> Key {
    match byte {
        0x00 => Key::ctrl(' '),
        // Some terminals send this one for Backspace.
        0x08 | 0x7f => Key::of(Code::Backspace),
        0x09 => Key::of(Code::Tab),
        0x0d => Key::of(Code::Enter),
        0x1b => Key::of(Code::Escape),
        0x01..=0x1a => Key::ctrl(char::from(byte + 0x60)),
        0x1c..=0x1f => Key::ctrl(char::from(byte + 0x40)),
        _ => Key::of(Code::Char(char::from(byte))),
    }
}

/// The key of a sequence that begins with ESC O.
pub(super) fn application(held: &[u8], last: u8) -> Option<Key> {
    let code = match last {
        b'I' => Code::Tab,
        b'M' => Code::Enter,
        b'X' => Code::Char('='),
        // The number pad.
        b'j'..=b'y' => Code::Char(char::from(last - 0x40)),
        _ => letter(last)?,
    };
    let held = Parameters::read(held)?;
    // Old terminals give one number, others two as elsewhere.
    let held = held.number(1, 0).or(held.number(0, 0));
    modified(code, held.unwrap_or(1))
}

/// The key of a control sequence, if it is one and was not let go.
pub(super) fn sequence(held: &[u8], last: u8) -> Option<Key> {
    let held = Parameters::read(held)?;
    let modifiers = held.number(1, 0).unwrap_or(1);
    if held.number(1, 1) == Some(3) {
        return None;
    }
    match last {
        b'u' => {
            let text = held.number(2, 0).and_then(char::from_u32);
            typed(held.number(0, 0)?, held.number(0, 1), text, modifiers)
        }
        b'~' => match held.number(0, 0)? {
            27 => typed(held.number(2, 0)?, None, None, modifiers),
            number => modified(numbered(number)?, modifiers),
        },
        b'Z' => modified(Code::Tab, modifiers).map(|key| Key { shift: true, ..key }),
        // Arrows with Shift of one family of terminals.
        b'a'..=b'd' if held.is_empty() => Some(Key::shift(letter(last.to_ascii_uppercase())?)),
        // Otherwise it says where the cursor is.
        b'R' if held.number(0, 0) != Some(1) && !held.is_empty() => None,
        _ => modified(letter(last)?, modifiers),
    }
}

/// The keys that are told by a letter.
fn letter(letter: u8) -> Option<Code> {
    Some(match letter {
        b'A' => Code::Up,
        b'B' => Code::Down,
        b'C' => Code::Right,
        b'D' => Code::Left,
        b'F' => Code::End,
        b'H' => Code::Home,
        b'P'..=b'S' => Code::F(letter - b'P' + 1),
        _ => return None,
    })
}

/// The keys that are told by a number.
fn numbered(number: u32) -> Option<Code> {
    let number = u8::try_from(number).ok()?;
    Some(match number {
        1 | 7 => Code::Home,
        2 => Code::Insert,
        3 => Code::Delete,
        4 | 8 => Code::End,
        5 => Code::PageUp,
        6 => Code::PageDown,
        11..=15 => Code::F(number - 10),
        17..=21 => Code::F(number - 11),
        23..=26 => Code::F(number - 12),
        28 | 29 => Code::F(number - 13),
        31..=34 => Code::F(number - 14),
        _ => return None,
    })
}

/// A key that is told by its character's number, or by one of those that no character has.
fn typed(number: u32, shifted: Option<u32>, text: Option<char>, modifiers: u32) -> Option<Key> {
    let code = match number {
        9 => Code::Tab,
        13 | 57_414 => Code::Enter,
        27 => Code::Escape,
        8 | 127 => Code::Backspace,
        57_376..=57_398 => Code::F(u8::try_from(number - 57_376 + 13).ok()?),
        57_399..=57_408 => Code::Char(char::from_digit(number - 57_399, 10)?),
        57_409 => Code::Char('.'),
        57_410 => Code::Char('/'),
        57_411 => Code::Char('*'),
        57_412 => Code::Char('-'),
        57_413 => Code::Char('+'),
        57_415 => Code::Char('='),
        57_416 => Code::Char(','),
        57_417 => Code::Left,
        57_418 => Code::Right,
        57_419 => Code::Up,
        57_420 => Code::Down,
        57_421 => Code::PageUp,
        57_422 => Code::PageDown,
        57_423 => Code::Home,
        57_424 => Code::End,
        57_425 => Code::Insert,
        57_426 => Code::Delete,
        // Keys that stand for themselves: locks, volume, Shift.
        0xe000..=0xf8ff => return None,
        _ => Code::Char(char::from_u32(number).filter(|char| !char.is_control())?),
    };
    let key = modified(code, modifiers)?;
    let Code::Char(char) = key.code else {
        return Some(key);
    };
    if key.ctrl {
        let small = char.to_lowercase().next().unwrap_or(char);
        return Some(Key {
            code: Code::Char(small),
            ..key
        });
    }
    let shifted = shifted.and_then(char::from_u32);
    let capital = (key.shift && char.is_lowercase())
        .then(|| char.to_uppercase().next())
        .flatten();
    let shifted = shifted.filter(|_| key.shift).or(capital);
    let told = text.or(shifted).filter(|char| !char.is_control());
    Some(Key {
        // The character itself tells.
        shift: key.shift && told.is_none() && !char.is_uppercase(),
        code: Code::Char(told.unwrap_or(char)),
        ..key
    })
}

/// A key with the keys beside it, which are told as a sum of bits and one more.
fn modified(code: Code, modifiers: u32) -> Option<Key> {
    let bits = modifiers.saturating_sub(1);
    // Keys of the window system beside it: then it was not meant for us. Locks do not matter.
    if bits & 0b01_1000 != 0 {
        return None;
    }
    Some(Key {
        code,
        shift: bits & 0b1 != 0,
        alt: bits & 0b10_0010 != 0,
        ctrl: bits & 0b100 != 0,
    })
}

/// Numbers between semicolons, each of them perhaps with others after colons.
struct Parameters<'a>(&'a str);

impl<'a> Parameters<'a> {
    /// Reads them; nothing if there is anything else, which makes it an answer and not a key.
    fn read(held: &'a [u8]) -> Option<Self> {
        let numbers = held
            .iter()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b';' | b':'));
        let text = std::str::from_utf8(held).ok()?;
        numbers.then_some(Self(text))
    }

    fn number(&self, place: usize, part: usize) -> Option<u32> {
        let number = self.0.split(';').nth(place)?.split(':').nth(part)?;
        number.parse().ok()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
