//! Messages of the control socket: requests, answers, and their documentation.

mod answer;
mod page;
mod request;

pub use answer::{
    AgentSeen, ControlAnswer, ControlOutput, CursorSeen, Framebuffer, OwnerSeen, QuestionSeen,
    Released, RowSeen, SpanSeen, StyleSeen, TokenCache, TurnSeen, Version,
};
pub use page::page;
pub use request::{ApprovalWord, ControlRequest};

#[cfg(test)]
mod tests;
