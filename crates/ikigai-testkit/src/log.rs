//! A log for tests: agents in memory that are written to a store at the same time.

use std::collections::BTreeMap;

use ikigai_core::data::ForkContext;
use ikigai_core::fork::{ForkOrder, fork_events};
use ikigai_core::project::assemble;
use ikigai_core::state::Applied;
use ikigai_core::{
    AgentId, AgentState, Budget, CannotProject, Epoch, Event, Micros, Request, Row, RowRef, Seq,
    SessionId, Target, project,
};
use ikigai_store::{
    Agent, AgentEffect, Batch, Effect, HeadClaim, LeaseClaim, Log, NewAgent, SessionRecord, history,
};
use serde_json::Map;

use crate::{IdSource, MemoryStore, block_on};

/// Agents over a [`MemoryStore`], each also live in memory.
///
/// Every row is committed, then applied, as a running program does, so tests can compare the live
/// agent with one replayed from the store.
pub struct TestLog {
    /// The store, for direct access.
    pub store: MemoryStore,
    /// Source of ids.
    pub ids: IdSource,
    session: SessionId,
    live: BTreeMap<AgentId, Agent>,
    now: i64,
}

impl Default for TestLog {
    fn default() -> Self {
        Self::new(1)
    }
}

impl TestLog {
    /// Makes an empty log whose ids are drawn from `seed`.
    pub fn new(seed: u64) -> Self {
        let ids = IdSource::new(seed);
        let store = MemoryStore::new(ids.process());
        let session = ids.session();
        let make = Effect::MakeSession(SessionRecord {
            id: session,
            name: "test".to_owned(),
            directory: "/test".to_owned(),
            created_at: Micros(0),
            machine: None,
            host: None,
        });
        block_on(store.commit(Batch {
            with: vec![make],
            ..Batch::default()
        }))
        .unwrap();
        Self {
            store,
            ids,
            session,
            live: BTreeMap::new(),
            now: 0,
        }
    }

    fn tick(&mut self) -> Micros {
        self.now += 1;
        Micros(self.now)
    }

    /// Makes a root agent without rows.
    pub fn root(&mut self) -> AgentId {
        let id = self.ids.agent();
        let agent = self.new_agent(id, &format!("root-{}", self.live.len()), None, None);
        let effect = Effect::Agent(AgentEffect::Create { agent, owned: true });
        block_on(self.store.commit(Batch {
            with: vec![effect],
            ..Batch::default()
        }))
        .unwrap();
        self.live.insert(id, Agent::new(id));
        id
    }

    fn new_agent(
        &mut self,
        id: AgentId,
        name: &str,
        parent: Option<AgentId>,
        fork_point: Option<RowRef>,
    ) -> NewAgent {
        NewAgent {
            id,
            name: name.to_owned(),
            session: self.session,
            parent,
            fork_point,
            created_at: self.tick(),
        }
    }

    /// Returns all agents, in the order of their ids.
    pub fn agents(&self) -> Vec<AgentId> {
        self.live.keys().copied().collect()
    }

    /// Commits an event of an agent, then applies it, as the program does.
    pub fn append(&mut self, agent: AgentId, event: Event) -> RowRef {
        self.append_all(agent, vec![event])[0]
    }

    /// Commits several events of an agent in one transaction, then applies them.
    pub fn append_all(&mut self, agent: AgentId, events: Vec<Event>) -> Vec<RowRef> {
        let at = self.tick();
        let batch = Batch {
            heads: vec![self.claim(agent)],
            rows: events
                .into_iter()
                .map(|event| event.into_row(agent, at))
                .collect(),
            with: Vec::new(),
        };
        let rows = block_on(self.store.commit(batch)).unwrap().rows;
        for row in &rows {
            self.apply_stored(*row);
        }
        rows
    }

    fn claim(&self, agent: AgentId) -> HeadClaim {
        let lease = LeaseClaim {
            epoch: Epoch(1),
            expected: self.live[&agent].state.head(),
        };
        HeadClaim {
            agent,
            lease: Some(lease),
        }
    }

    /// Appends a raw row without any check, and applies it.
    pub fn inject(
        &mut self,
        agent: AgentId,
        kind: &str,
        content: Option<&str>,
        data: Option<&str>,
        control: bool,
    ) -> Applied {
        let row = self.store.inject(agent, kind, content, data, control);
        self.apply_stored(row)
    }

    fn apply_stored(&mut self, at: RowRef) -> Applied {
        let row = self.row(at);
        let live = self
            .live
            .get_mut(&at.agent)
            .expect("the agent was made here");
        block_on(live.apply(&self.store, row)).unwrap()
    }

