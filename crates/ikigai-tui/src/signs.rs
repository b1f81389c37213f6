//! Signs before rows, and their ASCII replacements.

/// Character set of the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Symbols {
    /// Unicode.
    #[default]
    Utf8,
    /// ASCII only.
    Ascii,
}

/// A sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sign {
    /// Before a user's message.
    User,
    /// Before the model's answer.
    Assistant,
    /// Before its thinking.
    Thought,
    /// Before a tool call.
    Call,
    /// Before its result.
    Result,
    /// Before an error or an interruption.
    Failed,
    /// Before a warning.
    Warning,
    /// Before a mark.
    Mark,
    /// Before a rewind.
    Rewound,
    /// Before a redo.
    Redone,
    /// Before a fork.
    Forked,
    /// Before mail.
    Mail,
    /// Before the end of a background process, or a notice about one.
    Process,
    /// Before a merge.
    Merged,
    /// Before a shell command of the user.
    Shell,
    /// In place of omitted text.
    More,
    /// Between parts of a line.
    Dot,
    /// Between the ends of a range.
    To,
    /// At both ends of a rule.
    Rule,
    /// Before an item of a list.
    Bullet,
    /// Before a quotation.
    Quote,
    /// Before a finished item.
    Done,
    /// Before an open item.
    Open,
    /// Between the columns of a table.
    Column,
    /// Crossing of a column and a line.
    Cross,
    /// Segment of a line.
    Dash,
}

impl Sign {
    /// Returns the symbol in a character set.
    pub const fn text(self, symbols: Symbols) -> &'static str {
        let (utf8, ascii) = match self {
            Self::User => ("❯", ">"),
            Self::Assistant => ("●", "*"),
            Self::Thought => ("✻", "~"),
            Self::Call => ("→", "->"),
            Self::Result => ("←", "<-"),
            Self::Failed => ("✗", "x"),
            Self::Warning => ("⚠", "!"),
            Self::Mark => ("⚑", "^"),
            Self::Rewound => ("↶", "<<"),
            Self::Redone => ("↷", ">>"),
            // Box drawing, which every monospace font has.
            Self::Forked => ("├", "Y"),
            Self::Mail => ("✉", "@"),
            Self::Process => ("■", "#"),
            Self::Merged => ("⇐", "<="),
            Self::Shell => ("!", "!"),
            Self::More => ("…", "..."),
            Self::Dot => ("·", "-"),
            Self::To => ("–", "-"),
            Self::Rule => ("──", "--"),
            Self::Bullet => ("•", "-"),
            Self::Quote => ("▌", "|"),
            Self::Done => ("☑", "[x]"),
            Self::Open => ("☐", "[ ]"),
            Self::Column => ("│", "|"),
            Self::Cross => ("┼", "+"),
            Self::Dash => ("─", "-"),
        };
        match symbols {
            Symbols::Utf8 => utf8,
            Symbols::Ascii => ascii,
        }
    }
}
