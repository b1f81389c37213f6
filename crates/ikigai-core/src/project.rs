//! Projection of an agent's state and view to a request. Pure and total.

mod budget;
mod call_names;
mod context_rows;
mod paired_result;
mod pairing;
mod plan;
mod scale;
mod window;
mod window_sizes;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use crate::ids::RowRef;
use crate::message::{Image, ImageBytes, Message, Role};
use crate::project::pairing::Sent;
use crate::state::AgentState;
use crate::view::View;

pub use budget::{
    Budget, Fixed, block_tokens, estimate_request, estimate_tokens, prefix_within, suffix_within,
};
pub use plan::{
    ContextLimits, Elision, Keep, SummaryRange, messages_up_to, plan_elision, plan_last_elision,
    plan_summary, used_tokens,
};
pub use scale::{SCALE_ROWS, Scale, expected_tokens};
pub use window::{Window, covered_since, is_full, missing_messages};
pub use window_sizes::{Filling, FillingParts, PartSize, TurnSize};

/// Model of a request, with tools and pinned documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The tools the model may call.
    pub tools: Vec<ToolSpec>,
    /// The texts of pinned documents, by the hash in the settings.
    pub documents: BTreeMap<String, String>,
}

/// Description of a tool: for the model, and facts for front ends and rewinds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// Its purpose, for the model.
    pub description: String,
    /// JSON schema of its arguments.
    pub parameters: Value,
    /// Facts that models do not see.
    #[serde(skip)]
    pub facts: ToolFacts,
}

/// Facts about every call of a tool, known without running it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolFacts {
    /// Files that its calls change.
    pub changes: FileChanges,
    /// Preview of an output while its row is folded.
    pub preview: OutputPreview,
    /// Decision about its calls in `read` mode.
    pub in_read_mode: ReadMode,
    /// Icon and group of its calls in front ends that have such.
    pub action: ToolAction,
}

/// Action of a tool's calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolAction {
    /// Reads a file.
    Read,
    /// Changes files.
    Edit,
    /// Searches files.
    Search,
    /// Runs a program.
    Execute,
    /// Uses the network.
    Fetch,
    /// Plans.
    Think,
    /// Any other action.
    #[default]
    Other,
}

/// Decision about the calls of a tool in `read` mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadMode {
    /// They run.
    Runs,
    /// Some run, if there is a sandbox.
    InSandbox,
    /// All are refused, so the tool is not offered.
    #[default]
    Refused,
}

/// Files that the calls of a tool change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileChanges {
    /// No files: the tool only reads, or acts on agents.
    None,
    /// Files that its results list.
    Listed,
    /// Any files.
    #[default]
    Unknown,
}

/// Preview of a tool's output below the line of its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputPreview {
    /// The line of the result alone.
    Line,
    /// The first few lines.
    #[default]
    FewLines,
    /// A screenful, for outputs that a person follows.
    Long,
}

impl ToolFacts {
    /// Facts of a tool that changes no files and whose output only the model needs.
    pub const READING: Self = Self {
        changes: FileChanges::None,
        preview: OutputPreview::Line,
        in_read_mode: ReadMode::Runs,
        action: ToolAction::Read,
    };

    /// Facts of a tool that changes no files, but acts on others: on the network or on agents.
    pub const ACTING: Self = Self {
        in_read_mode: ReadMode::Refused,
        action: ToolAction::Other,
        ..Self::READING
    };

    /// Facts of a tool whose results list all files that it wrote.
    pub const WRITING: Self = Self {
        changes: FileChanges::Listed,
        preview: OutputPreview::FewLines,
        in_read_mode: ReadMode::Refused,
        action: ToolAction::Edit,
    };
}

/// Provider-neutral request. It has no fields for anything else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Request {
    /// The system slot: the prompt, then the pinned documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The conversation.
    pub messages: Vec<Message>,
    /// The tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSpec>,
    /// The bytes of images in the conversation; those that are missing are sent as a note.
    #[serde(skip)]
    pub images: ImageBytes,
}

