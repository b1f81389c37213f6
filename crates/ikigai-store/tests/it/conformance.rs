//! The suite that every engine passes, run on SQLite.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use ikigai_core::{AgentId, RowRef, Seq};
use ikigai_store::Log;
use ikigai_testkit::conformance::Rig;
use rusqlite::{Connection, params};
use tempfile::TempDir;

use crate::support::open;

struct SqliteRig {
    _directory: TempDir,
    path: PathBuf,
    store: Arc<dyn Log>,
    second: Mutex<Option<Arc<dyn Log>>>,
}

impl SqliteRig {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.db");
        Self {
            store: Arc::new(open(&path, 1).unwrap()),
            _directory: directory,
            path,
            second: Mutex::new(None),
        }
    }
}

impl Rig for SqliteRig {
    fn store(&self) -> Arc<dyn Log> {
        Arc::clone(&self.store)
    }

    fn second(&self) -> Arc<dyn Log> {
        let mut second = self.second.lock().unwrap();
        let store = second.get_or_insert_with(|| Arc::new(open(&self.path, 2).unwrap()));
        Arc::clone(store)
    }

    fn kill_second(&self) {
        self.second.lock().unwrap().take();
    }

    fn inject(
        &self,
        agent: AgentId,
        kind_name: &str,
        content: Option<&str>,
        data: Option<&str>,
        control: bool,
    ) -> RowRef {
        let connection = Connection::open(&self.path).unwrap();
        let seq: u64 = connection
            .query_row(
                "UPDATE heads SET seq = seq + 1
                 WHERE agent = (SELECT id FROM agents WHERE uuid = ?1) RETURNING seq",
                [agent.to_string()],
                |row| row.get::<_, i64>(0),
            )
            .unwrap()
            .try_into()
            .unwrap();
        connection
            .execute(
                "INSERT INTO messages (agent, seq, kind, control, created_at, content, data)
                 SELECT id, ?2, ?3, ?4, 9, ?5, ?6 FROM agents WHERE uuid = ?1",
                params![
                    agent.to_string(),
                    seq.cast_signed(),
                    kind_name,
                    control,
                    content,
                    data
                ],
            )
            .unwrap();
        RowRef::new(agent, Seq(seq))
    }
}

ikigai_testkit::store_conformance!(SqliteRig::new());
