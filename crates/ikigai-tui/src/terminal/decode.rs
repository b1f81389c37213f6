//! Decoder of terminal input to events.
//!
//! Drops unknown sequences whole, because their letters were never typed.

mod keys;

use crate::key::{KeyCode, KeyPress, MouseAction, MouseEvent, TerminalEvent};

/// Size limit of a paste; a terminal sends all of it.
pub const LONGEST_PASTE: usize = 16 << 20;

/// Limit of parameter bytes kept of a sequence; no key has more.
const LONGEST_SEQUENCE: usize = 128;

/// Beginning of the answer about the status of programs.
const STATUS_ANSWER: &[u8] = b"7501;";

/// End of a paste. Its first byte occurs only once, which makes the search simple.
const PASTE_END: &[u8] = b"\x1b[201~";

const ESCAPE: u8 = 0x1b;

/// Decodes terminal input; the result does not depend on how the bytes are split.
#[derive(Debug, Default)]
pub struct KeyDecoder {
    state: DecodeState,
    /// Bytes of the unfinished sequence, character or paste.
    held: Vec<u8>,
}

/// Position of the decoder between or within keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum DecodeState {
    /// Between two keys.
    #[default]
    Ground,
    /// After an escape.
    Escape,
    /// In a character of several bytes, with `missing` bytes to come.
    Character { missing: u8, alt: bool },
    /// In a control sequence, or in one that begins with ESC O.
    Sequence { introducer: u8 },
    /// In a function key of the Linux console.
    Console,
    /// In a mouse report of the old form, with `missing` bytes to come.
    OldMouse { missing: u8 },
    /// In an unsolicited answer that is a string.
    /// Holds its introducer, and true if a byte came since.
    Answer { introducer: u8, begun: bool },
    /// After an escape in such an answer.
    AnswerEscape,
    /// In a paste, after `seen` bytes of its end marker.
    Paste { seen: usize },
}

