//! The store behind the program, in a file or on a server: what both can do that is no part of the
//! log itself.

use std::io::BufRead;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use ikigai_store::portable::{RestoreError, Restored};
use ikigai_store::postgres::ServerReport;
use ikigai_store::sql::{QueryError, QueryLimits, Table};
use ikigai_store::{CommitError, PostgresStore, ProcessRecord, SqliteStore, Store, StoreError};
use ikigai_store::{history, postgres, sqlite};

use crate::place::Place;
use crate::world::runtime;

/// A store that is open.
#[derive(Clone)]
pub(crate) enum Kept {
    /// In a file.
    File(Arc<SqliteStore>),
    /// On a server.
    Server(Arc<PostgresStore>),
}

/// Purpose for which a command opens the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreUse {
    /// Reading and writing.
    Work,
    /// Reading only.
    Reading,
}

impl Kept {
    /// Opens it, creating it if it is missing. For reading, a file that cannot be written will do.
    pub(crate) fn open(
        place: &Place,
        process: ProcessRecord,
        store_use: StoreUse,
    ) -> Result<Self, StoreError> {
        Ok(match place {
            Place::File(path) => {
                let mut options = sqlite::OpenOptions::new(path, process);
                if store_use == StoreUse::Reading {
                    options = options.reading();
                }
                Self::File(Arc::new(SqliteStore::open(options)?))
            }
            Place::Server { url, .. } => {
                let options = postgres::OpenOptions::new(url.clone(), process);
                Self::Server(Arc::new(PostgresStore::open(options)?))
            }
        })
    }

    /// The log.
    pub(crate) fn log(&self) -> Arc<dyn Store> {
        match self {
            Self::File(store) => store.clone(),
            Self::Server(store) => store.clone(),
        }
    }

    /// What is wrong with what is stored, if anything is.
    pub(crate) async fn integrity(&self) -> Result<Vec<String>, StoreError> {
        match self {
            Self::File(store) => store.integrity().await,
            Self::Server(store) => store.integrity().await,
        }
    }

    /// Answers a question of the user's own.
    pub(crate) fn query(&self, sql: &str, limits: QueryLimits) -> Result<Table, QueryError> {
        match self {
            Self::File(store) => store.query(sql, limits),
            Self::Server(store) => store.query(sql, limits),
        }
    }

    /// How the server is, if there is one.
    pub(crate) async fn report(&self) -> Option<Result<ServerReport, StoreError>> {
        match self {
            Self::File(_) => None,
            Self::Server(store) => Some(store.report().await),
        }
    }

    /// Takes in a log that was told as lines of JSON. Blocks.
    pub(crate) fn restore(&self, lines: impl BufRead) -> Result<Restored, RestoreError> {
        let restored = match self {
            Self::File(store) => store.restore(lines),
            Self::Server(store) => store.restore(lines),
        };
        restored.inspect(|restored| self.store_snapshots(restored))
    }

    /// The same, but only if this store holds nothing.
    pub(crate) fn restore_alone(&self, lines: impl BufRead) -> Result<Restored, RestoreError> {
        let restored = match self {
            Self::File(store) => store.restore_alone(lines),
            Self::Server(store) => store.restore_alone(lines),
        };
        restored.inspect(|restored| self.store_snapshots(restored))
    }

    /// Saves whoever opens these agents from reading all that ever set something. Where it fails,
    /// they only take longer to open.
    fn store_snapshots(&self, restored: &Restored) {
        let Ok(runtime) = runtime() else {
            return;
        };
        let log = self.log();
        let stored = runtime.block_on(async {
            for agent in &restored.agents {
                history::store_snapshots(&*log, *agent).await?;
            }
            Ok::<(), CommitError>(())
        });
        if let Err(error) = stored {
            tracing::warn!(error = %error, "snapshots of what was taken in are missing");
        }
    }

    /// Throws the search index away.
    pub(crate) async fn forget_index(&self) -> Result<u64, StoreError> {
        match self {
            Self::File(store) => store.forget_index().await,
            Self::Server(store) => store.forget_index().await,
        }
    }

    /// Finishes queued writes and closes the store, unless that takes longer than `within`.
    ///
    /// A transaction that is cut off is rolled back, and its turn is settled by the next process.
    pub(crate) fn close_within(&self, within: Duration) {
        let (sender, closed) = mpsc::channel();
        let kept = self.clone();
        let closing = thread::Builder::new().spawn(move || {
            kept.close();
            // The receiver is gone if this took too long.
            let _ = sender.send(());
        });
        match closing {
            Ok(_) => drop(closed.recv_timeout(within)),
            Err(_) => self.close(),
        }
    }

    /// Finishes queued writes and closes the store.
    pub(crate) fn close(&self) {
        match self {
            Self::File(store) => store.close(),
            Self::Server(store) => store.close(),
        }
    }
}
