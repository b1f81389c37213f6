//! Effects of the screen, grouped by their executor.

use std::path::PathBuf;

use ikigai_core::{AgentId, RowRef};
use ikigai_engine::search::SearchCursor;
use ikigai_engine::{InboxEntry, SummaryDraft, TypedKey, UserRequest};

use super::PickerKind;
use crate::outbox::OutboxAction;

/// Effect that the screen queues; its driver executes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UiEffect {
    /// The driver asks the engine or the files of drafts.
    Engine(EngineRequest),
    /// The driver or a background task reads the store.
    Load(LoadRequest),
    /// Only a terminal can do it.
    Terminal(TerminalAction),
}

/// Request to the engine, or to the files of drafts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineRequest {
    /// Sends a request of the user to an agent.
    Send(AgentId, UserRequest),
    /// Shows another agent and takes its lease.
    Show(AgentId),
    /// Notes that the user has read the report of this row.
    MarkRead(RowRef),
    /// Removes an entry from the inbox.
    Dismiss(Box<InboxEntry>),
    /// Asks the process that holds an agent for its open questions.
    AskHolder(AgentId),
    /// Takes an agent over from another process.
    TakeOver(AgentId),
    /// Verifies and saves an API key.
    SetKey {
        /// Provider of the key.
        provider: String,
        /// The key.
        key: TypedKey,
    },
    /// Saves or stores a line that is not in the log yet.
    Outbox(OutboxAction),
    /// Writes the draft of an agent to its file. Removes the file if the text is empty.
    SaveDraft(AgentId, String),
}

/// Read from the store or the file system, with a later result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadRequest {
    /// Older rows of the current agent.
    OlderRows,
    /// Newer rows of the current agent, while the view is detached from its end.
    NewerRows,
    /// Search in the whole log.
    Search {
        /// The search as it was typed.
        typed: String,
        /// End of an earlier answer.
        after: Option<SearchCursor>,
    },
    /// A row with the rows around it, in its own agent's history.
    RowInContext(RowRef),
    /// The newest search hits again.
    SearchHits,
    /// Rows that a rewind hid; hides them again if visible.
    RewoundRows(RowRef),
    /// Entries of a picker.
    Choices(PickerKind),
    /// The current agent, from the beginning.
    Pane,
    /// An agent that only the board shows.
    Peek(AgentId),
    /// Newest rows of agents for the board, and costs of all.
    Board(Vec<AgentId>),
    /// Preview of `/merge` with these arguments into an agent.
    MergePreview(AgentId, String),
    /// The tree of agents.
    Tree,
    /// Everything that waits for the user.
    Inbox,
    /// Entries of a directory, for completion.
    Directory {
        /// The directory as it was typed.
        typed: String,
        /// Its path.
        directory: PathBuf,
    },
    /// Messages sent in earlier runs.
    SentMessages,
}

/// Action that only a terminal can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalAction {
    /// Uses other colours.
    SetTheme(String),
    /// Reports mouse events to ikigai, or leaves the mouse to the terminal.
    SetMouse(bool),
    /// Copies text to the clipboard.
    Copy(String),
    /// Opens text in the user's editor.
    Edit(String),
    /// Opens a summary of an agent in the user's editor, then has it stored.
    EditSummary(AgentId, Box<SummaryDraft>),
    /// Runs a shell line that needs the terminal.
    Run {
        /// The command line.
        command: String,
        /// True if the model sees that it ran.
        sent: bool,
    },
    /// Opens text in the user's pager.
    Page(String),
    /// Stops the process until the shell continues it.
    Suspend,
    /// Notifies a user whose terminal has no focus.
    Notify(String),
    /// Paints the whole screen again.
    Redraw,
    /// Quits.
    Quit,
    /// Stops background processes, then quits.
    StopProcessesAndQuit,
    /// Quits; working agents and background processes continue.
    QuitToBackground,
}

impl From<EngineRequest> for UiEffect {
    fn from(request: EngineRequest) -> Self {
        Self::Engine(request)
    }
}

impl From<LoadRequest> for UiEffect {
    fn from(request: LoadRequest) -> Self {
        Self::Load(request)
    }
}

impl From<TerminalAction> for UiEffect {
    fn from(action: TerminalAction) -> Self {
        Self::Terminal(action)
    }
}

/// Queue of effects.
#[derive(Default)]
pub(super) struct Effects {
    queue: Vec<UiEffect>,
}

impl Effects {
    pub(super) fn push(&mut self, effect: impl Into<UiEffect>) {
        self.queue.push(effect.into());
    }

    pub(super) fn extend(&mut self, effects: impl IntoIterator<Item = impl Into<UiEffect>>) {
        self.queue.extend(effects.into_iter().map(Into::into));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes all effects, in order.
    pub(super) fn take(&mut self) -> Vec<UiEffect> {
        std::mem::take(&mut self.queue)
    }
}
