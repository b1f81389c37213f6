//! Preparation of an output: text for the model, and a blob for the rest.

use std::borrow::Cow;

use super::{Collector, MOST_KEPT_BYTES, MOST_SENT_BYTES, clean};
use crate::files::sha256_hex;

/// Room for the line about the omitted part.
const NOTE_BYTES: usize = 256;

/// Smallest limit, so that the model can read something.
const LEAST_SENT_BYTES: usize = 1024;

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
    present_within(body, blank, MOST_SENT_BYTES)
}

/// Like [`present`], with at most `most` bytes for the model, but [`LEAST_SENT_BYTES`] or more.
pub fn present_within(
    body: &[u8],
    blank: &dyn Fn(&[u8]) -> Cow<'_, [u8]>,
    most: usize,
) -> Presented {
    let most = most.clamp(LEAST_SENT_BYTES, MOST_KEPT_BYTES);
    let mut exact = kept(blank(body));
    let mut text = clean(&exact);
    let blanked = blank(text.as_bytes());
    if *blanked != *text.as_bytes() {
        exact = kept(Cow::Owned(blanked.into_owned()));
        text = String::from_utf8_lossy(&exact).into_owned();
    }
    if text.len() > most {
        let text = shortened(&text, &sha256_hex(&exact), most);
        return Presented {
            text,
            blob: Some(exact.into_owned()),
        };
    }
    let blob = (text.as_bytes() != &*exact).then(|| exact.into_owned());
    Presented { text, blob }
}

/// Limits bytes to [`MOST_KEPT_BYTES`], because blanks can be longer than secrets.
fn kept(bytes: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    if bytes.len() <= MOST_KEPT_BYTES {
        return bytes;
    }
    let mut collector = Collector::new();
    collector.push(&bytes);
    Cow::Owned(collector.into_body())
}

/// Returns head and tail, and between them a line about reading the rest.
fn shortened(text: &str, hash: &str, most: usize) -> String {
    let half = (most - NOTE_BYTES) / 2;
    let head = &text[..end_of_head(text, half)];
    let tail = &text[start_of_tail(text, half)..];
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
