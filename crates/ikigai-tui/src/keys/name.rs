//! Names of keys: `ctrl-x`, `alt-enter`, `shift-tab`, `f1`, `?`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::key::{KeyCode, KeyPress};

/// Unknown key name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown key `{0}`")]
pub struct NoSuchKey(pub String);

/// Keys with a name; the name of any other key is its character.
const NAMED: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("tab", KeyCode::Tab),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("page-up", KeyCode::PageUp),
    ("page-down", KeyCode::PageDown),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("esc", KeyCode::Escape),
    ("space", KeyCode::Char(' ')),
];

/// Number of function keys.
const FUNCTION_KEYS: u8 = 24;

impl FromStr for KeyPress {
    type Err = NoSuchKey;

    fn from_str(name: &str) -> Result<Self, NoSuchKey> {
        let mut key = Self::of(KeyCode::Escape);
        let mut rest = name;
        loop {
            let (held, behind) = if let Some(behind) = rest.strip_prefix("ctrl-") {
                (&mut key.ctrl, behind)
            } else if let Some(behind) = rest.strip_prefix("alt-") {
                (&mut key.alt, behind)
            } else if let Some(behind) = rest.strip_prefix("shift-") {
                (&mut key.shift, behind)
            } else {
                break;
            };
            *held = true;
            rest = behind;
        }
        key.code = code(rest).ok_or_else(|| NoSuchKey(name.to_owned()))?;
        Ok(key.plain())
    }
}

impl fmt::Display for KeyPress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = [
            (self.ctrl, "ctrl-"),
            (self.alt, "alt-"),
            (self.shift, "shift-"),
        ];
        for (is_held, name) in held {
            if is_held {
                f.write_str(name)?;
            }
        }
        if let Some((name, _)) = NAMED.iter().find(|(_, code)| *code == self.code) {
            return f.write_str(name);
        }
        match self.code {
            KeyCode::Char(letter) => write!(f, "{letter}"),
            KeyCode::F(number) => write!(f, "f{number}"),
            other => write!(f, "{other:?}"),
        }
    }
}

impl KeyPress {
    /// Returns the name as the screen shows it: `Ctrl-X`, `PgUp`, `↑`.
    pub fn label(&self) -> String {
        let mut label = String::new();
        let held = [
            (self.ctrl, "Ctrl-"),
            (self.alt, "Alt-"),
            (self.shift, "Shift-"),
        ];
        for (_, name) in held.iter().filter(|(is_held, _)| *is_held) {
            label.push_str(name);
        }
        match self.code {
            KeyCode::Char(' ') => label.push_str("Space"),
            KeyCode::Char(letter) if self.ctrl || self.alt => {
                label.push(letter.to_ascii_uppercase());
            }
            KeyCode::Char(letter) => label.push(letter),
            KeyCode::F(number) => label = format!("{label}F{number}"),
            KeyCode::Up => label.push('↑'),
            KeyCode::Down => label.push('↓'),
            KeyCode::Left => label.push('←'),
            KeyCode::Right => label.push('→'),
            KeyCode::PageUp => label.push_str("PgUp"),
            KeyCode::PageDown => label.push_str("PgDn"),
            KeyCode::Escape => label.push_str("Esc"),
            other => label = format!("{label}{other:?}"),
        }
        label
    }

    /// Returns the normal form of a key, in which keys are compared. A letter's case carries Shift,
    /// and with Ctrl it is lower case.
    #[must_use]
    pub fn plain(self) -> Self {
        let KeyCode::Char(letter) = self.code else {
            return self;
        };
        let letter = match (self.ctrl, self.shift) {
            (true, _) => letter.to_ascii_lowercase(),
            (false, true) => letter.to_ascii_uppercase(),
            (false, false) => letter,
        };
        Self {
            code: KeyCode::Char(letter),
            shift: self.shift && (self.ctrl || letter == ' '),
            ..self
        }
    }
}

fn code(name: &str) -> Option<KeyCode> {
    if let Some((_, code)) = NAMED.iter().find(|(known, _)| *known == name) {
        return Some(*code);
    }
    let mut letters = name.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) if !letter.is_control() && !letter.is_whitespace() => {
            Some(KeyCode::Char(letter))
        }
        (Some('f'), Some(_)) => {
            let number = name.get(1..)?.parse().ok()?;
            (1..=FUNCTION_KEYS)
                .contains(&number)
                .then_some(KeyCode::F(number))
        }
        _ => None,
    }
}
