//! The event log of ikigai: one way to write, several to read, the same on every engine.

pub mod batch;
pub mod blobs;
pub mod error;
mod faults;
pub mod history;
pub mod legacy;
mod log;
mod numbers;
pub mod portable;
pub mod postgres;
pub mod records;
pub mod search;
mod selects;
mod server_report;
pub mod sql;
pub mod sqlite;
pub mod tally;
pub mod transaction;
mod watch;

pub use batch::{
    AgentEffect, Batch, Committed, DraftEffect, Effect, HeadClaim, LeaseClaim, LeaseEffect,
    MailEffect, NewAgent, RunEffect,
};
pub use error::{CommitError, StoreError};
pub use history::{Agent, AgentError};
pub use log::{Admin, BoxFuture, Log, ReadFuture, ReadLog};
pub use postgres::PostgresStore;
pub use records::{
    AgentRecord, Ancestry, BlobHash, Draft, EffectClass, Head, MailId, MailRecord, MailState,
    ProcessRecord, Pulse, RestorePoint, RunId, RunRecord, SessionRecord, Snapshot, Status,
};
pub use search::{Cursor, Hit, Order, SearchPage, SearchQuery};
pub use server_report::ServerReport;
pub use sqlite::SqliteStore;
pub use watch::Watch;
