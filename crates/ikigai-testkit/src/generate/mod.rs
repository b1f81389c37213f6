//! Random histories: lists of actions, and logs made by them.

mod action;
mod bad_rows;
mod counts;
mod events;
mod history;
mod replies;
mod text;

pub use action::{
    Action, ActionKind, ContextForm, Forking, GeneratedReply, HeldRow, LateResult, ReplyBlock,
    Saying, action, actions,
};
pub use bad_rows::{BadRow, BadTarget, OddData, OlderShape};
pub use counts::Counts;
pub use history::History;
pub use text::{CallId, Hanging, OWN, Owner, Text, text};
