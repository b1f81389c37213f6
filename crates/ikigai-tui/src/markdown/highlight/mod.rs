//! Syntax highlighting: keywords, strings, comments, numbers and names, line by line.
//!
//! Ambiguous text, which only a full parser could classify, stays plain.

mod languages;
#[cfg(test)]
mod tests;

use ikigai_core::word_list::WordList;

use languages::{Form, Language};

use crate::line::TextSpan;
use crate::look::Tone;

/// Longer lines stay plain: they are generated, and people do not read them.
const MOST_LINE_BYTES: usize = 8 * 1024;

/// Lexer state carried over from the previous line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Within {
    /// Nothing.
    #[default]
    Code,
    /// A comment, with its nesting depth.
    Comment(usize),
    /// A string with this quote of the language.
    Text(usize),
    Tag,
    /// A string in a tag.
    TagText(usize),
}

/// Highlighter of code, line by line.
#[derive(Clone)]
pub struct Highlighter {
    language: Option<&'static Language>,
    within: Within,
}

impl std::fmt::Debug for Highlighter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.language.and_then(|language| language.names.first());
        f.debug_tuple("Highlighter").field(&name).finish()
    }
}

impl Highlighter {
    /// Creates a highlighter for a fence's language; an unknown one stays plain.
    pub fn new(name: &str) -> Self {
        Self {
            language: languages::named(name),
            within: Within::Code,
        }
    }

    /// Returns the spans of the next line; together they are the line.
    pub fn line(&mut self, line: &str) -> Vec<TextSpan> {
        let Some(language) = self.language.filter(|_| line.len() <= MOST_LINE_BYTES) else {
            return vec![TextSpan::new(line, Tone::Code)];
        };
        if language.form == Form::Diff {
            return vec![TextSpan::new(line, diff_role(line))];
        }
        let mut lexer = Lexer {
            language,
            line,
            at: 0,
            within: self.within,
            spans: Vec::new(),
            defines: false,
        };
        lexer.run();
        self.within = lexer.within;
        lexer.spans
    }
}

fn diff_role(line: &str) -> Tone {
    match line.as_bytes().first() {
        _ if line.starts_with("+++") || line.starts_with("---") => Tone::Heading,
        Some(b'+') => Tone::Added,
        Some(b'-') => Tone::Removed,
        Some(b'@') => Tone::Keyword,
        _ => Tone::Code,
    }
}

/// Keywords that are followed by a name.
const DEFINING: WordList =
    WordList("fn def class struct enum trait function func interface type mod fun");

struct Lexer<'a> {
    language: &'static Language,
    line: &'a str,
    at: usize,
    within: Within,
    spans: Vec<TextSpan>,
    /// The previous word is such a keyword.
    defines: bool,
}

impl<'a> Lexer<'a> {
    fn run(&mut self) {
        while !self.rest().is_empty() {
            match self.within {
                Within::Comment(depth) => self.comment(depth),
                Within::Text(quote) => self.string(quote, Within::Code),
                Within::TagText(quote) => self.string(quote, Within::Tag),
                Within::Code if self.language.form == Form::Tags => self.between_tags(),
                Within::Tag => self.in_tag(),
                Within::Code => self.code(),
            }
        }
        // A single-line string ends with its line, closed or not.
        let goes_on = |quote: usize| {
            let quote = self.language.strings.get(quote);
            quote.is_some_and(|quote| quote.goes_on)
        };
        match self.within {
            Within::Text(quote) if !goes_on(quote) => self.within = Within::Code,
            Within::TagText(quote) if !goes_on(quote) => self.within = Within::Tag,
            _ => {}
        }
    }

