//! The memory store passes the suite of all stores, and what only it can do.

use std::sync::Arc;

use ikigai_core::{AgentId, RowRef};
use ikigai_store::Store;
use ikigai_testkit::conformance::Rig;
use ikigai_testkit::{IdSource, MemoryStore, store_conformance};

struct MemoryRig {
    first: MemoryStore,
    second: MemoryStore,
}

impl MemoryRig {
    fn new() -> Self {
        let ids = IdSource::new(0);
        let first = MemoryStore::new(ids.process());
        let second = first.other_process(ids.process());
        Self { first, second }
    }
}

impl Rig for MemoryRig {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.first.clone())
    }

    fn second(&self) -> Arc<dyn Store> {
        Arc::new(self.second.clone())
    }

    fn kill_second(&self) {
        self.second.die();
    }

    fn inject(
        &self,
        agent: AgentId,
        kind_name: &str,
        content: Option<&str>,
        data: Option<&str>,
        control: bool,
    ) -> RowRef {
        self.first.inject(agent, kind_name, content, data, control)
    }
}

store_conformance!(MemoryRig::new());
