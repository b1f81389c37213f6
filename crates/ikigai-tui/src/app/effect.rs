//! Effects of the screen, executed by its driver.

use std::path::PathBuf;

use ikigai_core::{AgentId, RowRef};
use ikigai_engine::search::Cursor;
use ikigai_engine::{Intent, TypedKey};

use super::Choosing;
use crate::outbox::OutboxAction;

/// What the screen wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Say this to an agent.
    Say(AgentId, Intent),
    /// Show another agent.
    Show(AgentId),
    /// Ask whoever holds an agent to let go of it.
    Take(AgentId),
    /// Read more above of the agent that is shown.
    ReadOlder,
    /// Read more below, where its end is not what is looked at.
    ReadNewer,
    /// Look for words in the whole log.
    Search {
        /// As they were typed.
        typed: String,
        /// Where an earlier answer ended.
        after: Option<Cursor>,
    },
    /// Show this row where it stands in the history of the agent that wrote it.
    GoTo(RowRef),
    /// Show what was found last.
    ListHits,
    /// Show what this rewind of the agent that is shown left, or not any more.
    ToggleLeft(RowRef),
    /// Read what there is to choose from, and let the user choose.
    Choose(Choosing),
    /// Read all that is shown of the agent anew.
    Reread,
    /// Have a key tried and kept.
    TakeKey {
        /// Whose key.
        provider: String,
        /// The key.
        key: TypedKey,
    },
    /// Show these colours.
    Theme(String),
    /// Take the mouse, or leave it to the terminal.
    Mouse(bool),
    /// Read an agent without showing it instead of another.
    Peek(AgentId),
    /// Read what the board shows of agents, and what all of them cost.
    ReadBoard(Vec<AgentId>),
    /// Read what `/merge` with these arguments would bring into an agent.
    PreviewMerge(AgentId, String),
    /// Read the tree of agents anew.
    ReadTree,
    /// Put this where other programs paste from.
    Copy(String),
    /// Let the user edit the input in their editor.
    Edit(String),
    /// Run a line of the user's shell that needs the terminal.
    RunOnTerminal {
        /// The command line.
        command: String,
        /// True if the model sees that it ran.
        sent: bool,
    },
    /// Let the user read this in their pager.
    Page(String),
    /// Read what is in a directory that was typed so, for completion.
    List {
        /// As it was typed.
        typed: String,
        /// Where it is.
        directory: PathBuf,
    },
    /// Read what was sent in former runs.
    ReadHistory,
    /// Save or store a line that is not in the log yet.
    Outbox(OutboxAction),
    /// Write the draft of an agent to its file; remove it if it is empty.
    SaveDraft(AgentId, String),
    /// Stop the program until it is told to go on.
    Suspend,
    /// Tell somebody who does not look.
    Notify(String),
    /// Write the whole screen anew.
    Redraw,
    /// End the program.
    Quit,
    /// End the program, and have agents that work go on.
    Background,
}
