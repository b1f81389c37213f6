//! Tokens of a page, as a browser splits it.

use html5gum::{DefaultEmitter, HtmlString, StartTag, Token, Tokenizer};

/// Token of a page, with character references replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HtmlToken {
    /// Text, also that of scripts and styles.
    Text(String),
    /// `<name …>`.
    Open(HtmlTag),
    /// `</name>`, in lower case.
    Close(String),
}

/// Opening tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HtmlTag {
    /// In lower case.
    pub(super) name: String,
    tag: StartTag<()>,
}

impl HtmlTag {
    /// Returns the value of an attribute; empty if it has none.
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        self.tag.attributes.get(name.as_bytes()).map(|it| text(it))
    }
}

/// Splits a page into tokens; omits comments and declarations. Accepts anything.
pub(super) fn tokens(page: &str) -> impl Iterator<Item = HtmlToken> {
    let mut emitter = DefaultEmitter::default();
    // Scripts, styles and titles contain no tags.
    emitter.naively_switch_states(true);
    let tokens = Tokenizer::new_with_emitter(page, emitter);
    tokens.filter_map(|token| {
        let Ok(token) = token;
        match token {
            Token::String(found) => Some(HtmlToken::Text(text(&found))),
            Token::StartTag(tag) => Some(HtmlToken::Open(HtmlTag {
                name: text(&tag.name),
                tag,
            })),
            Token::EndTag(tag) => Some(HtmlToken::Close(text(&tag.name))),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => None,
        }
    })
}

fn text(bytes: &HtmlString) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
