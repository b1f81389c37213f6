//! Slash commands: one table for parsing, help, completion, execution and the page in `docs/`.
//!
//! A command is one [`SlashCommand`] in one of these files and one line in [`COMMANDS`]. Its handler
//! reads the agent through a [`CommandContext`] and returns a [`Reply`]; only the dispatcher stores
//! rows and runs actions.

mod actions;
mod agents;
mod compact;
mod complete;
mod context;
mod cost;
mod diff;
mod dispatch;
mod export;
mod fork;
mod help;
mod history;
mod inbox;
mod key;
mod line;
mod mcp;
mod merge;
mod model;
mod name_suggestion;
mod options;
mod place;
mod processes;
mod reap;
mod reply;
mod rows;
mod sandbox;
mod screen;
mod search;
mod shell;
mod talk;
mod time;
mod tools;
mod window;

use ikigai_store::BoxFuture;

use crate::turn::CommandContext;

pub use crate::frontend::Next;
pub use crate::input::{Command, CommandOption, Completes, During, Group, Shows, Takes};
pub(crate) use actions::store_merge;
pub use complete::{Candidate, CompletionContext, Wanted, complete, is_complete, narrow, wanted};
pub use dispatch::Done;
pub(crate) use dispatch::{ChainOutcome, Dispatcher, carry_out_waiting, dispatch, follow};
pub(crate) use fork::fork_held_by_line;
pub use help::page;
pub use key::KEY_PROVIDERS;
pub(crate) use line::Typed;

pub(crate) use reply::{Reply, Trouble};
pub use screen::THEMES;
pub(crate) use shell::store_terminal_run;

/// All commands, in the order of the help.
static COMMANDS: &[&SlashCommand] = &[
    // talk
    &talk::RETRY,
    &time::UNDO,
    &time::REDO,
    &screen::COPY,
    // time
    &time::MARK,
    &time::REWIND,
    &time::CLEAR,
    &diff::DIFF,
    &history::HISTORY,
    &search::SEARCH,
    // agents
    &fork::FORK,
    &merge::MERGE,
    &agents::AGENTS,
    &inbox::INBOX,
    &agents::SWITCH,
    &agents::SEND,
    &agents::WAIT_FOR,
    &agents::KILL,
    &reap::REAP,
    &agents::MAIL,
    &place::NAME,
    &place::CD,
    &place::SESSIONS,
    &talk::RESUME,
    &talk::TAKE,
    // context
    &window::CONTEXT,
    &compact::COMPACT,
    &context::PIN,
    &context::UNPIN,
    &context::SYSTEM,
    // tools
    &tools::TOOLS,
    &tools::APPROVE,
    &sandbox::SANDBOX,
    &processes::PS,
    &mcp::MCP,
    // session
    &model::MODEL,
    &key::KEY,
    &cost::COST,
    &cost::BUDGET,
    &export::EXPORT,
    &screen::THEME,
    &screen::MOUSE,
    &screen::VIEW,
    &screen::REFRESH,
    &screen::KEYS,
    &help::HELP,
    &help::QUIT,
];

/// Slash command with its handler.
pub(crate) struct SlashCommand {
    command: Command,
    /// Computes the reply.
    handler: Handler,
}

/// Handler of a command. It may read, and lengthen the view; it cannot store.
type Handler =
    for<'a, 'c> fn(&'a mut CommandContext<'c>, &'a Typed) -> BoxFuture<'a, Result<Reply, Trouble>>;

/// Returns the descriptions of all commands, in the order of the help.
pub fn all() -> impl Iterator<Item = &'static Command> {
    COMMANDS.iter().map(|entry| &entry.command)
}

/// Finds a command by its name or alias.
pub fn find(name: &str) -> Option<&'static Command> {
    all().find(|command| command.name == name || command.aliases.contains(&name))
}
