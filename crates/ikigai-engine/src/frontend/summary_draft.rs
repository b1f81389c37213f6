//! Summary on its way through the user's editor.

use ikigai_core::RowRef;
use ikigai_core::data::{CommandData, SummaryData};
use ikigai_core::project::Scale;

/// A summary that the user may change before it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryDraft {
    /// Text for the editor.
    pub text: String,
    /// Range that the summary replaces.
    pub(crate) data: SummaryData,
    /// Row of the summary in force that is edited; none if the text is new.
    pub(crate) edited: Option<RowRef>,
    /// Data of the command row that says what came of it.
    pub(crate) command: CommandData,
    /// Number of turns that a new summary replaces.
    pub(crate) turns: usize,
    /// Tokens before, as the model counts them.
    pub(crate) before: u64,
    /// Estimated tokens of the messages that stay word for word.
    pub(crate) verbatim: u64,
    /// Tokens that the model counts for an estimated one.
    pub(crate) scale: Scale,
}
