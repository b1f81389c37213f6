//! A shell line as a list of simple commands, if it is no more than that.
//!
//! Only what is understood for certain is taken apart: words, quotes, `|`, `||`, `&&`, `;` and
//! output thrown away. Anything else (substitution, variables, files for output, `&`, several
//! lines, groups, comments) makes the whole line one that is not understood.

/// What may follow a simple redirection: nothing that would lengthen its target.
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

/// One word of a command, as the program gets it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// Its characters without quotes.
    pub(super) text: String,
    /// Whether the shell may replace it by names of files, so that it can become anything.
    pub(super) expands: bool,
    /// Whether any of it was quoted.
    is_quoted: bool,
    /// True if it begins with a variable's name and `=`, neither of them quoted.
    assigns: bool,
}

/// A program and its arguments; never empty.
pub(super) type Command = Vec<Word>;

/// The commands of a line in their order, or none if it is not understood.
pub(super) fn commands(line: &str) -> Option<Vec<Command>> {
    // Newlines end commands and other controls have no business in a line; tabs are blanks.
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

/// A command as rules see it: each word in its plainest spelling, one space between them.
pub(super) fn spelled(command: &[Word]) -> String {
    let words: Vec<_> = command.iter().map(Word::spelled).collect();
    words.join(" ")
}

impl Word {
    /// Quoted only where the text would mean something else without.
    fn spelled(&self) -> String {
        let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
        if !self.is_quoted || (!self.text.is_empty() && self.text.chars().all(is_plain)) {
            return self.text.clone();
        }
        format!("'{}'", self.text.replace('\'', r"'\''"))
    }

    /// Says whether the shell takes it for an assignment, before a command's name.
    pub(super) fn is_assignment(&self) -> bool {
        self.assigns
    }

    /// Says whether any of it was quoted.
    pub(super) fn is_quoted(&self) -> bool {
        self.is_quoted
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && !self.is_quoted
    }
}

#[derive(Default)]
struct Reader {
    done: Vec<Command>,
    command: Command,
    word: Option<Word>,
    /// Whether a command must follow, because of a `|` or the like before.
    is_owed: bool,
}

impl Reader {
    /// Takes what begins with `c`, the first character of `rest`, and gives what is left.
    fn take<'a>(&mut self, c: char, rest: &'a str) -> Option<&'a str> {
        let after = &rest[c.len_utf8()..];
        if self.word.is_none()
            && let Some(after) = after_harmless_redirection(rest)
        {
            // `ls 2>&1` redirects a command; on its own it would be an empty one.
            return (!self.command.is_empty()).then_some(after);
        }
        match c {
            ' ' | '\t' => self.end_word(),
            '\'' => {
                let (inside, after) = after.split_once('\'')?;
                self.quoted().push_str(inside);
                return Some(after);
            }
            '"' => return self.take_double_quoted(after),
            '\\' => {
                let escaped = after.chars().next()?;
                self.quoted().push(escaped);
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
                // `&` puts into the background and `|&` is a redirection.
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
        let text = self.quoted();
        let mut characters = inside.char_indices().peekable();
        while let Some((at, c)) = characters.next() {
            let next = characters.peek().map(|&(_, next)| next);
            match c {
                '"' => return Some(&inside[at + 1..]),
                '`' => return None,
                // A dollar that cannot begin a name is itself: the end of a pattern.
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

    fn quoted(&mut self) -> &mut String {
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

    fn finish(mut self) -> Option<Vec<Command>> {
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
