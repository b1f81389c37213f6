//! Content type and text of a body.

use encoding_rs::{Encoding, UTF_8};
use ikigai_core::word_list::WordList;

/// Size of the start in which a page may declare its charset.
const DECLARED_WITHIN_BYTES: usize = 1024;

/// Kind of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Html,
    Text,
    /// Another kind, by its type.
    Other(String),
}

/// Detects the kind of a body, by its type (in lower case) or first bytes.
pub(crate) fn content(kind: &str, body: &[u8]) -> Content {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    match kind {
        "text/html" | "application/xhtml+xml" => Content::Html,
        "" => guess_encoding(body),
        kind if is_text(kind) => Content::Text,
        kind => Content::Other(kind.to_owned()),
    }
}

fn is_text(kind: &str) -> bool {
    const APPLICATIONS: WordList = WordList(
        "ecmascript graphql javascript json jsonlines ld+json sql toml x-javascript x-ndjson x-sh
         x-toml x-yaml xml yaml",
    );
    kind.starts_with("text/")
        || kind.ends_with("+json")
        || kind.ends_with("+xml") && kind != "image/svg+xml"
        || kind
            .strip_prefix("application/")
            .is_some_and(|name| APPLICATIONS.contains(name))
}

fn guess_encoding(body: &[u8]) -> Content {
    // The end may be cut inside a character.
    let is_text = match std::str::from_utf8(body) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    if !is_text || body.contains(&0) {
        return Content::Other("of no known type".to_owned());
    }
    let begin = String::from_utf8_lossy(body.get(..DECLARED_WITHIN_BYTES).unwrap_or(body));
    let begin = begin.trim_start().to_ascii_lowercase();
    if begin.starts_with("<!doctype html") || begin.contains("<html") {
        Content::Html
    } else {
        Content::Text
    }
}

/// Decodes a body: by its byte order mark, the declared charset, or as UTF-8.
pub(crate) fn text_of(kind: &str, body: &[u8]) -> String {
    let begin = body.get(..DECLARED_WITHIN_BYTES).unwrap_or(body);
    let begin = String::from_utf8_lossy(begin).to_ascii_lowercase();
    let declared = encoding(kind).or_else(|| {
        // A declaration that could be read is not in UTF-16.
        encoding(&begin).map(Encoding::output_encoding)
    });
    let (text, _, _) = declared.unwrap_or(UTF_8).decode(body);
    text.into_owned()
}

fn encoding(text: &str) -> Option<&'static Encoding> {
    Encoding::for_label(charset(text)?.as_bytes())
}

/// Returns the value after `charset=`.
fn charset(text: &str) -> Option<&str> {
    let (_, value) = text.split_once("charset=")?;
    let value = value.trim_start_matches(['"', '\'', ' ']);
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let end = value.find(|c| !is_name(c)).unwrap_or(value.len());
    Some(&value[..end])
}

#[cfg(test)]
mod tests;
