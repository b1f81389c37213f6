//! The suite that every engine passes, run on PostgreSQL.

use std::sync::{Arc, Mutex};

use ikigai_core::{AgentId, RowRef, Seq};
use ikigai_store::Log;
use ikigai_testkit::conformance::Rig;
use ikigai_testkit::postgres::Database;

use super::open;

struct PostgresRig {
    store: Arc<dyn Log>,
    second: Mutex<Option<Arc<dyn Log>>>,
    database: Database,
}

impl PostgresRig {
    fn new() -> Self {
        let database = Database::fresh();
        Self {
            store: Arc::new(open(&database, 1).unwrap()),
            second: Mutex::new(None),
            database,
        }
    }
}

impl Rig for PostgresRig {
    fn store(&self) -> Arc<dyn Log> {
        Arc::clone(&self.store)
    }

    fn second(&self) -> Arc<dyn Log> {
        let mut second = self.second.lock().unwrap();
        let store = second.get_or_insert_with(|| Arc::new(open(&self.database, 2).unwrap()));
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
        let text = |text: Option<&str>| {
            text.map_or("NULL".to_owned(), |text| {
                format!("'{}'", text.replace('\'', "''"))
            })
        };
        let rows = self.database.sql(&format!(
            "WITH moved AS (
                 UPDATE heads SET seq = seq + 1
                 WHERE agent = (SELECT id FROM agents WHERE uuid = '{agent}')
                 RETURNING agent, seq)
             INSERT INTO messages (agent, seq, kind, control, created_at, content, data)
             SELECT agent, seq, {}, {control}, 9, {}, {} FROM moved RETURNING seq",
            text(Some(kind_name)),
            text(content),
            text(data)
        ));
        let seq = rows[0][0].as_deref().unwrap().parse().unwrap();
        RowRef::new(agent, Seq(seq))
    }
}

ikigai_testkit::store_conformance!(PostgresRig::new());
