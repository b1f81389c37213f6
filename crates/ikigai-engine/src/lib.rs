//! The running agents: a handler looks at state and decides events; they are stored, then applied,
//! and only then acted upon.

mod agents;
mod asked;
mod attend;
mod called;
mod calls;
pub mod commands;
mod context;
mod cost;
mod documents;
mod engine;
mod environment;
mod error;
pub mod export;
pub mod figures;
mod follow;
mod front;
mod grants;
mod recall;
mod response;
pub mod search;
mod sessions;
mod settle;
mod stopped;
mod submissions;
mod tools;
mod turn;
mod turn_figures;
mod window;
mod worker;

pub use agents::{
    Branch, Errand, ForkWish, Forked, MergeOf, MergePreview, Observer, Opening, UseObserver, since,
};
pub use asked::Asked;
pub use called::Called;
pub use commands::TerminalRun;
pub use context::{Context, ContextEstimate, ContextTurn};
pub use cost::{Cap, Cost, CostBy, Share};
pub use engine::{Crowd, Engine};
pub use environment::{Environment, POINTS, System};
pub use error::EngineError;
pub use follow::{Follow, Followed};
pub use front::{Answer, Desk, INTENTS, Intent, Outcome, Question, Stop, Submission, Update};
pub use sessions::SessionEntry;
pub use stopped::{Resume, Stopped, TurnEnd};
pub use tools::{Blank, Probe, Safety, Tools};
pub use turn::Limits;
pub use turn_figures::TurnFigures;
pub use worker::Worker;

// What front ends read, so that they need not know where it lies.
pub use ikigai_providers::{Offer, TypedKey, looks_like_key};
pub use ikigai_store::{
    Agent, AgentError, AgentRecord, CommitError, MailId, ProcessRecord, Pulse, Status, StoreError,
};
pub use ikigai_tools::permission::GrantKey;
