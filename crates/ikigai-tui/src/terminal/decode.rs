//! Turns the bytes of a terminal into what happened.
//!
//! Whatever comes, a sequence that is not understood is swallowed whole: its letters were never
//! typed.

mod keys;

use crate::key::{Code, Deed, Happening, Key, Mouse};

/// How much of a paste is kept. A terminal sends as much as somebody has copied.
pub const LONGEST_PASTE: usize = 16 << 20;

/// How many parameter bytes of a sequence are kept; no key has more.
const LONGEST_SEQUENCE: usize = 128;

/// What ends a paste. Its first byte is nowhere else in it, which makes searching it simple.
const PASTE_END: &[u8] = b"\x1b[201~";

const ESCAPE: u8 = 0x1b;

/// Reads what a terminal sends. The same bytes give the same in whatever parts they come.
#[derive(Debug, Default)]
pub struct Decoder {
    state: State,
    /// What belongs to the sequence, the character or the paste that has not ended yet.
    held: Vec<u8>,
}

/// Where in its bytes it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Between two keys.
    #[default]
    Ground,
    /// After an escape.
    Escape,
    /// In a character of several bytes, of which so many are missing.
    Character { missing: u8, alt: bool },
    /// In a control sequence, or in one that begins with ESC O.
    Sequence { introducer: u8 },
    /// In a function key of the Linux console.
    Console,
    /// In a mouse report of the old form, of which so many bytes are missing.
    OldMouse { missing: u8 },
    /// In an answer that is a string; nobody asked for it. The byte that began it, and whether
    /// anything came since.
    Answer { introducer: u8, begun: bool },
    /// After an escape in such an answer.
    AnswerEscape,
    /// In a paste, with so many bytes of its end seen.
    Paste { seen: usize },
}

