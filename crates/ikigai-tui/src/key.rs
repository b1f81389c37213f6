//! Events of a terminal, independent of their encoding.

/// Event of the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalEvent {
    /// A key was pressed.
    Key(KeyPress),
    /// Text was pasted, with any contents.
    Paste(String),
    /// Mouse event.
    Mouse(MouseEvent),
    /// The terminal got or lost the focus.
    Focus(bool),
    /// The screen has this size.
    Resize {
        /// Cells of a row.
        columns: u16,
        /// Number of rows.
        rows: u16,
    },
    /// The terminal answered that it shows the status of programs.
    StatusSupported,
}

/// A key with its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyPress {
    /// The key.
    pub code: KeyCode,
    /// Shift was held; for a letter, its case carries this.
    pub shift: bool,
    /// Alt was held.
    pub alt: bool,
    /// Ctrl was held.
    pub ctrl: bool,
}

/// The key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyCode {
    /// Character key; with Ctrl it is the lower-case letter.
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

/// Event of the mouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MouseEvent {
    /// The action.
    pub action: MouseAction,
    /// Column, from 0.
    pub column: u16,
    /// Row, from 0.
    pub row: u16,
}

/// Action of the mouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MouseAction {
    /// The left button went down.
    Press,
    /// The mouse moved with the left button down.
    Drag,
    /// The left button came up.
    Release,
    /// The wheel went up.
    WheelUp,
    /// The wheel went down.
    WheelDown,
}

impl KeyPress {
    /// Creates a key without modifiers.
    pub const fn of(code: KeyCode) -> Self {
        Self {
            code,
            shift: false,
            alt: false,
            ctrl: false,
        }
    }

    /// Creates a letter with Ctrl.
    pub const fn ctrl(letter: char) -> Self {
        Self {
            ctrl: true,
            ..Self::of(KeyCode::Char(letter))
        }
    }

    /// Creates a key with Alt.
    pub const fn alt(code: KeyCode) -> Self {
        Self {
            alt: true,
            ..Self::of(code)
        }
    }

    /// Creates a key with Shift.
    pub const fn shift(code: KeyCode) -> Self {
        Self {
            shift: true,
            ..Self::of(code)
        }
    }
}
