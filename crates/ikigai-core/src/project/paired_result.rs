//! Outcome of a call as it is sent: whole, or in a short form.

use crate::data::Elide;
use crate::message::Image;
use crate::project::budget::{TOKENS_PER_BLOCK, estimate_tokens, image_tokens};
use crate::project::context_rows::{elide, with_left_out_images};

/// Outcome of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct PairedResult {
    /// Output of the tool.
    pub(crate) content: String,
    /// True if it failed.
    pub(crate) is_error: bool,
    pub(crate) images: Vec<Image>,
}

impl PairedResult {
    /// Returns the tokens of its block.
    pub(crate) fn tokens(&self) -> u64 {
        let images = self.images.iter().map(image_tokens).sum::<u64>();
        estimate_tokens(&self.content) + images + TOKENS_PER_BLOCK
    }

    /// Replaces the images by a note, if nothing else makes a request small enough.
    pub(crate) fn leave_images_out(&mut self) {
        if !std::mem::take(&mut self.images).is_empty() {
            self.content
                .push_str("\n[The images were left out because they did not fit.]");
        }
    }

    /// Returns the short form of an old result; none if that saves less than half.
    ///
    /// The short form has no images.
    pub(crate) fn elide(&self, lines: &Elide, row: &str) -> Option<Self> {
        let content = elide(&self.content, lines, row);
        let content = match self.images.len() {
            0 => content?,
            images => {
                let text = content.as_ref().unwrap_or(&self.content);
                with_left_out_images(text, images, row)
            }
        };
        Some(Self {
            content,
            is_error: self.is_error,
            images: Vec::new(),
        })
    }
}