    /// Returns a stored row.
    pub fn row(&self, at: RowRef) -> Row {
        block_on(history::row_at(&self.store, at))
            .unwrap()
            .expect("the row is stored")
    }

    /// Returns all rows of an agent, in order.
    pub fn rows(&self, agent: AgentId) -> Vec<Row> {
        let head = self.live[&agent].state.head();
        (1..=head.0)
            .map(|seq| self.row(RowRef::new(agent, Seq(seq))))
            .collect()
    }

    /// Makes default arguments of a fork, which a test can change.
    pub fn order(&self, name: &str) -> ForkOrder {
        ForkOrder {
            child: self.ids.agent(),
            name: name.to_owned(),
            context: ForkContext::Inherit,
            at: None,
            set: Map::new(),
            call: None,
            prompt: None,
            system: None,
        }
    }

    /// Forks in one transaction, as the program does.
    pub fn fork(&mut self, parent: AgentId, order: ForkOrder) -> AgentId {
        let child = order.child;
        let name = order.name.clone();
        let parent_name = self.live[&parent].state.settings().name.clone();
        let parent_name = parent_name.unwrap_or_else(|| "parent".to_owned());
        let events = fork_events(&self.live[&parent].state, &parent_name, order);
        let at = self.tick();
        let agent = self.new_agent(child, &name, Some(parent), events.fork_point);
        let first = LeaseClaim {
            epoch: Epoch(1),
            expected: Seq(0),
        };
        let child_rows = events
            .child
            .into_iter()
            .map(|event| event.into_row(child, at));
        let parent_row = events.parent.into_row(parent, at);
        let batch = Batch {
            heads: vec![
                self.claim(parent),
                HeadClaim {
                    agent: child,
                    lease: Some(first),
                },
            ],
            rows: std::iter::once(parent_row).chain(child_rows).collect(),
            with: vec![Effect::Agent(AgentEffect::Create { agent, owned: true })],
        };
        let rows = block_on(self.store.commit(batch)).unwrap().rows;
        self.live.insert(child, Agent::new(child));
        for row in rows {
            self.apply_stored(row);
        }
        child
    }

    /// Returns the live agent, resolved only as far as it needed.
    pub fn peek(&self, agent: AgentId) -> &Agent {
        &self.live[&agent]
    }

    /// Replaces the live agent by one that a new process restored.
    pub fn restart(&mut self, agent: AgentId) {
        let restored = block_on(Agent::restore(&self.store, agent)).unwrap();
        self.live.insert(agent, restored);
    }

    /// Reads at most `rows` older rows of the live agent, as a scrolled screen does.
    pub fn look_back(&mut self, agent: AgentId, rows: usize) {
        let live = self.live.get_mut(&agent).expect("the agent was made here");
        block_on(live.lengthen(&self.store, rows)).unwrap();
    }

    /// Drops all but the newest `keep` rows of the live agent from memory.
    pub fn forget(&mut self, agent: AgentId, keep: usize) {
        let live = self.live.get_mut(&agent).expect("the agent was made here");
        live.view.shorten(keep);
    }

    /// Returns the live agent with its whole path and all its rows.
    pub fn live(&self, agent: AgentId) -> Agent {
        let mut live = self.live[&agent].clone();
        self.complete(&mut live);
        live
    }

    /// Returns the agent as a new process restores it, with path and all rows.
    pub fn replayed(&self, agent: AgentId) -> Agent {
        let mut replayed = block_on(Agent::restore(&self.store, agent)).unwrap();
        self.complete(&mut replayed);
        replayed
    }

    /// Returns the state that a new process restores; rows are not read.
    pub fn replayed_state(&self, agent: AgentId) -> AgentState {
        block_on(Agent::restore(&self.store, agent)).unwrap().state
    }

    fn complete(&self, agent: &mut Agent) {
        block_on(agent.know_all(&self.store)).unwrap();
        block_on(agent.read_all(&self.store)).unwrap();
    }

    /// Returns the request of the agent's next turn to `target`, with plenty of room.
    pub fn request(&self, agent: AgentId, target: &Target) -> Result<Request, CannotProject> {
        let agent = self.replayed(agent);
        project(
            &agent.state,
            &agent.view,
            target,
            &Budget::new(u64::MAX, None),
        )
    }

    /// Returns the contents of a request at this moment, even without a message to answer.
    pub fn assembled(&self, agent: AgentId, target: &Target) -> Request {
        let agent = self.replayed(agent);
        assemble(
            &agent.state,
            &agent.view,
            target,
            &Budget::new(u64::MAX, None),
        )
        .unwrap()
    }
}

/// Makes a target with a provider and model that exist only in tests.
pub fn target(provider: &str, model: &str) -> Target {
    Target {
        provider: provider.to_owned(),
        model: model.to_owned(),
        ..Target::default()
    }
}