impl Request {
    /// Returns the images of the conversation.
    pub fn shown_images(&self) -> impl Iterator<Item = &Image> {
        self.messages.iter().flat_map(Message::images)
    }
}

/// Reason for the lack of a request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CannotProject {
    /// No user message needs an answer.
    #[error("there is no user message to answer")]
    NoUserMessage,
    /// System prompt, pins and tools alone exceed the window.
    #[error("system prompt, pins and tools alone need {needed} tokens of {window}: {}", list(.largest))]
    NoRoom {
        /// Tokens that they need.
        needed: u64,
        /// Tokens that the model accepts.
        window: u64,
        /// The largest of them with their tokens, largest first.
        largest: Vec<(String, u64)>,
    },
}

fn list(parts: &[(String, u64)]) -> String {
    let parts: Vec<_> = parts
        .iter()
        .map(|(name, tokens)| format!("{name} {tokens}"))
        .collect();
    parts.join(", ")
}

/// Makes the request of the agent's next turn.
pub fn project(
    state: &AgentState,
    view: &View,
    target: &Target,
    budget: &Budget,
) -> Result<Request, CannotProject> {
    let sent = send(state, view, target, budget)?;
    let asks = sent.last().is_some_and(|last| match last.message.role {
        Role::Tool => true,
        Role::User => !last.quoted,
        Role::Assistant => false,
    });
    if asks {
        Ok(request_of(state, target, sent))
    } else {
        Err(CannotProject::NoUserMessage)
    }
}

/// Makes the request of this moment, even if there is no message to answer.
pub fn assemble(
    state: &AgentState,
    view: &View,
    target: &Target,
    budget: &Budget,
) -> Result<Request, CannotProject> {
    let sent = send(state, view, target, budget)?;
    Ok(request_of(state, target, sent))
}

fn request_of(state: &AgentState, target: &Target, sent: Vec<Sent>) -> Request {
    Request {
        system: system_slot(state, target),
        messages: sent.into_iter().map(|sent| sent.message).collect(),
        tools: target.tools.clone(),
        images: ImageBytes::default(),
    }
}

/// Returns the rows to leave out if the provider refuses message `index` of the request.
///
/// For a message of the assistant these are the rows with opaque payloads, if there are any; else
/// all rows that the message was made from.
pub fn rows_behind(
    state: &AgentState,
    view: &View,
    target: &Target,
    budget: &Budget,
    index: usize,
) -> Vec<RowRef> {
    let sent = send(state, view, target, budget).unwrap_or_default();
    sent.into_iter()
        .nth(index)
        .map(|sent| sent.rows)
        .unwrap_or_default()
}

fn send(
    state: &AgentState,
    view: &View,
    target: &Target,
    budget: &Budget,
) -> Result<Vec<Sent>, CannotProject> {
    let fixed = budget::fixed_parts(state, target);
    let needed = fixed.iter().map(|(_, tokens)| tokens).sum();
    if needed > budget.window {
        let mut largest = fixed;
        largest.sort_by_key(|(_, tokens)| std::cmp::Reverse(*tokens));
        largest.truncate(3);
        let largest = largest
            .into_iter()
            .map(|(part, tokens)| (part.to_string(), tokens))
            .collect();
        return Err(CannotProject::NoRoom {
            needed,
            window: budget.window,
            largest,
        });
    }
    let mut window = Window::of(state, view, target);
    window.fit(budget.window - needed);
    Ok(window.into_messages())
}

/// Returns the system prompt, then each pinned document under a heading with its path.
fn system_slot(state: &AgentState, target: &Target) -> Option<String> {
    let mut slot = state.system().unwrap_or_default().to_owned();
    for (path, text) in budget::pins_in_request(state, target) {
        if !slot.is_empty() {
            slot.push_str("\n\n");
        }
        slot.push_str("# ");
        slot.push_str(path);
        slot.push_str("\n\n");
        slot.push_str(text);
    }
    Some(slot).filter(|slot| !slot.trim().is_empty())
}
