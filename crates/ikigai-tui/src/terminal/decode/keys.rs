//! Mapping of sequences to keys: xterm, the kitty protocol and older terminals.

use crate::key::{KeyCode, KeyPress};

/// Returns the key of one byte below 128.
pub(super) fn plain(byte: u8) -> KeyPress {
    match byte {
        0x00 => KeyPress::ctrl(' '),
        // Some terminals send this one for Backspace.
        0x08 | 0x7f => KeyPress::of(KeyCode::Backspace),
        0x09 => KeyPress::of(KeyCode::Tab),
        0x0d => KeyPress::of(KeyCode::Enter),
        0x1b => KeyPress::of(KeyCode::Escape),
        0x01..=0x1a => KeyPress::ctrl(char::from(byte + 0x60)),
        0x1c..=0x1f => KeyPress::ctrl(char::from(byte + 0x40)),
        _ => KeyPress::of(KeyCode::Char(char::from(byte))),
    }
}

/// Returns the key of a sequence that begins with ESC O.
pub(super) fn application(held: &[u8], last: u8) -> Option<KeyPress> {
    let code = match last {
        b'I' => KeyCode::Tab,
        b'M' => KeyCode::Enter,
        b'X' => KeyCode::Char('='),
        // The number pad.
        b'j'..=b'y' => KeyCode::Char(char::from(last - 0x40)),
        _ => letter(last)?,
    };
    let held = Parameters::read(held)?;
    // Old terminals give one number, others two as elsewhere.
    let held = held.number(1, 0).or(held.number(0, 0));
    modify(code, held.unwrap_or(1))
}

/// Returns the key of a control sequence, if it is one and not a release.
pub(super) fn sequence(held: &[u8], last: u8) -> Option<KeyPress> {
    let held = Parameters::read(held)?;
    let modifiers = held.number(1, 0).unwrap_or(1);
    if held.number(1, 1) == Some(3) {
        return None;
    }
    match last {
        b'u' => {
            let text = held.number(2, 0).and_then(char::from_u32);
            typed_key(held.number(0, 0)?, held.number(0, 1), text, modifiers)
        }
        b'~' => match held.number(0, 0)? {
            27 => typed_key(held.number(2, 0)?, None, None, modifiers),
            number => modify(numbered_key(number)?, modifiers),
        },
        b'Z' => modify(KeyCode::Tab, modifiers).map(|key| KeyPress { shift: true, ..key }),
        // Arrows with Shift of one family of terminals.
        b'a'..=b'd' if held.is_empty() => Some(KeyPress::shift(letter(last.to_ascii_uppercase())?)),
        // Otherwise it reports the cursor position.
        b'R' if held.number(0, 0) != Some(1) && !held.is_empty() => None,
        _ => modify(letter(last)?, modifiers),
    }
}

/// Returns the key encoded by a letter.
fn letter(letter: u8) -> Option<KeyCode> {
    Some(match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'P'..=b'S' => KeyCode::F(letter - b'P' + 1),
        _ => return None,
    })
}

/// Returns the key encoded by a number.
fn numbered_key(number: u32) -> Option<KeyCode> {
    let number = u8::try_from(number).ok()?;
    Some(match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => KeyCode::F(number - 10),
        17..=21 => KeyCode::F(number - 11),
        23..=26 => KeyCode::F(number - 12),
        28 | 29 => KeyCode::F(number - 13),
        31..=34 => KeyCode::F(number - 14),
        _ => return None,
    })
}

/// Returns the key encoded by a code point, or by a private-use number.
fn typed_key(
    number: u32,
    shifted: Option<u32>,
    text: Option<char>,
    modifiers: u32,
) -> Option<KeyPress> {
    let code = match number {
        9 => KeyCode::Tab,
        13 | 57_414 => KeyCode::Enter,
        27 => KeyCode::Escape,
        8 | 127 => KeyCode::Backspace,
        57_376..=57_398 => KeyCode::F(u8::try_from(number - 57_376 + 13).ok()?),
        57_399..=57_408 => KeyCode::Char(char::from_digit(number - 57_399, 10)?),
        57_409 => KeyCode::Char('.'),
        57_410 => KeyCode::Char('/'),
        57_411 => KeyCode::Char('*'),
        57_412 => KeyCode::Char('-'),
        57_413 => KeyCode::Char('+'),
        57_415 => KeyCode::Char('='),
        57_416 => KeyCode::Char(','),
        57_417 => KeyCode::Left,
        57_418 => KeyCode::Right,
        57_419 => KeyCode::Up,
        57_420 => KeyCode::Down,
        57_421 => KeyCode::PageUp,
        57_422 => KeyCode::PageDown,
        57_423 => KeyCode::Home,
        57_424 => KeyCode::End,
        57_425 => KeyCode::Insert,
        57_426 => KeyCode::Delete,
        // Keys without a character: locks, volume, Shift.
        0xe000..=0xf8ff => return None,
        _ => KeyCode::Char(char::from_u32(number).filter(|char| !char.is_control())?),
    };
    let key = modify(code, modifiers)?;
    let KeyCode::Char(char) = key.code else {
        return Some(key);
    };
    if key.ctrl {
        let small = char.to_lowercase().next().unwrap_or(char);
        return Some(KeyPress {
            code: KeyCode::Char(small),
            ..key
        });
    }
    let shifted = shifted.and_then(char::from_u32);
    let capital = (key.shift && char.is_lowercase())
        .then(|| char.to_uppercase().next())
        .flatten();
    let shifted = shifted.filter(|_| key.shift).or(capital);
    let typed = text.or(shifted).filter(|char| !char.is_control());
    Some(KeyPress {
        // The character's case carries Shift.
        shift: key.shift && typed.is_none() && !char.is_uppercase(),
        code: KeyCode::Char(typed.unwrap_or(char)),
        ..key
    })
}

/// Returns the key with modifiers, which are encoded as a bit set plus one.
fn modify(code: KeyCode, modifiers: u32) -> Option<KeyPress> {
    let bits = modifiers.saturating_sub(1);
    // With Super or Hyper the key was meant for the window system. Ignore locks.
    if bits & 0b01_1000 != 0 {
        return None;
    }
    Some(KeyPress {
        code,
        shift: bits & 0b1 != 0,
        alt: bits & 0b10_0010 != 0,
        ctrl: bits & 0b100 != 0,
    })
}

/// Numbers between semicolons, each of them perhaps with others after colons.
struct Parameters<'a>(&'a str);

impl<'a> Parameters<'a> {
    /// Reads the numbers; none if there are other characters, as in answers.
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
