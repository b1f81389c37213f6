//! Pure core of ikigai: an agent is the fold of its events.
//!
//! This crate does no I/O, reads no clock and draws no random numbers. Code that needs more of the
//! log returns a query, and its caller supplies the rows.

mod amounts;
mod compose;
pub mod counts;
mod cut;
pub mod data;
pub mod environment_block;
pub mod event;
pub mod file_plan;
pub mod find;
pub mod fork;
mod future;
pub mod grants;
pub mod identity;
pub mod ids;
mod json;
pub mod kind;
pub mod load;
pub mod message;
pub mod names;
pub mod path;
pub mod project;
pub mod query;
pub mod render;
pub mod settings;
pub mod spelling;
pub mod state;
pub mod summary;
pub mod view;
pub mod word_list;
pub mod words;

pub use event::{Event, NewRow, Row};
pub use future::BoxFuture;
pub use identity::PersonName;
pub use ids::{AgentId, Epoch, MachineId, Micros, ProcessId, RowRef, Seq, SessionId};
pub use kind::{Kind, StoredKind, is_conversation_kind};
pub use message::{Block, Message, Role};
pub use path::Path;
pub use project::{Budget, CannotProject, Request, Target, project};
pub use query::{ControlQuery, Direction, PageQuery, Span};
pub use settings::Settings;
pub use state::AgentState;
pub use view::View;
pub use words::EffectClass;
