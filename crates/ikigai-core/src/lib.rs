//! The pure heart of ikigai: an agent is the fold of its events.
//!
//! Nothing here does I/O, reads a clock or draws random numbers. Whoever needs more of the log
//! than is in memory is told by a value what to read, and hands the rows in.

pub mod data;
pub mod event;
pub mod ids;
pub mod kind;
pub mod query;
pub mod settings;

pub use event::{Event, NewRow, Row};
pub use ids::{AgentId, Epoch, Micros, ProcessId, RowRef, Seq, SessionId};
pub use kind::{Kind, StoredKind, is_conversation_kind};
pub use query::{ControlQuery, Direction, PageQuery, Span};
pub use settings::Settings;
