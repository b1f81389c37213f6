//! Request checkers: the published rules of each dialect, applied to the body of a request.

pub mod chat;
pub mod gemini;
mod images;
pub mod messages;
pub mod prompt;
mod request_sequence;
mod requests;
pub mod responses;
mod tools;

use serde_json::Value;

pub use request_sequence::successive_requests;
pub use requests::requests_of;

/// Wire format of a model server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireDialect {
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Messages,
    /// Gemini.
    Gemini,
}

impl WireDialect {
    /// Checks the body of a request by the dialect's published rules.
    pub(crate) fn check(self, body: &Value) -> Result<(), String> {
        match self {
            Self::Chat => chat::check(body),
            Self::Responses => responses::check(body),
            Self::Messages => messages::check(body),
            Self::Gemini => gemini::check(body),
        }
    }
}

/// Refuses unknown fields: a provider may, and nothing should be sent by accident.
fn fields(value: &Value, known: &[&str]) -> Result<(), String> {
    let object = value.as_object().ok_or(format!("{value} is no object"))?;
    let stranger = object.keys().find(|key| !known.contains(&key.as_str()));
    stranger.map_or(Ok(()), |key| Err(format!("there is no field `{key}`")))
}

/// Returns a field that must be a list with at least one element.
fn list<'a>(value: &'a Value, field: &str) -> Result<&'a [Value], String> {
    let list = value.get(field).and_then(Value::as_array);
    let list = list.filter(|list| !list.is_empty());
    let list = list.ok_or(format!("`{field}` is no list, or empty"))?;
    Ok(list)
}

/// Returns a field that must be a text.
fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str, String> {
    let text = value.get(field).and_then(Value::as_str);
    text.ok_or(format!("`{field}` is no text"))
}

/// Returns a field that must be an object.
fn object<'a>(value: &'a Value, field: &str) -> Result<&'a Value, String> {
    let object = value.get(field).filter(|object| object.is_object());
    object.ok_or(format!("`{field}` is no object"))
}

fn blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Returns true if every provider accepts it as a tool name or call id.
fn is_name(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=64).contains(&name.len()) && name.chars().all(legal)
}
