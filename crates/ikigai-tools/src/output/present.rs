//! Preparation of an output: text for the model, and a blob for the rest.

use std::borrow::Cow;

use ikigai_core::project::{estimate_tokens, prefix_within, suffix_within};

use super::{Collector, MOST_KEPT_BYTES, MOST_SENT_BYTES, clean};
use crate::files::sha256_hex;

/// Room for the line about the omitted part.
const NOTE_BYTES: usize = 256;

/// Room for the same line, in estimated tokens.
const NOTE_TOKENS: u64 = 80;

/// No limit is smaller than this, so that something can be read.
const LEAST_SENT_BYTES: usize = 1024;
const LEAST_SENT_TOKENS: u64 = 256;

/// Largest size of an output as the model gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimit {
    pub bytes: usize,
    /// Estimated tokens: scripts of several bytes per character have more of them.
    pub tokens: u64,
}

impl OutputLimit {
    /// A limit in bytes alone.
    pub const fn of_bytes(bytes: usize) -> Self {
        Self {
            bytes,
            tokens: u64::MAX,
        }
    }

    fn is_exceeded_by(&self, text: &str) -> bool {
        text.len() > self.bytes || estimate_tokens(text) > self.tokens
    }
}

/// Output that is ready to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presented {
    /// Text for the model; at most [`MOST_SENT_BYTES`], or the given limit.
    pub text: String,
    /// Exact bytes, blanked and at most [`MOST_KEPT_BYTES`], if they differ from `text`.
    pub blob: Option<Vec<u8>>,
}

/// Prepares an output: blanks secrets, cleans the text and cuts its middle.
///
/// A secret that control sequences split appears only in the cleaned text. Then the cleaned and
/// blanked text replaces the exact bytes.
pub fn present(body: &[u8], blank: &dyn Fn(&[u8]) -> Cow<'_, [u8]>) -> Presented {
    present_within(body, blank, OutputLimit::of_bytes(MOST_SENT_BYTES))
}

/// Like [`present`], with at most `most` bytes for the model, but [`LEAST_SENT_BYTES`] or more.
pub fn present_within(
    body: &[u8],
    blank: &dyn Fn(&[u8]) -> Cow<'_, [u8]>,
    limit: OutputLimit,
) -> Presented {
    let limit = OutputLimit {
        bytes: limit.bytes.clamp(LEAST_SENT_BYTES, MOST_KEPT_BYTES),
        tokens: limit.tokens.max(LEAST_SENT_TOKENS),
    };
    let mut exact = keep_bounds(blank(body));
    let mut text = clean(&exact);
    let blanked = blank(text.as_bytes());
    if *blanked != *text.as_bytes() {
        exact = keep_bounds(Cow::Owned(blanked.into_owned()));
        text = String::from_utf8_lossy(&exact).into_owned();
    }
    if limit.is_exceeded_by(&text) {
        let text = shorten(&text, &sha256_hex(&exact), limit);
        return Presented {
            text,
            blob: Some(exact.into_owned()),
        };
    }
    let blob = (text.as_bytes() != &*exact).then(|| exact.into_owned());
    Presented { text, blob }
}

/// Limits bytes to [`MOST_KEPT_BYTES`], because blanks can be longer than secrets.
fn keep_bounds(bytes: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    if bytes.len() <= MOST_KEPT_BYTES {
        return bytes;
    }
    let mut collector = Collector::new();
    collector.push(&bytes);
    Cow::Owned(collector.into_body())
}

/// Returns head and tail, and between them a line about reading the rest.
fn shorten(text: &str, hash: &str, limit: OutputLimit) -> String {
    let half = (limit.bytes - NOTE_BYTES) / 2;
    let half_tokens = (limit.tokens - NOTE_TOKENS) / 2;
    let head = prefix_within(text, half_tokens);
    let head = &head[..end_of_head(head, half)];
    let tail = suffix_within(text, half_tokens);
    let tail = &tail[start_of_tail(tail, half)..];
    let left_out = &text[head.len()..text.len() - tail.len()];
    let bytes = left_out.len();
    let lines = left_out.matches('\n').count();
    let gap = if head.ends_with('\n') { "" } else { "\n" };
    format!(
        "{head}{gap}[… {bytes} bytes ({lines} lines) are left out here; file_read with file_path \
         `blob:{hash}` pages through all of it …]\n{tail}"
    )
}

/// Returns a line end in the second half of the head, else a character boundary.
fn end_of_head(text: &str, most: usize) -> usize {
    let end = text.floor_char_boundary(most);
    match text[..end].rfind('\n') {
        Some(found) if found >= end / 2 => found + 1,
        _ => end,
    }
}

/// Returns a line start in the first half of the tail, else a character boundary.
fn start_of_tail(text: &str, most: usize) -> usize {
    let start = text.ceil_char_boundary(text.len().saturating_sub(most));
    match text[start..].find('\n') {
        Some(found) if found <= most / 2 => start + found + 1,
        _ => start,
    }
}
