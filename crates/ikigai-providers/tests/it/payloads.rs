//! Replacement of payloads in random histories by those of a dialect.

use ikigai_core::{Block, Request};

/// Converts every payload of a request to a dialect's format.
///
/// The result depends only on the block, so a longer request of the same history gets the same.
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
