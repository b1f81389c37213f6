//! Reasoning in the answers of compatible servers: a field of one of several names, or a leading
//! tag within the text.

use serde_json::Value;

/// The field of most servers.
pub(super) const REASONING_CONTENT: &str = "reasoning_content";

/// The field of others.
pub(super) const REASONING: &str = "reasoning";

/// The list of details of a gateway, which wants it back unmodified.
pub(super) const DETAILS: &str = "reasoning_details";

/// Stands for the tag in place of a field's name.
pub(super) const THINK_TAG: &str = "think";

const OPENING: &str = "<think>";
const CLOSING: &str = "</think>";

/// The readable reasoning of a delta, and the name under which it came.
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

/// The details of a delta.
pub(super) fn details_in(delta: &Value) -> impl Iterator<Item = &Value> {
    let details = delta.get(DETAILS).and_then(Value::as_array);
    details.into_iter().flatten()
}

/// Adds a detail to those that came, or to the last of them if it is a piece more of it. Returns
/// the bytes that it adds beside its readable text.
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

/// A piece of content, told apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Text(String),
    Thinking(String),
}

/// Takes a leading `<think>…</think>` out of a text that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct Tag {
    stage: Stage,
    /// What may be the beginning of a tag.
    held: String,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Nothing but blanks and perhaps a part of the tag has come.
    #[default]
    Before,
    /// After the tag, with nothing but blanks since.
    Opened,
    Inside,
    /// After the closing tag, with nothing but blanks since.
    Closed,
    Plain,
}

/// What comes of looking at what is held.
enum Step {
    /// Nothing before more comes.
    Wait,
    /// Another stage, to be looked at again.
    On,
    Say(Said),
}

impl Tag {
    /// Takes in a piece of content.
    pub(super) fn push(&mut self, text: &str) -> Vec<Said> {
        self.held.push_str(text);
        let mut said = Vec::new();
        loop {
            match self.step() {
                Step::Wait => return said,
                Step::On => {}
                Step::Say(piece) => said.push(piece),
            }
        }
    }

    /// Lets go of what was held back; no tag is looked for any more unless one is open.
    pub(super) fn flush(&mut self) -> Option<Said> {
        let held = std::mem::take(&mut self.held);
        let is_thought = matches!(self.stage, Stage::Inside | Stage::Opened);
        if !is_thought {
            self.stage = Stage::Plain;
        }
        match held {
            held if held.is_empty() => None,
            held if is_thought => Some(Said::Thinking(held)),
            held => Some(Said::Text(held)),
        }
    }

    fn step(&mut self) -> Step {
        match self.stage {
            Stage::Before => {
                let start = self.held.trim_start();
                if let Some(rest) = start.strip_prefix(OPENING) {
                    self.held = rest.to_owned();
                    self.stage = Stage::Opened;
                } else if OPENING.starts_with(start) {
                    return Step::Wait;
                } else {
                    self.stage = Stage::Plain;
                }
                Step::On
            }
            Stage::Opened | Stage::Closed => {
                self.held = self.held.trim_start().to_owned();
                if self.held.is_empty() {
                    return Step::Wait;
                }
                self.stage = if self.stage == Stage::Opened {
                    Stage::Inside
                } else {
                    Stage::Plain
                };
                Step::On
            }
            Stage::Inside => self.step_inside(),
            Stage::Plain if self.held.is_empty() => Step::Wait,
            Stage::Plain => Step::Say(Said::Text(std::mem::take(&mut self.held))),
        }
    }

    fn step_inside(&mut self) -> Step {
        let end = self.held.find(CLOSING);
        let at = end.unwrap_or(self.held.len() - half_closed(&self.held));
        let mut rest = self.held.split_off(at);
        if end.is_some() {
            rest = rest.split_off(CLOSING.len());
            self.stage = Stage::Closed;
        }
        let said = std::mem::replace(&mut self.held, rest);
        match (said.is_empty(), end) {
            (false, _) => Step::Say(Said::Thinking(said)),
            (true, Some(_)) => Step::On,
            (true, None) => Step::Wait,
        }
    }
}

/// How many bytes at the end of a text may be the beginning of the closing tag.
fn half_closed(text: &str) -> usize {
    let lengths = (1..CLOSING.len()).rev();
    let mut halves = lengths.filter(|length| text.ends_with(&CLOSING[..*length]));
    halves.next().unwrap_or(0)
}
