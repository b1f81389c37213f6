//! The dialects: one folder and one line of the table each.

pub mod chat;
pub mod gemini;
mod images;
pub mod messages;
mod openai;
pub(crate) mod overflow;
mod refusal;
pub mod responses;
pub mod schema;

use crate::dialect::Dialect;

/// All dialects.
pub const ALL: &[&dyn Dialect] = &[
    &responses::Responses,
    &chat::Chat,
    &messages::Messages,
    &gemini::Gemini,
];

/// Finds a dialect by its name in configuration.
pub fn by_name(name: &str) -> Option<&'static dyn Dialect> {
    ALL.iter().copied().find(|dialect| dialect.name() == name)
}
