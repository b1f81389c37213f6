//! Messages of the control socket: requests, answers, and their documentation.

mod answer;
mod page;
mod request;

pub use answer::{
    AgentSeen, Answer, Cursor, Framebuffer, Owner, QuestionSeen, Released, RowSeen, Said, SpanSeen,
    StyleSeen, TokenCache, TurnSeen, Version,
};
pub use page::page;
pub use request::{Request, Word};

#[cfg(test)]
mod tests;
