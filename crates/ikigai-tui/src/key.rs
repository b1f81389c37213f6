//! What comes from a terminal, whatever its wire form is.

/// Something that happened at the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A key was pressed.
    Key(Key),
    /// Text was pasted; it may hold anything.
    Paste(String),
    /// The mouse did something.
    Mouse(Mouse),
    /// The terminal got or lost the focus.
    Focus(bool),
    /// The screen has this size.
    Resize {
        /// How many cells in a row.
        columns: u16,
        /// How many rows.
        rows: u16,
    },
}

/// A key with the keys held down beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Which key.
    pub code: Code,
    /// Shift was held; of a letter the letter itself tells.
    pub shift: bool,
    /// Alt was held.
    pub alt: bool,
    /// Ctrl was held.
    pub ctrl: bool,
}

/// Which key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// One that makes a character. With Ctrl it is the small letter.
    Char(char),
    /// Enter.
    Enter,
    /// Tab; with Shift it is Back-Tab.
    Tab,
    /// Backspace.
    Backspace,
    /// Delete.
    Delete,
    /// Insert.
    Insert,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// Escape.
    Escape,
    /// A function key.
    F(u8),
}

/// Something that the mouse did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mouse {
    /// What.
    pub deed: Deed,
    /// In which column, from 0.
    pub column: u16,
    /// In which row, from 0.
    pub row: u16,
}

/// What a mouse does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// The left button went down.
    Press,
    /// It moved with the left button down.
    Drag,
    /// The left button came up.
    Release,
    /// The wheel went up.
    WheelUp,
    /// The wheel went down.
    WheelDown,
}

impl Key {
    /// A key alone.
    pub const fn of(code: Code) -> Self {
        Self {
            code,
            shift: false,
            alt: false,
            ctrl: false,
        }
    }

    /// A letter with Ctrl.
    pub const fn ctrl(letter: char) -> Self {
        Self {
            ctrl: true,
            ..Self::of(Code::Char(letter))
        }
    }

    /// A key with Alt.
    pub const fn alt(code: Code) -> Self {
        Self {
            alt: true,
            ..Self::of(code)
        }
    }

    /// A key with Shift.
    pub const fn shift(code: Code) -> Self {
        Self {
            shift: true,
            ..Self::of(code)
        }
    }
}
