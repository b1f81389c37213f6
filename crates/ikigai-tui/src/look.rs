//! Look of text: its tone and emphasis. A theme maps them to colours.

/// Tone of text: its role, not its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tone {
    /// Plain text.
    #[default]
    Text,
    /// Secondary text: times, counts, hints.
    Faint,
    /// User messages.
    User,
    /// The sign of the model's answers.
    Assistant,
    /// Thinking of the model.
    Thinking,
    /// Tool calls and results.
    Tool,
    /// A command's echo.
    Command,
    /// Mail, forks and merges.
    Agent,
    /// Success.
    Good,
    /// Warning.
    Warning,
    /// Error.
    Error,
    /// An added line of a diff.
    Added,
    /// A removed line of a diff.
    Removed,
    /// A heading.
    Heading,
    /// Inline code, or a code block.
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
    /// Quotation.
    Quote,
    /// Horizontal rule.
    Rule,
    /// Running work.
    Busy,
    /// Question.
    Question,
    /// Status line.
    Status,
    /// Part of the status that must not be overlooked.
    Alert,
    /// Selected entry of a list.
    Marked,
    /// Match of a search or of typed text.
    Match,
    /// Selected text.
    Selected,
}

/// Role and emphasis of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Look {
    /// Tone of the text.
    pub role: Tone,
    /// Emphasis, as a sum of the constants of this type.
    pub set_off: u8,
}

impl Look {
    /// Bold.
    pub const BOLD: u8 = 1;
    /// Dim.
    pub const DIM: u8 = 2;
    /// Italic.
    pub const ITALIC: u8 = 4;
    /// Underlined.
    pub const UNDERLINE: u8 = 8;
    /// Reverse video.
    pub const REVERSE: u8 = 16;
    /// Struck through.
    pub const STRIKE: u8 = 32;

    /// Creates a role without emphasis.
    pub const fn of(role: Tone) -> Self {
        Self { role, set_off: 0 }
    }

    /// Adds an emphasis.
    #[must_use]
    pub const fn with(self, set_off: u8) -> Self {
        Self {
            role: self.role,
            set_off: self.set_off | set_off,
        }
    }

    /// Returns true if it has an emphasis.
    pub const fn has(self, set_off: u8) -> bool {
        self.set_off & set_off != 0
    }
}

impl From<Tone> for Look {
    fn from(role: Tone) -> Self {
        Self::of(role)
    }
}
