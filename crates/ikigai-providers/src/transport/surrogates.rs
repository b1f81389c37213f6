//! Repair of half surrogate pairs: servers that count UTF-16 units split an emoji over two events.
//!
//! JSON with half a pair cannot be parsed as text. A half that the neighbouring event may complete
//! passes the decoder as a placeholder character and is joined afterwards; any other half becomes
//! U+FFFD.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::answer::{AnswerBlock, Delta, ProviderError, Response};
use crate::dialect::Decoder;
use crate::sse::Frame;

/// First surrogate, first low surrogate, and one past the last.
const HIGH: u32 = 0xd800;
const LOW: u32 = 0xdc00;
const END: u32 = 0xe000;

/// First of the 2,048 private characters that represent halves between parsing and joining.
const PLACEHOLDERS: u32 = 0x10_f800;

/// Length of `\uXXXX`.
const ESCAPE_BYTES: usize = 6;

/// A decoder that accepts halves of surrogate pairs in its frames.
pub(super) struct Repaired {
    decoder: Box<dyn Decoder>,
    /// A frame had half a pair: only then does a placeholder mean one.
    has_halves: bool,
    /// High half at the end of the text, held back until the next text.
    text: Option<char>,
    thinking: Option<char>,
}

impl Repaired {
    pub(super) fn new(decoder: Box<dyn Decoder>) -> Self {
        Self {
            decoder,
            has_halves: false,
            text: None,
            thinking: None,
        }
    }
}

impl Decoder for Repaired {
    fn push(&mut self, frame: &Frame) -> Result<Vec<Delta>, ProviderError> {
        let deltas = match mark_halves(&frame.data, Edges::Placeholder) {
            Cow::Borrowed(_) => self.decoder.push(frame)?,
            Cow::Owned(data) => {
                self.has_halves = true;
                let event = frame.event.clone();
                self.decoder.push(&Frame { event, data })?
            }
        };
        if !self.has_halves {
            return Ok(deltas);
        }
        let joined = deltas.into_iter().filter_map(|delta| match delta {
            Delta::Text(text) => join_next(&mut self.text, &text).map(Delta::Text),
            Delta::Thinking(text) => join_next(&mut self.thinking, &text).map(Delta::Thinking),
            Delta::Call(name) => Some(Delta::Call(join(&name))),
            other => Some(other),
        });
        Ok(joined.collect())
    }

    fn finish(self: Box<Self>) -> Result<Response, ProviderError> {
        let mut response = self.decoder.finish()?;
        for block in &mut response.blocks {
            if self.has_halves {
                join_block(block);
            }
            // Arguments are JSON inside JSON, with their own escapes.
            if let AnswerBlock::Call { arguments, .. } = block
                && let Cow::Owned(repaired) = mark_halves(arguments, Edges::Replacement)
            {
                *arguments = repaired;
            }
        }
        Ok(response)
    }

    fn is_done(&self) -> bool {
        self.decoder.is_done()
    }

    fn content_bytes(&self) -> usize {
        self.decoder.content_bytes()
    }
}

/// Treatment of a half at the edge of a string.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edges {
    Placeholder,
    Replacement,
}

/// Replaces escapes of half pairs in JSON text. Borrowed if there are none.
fn mark_halves(json: &str, edges: Edges) -> Cow<'_, str> {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return Cow::Borrowed(json);
    }
    let bytes = json.as_bytes();
    let mut marked = String::new();
    let (mut copied, mut at, mut string_start) = (0, 0, 0);
    while let Some(byte) = bytes.get(at) {
        if *byte != b'\\' {
            at += 1;
            if *byte == b'"' {
                string_start = at;
            }
            continue;
        }
        let Some(unit) = unit_at(bytes, at) else {
            at += 2;
            continue;
        };
        let after = at + ESCAPE_BYTES;
        let is_high = (HIGH..LOW).contains(&unit);
        let is_low = (LOW..END).contains(&unit);
        if is_high && unit_at(bytes, after).is_some_and(|next| (LOW..END).contains(&next)) {
            at = after + ESCAPE_BYTES;
            continue;
        }
        if is_high || is_low {
            let is_edge = if is_high {
                bytes.get(after) == Some(&b'"')
            } else {
                at == string_start
            };
            let placeholder = (is_edge && edges == Edges::Placeholder)
                .then(|| char::from_u32(PLACEHOLDERS + unit - HIGH))
                .flatten();
            marked.push_str(json.get(copied..at).unwrap_or_default());
            marked.push(placeholder.unwrap_or(char::REPLACEMENT_CHARACTER));
            copied = after;
        }
        at = after;
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    marked.push_str(json.get(copied..).unwrap_or_default());
    Cow::Owned(marked)
}

/// Returns the UTF-16 unit of the escape at this position.
fn unit_at(bytes: &[u8], at: usize) -> Option<u32> {
    let escape = bytes.get(at..at + ESCAPE_BYTES)?;
    let digits = escape.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, digit| {
        Some(unit * 16 + char::from(*digit).to_digit(16)?)
    })
}

/// Returns the surrogate of a placeholder.
fn half_of(character: char) -> Option<u32> {
    let code = u32::from(character);
    (code >= PLACEHOLDERS).then(|| code - PLACEHOLDERS + HIGH)
}

fn is_high(character: char) -> bool {
    half_of(character).is_some_and(|half| half < LOW)
}

/// Joins two placeholders of one pair.
fn pair(high: char, low: char) -> Option<char> {
    let high = half_of(high).filter(|half| *half < LOW)?;
    let low = half_of(low).filter(|half| *half >= LOW)?;
    char::from_u32(0x1_0000 + ((high - HIGH) << 10) + (low - LOW))
}

/// Joins adjacent placeholders; one without its other half becomes U+FFFD.
fn join(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if half_of(character).is_none() {
            joined.push(character);
            continue;
        }
        let whole = characters.peek().and_then(|next| pair(character, *next));
        if whole.is_some() {
            characters.next();
        }
        joined.push(whole.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    joined
}

/// Joins a delta with the held half, and holds back a half at its end.
fn join_next(held: &mut Option<char>, text: &str) -> Option<String> {
    let mut whole = String::from_iter(held.take());
    whole.push_str(text);
    *held = whole.chars().next_back().filter(|last| is_high(*last));
    if held.is_some() {
        whole.pop();
    }
    Some(join(&whole)).filter(|joined| !joined.is_empty())
}

fn join_block(block: &mut AnswerBlock) {
    let (texts, rest) = match block {
        AnswerBlock::Text { text, item } => ([Some(text), item.as_mut()], [None, None]),
        AnswerBlock::Thinking { text, payload } => ([Some(text), payload.as_mut()], [None, None]),
        AnswerBlock::Call {
            id,
            name,
            arguments,
            item,
        } => ([Some(arguments), item.as_mut()], [Some(name), id.as_mut()]),
    };
    for text in texts.into_iter().chain(rest).flatten() {
        *text = join(text);
    }
}
