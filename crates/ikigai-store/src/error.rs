//! Errors of a store, with advice for the user.

use std::path::PathBuf;

use ikigai_core::event::InsertError;
use ikigai_core::{AgentId, Epoch, Seq};
use thiserror::Error;

use crate::records::{MailId, ProcessRecord, Spending};
use crate::server_url::BadUrl;

/// Error of a library below.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Failure of the store.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Another program has kept the database locked for too long.
    #[error("the database is locked by another program")]
    Busy(#[source] BoxError),
    /// There is no room for another row.
    #[error("no space left for the database")]
    Full(#[source] BoxError),
    /// The file or its directory cannot be written.
    #[error("the database is read-only")]
    ReadOnly(#[source] BoxError),
    /// The file is damaged.
    #[error("the database is damaged")]
    Corrupt(#[source] BoxError),
    /// The file is something else.
    #[error("`{path}` is not an ikigai database")]
    NotOurs { path: PathBuf },
    /// Locks on a network file system cannot be relied on.
    #[error("`{path}` is on a network file system ({kind})")]
    NetworkFileSystem { path: PathBuf, kind: &'static str },
    /// The file cannot be written, and cannot be read without writing either.
    #[error("cannot read the database `{path}`: {reason}")]
    Unreadable { path: PathBuf, reason: String },
    /// The place for the file cannot be used.
    #[error("cannot use `{path}` as the database")]
    Place {
        path: PathBuf,
        #[source]
        source: BoxError,
    },
    /// The store was written by a newer program.
    #[error("the database has version {store}; this ikigai supports version {program}")]
    Newer { store: u32, program: u32 },
    /// Another process migrated the store while this one ran.
    #[error(
        "another ikigai migrated the database to version {store}; this one supports version {program}"
    )]
    Migrated { store: u32, program: u32 },
    /// The server or file cannot be reached, or was replaced; it may come back.
    #[error("cannot reach the database at {server}: {reason}")]
    Away { server: String, reason: String },
    /// The server refuses service until an administrator changes something.
    #[error("cannot use the database at {server}: {reason}")]
    Server {
        server: String,
        reason: String,
        advice: &'static str,
    },
    /// The address of a server cannot be used.
    #[error(transparent)]
    Address(#[from] BadUrl),
    /// A stored value makes no sense.
    #[error("the database has an unreadable value: {0}")]
    Value(String),
    /// Reading or writing failed.
    #[error("cannot access the database")]
    Io(#[source] BoxError),
    /// The store was closed.
    #[error("the database is closed")]
    Closed,
}

impl StoreError {
    /// Returns advice for the user.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Busy(_) => "close the program that holds it, or try again",
            Self::Full(_) => "free some disk space and try again; stored events are safe",
            Self::ReadOnly(_) => {
                "make the file and its directory (or the server) writable, or choose \
                 another with --db"
            }
            Self::Corrupt(_) => {
                "do not change the file; restore a backup, then run `ikigai doctor`"
            }
            Self::NotOurs { .. } => "choose another file with --db; this one was not changed",
            Self::NetworkFileSystem { .. } => {
                "choose a local file with --db, or use PostgreSQL (docs/sharing.md)"
            }
            Self::Unreadable { .. } => {
                "copy the database and its -wal file to a writable directory, and use --db"
            }
            Self::Place { .. } => "create the directory, or choose another file with --db",
            Self::Newer { .. } => "install the newer ikigai, or choose another database with --db",
            Self::Migrated { .. } => "restart ikigai; everything stored is safe",
            Self::Away { .. } => "check that the file or server is reachable",
            Self::Server { advice, .. } => advice,
            Self::Address(_) => "write it as postgres://USER@HOST/DATABASE",
            Self::Value(_) => "run `ikigai doctor`",
            Self::Io(_) => "check the disk, then try again",
            Self::Closed => "restart ikigai",
        }
    }
}

/// Reason why a commit failed. No row was stored, except perhaps for [`CommitError::Unknown`].
#[derive(Debug, Error)]
pub enum CommitError {
    /// Another process owns this agent now; stop writing to it.
    #[error("another process owns agent {agent} since epoch {epoch}")]
    Fenced { agent: AgentId, epoch: Epoch },
    /// Rows were added meanwhile; read and apply them, then commit again.
    #[error("agent {agent} is at {actual}, expected {expected}")]
    Behind {
        agent: AgentId,
        expected: Seq,
        actual: Seq,
    },
    /// The lease that was asked for belongs to a living process.
    #[error("agent {agent} is open in another ikigai (pid {} on {})", owner.pid, owner.host)]
    Held {
        agent: AgentId,
        owner: ProcessRecord,
    },
    /// The agent is not in the store.
    #[error("no agent {0}")]
    NoAgent(AgentId),
    /// The agent exists already.
    #[error("agent {0} exists already")]
    AgentExists(AgentId),
    /// The agent is dead.
    #[error("agent {0} has ended")]
    Dead(AgentId),
    /// A living agent has that name.
    #[error("the name `{0}` is taken")]
    NameTaken(String),
    /// The mail was consumed, bounced or withdrawn before.
    #[error("the mail is no longer queued")]
    MailGone(MailId),
    /// The spending cap of an agent is reached.
    #[error("the budget of agent {root} is used up")]
    BudgetReached {
        root: AgentId,
        /// Amount of finished requests.
        spent: Spending,
        /// Estimates of running requests.
        reserved: Spending,
    },
    /// As many agents run below an agent as its budget allows.
    #[error("the budget of agent {root} allows {most} agents, and {running} run")]
    TooManyAgents {
        root: AgentId,
        most: u64,
        running: u64,
    },
    /// The batch contradicts itself; a mistake of the caller.
    #[error("invalid batch: {0}")]
    BadBatch(String),
    /// A row breaks the rule of its kind.
    #[error(transparent)]
    BadRow(#[from] InsertError),
    /// The store failed and nothing was written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The connection broke during the commit, and reading back failed too; read back before
    /// anything else.
    #[error("it is unknown whether the events were stored")]
    Unknown(#[source] BoxError),
}

/// Reason why an engine with errors `E` did not apply a batch.
#[derive(Debug)]
pub(crate) enum BatchRefusal<E> {
    /// The batch was refused; the transaction continues without it.
    Commit(CommitError),
    /// The engine failed; the transaction may be lost.
    Engine(E),
}

impl<E> From<CommitError> for BatchRefusal<E> {
    fn from(error: CommitError) -> Self {
        Self::Commit(error)
    }
}

impl<E> From<StoreError> for BatchRefusal<E> {
    fn from(error: StoreError) -> Self {
        Self::Commit(CommitError::Store(error))
    }
}
