//! The engine: handlers decide events from state; events are stored, then applied, then acted upon.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod agent_names;
mod agent_tools;
mod blame;
mod blobs;
mod budget;
mod calls;
mod changed_files;
pub mod commands;
mod context;
mod cost;
mod documents;
mod engine;
mod environment;
mod error;
pub mod export;
mod family;
mod family_tree;
pub mod figures;
mod file_diff;
mod file_history;
mod file_system;
mod follow;
mod frontend;
mod grants;
mod hub;
mod inbox;
mod inbox_entry;
mod input;
mod instructions;
mod invocation;
mod last_turn;
mod ledger;
mod lifecycle;
mod limits;
mod mentions;
mod message_counts;
mod message_size;
mod offered_tools;
mod past_request;
mod process_watch;
mod processes;
mod recall;
mod response;
mod rewind_effects;
pub mod search;
mod sessions;
mod surroundings;
mod tools;
mod turn;
mod turn_figures;
mod window;
mod worktrees;

pub use agent_names::NameCache;
pub use blame::{BlameReader, BlamedLine, LineSource};
pub use budget::{Cap, UsedCap};
pub use context::{Context, ContextEstimate, ContextTurn};
pub use cost::{Cost, CostBy, Share};
pub use engine::{Engine, EngineReader, is_agent_here};
pub use environment::{CrashPoint, Environment, Platform, System};
pub use error::EngineError;
pub use family::{Branch, ChildSeat, ForkRequest, Forked, MergeOf};
pub use figures::since;
pub use file_diff::{DiffRange, DiffReader, FileDiff};
pub use follow::{Follow, Followed};
pub use frontend::{
    AgentJob, AgentSummary, Answer, FrontEnd, LineChange, Listing, ListingView, Live, LiveChange,
    MergePreview, Outcome, Phase, Question, RunningCall, RunningTurn, ShellRun, Stop, Submission,
    SummaryDraft, TerminalRun, ToolOutput, TurnEnd, USER_REQUESTS, UiEvent, UserRequest,
};
pub use hub::{Observer, Opening, UseObserver};
pub use inbox::{
    dismiss_entries, mark_all_read, mark_read, read_inbox, read_marks, read_tree_and_inbox,
};
pub use inbox_entry::{InboxEntry, InboxKind};
pub use input::{CommandLine, ShellLine, UnknownCommand, UserInput};
pub use ledger::{HolderRequests, adopt_session};
pub use lifecycle::{HeldFork, Stopped};
pub use limits::{AgentLimits, FileChoice, Limits, Resume};
pub use past_request::PastRequest;
pub use process_watch::{Keepers, ListedProcess};
pub use sessions::SessionEntry;
pub use tools::{Blank, Probe, Safety, Tools, tool_facts};
pub use turn::Worker;
pub use turn_figures::TurnFigures;
pub use worktrees::{WorktreeMerge, WorktreePlan};

// Types that front ends read, from one place.
pub use ikigai_providers::{Offer, TypedKey, looks_like_key};
pub use ikigai_store::{
    Agent, AgentError, AgentRecord, CommitError, MailId, ProcessRecord, Pulse, RequestId,
    RequestRecord, RequestState, Status, StoreError,
};
pub use ikigai_tools::permission::GrantKey;
