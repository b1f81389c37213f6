//! Texts of a request's messages, without what the program adds to them.

use ikigai_core::environment_block::behind_blocks;
use ikigai_core::message::{Block, Message, Role};

/// Returns true for a message of the user: notes on interruptions are in brackets.
pub(super) fn is_said(message: &Message) -> bool {
    let is_note = |text: &str| text.starts_with('[') && text.ends_with(']');
    message.role == Role::User && !texts(message).all(is_note)
}

/// Removes the bracketed notes before a message of the user.
pub(super) fn without_notes(said: &str) -> &str {
    let mut rest = said;
    while let Some((_, behind)) = rest
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]\n\n"))
    {
        rest = behind.trim_start();
    }
    rest
}

pub(super) fn texts(message: &Message) -> impl Iterator<Item = &str> {
    message.blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(behind_blocks(text)),
        _ => None,
    })
}
