//! Form of a typed line: message, command or shell line.

/// Form of a typed line, before commands are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineForm<'a> {
    /// Message to the agent.
    Message,
    /// Command: first word after `/`, and the rest of the line.
    Command {
        /// Letters and `-`.
        name: &'a str,
        /// Rest of the line.
        rest: &'a str,
    },
    /// Line for the user's shell.
    Shell {
        /// Command line.
        command: &'a str,
        /// True if the model sees its output.
        sent: bool,
    },
}

impl<'a> LineForm<'a> {
    /// Reads the form of a line.
    ///
    /// Only a first word of letters and `-` after `/` is a command: paths, and lines that begin
    /// with a space or with `//`, are messages.
    pub(crate) fn of(line: &'a str) -> Self {
        if let Some(rest) = line.strip_prefix('!') {
            let (command, sent) = match rest.strip_prefix('!') {
                Some(command) => (command.trim(), false),
                None => (rest.trim(), true),
            };
            return if command.is_empty() {
                Self::Message
            } else {
                Self::Shell { command, sent }
            };
        }
        match command_word(line) {
            Some((name, rest)) => Self::Command { name, rest },
            None => Self::Message,
        }
    }
}

/// Returns the first word of a command line and the rest; none for other lines.
pub(crate) fn command_word(line: &str) -> Option<(&str, &str)> {
    let after = line.strip_prefix('/')?;
    let end = after.find(char::is_whitespace).unwrap_or(after.len());
    let (name, rest) = after.split_at(end);
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '-';
    (!name.is_empty() && name.chars().all(is_letter)).then_some((name, rest))
}
