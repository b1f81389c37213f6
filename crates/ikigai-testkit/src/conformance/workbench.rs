//! Fixture of a check: a store, a session in it, and agents with leases.

use std::sync::Arc;

use ikigai_core::{
    AgentId, ControlQuery, Epoch, Event, NewRow, PageQuery, Row, RowRef, Seq, SessionId, Span,
};
use ikigai_store::{
    AgentRecord, Batch, CommitError, Committed, DraftRecord, Effect, Head, HeadClaim, LeaseClaim,
    Log, MailRecord, NewAgent, SessionRecord,
};

use super::Rig;
use super::samples::{at, create};
use crate::IdSource;

/// A process that works in one session.
pub(super) struct Workbench {
    pub(super) store: Arc<dyn Log>,
    pub(super) session: SessionId,
    pub(super) ids: IdSource,
}

impl Workbench {
    /// Makes the session of a check, as the first process.
    pub(super) async fn first(rig: &dyn Rig) -> Self {
        let ids = IdSource::new(1);
        let desk = Self {
            store: rig.store(),
            session: ids.session(),
            ids,
        };
        let session = Effect::MakeSession(SessionRecord {
            id: desk.session,
            name: "work".to_owned(),
            directory: "/home/ada/work".to_owned(),
            created_at: at(0),
            machine: None,
            host: None,
        });
        desk.done([session]).await;
        desk
    }

    /// Makes the workbench of the second process in the session of the first.
    pub(super) fn second(&self, rig: &dyn Rig) -> Self {
        Self {
            store: rig.second(),
            session: self.session,
            ids: IdSource::new(2),
        }
    }

    /// Returns a new agent of the session, not created yet.
    pub(super) fn new_agent(&self, name: &str) -> NewAgent {
        NewAgent {
            id: self.ids.agent(),
            name: name.to_owned(),
            session: self.session,
            parent: None,
            fork_point: None,
            created_at: at(0),
        }
    }

    /// Makes an agent and holds its lease.
    pub(super) async fn agent(&self, name: &str) -> Holder {
        let agent = self.new_agent(name);
        let id = agent.id;
        self.done([create(agent, true)]).await;
        self.holder(id, Epoch(1), Seq(0))
    }

    /// Creates an agent without a lease.
    pub(super) async fn idle_agent(&self, name: &str) -> AgentId {
        let agent = self.new_agent(name);
        let id = agent.id;
        self.done([create(agent, false)]).await;
        id
    }

    /// Returns the lease as this process believes to hold it.
    pub(super) fn holder(&self, agent: AgentId, epoch: Epoch, head: Seq) -> Holder {
        Holder {
            store: Arc::clone(&self.store),
            agent,
            epoch,
            head,
        }
    }

    /// Commits effects alone.
    pub(super) async fn effects(
        &self,
        effects: impl IntoIterator<Item = Effect>,
    ) -> Result<Committed, CommitError> {
        let with = effects.into_iter().collect();
        self.commit(Vec::new(), Vec::new(), with).await
    }

    /// Commits a batch.
    pub(super) async fn commit(
        &self,
        heads: Vec<HeadClaim>,
        rows: Vec<NewRow>,
        with: Vec<Effect>,
    ) -> Result<Committed, CommitError> {
        self.store.commit(Batch { heads, rows, with }).await
    }

    /// Commits effects alone, which must succeed.
    pub(super) async fn done(&self, effects: impl IntoIterator<Item = Effect>) -> Committed {
        self.effects(effects).await.unwrap()
    }

    /// Returns the record of an existing agent.
    pub(super) async fn record(&self, agent: AgentId) -> AgentRecord {
        self.store.agent(agent).await.unwrap().unwrap()
    }

    /// Returns the draft of an agent.
    pub(super) async fn draft(&self, agent: AgentId) -> Option<DraftRecord> {
        self.store.draft(agent).await.unwrap()
    }

    /// Returns the mail to an agent.
    pub(super) async fn mail(&self, to: AgentId) -> Vec<MailRecord> {
        self.store.mail(to).await.unwrap()
    }

