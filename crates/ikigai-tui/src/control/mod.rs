//! What other programs ask of a running screen over its control socket: the words, and what the
//! screen does about them. The socket itself is the program's.

mod answer;
mod keys;
mod orders;
mod page;
mod request;

pub use answer::{
    AgentSeen, Answer, Cursor, Framebuffer, Owner, QuestionSeen, Released, RowSeen, Said, SpanSeen,
    StyleSeen, TokenCache, TurnSeen, Version,
};
pub use keys::unescape;
pub use orders::{Mode, Order, Orders, Reply};
pub use page::page;
pub use request::{Request, Word};

#[cfg(test)]
mod tests;
