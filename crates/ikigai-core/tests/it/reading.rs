//! Helpers that read texts, rows and kinds of an agent.

use ikigai_core::view::Entry;
use ikigai_core::{Block, RowRef};
use ikigai_store::Agent;

/// Returns the texts of the agent's messages in order, from blocks of any kind.
pub(crate) fn said(agent: &Agent) -> Vec<String> {
    let conversation = agent.view.conversation();
    let blocks = conversation.messages().iter().flat_map(|it| &it.blocks);
    let texts = blocks.map(|block| match block {
        Block::Text { text } | Block::Thinking { text, .. } => text.clone(),
        Block::ToolCall { arguments, .. } => arguments.clone(),
        Block::ToolResult { content, .. } => content.clone(),
        Block::Image(image) => image.hash.clone(),
    });
    texts.collect()
}

/// Returns the agent's scrollback as plain text lines.
pub(crate) fn shown(agent: &Agent) -> Vec<String> {
    let scrollback = agent.view.scrollback();
    scrollback.map(|shown| shown.to_string()).collect()
}

/// Returns the rows of the agent's view.
pub(crate) fn places(agent: &Agent) -> Vec<RowRef> {
    agent.view.entries().iter().map(Entry::at).collect()
}

/// Returns the names of the kinds in the agent's view.
pub(crate) fn kinds(agent: &Agent) -> Vec<String> {
    let entries = agent.view.entries().iter();
    entries.map(|it| it.row.kind.name().to_owned()).collect()
}

/// Returns the labels of the agent's marks, oldest first.
pub(crate) fn labels(agent: &Agent) -> Vec<Option<String>> {
    let marks = agent.state.marks();
    marks.map(|(_, label)| label.map(str::to_owned)).collect()
}