impl Decoder {
    /// Takes bytes in, and appends what happened.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<Happening>) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            if matches!(self.state, State::Paste { .. }) {
                rest = self.paste(byte, after, out);
            } else {
                self.byte(byte, out);
            }
        }
    }

    /// Says that no more bytes are there: an escape at the end was the key. To be called when a
    /// read has brought all that there was.
    pub fn finish(&mut self, out: &mut Vec<Happening>) {
        let key = match self.state {
            State::Escape => Key::of(Code::Escape),
            State::Sequence { introducer } if self.held.is_empty() => {
                Key::alt(Code::Char(char::from(introducer)))
            }
            State::Answer {
                introducer,
                begun: false,
            } => Key::alt(Code::Char(char::from(introducer))),
            _ => return,
        };
        self.state = State::Ground;
        out.push(Happening::Key(key));
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<Happening>) {
        match self.state {
            State::Ground => self.ground(byte, false, out),
            State::Escape => self.escape(byte, out),
            State::Character { missing, alt } => self.character(byte, missing, alt, out),
            State::Sequence { introducer } => self.sequence(byte, introducer, out),
            State::Console => {
                self.state = State::Ground;
                if let Some(number) = byte.checked_sub(b'@').filter(|n| (1..=5).contains(n)) {
                    out.push(Happening::Key(Key::of(Code::F(number))));
                }
            }
            State::OldMouse { missing } => {
                self.state = match missing {
                    0 | 1 => State::Ground,
                    _ => State::OldMouse {
                        missing: missing - 1,
                    },
                };
            }
            State::Answer { introducer, .. } => match byte {
                ESCAPE => self.state = State::AnswerEscape,
                // The sign that ends such an answer in older terminals.
                0x07 => self.state = State::Ground,
                // No answer holds a control character: it is a key.
                0x00..0x20 | 0x7f => self.ground(byte, false, out),
                _ => {
                    self.state = State::Answer {
                        introducer,
                        begun: true,
                    };
                }
            },
            State::AnswerEscape => {
                self.state = State::Ground;
                if byte != b'\\' {
                    self.escape(byte, out);
                }
            }
            State::Paste { .. } => {}
        }
    }

    /// A byte that begins something.
    fn ground(&mut self, byte: u8, alt: bool, out: &mut Vec<Happening>) {
        self.state = State::Ground;
        self.held.clear();
        let missing = match byte {
            ESCAPE => {
                self.state = State::Escape;
                return;
            }
            0x00..0x80 => {
                let key = keys::plain(byte);
                out.push(Happening::Key(Key {
                    alt: alt || key.alt,
                    ..key
                }));
                return;
            }
            0xc2..0xe0 => 1,
            0xe0..0xf0 => 2,
            0xf0..0xf5 => 3,
            // Nothing begins so.
            _ => return,
        };
        self.held.push(byte);
        self.state = State::Character { missing, alt };
    }

    fn escape(&mut self, byte: u8, out: &mut Vec<Happening>) {
        self.held.clear();
        match byte {
            b'[' | b'O' => self.state = State::Sequence { introducer: byte },
            b']' | b'P' | b'X' | b'^' | b'_' => {
                self.state = State::Answer {
                    introducer: byte,
                    begun: false,
                };
            }
            ESCAPE => {
                out.push(Happening::Key(Key::of(Code::Escape)));
                self.state = State::Escape;
            }
            _ => self.ground(byte, true, out),
        }
    }

    fn character(&mut self, byte: u8, missing: u8, alt: bool, out: &mut Vec<Happening>) {
        if !(0x80..0xc0).contains(&byte) {
            // The character was cut off; this is something else.
            self.ground(byte, false, out);
            return;
        }
        self.held.push(byte);
        if missing > 1 {
            self.state = State::Character {
                missing: missing - 1,
                alt,
            };
            return;
        }
        self.state = State::Ground;
        let char = std::str::from_utf8(&self.held)
            .ok()
            .and_then(|text| text.chars().next());
        if let Some(char) = char.filter(|char| !char.is_control()) {
            out.push(Happening::Key(Key {
                alt,
                ..Key::of(Code::Char(char))
            }));
        }
    }

    fn sequence(&mut self, byte: u8, introducer: u8, out: &mut Vec<Happening>) {
        match byte {
            0x20..0x40 => {
                if self.held.len() <= LONGEST_SEQUENCE {
                    self.held.push(byte);
                }
            }
            b'[' if introducer == b'[' && self.held.is_empty() => self.state = State::Console,
            b'M' if introducer == b'[' && self.held.is_empty() => {
                self.state = State::OldMouse { missing: 3 };
            }
            0x40..0x7f => {
                self.state = State::Ground;
                let held = std::mem::take(&mut self.held);
                if held.len() <= LONGEST_SEQUENCE {
                    self.whole(&held, byte, introducer, out);
                }
            }
            // Cut off: what comes is something else.
            _ => self.ground(byte, false, out),
        }
    }

    /// A sequence that has come to its end.
    fn whole(&mut self, held: &[u8], last: u8, introducer: u8, out: &mut Vec<Happening>) {
        if introducer == b'O' {
            out.extend(keys::application(held, last).map(Happening::Key));
            return;
        }
        match (held, last) {
            (b"200", b'~') => self.state = State::Paste { seen: 0 },
            (b"", b'I') => out.push(Happening::Focus(true)),
            (b"", b'O') => out.push(Happening::Focus(false)),
            ([b'<', report @ ..], b'M' | b'm') => {
                out.extend(mouse(report, last == b'M').map(Happening::Mouse));
            }
            _ => out.extend(keys::sequence(held, last).map(Happening::Key)),
        }
    }

    /// Takes one byte of a paste, and as many after it as cannot be its end. Returns the rest.
    fn paste<'a>(&mut self, byte: u8, after: &'a [u8], out: &mut Vec<Happening>) -> &'a [u8] {
        let State::Paste { seen } = self.state else {
            return after;
        };
        if PASTE_END.get(seen) == Some(&byte) {
            let seen = seen + 1;
            self.state = State::Paste { seen };
            if seen == PASTE_END.len() {
                self.state = State::Ground;
                let bytes = std::mem::take(&mut self.held);
                out.push(Happening::Paste(pasted(&bytes)));
            }
            return after;
        }
        // What looked like the end was text.
        self.keep(PASTE_END.get(..seen).unwrap_or_default());
        if byte == ESCAPE {
            self.state = State::Paste { seen: 1 };
            return after;
        }
        self.state = State::Paste { seen: 0 };
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

/// The text of a paste. Terminals send the key Enter for the end of a line.
fn pasted(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if text.contains('\r') {
        text.replace("\r\n", "\n").replace('\r', "\n")
    } else {
        text.into_owned()
    }
}

/// What the mouse did. Only the left button and the wheel do something here.
fn mouse(report: &[u8], pressed: bool) -> Option<Mouse> {
    let report = std::str::from_utf8(report).ok()?;
    let mut numbers = report.split(';').map(|number| number.parse::<u16>().ok());
    let (button, column, row) = (numbers.next()??, numbers.next()??, numbers.next()??);
    if numbers.next().is_some() {
        return None;
    }
    // Shift, Alt and Ctrl beside it do not matter.
    let deed = match (button & !0b1_1100, pressed) {
        (0, true) => Deed::Press,
        (0, false) => Deed::Release,
        (32, true) => Deed::Drag,
        (64, true) => Deed::WheelUp,
        (65, true) => Deed::WheelDown,
        _ => return None,
    };
    Some(Mouse {
        deed,
        column: column.saturating_sub(1),
        row: row.saturating_sub(1),
    })
}

#[cfg(test)]
mod tests;
