//! Parser of simple shell lines: a list of commands, or none.
//!
//! It accepts only words, quotes, `|`, `||`, `&&`, `;` and discarded output. Any other syntax
//! (substitution, variables, output files, `&`, several lines, groups, comments) makes it give up
//! on the whole line.

/// Characters that may follow a redirection, because they end its target.
const ENDS_WORD: &[char] = &[' ', '\t', '|', ';', '&'];

/// Redirections that touch no file. Longer ones first.
const HARMLESS: &[&str] = &[
    "2>/dev/null",
    "2> /dev/null",
    "1>/dev/null",
    "1> /dev/null",
    "&>/dev/null",
    "&> /dev/null",
    ">/dev/null",
    "> /dev/null",
    "</dev/null",
    "< /dev/null",
    "2>&1",
    "1>&2",
    ">&2",
];

/// Word of a command, as the program gets it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// Text without quotes.
    pub(super) text: String,
    /// True if the shell may expand it to file names, and so to anything.
    pub(super) expands: bool,
    /// True if a part of it was quoted.
    is_quoted: bool,
    /// True if it begins with a variable's name and `=`, neither of them quoted.
    assigns: bool,
}

/// Program with its arguments; never empty.
pub(super) type ShellCommand = Vec<Word>;

/// Returns the commands of a line in order; none if the syntax is not simple.
pub(super) fn commands(line: &str) -> Option<Vec<ShellCommand>> {
    // Newlines end commands, and other control characters are not expected; tabs are blanks.
    if line.chars().any(|c| c.is_control() && c != '\t') {
        return None;
    }
    let mut reader = Reader::default();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        rest = reader.take(c, rest)?;
    }
    reader.finish()
}

/// Returns a command as rules see it: plainest spelling, single spaces.
pub(super) fn spell_command(command: &[Word]) -> String {
    let words: Vec<_> = command.iter().map(Word::spell).collect();
    words.join(" ")
}

impl Word {
    /// Returns the word, quoted only if its meaning would change without quotes.
    fn spell(&self) -> String {
        let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
        if !self.is_quoted || (!self.text.is_empty() && self.text.chars().all(is_plain)) {
            return self.text.clone();
        }
        format!("'{}'", self.text.replace('\'', r"'\''"))
    }

    /// Returns true if the shell takes it for an assignment before a command's name.
    pub(super) fn is_assignment(&self) -> bool {
        self.assigns
    }

    /// Returns true if a part of it was quoted.
    pub(super) fn is_quoted(&self) -> bool {
        self.is_quoted
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && !self.is_quoted
    }
}

#[derive(Default)]
struct Reader {
    done: Vec<ShellCommand>,
    command: ShellCommand,
    word: Option<Word>,
    /// True if a command must follow, for example after a `|`.
    is_owed: bool,
}

/// Removes the blanks around a line that a shell ignores.
///
/// To a shell only spaces, tabs and ends of lines are blanks: `make\u{a0}` is another program than
/// `make`. A backslash keeps the character after it.
pub(super) fn trim_line(line: &str) -> &str {
    const BLANKS: [char; 3] = [' ', '\t', '\n'];
    let line = line.trim_start_matches(BLANKS);
    let trimmed = line.trim_end_matches(BLANKS);
    if trimmed.ends_with('\\') {
        line
    } else {
        trimmed
    }
}

impl Reader {
    /// Reads the token that begins with `c`, the first character of `rest`; returns the rest.
    fn take<'a>(&mut self, c: char, rest: &'a str) -> Option<&'a str> {
        let after = &rest[c.len_utf8()..];
        if self.word.is_none()
            && let Some(after) = after_harmless_redirection(rest)
        {
            // `ls 2>&1` redirects a command; alone it would be an empty command.
            return (!self.command.is_empty()).then_some(after);
        }
        match c {
            ' ' | '\t' => self.end_word(),
            '\'' => {
                let (inside, after) = after.split_once('\'')?;
                self.quoted_part().push_str(inside);
                return Some(after);
            }
            '"' => return self.take_double_quoted(after),
            '\\' => {
                let escaped = after.chars().next()?;
                self.quoted_part().push(escaped);
                return Some(&after[escaped.len_utf8()..]);
            }
            '>' | '<' => {
                // `a>/dev/null`: the word ends here, unless it is a number and so a descriptor.
                let word = self.word.take()?;
                if word.text.chars().all(|c| c.is_ascii_digit()) {
                    return None;
                }
                self.command.push(word);
                return after_harmless_redirection(rest);
            }
            ';' => self.end_command(false)?,
            '|' | '&' => {
                let is_double = after.starts_with(c);
                // `&` runs a command in the background, and `|&` is a redirection.
                if !is_double && (c == '&' || after.starts_with('&')) {
                    return None;
                }
                self.end_command(true)?;
                return Some(if is_double { &after[1..] } else { after });
            }
            '$' | '`' | '(' | ')' | '{' | '}' => return None,
            '#' if self.word.is_none() => return None,
            c if c.is_whitespace() => return None,
            c => {
                let word = self.word.get_or_insert_default();
                word.assigns |= c == '=' && !word.is_quoted && is_variable(&word.text);
                word.expands |= matches!(c, '*' | '?' | '[' | ']') || (c == '~' && word.is_empty());
                word.text.push(c);
            }
        }
        Some(after)
    }

    fn take_double_quoted<'a>(&mut self, inside: &'a str) -> Option<&'a str> {
        let text = self.quoted_part();
        let mut characters = inside.char_indices().peekable();
        while let Some((at, c)) = characters.next() {
            let next = characters.peek().map(|&(_, next)| next);
            match c {
                '"' => return Some(&inside[at + 1..]),
                '`' => return None,
                // A dollar that cannot begin a name is literal, such as the end of a pattern.
                '$' if !matches!(next, Some('"' | ' ' | '|')) => return None,
                '\\' if matches!(next, Some('"' | '\\' | '$' | '`')) => {
                    text.extend(next);
                    characters.next();
                }
                c => text.push(c),
            }
        }
        None
    }

    fn quoted_part(&mut self) -> &mut String {
        let word = self.word.get_or_insert_default();
        word.is_quoted = true;
        &mut word.text
    }

    fn end_word(&mut self) {
        self.command.extend(self.word.take());
    }

    fn end_command(&mut self, is_owed: bool) -> Option<()> {
        self.end_word();
        if self.command.is_empty() {
            return None;
        }
        self.done.push(std::mem::take(&mut self.command));
        self.is_owed = is_owed;
        Some(())
    }

    fn finish(mut self) -> Option<Vec<ShellCommand>> {
        self.end_word();
        if !self.command.is_empty() {
            self.done.push(self.command);
            self.is_owed = false;
        }
        (!self.is_owed && !self.done.is_empty()).then_some(self.done)
    }
}

fn is_variable(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

fn after_harmless_redirection(rest: &str) -> Option<&str> {
    let after = HARMLESS.iter().find_map(|one| rest.strip_prefix(one))?;
    (after.is_empty() || after.starts_with(ENDS_WORD)).then_some(after)
}