    /// Commits one row without a lease.
    pub(super) async fn lease_free(&self, row: NewRow) -> Result<Committed, CommitError> {
        let (agent, lease) = (row.agent, None);
        let heads = vec![HeadClaim { agent, lease }];
        self.commit(heads, vec![row], Vec::new()).await
    }

    /// Returns newest row and lease of an existing agent.
    pub(super) async fn head(&self, agent: AgentId) -> Head {
        self.store
            .head(agent)
            .await
            .unwrap()
            .expect("the agent is there")
    }

    /// Returns control rows of a span.
    pub(super) async fn control(&self, span: Span, limit: usize) -> Vec<Row> {
        let query = ControlQuery { span, limit };
        self.store.control(query).await.unwrap()
    }

    /// Returns all rows of an agent, oldest first.
    pub(super) async fn rows(&self, agent: AgentId) -> Vec<Row> {
        all_rows(&*self.store, agent).await
    }

    /// Returns the texts of all rows of an agent, oldest first.
    pub(super) async fn texts(&self, agent: AgentId) -> Vec<String> {
        let rows = self.rows(agent).await;
        rows.into_iter()
            .map(|row| row.content.unwrap_or_default())
            .collect()
    }
}

/// Present or past holder of an agent's lease.
#[derive(Clone)]
pub(super) struct Holder {
    pub(super) store: Arc<dyn Log>,
    pub(super) agent: AgentId,
    pub(super) epoch: Epoch,
    /// The newest row it knows of.
    pub(super) head: Seq,
}

impl Holder {
    /// Returns the claim to append after the newest row it knows of.
    pub(super) fn claim(&self) -> HeadClaim {
        let lease = LeaseClaim {
            epoch: self.epoch,
            expected: self.head,
        };
        HeadClaim {
            agent: self.agent,
            lease: Some(lease),
        }
    }

    /// Returns a reference to one of the agent's rows.
    pub(super) fn row(&self, seq: u64) -> RowRef {
        RowRef::new(self.agent, Seq(seq))
    }

    /// Commits rows of this agent with effects.
    pub(super) async fn commit(
        &mut self,
        rows: Vec<NewRow>,
        with: Vec<Effect>,
    ) -> Result<Committed, CommitError> {
        let heads = vec![self.claim()];
        let done = self.store.commit(Batch { heads, rows, with }).await?;
        if let Some(last) = done.rows.last() {
            self.head = last.seq;
        }
        Ok(done)
    }

    /// Appends events, which must succeed.
    pub(super) async fn add(&mut self, events: impl IntoIterator<Item = Event>) {
        self.append(events).await.unwrap();
    }

    /// Appends events.
    pub(super) async fn append(
        &mut self,
        events: impl IntoIterator<Item = Event>,
    ) -> Result<Committed, CommitError> {
        let rows = events
            .into_iter()
            .map(|event| event.into_row(self.agent, at(0)))
            .collect();
        self.commit(rows, Vec::new()).await
    }
}

/// Returns all rows of an agent, oldest first.
pub(super) async fn all_rows(store: &dyn Log, agent: AgentId) -> Vec<Row> {
    let span = Span::new(agent, Seq(1), Seq(i64::MAX as u64));
    let query = PageQuery::oldest(span, usize::MAX);
    store.page(query).await.unwrap()
}

/// Returns the sequence numbers of rows.
pub(super) fn seqs(rows: &[Row]) -> Vec<u64> {
    rows.iter().map(|row| row.at.seq.0).collect()
}

/// Returns the row that `new` should have become.
pub(super) fn stored(new: NewRow, seq: Seq) -> Row {
    Row {
        at: RowRef::new(new.agent, seq),
        kind: ikigai_core::StoredKind::Known(new.kind),
        content: new.content,
        data: new.data,
        created_at: new.created_at,
        author: new.author,
    }
}

/// Asserts that a commit was refused because another process has the lease since `epoch`.
pub(super) fn assert_fenced(
    outcome: &Result<Committed, CommitError>,
    agent: AgentId,
    epoch: Epoch,
) {
    assert_refused!(
        outcome,
        CommitError::Fenced { agent: named, epoch: since }
            if *named == agent && *since == epoch
    );
}
