//! The event log of ikigai: one way to write, several to read, the same on every engine.
//!
//! Modules, each of which uses only earlier ones:
//!
//! 1. `records`, `outline`, `search`, `sql`, `sql_common`, `faults`, `server_report`, `server_url`: values
//! 2. `error`, `batch`, `changes`, `watch`, `portable`: errors, the unit of writing, notifications, dumps
//! 3. `log`: the traits [`ReadLog`], [`Log`] and [`Admin`]
//! 4. `blobs`, `history`, `tally`: functions on any store
//! 5. `transaction`: the rules by which every engine commits a batch
//! 6. `sqlite`, `postgres`: the engines
//! 7. `legacy`: the import of the C program's database

pub mod batch;
pub mod blobs;
mod changes;
pub mod error;
mod faults;
pub mod history;
pub mod legacy;
mod log;
pub mod outline;
pub mod portable;
pub mod postgres;
pub mod records;
pub mod search;
mod server_report;
mod server_url;
pub mod sql;
mod sql_common;
pub mod sqlite;
pub mod tally;
pub mod transaction;
mod watch;

pub use batch::{
    AgentEffect, Batch, BudgetEffect, Committed, DraftEffect, Effect, HeadClaim, JobEffect,
    LeaseClaim, LeaseEffect, MailEffect, NewAgent, RequestEffect, RunEffect, SessionMove,
    SpendingLimit,
};
pub use changes::LogChanges;
pub use error::{CommitError, StoreError};
pub use history::{Agent, AgentError};
pub use log::{Admin, BoxFuture, Log, MOST_NAMESAKES, ReadFuture, ReadLog};
pub use outline::{AgentOutline, TurnRow};
pub use postgres::PostgresStore;
pub use records::{
    AgentRecord, Ancestry, BlobHash, DraftRecord, EffectClass, Head, JobRecord, MailId, MailOrigin,
    MailRecord, MailState, MailTopic, ProcessRecord, Pulse, RequestId, RequestRecord, RequestState,
    ReservationId, RestorePoint, RunId, RunRecord, SeenMark, SessionRecord, Snapshot, Spending,
    Status,
};
pub use search::{Hit, SearchCursor, SearchPage, SearchQuery, SortOrder};
pub use server_report::ServerReport;
pub use sqlite::SqliteStore;
pub use watch::{Watch, WatchedChanges};
