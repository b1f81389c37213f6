//! Look of text: its tone and emphasis. A theme maps them to colours.

/// Tone of text: its role, not its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tone {
    /// Plain text.
    #[default]
    Text,
    /// Secondary text: times, counts, hints.
    Faint,
    /// Words of the user.
    User,
    /// The sign of the model's answers.
    Assistant,
    /// Thinking of the model.
    Thinking,
    /// Tool calls and what came of them.
    Tool,
    /// A command's echo.
    Command,
    /// Mail, forks and merges: what agents do with each other.
    Agent,
    /// Something went well.
    Good,
    /// Something to know.
    Warning,
    /// Something failed.
    Error,
    /// An added line of a diff.
    Added,
    /// A removed line of a diff.
    Removed,
    /// A heading.
    Heading,
    /// Code between the words, or a block of it.
    Code,
    /// A keyword in code.
    Keyword,
    /// A string in code.
    Literal,
    /// A number in code.
    Number,
    /// A comment in code.
    Comment,
    /// The name of something defined or called in code.
    Name,
    /// A link.
    Link,
    /// Something quoted.
    Quote,
    /// A line that divides.
    Rule,
    /// Running work.
    Busy,
    /// Something is asked.
    Question,
    /// The line at the bottom.
    Status,
    /// Part of the status that must not be overlooked.
    Alert,
    /// The entry that is marked in a list.
    Marked,
    /// Match of a search or of typed text.
    Match,
    /// Text that is selected.
    Selected,
}

/// A role, and how it is set off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Look {
    /// Tone of the text.
    pub role: Tone,
    /// Emphasis, as a sum of the constants of this type.
    pub set_off: u8,
}

impl Look {
    /// Heavier.
    pub const BOLD: u8 = 1;
    /// Fainter.
    pub const DIM: u8 = 2;
    /// Slanted.
    pub const ITALIC: u8 = 4;
    /// With a line below.
    pub const UNDERLINE: u8 = 8;
    /// With its colours exchanged.
    pub const REVERSE: u8 = 16;
    /// With a line through it.
    pub const STRIKE: u8 = 32;

    /// A role as it is.
    pub const fn of(role: Tone) -> Self {
        Self { role, set_off: 0 }
    }

    /// The look with one more emphasis.
    #[must_use]
    pub const fn with(self, set_off: u8) -> Self {
        Self {
            role: self.role,
            set_off: self.set_off | set_off,
        }
    }

    /// Reports whether it has an emphasis.
    pub const fn has(self, set_off: u8) -> bool {
        self.set_off & set_off != 0
    }
}

impl From<Tone> for Look {
    fn from(role: Tone) -> Self {
        Self::of(role)
    }
}
