//! Reasoning of compatible servers: a field of one of several names, or a leading tag in the text.

use serde_json::Value;

/// Field of most servers.
pub(super) const REASONING_CONTENT: &str = "reasoning_content";

/// Field of other servers.
pub(super) const REASONING: &str = "reasoning";

/// List of details of a gateway, which requires it back unmodified.
pub(super) const DETAILS: &str = "reasoning_details";

/// Name for the tag in place of a field's name.
pub(super) const THINK_TAG: &str = "think";

const OPENING: &str = "<think>";
const CLOSING: &str = "</think>";

/// Returns the readable reasoning of a delta, and the name of its field.
pub(super) fn field_in(delta: &Value) -> Option<(&'static str, String)> {
    for field in [REASONING_CONTENT, REASONING] {
        let text = delta.get(field).and_then(Value::as_str);
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            return Some((field, text.to_owned()));
        }
    }
    let texts = details_in(delta).filter_map(|detail| {
        let text = detail.get("text").or_else(|| detail.get("summary"));
        text?.as_str()
    });
    let text: String = texts.collect();
    (!text.is_empty()).then_some((DETAILS, text))
}

pub(super) fn details_in(delta: &Value) -> impl Iterator<Item = &Value> {
    let details = delta.get(DETAILS).and_then(Value::as_array);
    details.into_iter().flatten()
}

/// Adds a detail, or appends it to the last one if it continues that.
///
/// Returns the bytes that it adds besides its readable text.
pub(super) fn gather(details: &mut Vec<Value>, detail: &Value) -> usize {
    let text_of = match detail.get("type").and_then(Value::as_str) {
        Some("reasoning.text") => "text",
        Some("reasoning.summary") => "summary",
        _ => {
            details.push(detail.clone());
            return detail.to_string().len();
        }
    };
    let same = |last: &&mut Value| {
        let equal = |key: &str| last.get(key) == detail.get(key);
        equal("type") && equal("index")
    };
    let Some(Value::Object(last)) = details.last_mut().filter(same) else {
        details.push(detail.clone());
        return detail.to_string().len();
    };
    for (key, value) in detail.as_object().into_iter().flatten() {
        match (last.get_mut(key), value) {
            (_, Value::Null) => {}
            (Some(Value::String(before)), Value::String(more)) if key == text_of => {
                before.push_str(more);
            }
            _ => {
                last.insert(key.clone(), value.clone());
            }
        }
    }
    0
}

/// A piece of content, separated into text and thinking.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ContentPiece {
    Text(String),
    Thinking(String),
}

/// Extracts a leading `<think>…</think>` from a text that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct ThinkTag {
    stage: TagStage,
    /// Possible start of a tag.
    held: String,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum TagStage {
    /// Only blanks and perhaps a part of the tag so far.
    #[default]
    Before,
    /// After the tag, with only blanks since.
    Opened,
    Inside,
    /// After the closing tag, with only blanks since.
    Closed,
    Plain,
}

/// Result of examining the held text.
enum TagStep {
    /// Wait for more text.
    Wait,
    /// Examine again in another stage.
    On,
    Say(ContentPiece),
}

impl ThinkTag {
    /// Adds a piece of content.
    pub(super) fn push(&mut self, text: &str) -> Vec<ContentPiece> {
        self.held.push_str(text);
        let mut said = Vec::new();
        loop {
            match self.step() {
                TagStep::Wait => return said,
                TagStep::On => {}
                TagStep::Say(piece) => said.push(piece),
            }
        }
    }

    /// Releases the held text; afterwards only an open tag is still recognised.
    pub(super) fn flush(&mut self) -> Option<ContentPiece> {
        let held = std::mem::take(&mut self.held);
        let is_thought = matches!(self.stage, TagStage::Inside | TagStage::Opened);
        if !is_thought {
            self.stage = TagStage::Plain;
        }
        match held {
            held if held.is_empty() => None,
            held if is_thought => Some(ContentPiece::Thinking(held)),
            held => Some(ContentPiece::Text(held)),
        }
    }

    fn step(&mut self) -> TagStep {
        match self.stage {
            TagStage::Before => {
                let start = self.held.trim_start();
                if let Some(rest) = start.strip_prefix(OPENING) {
                    self.held = rest.to_owned();
                    self.stage = TagStage::Opened;
                } else if OPENING.starts_with(start) {
                    return TagStep::Wait;
                } else {
                    self.stage = TagStage::Plain;
                }
                TagStep::On
            }
            TagStage::Opened | TagStage::Closed => {
                self.held = self.held.trim_start().to_owned();
                if self.held.is_empty() {
                    return TagStep::Wait;
                }
                self.stage = if self.stage == TagStage::Opened {
                    TagStage::Inside
                } else {
                    TagStage::Plain
                };
                TagStep::On
            }
            TagStage::Inside => self.step_inside(),
            TagStage::Plain if self.held.is_empty() => TagStep::Wait,
            TagStage::Plain => TagStep::Say(ContentPiece::Text(std::mem::take(&mut self.held))),
        }
    }

    fn step_inside(&mut self) -> TagStep {
        let end = self.held.find(CLOSING);
        let at = end.unwrap_or(self.held.len() - half_closed(&self.held));
        let mut rest = self.held.split_off(at);
        if end.is_some() {
            rest = rest.split_off(CLOSING.len());
            self.stage = TagStage::Closed;
        }
        let said = std::mem::replace(&mut self.held, rest);
        match (said.is_empty(), end) {
            (false, _) => TagStep::Say(ContentPiece::Thinking(said)),
            (true, Some(_)) => TagStep::On,
            (true, None) => TagStep::Wait,
        }
    }
}

/// Returns the length of a partial closing tag at the end of a text.
fn half_closed(text: &str) -> usize {
    let lengths = (1..CLOSING.len()).rev();
    let mut halves = lengths.filter(|length| text.ends_with(&CLOSING[..*length]));
    halves.next().unwrap_or(0)
}