impl KeyDecoder {
    /// Decodes bytes and appends their events.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<TerminalEvent>) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            if matches!(self.state, DecodeState::Paste { .. }) {
                rest = self.paste(byte, after, out);
            } else {
                self.byte(byte, out);
            }
        }
    }

    /// Reports the end of the available input. A final escape is the Esc key then. Call it after a
    /// read that emptied the input.
    pub fn finish(&mut self, out: &mut Vec<TerminalEvent>) {
        let key = match self.state {
            DecodeState::Escape => KeyPress::of(KeyCode::Escape),
            DecodeState::Sequence { introducer } if self.held.is_empty() => {
                KeyPress::alt(KeyCode::Char(char::from(introducer)))
            }
            DecodeState::Answer {
                introducer,
                begun: false,
            } => KeyPress::alt(KeyCode::Char(char::from(introducer))),
            _ => return,
        };
        self.state = DecodeState::Ground;
        out.push(TerminalEvent::Key(key));
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<TerminalEvent>) {
        match self.state {
            DecodeState::Ground => self.ground(byte, false, out),
            DecodeState::Escape => self.escape(byte, out),
            DecodeState::Character { missing, alt } => self.character(byte, missing, alt, out),
            DecodeState::Sequence { introducer } => self.sequence(byte, introducer, out),
            DecodeState::Console => {
                self.state = DecodeState::Ground;
                if let Some(number) = byte.checked_sub(b'@').filter(|n| (1..=5).contains(n)) {
                    out.push(TerminalEvent::Key(KeyPress::of(KeyCode::F(number))));
                }
            }
            DecodeState::OldMouse { missing } => {
                self.state = match missing {
                    0 | 1 => DecodeState::Ground,
                    _ => DecodeState::OldMouse {
                        missing: missing - 1,
                    },
                };
            }
            DecodeState::Answer { introducer, .. } => match byte {
                ESCAPE => self.state = DecodeState::AnswerEscape,
                // BEL, which ends such an answer in older terminals.
                0x07 => self.answer(out),
                // No answer holds a control character: it is a key.
                0x00..0x20 | 0x7f => self.ground(byte, false, out),
                _ => {
                    self.state = DecodeState::Answer {
                        introducer,
                        begun: true,
                    };
                    if self.held.len() < STATUS_ANSWER.len() {
                        self.held.push(byte);
                    }
                }
            },
            DecodeState::AnswerEscape if byte == b'\\' => self.answer(out),
            DecodeState::AnswerEscape => {
                self.state = DecodeState::Ground;
                self.escape(byte, out);
            }
            DecodeState::Paste { .. } => {}
        }
    }

    /// Handles the end of an answer that is a string.
    fn answer(&mut self, out: &mut Vec<TerminalEvent>) {
        self.state = DecodeState::Ground;
        if self.held == STATUS_ANSWER {
            out.push(TerminalEvent::StatusSupported);
        }
        self.held.clear();
    }

    /// Handles a byte between two keys.
    fn ground(&mut self, byte: u8, alt: bool, out: &mut Vec<TerminalEvent>) {
        self.state = DecodeState::Ground;
        self.held.clear();
        let missing = match byte {
            ESCAPE => {
                self.state = DecodeState::Escape;
                return;
            }
            0x00..0x80 => {
                let key = keys::plain(byte);
                out.push(TerminalEvent::Key(KeyPress {
                    alt: alt || key.alt,
                    ..key
                }));
                return;
            }
            0xc2..0xe0 => 1,
            0xe0..0xf0 => 2,
            0xf0..0xf5 => 3,
            // No sequence begins with this byte.
            _ => return,
        };
        self.held.push(byte);
        self.state = DecodeState::Character { missing, alt };
    }

    fn escape(&mut self, byte: u8, out: &mut Vec<TerminalEvent>) {
        self.held.clear();
        match byte {
            b'[' | b'O' => self.state = DecodeState::Sequence { introducer: byte },
            b']' | b'P' | b'X' | b'^' | b'_' => {
                self.held.clear();
                self.state = DecodeState::Answer {
                    introducer: byte,
                    begun: false,
                };
            }
            ESCAPE => {
                out.push(TerminalEvent::Key(KeyPress::of(KeyCode::Escape)));
                self.state = DecodeState::Escape;
            }
            _ => self.ground(byte, true, out),
        }
    }

    fn character(&mut self, byte: u8, missing: u8, alt: bool, out: &mut Vec<TerminalEvent>) {
        if !(0x80..0xc0).contains(&byte) {
            // The character was cut off by another byte.
            self.ground(byte, false, out);
            return;
        }
        self.held.push(byte);
        if missing > 1 {
            self.state = DecodeState::Character {
                missing: missing - 1,
                alt,
            };
            return;
        }
        self.state = DecodeState::Ground;
        let char = std::str::from_utf8(&self.held)
            .ok()
            .and_then(|text| text.chars().next());
        if let Some(char) = char.filter(|char| !char.is_control()) {
            out.push(TerminalEvent::Key(KeyPress {
                alt,
                ..KeyPress::of(KeyCode::Char(char))
            }));
        }
    }

    fn sequence(&mut self, byte: u8, introducer: u8, out: &mut Vec<TerminalEvent>) {
        match byte {
            0x20..0x40 => {
                if self.held.len() <= LONGEST_SEQUENCE {
                    self.held.push(byte);
                }
            }
            b'[' if introducer == b'[' && self.held.is_empty() => self.state = DecodeState::Console,
            b'M' if introducer == b'[' && self.held.is_empty() => {
                self.state = DecodeState::OldMouse { missing: 3 };
            }
            0x40..0x7f => {
                self.state = DecodeState::Ground;
                let held = std::mem::take(&mut self.held);
                if held.len() <= LONGEST_SEQUENCE {
                    self.whole(&held, byte, introducer, out);
                }
            }
            // The sequence was cut off by another byte.
            _ => self.ground(byte, false, out),
        }
    }

    /// Handles a complete sequence.
    fn whole(&mut self, held: &[u8], last: u8, introducer: u8, out: &mut Vec<TerminalEvent>) {
        if introducer == b'O' {
            out.extend(keys::application(held, last).map(TerminalEvent::Key));
            return;
        }
        match (held, last) {
            (b"200", b'~') => self.state = DecodeState::Paste { seen: 0 },
            (b"", b'I') => out.push(TerminalEvent::Focus(true)),
            (b"", b'O') => out.push(TerminalEvent::Focus(false)),
            ([b'<', report @ ..], b'M' | b'm') => {
                out.extend(mouse(report, last == b'M').map(TerminalEvent::Mouse));
            }
            _ => out.extend(keys::sequence(held, last).map(TerminalEvent::Key)),
        }
    }

    /// Takes one byte of a paste, and following bytes that cannot end it. Returns the rest.
    fn paste<'a>(&mut self, byte: u8, after: &'a [u8], out: &mut Vec<TerminalEvent>) -> &'a [u8] {
        let DecodeState::Paste { seen } = self.state else {
            return after;
        };
        if PASTE_END.get(seen) == Some(&byte) {
            let seen = seen + 1;
            self.state = DecodeState::Paste { seen };
            if seen == PASTE_END.len() {
                self.state = DecodeState::Ground;
                let bytes = std::mem::take(&mut self.held);
                out.push(TerminalEvent::Paste(pasted_text(&bytes)));
            }
            return after;
        }
        // The partial end marker was text.
        self.keep(PASTE_END.get(..seen).unwrap_or_default());
        if byte == ESCAPE {
            self.state = DecodeState::Paste { seen: 1 };
            return after;
        }
        self.state = DecodeState::Paste { seen: 0 };
        self.keep(&[byte]);
        let plain = after.iter().position(|byte| *byte == ESCAPE);
        let (plain, rest) = after.split_at(plain.unwrap_or(after.len()));
        self.keep(plain);
        rest
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LONGEST_PASTE.saturating_sub(self.held.len());
        let bytes = bytes.get(..room).unwrap_or(bytes);
        self.held.extend_from_slice(bytes);
    }
}

/// Returns the text of a paste. Terminals send the key Enter for the end of a line.
fn pasted_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if text.contains('\r') {
        text.replace("\r\n", "\n").replace('\r', "\n")
    } else {
        text.into_owned()
    }
}

/// Parses a mouse report. Only the left button and the wheel have effects here.
fn mouse(report: &[u8], pressed: bool) -> Option<MouseEvent> {
    let report = std::str::from_utf8(report).ok()?;
    let mut numbers = report.split(';').map(|number| number.parse::<u16>().ok());
    let (button, column, row) = (numbers.next()??, numbers.next()??, numbers.next()??);
    if numbers.next().is_some() {
        return None;
    }
    // Ignore Shift, Alt and Ctrl.
    let action = match (button & !0b1_1100, pressed) {
        (0, true) => MouseAction::Press,
        (0, false) => MouseAction::Release,
        (32, true) => MouseAction::Drag,
        (64, true) => MouseAction::WheelUp,
        (65, true) => MouseAction::WheelDown,
        _ => return None,
    };
    Some(MouseEvent {
        action,
        column: column.saturating_sub(1),
        row: row.saturating_sub(1),
    })
}

#[cfg(test)]
mod tests;
