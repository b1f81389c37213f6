//! What comes from a terminal, whatever its wire form is.

/// Something that happened at the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalEvent {
    /// A key was pressed.
    Key(KeyPress),
    /// Text was pasted; it may hold anything.
    Paste(String),
    /// The mouse did something.
    Mouse(MouseEvent),
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
pub struct KeyPress {
    /// Which key.
    pub code: KeyCode,
    /// Shift was held; of a letter the letter itself tells.
    pub shift: bool,
    /// Alt was held.
    pub alt: bool,
    /// Ctrl was held.
    pub ctrl: bool,
}

/// Which key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyCode {
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
pub struct MouseEvent {
    /// What.
    pub deed: MouseAction,
    /// In which column, from 0.
    pub column: u16,
    /// In which row, from 0.
    pub row: u16,
}

/// What a mouse does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MouseAction {
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

impl KeyPress {
    /// A key alone.
    pub const fn of(code: KeyCode) -> Self {
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
            ..Self::of(KeyCode::Char(letter))
        }
    }

    /// A key with Alt.
    pub const fn alt(code: KeyCode) -> Self {
        Self {
            alt: true,
            ..Self::of(code)
        }
    }

    /// A key with Shift.
    pub const fn shift(code: KeyCode) -> Self {
        Self {
            shift: true,
            ..Self::of(code)
        }
    }
}
