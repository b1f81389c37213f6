//! Random histories: lists of actions, and what becomes of a log when they are played.

mod action;
mod bad;
mod counts;
mod events;
mod history;
mod replies;
mod text;

pub use action::{
    Action, Answer, ContextForm, Deed, Forking, Piece, Place, Reply, Saying, action, actions,
};
pub use bad::{BadRow, BadTarget, OddData, OlderShape};
pub use counts::Counts;
pub use history::History;
pub use text::{CallId, Hanging, OWN, Owner, Text, text};