    fn rest(&self) -> &'a str {
        self.line.get(self.at..).unwrap_or_default()
    }

    /// Takes a number of bytes as a piece, rounded up to a character boundary.
    fn take(&mut self, bytes: usize, role: Tone) {
        let rest = self.rest();
        let end = rest.ceil_char_boundary(bytes.clamp(1, rest.len().max(1)));
        let text = rest.get(..end).unwrap_or(rest);
        self.at += text.len();
        match self.spans.last_mut() {
            Some(last) if last.look.role == role => last.text.push_str(text),
            _ => self.spans.push(TextSpan::new(text, role)),
        }
    }

    fn code(&mut self) {
        let rest = self.rest();
        let language = self.language;
        if let Some((open, _, _)) = language.block_comment
            && rest.starts_with(open)
        {
            self.take(open.len(), Tone::Comment);
            self.within = Within::Comment(1);
            return;
        }
        let is_comment = |open: &&&str| rest.starts_with(**open) && self.may_comment();
        if language.line_comments.iter().any(|open| is_comment(&open)) {
            self.take(rest.len(), Tone::Comment);
            return;
        }
        if let Some(index) = self.opened() {
            self.within = Within::Text(index);
            self.open(index);
            return;
        }
        let Some(first) = rest.chars().next() else {
            return;
        };
        match first {
            '0'..='9' => self.number(),
            // A character, or in Rust a lifetime.
            '\'' => {
                let name = word_length(rest.get(1..).unwrap_or_default(), language);
                let closed = rest.get(1..).and_then(character_length);
                match closed {
                    Some(length) => self.take(1 + length, Tone::Literal),
                    None => self.take(1 + name, Tone::Keyword),
                }
            }
            '$' if language.form == Form::Shell => {
                let name = word_length(rest.get(1..).unwrap_or_default(), language);
                self.take(1 + name, Tone::Name);
            }
            _ if self.is_word(first) => self.word(),
            _ => self.take(first.len_utf8(), Tone::Code),
        }
    }

    /// Returns true if a comment may begin here. In a shell, `#` is also part of words.
    fn may_comment(&self) -> bool {
        let before = self
            .line
            .get(..self.at)
            .and_then(|line| line.chars().next_back());
        self.language.form != Form::Shell || before.is_none_or(char::is_whitespace)
    }

    fn opened(&self) -> Option<usize> {
        let rest = self.rest();
        let strings = self.language.strings;
        strings
            .iter()
            .position(|quote| rest.starts_with(quote.open))
    }

    fn open(&mut self, quote: usize) {
        if let Some(quote) = self.language.strings.get(quote) {
            self.take(quote.open.len(), self.string_role());
        }
    }

    /// Returns the tone of a string; before a colon it is a key.
    fn string_role(&self) -> Tone {
        let is_key = self.language.form == Form::Keys && self.before_colon();
        if is_key { Tone::Name } else { Tone::Literal }
    }

    fn before_colon(&self) -> bool {
        let rest = self.rest().as_bytes();
        let start = usize::from(rest.first() == Some(&b'"'));
        let end = rest.iter().skip(start).position(|byte| *byte == b'"');
        let after = end
            .and_then(|end| rest.get(start + end + 1..))
            .unwrap_or_default();
        after.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
    }

    fn comment(&mut self, depth: usize) {
        let Some((open, close, nests)) = self.language.block_comment else {
            self.within = Within::Code;
            return;
        };
        let rest = self.rest();
        let closes = rest.find(close);
        let opens = rest.find(open).filter(|_| nests);
        match (opens, closes) {
            (Some(opens), closes) if closes.is_none_or(|closes| opens < closes) => {
                self.take(opens + open.len(), Tone::Comment);
                self.within = Within::Comment(depth.saturating_add(1));
            }
            (_, Some(closes)) => {
                self.take(closes + close.len(), Tone::Comment);
                self.within = match depth {
                    0 | 1 => Within::Code,
                    deeper => Within::Comment(deeper - 1),
                };
            }
            (_, None) => self.take(rest.len(), Tone::Comment),
        }
    }

    fn string(&mut self, index: usize, after: Within) {
        let Some(quote) = self.language.strings.get(index) else {
            self.within = after;
            return;
        };
        let rest = self.rest();
        let role = match self.spans.last() {
            Some(last) if last.look.role == Tone::Name => Tone::Name,
            _ => Tone::Literal,
        };
        let mut from = 0;
        let mut end = rest.len();
        let mut is_closed = false;
        while let Some(next) = rest.get(from..) {
            let closes = next.find(quote.close);
            let escape = next.find('\\').filter(|_| quote.escapes);
            match (escape, closes) {
                (Some(escape), closes) if closes.is_none_or(|closes| escape < closes) => {
                    // Any character after it.
                    let escaped = next
                        .get(escape + 1..)
                        .and_then(|after| after.chars().next());
                    from += escape + 1 + escaped.map_or(0, char::len_utf8);
                    if escaped.is_none() {
                        break;
                    }
                }
                (_, Some(closes)) => {
                    end = from + closes + quote.close.len();
                    is_closed = true;
                    break;
                }
                (_, None) => break,
            }
        }
        self.take(end, role);
        if is_closed {
            self.within = after;
        }
    }

    fn number(&mut self) {
        let length = self
            .rest()
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
            .count();
        self.take(length, Tone::Number);
    }

    fn is_word(&self, character: char) -> bool {
        is_word(character, self.language)
    }

    fn word(&mut self) {
        let rest = self.rest();
        let length = word_length(rest, self.language);
        let word = rest.get(..length).unwrap_or(rest);
        let after = rest.get(length..).unwrap_or_default();
        let known = |keyword: &str| {
            keyword == word || self.language.any_case && keyword.eq_ignore_ascii_case(word)
        };
        let is_key = self.language.form == Form::Keys
            && matches!(after.trim_start().bytes().next(), Some(b':' | b'='));
        let role = if is_key {
            Tone::Name
        } else if self.language.keywords.words().any(known) {
            Tone::Keyword
        } else if self.defines || after.starts_with('(') || after.starts_with("!(") {
            Tone::Name
        } else {
            Tone::Code
        };
        self.defines = role == Tone::Keyword && DEFINING.contains(word);
        self.take(length, role);
    }

    fn between_tags(&mut self) {
        let rest = self.rest();
        if let Some((open, _, _)) = self.language.block_comment
            && rest.starts_with(open)
        {
            self.take(open.len(), Tone::Comment);
            self.within = Within::Comment(1);
            return;
        }
        match rest.find('<') {
            Some(0) => {
                let name = rest.get(1..).unwrap_or_default();
                let slash = usize::from(name.starts_with(['/', '?', '!']));
                let name = name.get(slash..).unwrap_or_default();
                let length = word_length(name, self.language);
                if length == 0 {
                    self.take(1, Tone::Code);
                } else {
                    self.take(1 + slash + length, Tone::Keyword);
                    self.within = Within::Tag;
                }
            }
            Some(end) => self.take(end, Tone::Code),
            None => self.take(rest.len(), Tone::Code),
        }
    }

    fn in_tag(&mut self) {
        let rest = self.rest();
        if let Some(index) = self.opened() {
            self.within = Within::TagText(index);
            self.open(index);
            return;
        }
        match rest.chars().next() {
            Some('>') => {
                self.take(1, Tone::Keyword);
                self.within = Within::Code;
            }
            Some(first) if self.is_word(first) => {
                self.take(word_length(rest, self.language), Tone::Name);
            }
            Some(first) => self.take(first.len_utf8(), Tone::Code),
            None => {}
        }
    }
}

fn is_word(character: char, language: &Language) -> bool {
    character.is_alphanumeric() || character == '_' || language.name_characters.contains(character)
}

fn word_length(text: &str, language: &Language) -> usize {
    text.find(|character| !is_word(character, language))
        .unwrap_or(text.len())
}

/// Measures the rest of a character literal behind its first quote, if any.
fn character_length(text: &str) -> Option<usize> {
    let mut characters = text.char_indices();
    let (_, first) = characters.next()?;
    if first == '\\' {
        let end = text.get(2..)?.find('\'')?;
        return (end < 12).then_some(end + 3);
    }
    let (end, quote) = characters.next()?;
    (quote == '\'').then_some(end + 1)
}
