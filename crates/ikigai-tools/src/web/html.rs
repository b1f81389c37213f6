//! Tokenizer of HTML. It accepts anything: everything but tags is text.

use super::entities::decoded;

/// Elements with content that is not HTML and of no use to a reader.
const RAW: &[&str] = &["script", "style"];

/// Token of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HtmlToken<'a> {
    /// Text with references not yet replaced.
    Text(&'a str),
    /// `<name …>`.
    Open(HtmlTag<'a>),
    /// `</name>`, in lower case.
    Close(String),
}

/// Opening tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HtmlTag<'a> {
    /// In lower case.
    pub(super) name: String,
    /// Text between the name and `>`.
    attributes: &'a str,
}

impl HtmlTag<'_> {
    /// Returns the value of an attribute, references replaced; empty if it has none.
    pub(super) fn attribute(&self, wanted: &str) -> Option<String> {
        let mut rest = self.attributes;
        while let Some((name, value, after)) = next_attribute(rest) {
            if name.eq_ignore_ascii_case(wanted) {
                return Some(decoded(value));
            }
            rest = after;
        }
        None
    }
}

/// Splits a page into tokens; omits comments, declarations, scripts and styles.
pub(super) fn tokens(page: &str) -> impl Iterator<Item = HtmlToken<'_>> {
    let mut rest = page;
    std::iter::from_fn(move || next_token(&mut rest))
}

fn next_token<'a>(rest: &mut &'a str) -> Option<HtmlToken<'a>> {
    loop {
        let text = *rest;
        if text.is_empty() {
            return None;
        }
        if !begins_tag(text) {
            // The first character is text even if it is `<`.
            let from = text.chars().next().map_or(1, char::len_utf8);
            let end = text[from..].match_indices('<').map(|(at, _)| at + from);
            let end = end.into_iter().find(|at| begins_tag(&text[*at..]));
            let (found, after) = text.split_at(end.unwrap_or(text.len()));
            *rest = after;
            return Some(HtmlToken::Text(found));
        }
        if let Some(comment) = text.strip_prefix("<!--") {
            *rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        if text.starts_with("<!") || text.starts_with("<?") {
            *rest = text.split_once('>').map_or("", |(_, after)| after);
            continue;
        }
        let (inside, after) = tag(&text[1..]);
        *rest = after;
        let (is_closing, inside) = match inside.strip_prefix('/') {
            Some(inside) => (true, inside),
            None => (false, inside),
        };
        let ends_name = |c: char| c.is_ascii_whitespace() || c == '/' || c == '>';
        let (name, attributes) = inside.split_at(inside.find(ends_name).unwrap_or(inside.len()));
        let name = name.to_ascii_lowercase();
        if is_closing {
            return Some(HtmlToken::Close(name));
        }
        if RAW.contains(&name.as_str()) {
            *rest = after_raw(after, &name);
            continue;
        }
        return Some(HtmlToken::Open(HtmlTag { name, attributes }));
    }
}

fn begins_tag(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next() == Some(b'<')
        && match bytes.next() {
            Some(b'!' | b'?') => true,
            Some(b'/') => bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic()),
            Some(byte) => byte.is_ascii_alphabetic(),
            None => false,
        }
}

/// Splits a text at the `>` that ends its tag. A `>` in quotes does not count.
fn tag(text: &str) -> (&str, &str) {
    let mut quote = None;
    let mut before = b' ';
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return (&text[..at], &text[at + 1..]),
            // A quote counts only at the start of a value, so that a stray one is harmless.
            (None, b'"' | b'\'') if before == b'=' => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
    }
    (text, "")
}

/// Returns the text after the closing tag of a raw element.
fn after_raw<'a>(text: &'a str, name: &str) -> &'a str {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("</") {
        let is_end = after
            .get(..name.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(name));
        if is_end {
            return after.split_once('>').map_or("", |(_, after)| after);
        }
        rest = after;
    }
    ""
}

/// Parses the first attribute; returns name, value and the rest.
fn next_attribute(text: &str) -> Option<(&str, &str, &str)> {
    let text = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
    if text.is_empty() {
        return None;
    }
    // A leading equals sign is part of the name, so that the parser always advances.
    let ends = |c: char| c.is_ascii_whitespace() || c == '=' || c == '/';
    let first = text.chars().next().map_or(1, char::len_utf8);
    let end = text[first..].find(ends).map_or(text.len(), |at| at + first);
    let (name, after) = text.split_at(end);
    let Some(value) = after.trim_start().strip_prefix('=') else {
        return Some((name, "", after));
    };
    let value = value.trim_start();
    for quote in ['"', '\''] {
        if let Some(quoted) = value.strip_prefix(quote) {
            let (inside, after) = quoted.split_once(quote).unwrap_or((quoted, ""));
            return Some((name, inside, after));
        }
    }
    let end = value.find(|c: char| c.is_ascii_whitespace());
    let (bare, after) = value.split_at(end.unwrap_or(value.len()));
    Some((name, bare, after))
}
