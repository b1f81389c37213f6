//! Store of the program, in a file or on a server.

use std::io::BufRead;
use std::ops::Deref;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use ikigai_store::portable::{RestoreError, RestoreMode, Restored};
use ikigai_store::{
    Admin, CommitError, Log, PostgresStore, ProcessRecord, SqliteStore, StoreError,
};
use ikigai_store::{history, postgres, sqlite};

use crate::runtime::runtime;
use crate::store_location::StoreLocation;

/// Open store of either engine.
#[derive(Clone)]
pub(crate) struct AnyStore(Arc<dyn Admin>);

/// Purpose for which a command opens the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreUse {
    /// Reading and writing.
    Work,
    /// Reading only.
    Reading,
}

impl Deref for AnyStore {
    type Target = dyn Admin;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl AnyStore {
    /// Opens the store, creating it if it is missing.
    ///
    /// For reading, a file without write permission is accepted.
    pub(crate) fn open(
        place: &StoreLocation,
        process: ProcessRecord,
        store_use: StoreUse,
    ) -> Result<Self, StoreError> {
        Ok(match place {
            StoreLocation::File(path) => {
                let mut options = sqlite::SqliteOptions::new(path, process);
                if store_use == StoreUse::Reading {
                    options = options.reading();
                }
                Self(Arc::new(SqliteStore::open(options)?))
            }
            StoreLocation::Server { url, .. } => {
                let options = postgres::PostgresOptions::new(url.clone(), process);
                Self(Arc::new(PostgresStore::open(options)?))
            }
        })
    }

    /// Returns the log, for the engine.
    pub(crate) fn log(&self) -> Arc<dyn Log> {
        self.0.clone()
    }

    /// Restores a dumped log with snapshots of its agents. Blocks.
    pub(crate) fn restore(
        &self,
        mut lines: impl BufRead,
        mode: RestoreMode,
    ) -> Result<Restored, RestoreError> {
        let restored = self.0.restore(&mut lines, mode);
        restored.inspect(|restored| self.store_snapshots(restored))
    }

    /// Stores snapshots, so that opening these agents reads few control rows.
    ///
    /// If it fails, the agents only take longer to open.
    fn store_snapshots(&self, restored: &Restored) {
        let Ok(runtime) = runtime() else {
            return;
        };
        let stored = runtime.block_on(async {
            for agent in &restored.agents {
                history::store_snapshots(&*self.0, *agent).await?;
            }
            Ok::<(), CommitError>(())
        });
        if let Err(error) = stored {
            tracing::warn!(error = %error, "cannot store snapshots of imported agents");
        }
    }

    /// Finishes queued writes and closes the store, unless that takes longer than `within`.
    ///
    /// An unfinished transaction is rolled back, and the next process settles its turn.
    pub(crate) fn close_within(&self, within: Duration) {
        let (sender, closed) = mpsc::channel();
        let store = self.clone();
        let closing = thread::Builder::new().spawn(move || {
            store.close();
            // The receiver is gone if this took too long.
            let _ = sender.send(());
        });
        match closing {
            Ok(_) => drop(closed.recv_timeout(within)),
            Err(_) => self.close(),
        }
    }
}
