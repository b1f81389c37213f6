//! Putting payloads of a dialect in the place of those that random histories hold.

use ikigai_core::{Block, Request};

/// Gives every payload of a request the form that a dialect gave it. What it becomes depends only
/// on the block, so that a longer request of the same history gets the same.
pub(crate) fn translate(
    request: &mut Request,
    thinking: impl Fn(&str) -> String,
    item: impl Fn(&Block) -> String,
) {
    for message in &mut request.messages {
        for hanging in &mut message.metadata {
            hanging.item.payload = item(&message.blocks[hanging.block]);
        }
        for block in &mut message.blocks {
            if let Block::Thinking {
                text,
                payload: Some(payload),
            } = block
            {
                payload.payload = thinking(text);
            }
        }
    }
}
