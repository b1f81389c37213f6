//! A worker holds one agent's lease and is the only one that writes its rows.

use ikigai_core::data::{
    self, Amounts, AssistantData, Cause, CommandData, ToolCallData, UsageData,
};
use ikigai_core::settings::{Approve, ModelChoice};
use ikigai_core::{
    AgentId, Direction, Epoch, Event, Kind, Micros, NewRow, PageQuery, Row, RowRef, Seq, Settings,
    Span, StoredKind,
};
use ikigai_store::history::CONTROL_ROWS_PER_SNAPSHOT;
use ikigai_store::{
    Agent, AgentRecord, Batch, CommitError, Effect, HeadClaim, LeaseClaim, Log, Snapshot, history,
};
use ikigai_tools::output::MOST_SENT_BYTES;

use crate::agents::Started;
use crate::frontend::{Stop, Update};
use crate::grants::awaits_tag;
use crate::turn::Summary;
use crate::{Engine, EngineError};

/// How many rows are read at a time when catching up or looking back.
const PAGE_ROWS: usize = 64;

/// How far back the numbers of the newest response are looked for.
const LOOK_BACK_ROWS: u64 = 4096;

/// How often a commit is tried against others who append lease-free rows at the same time.
const MOST_RACES: usize = 64;

/// Effects that go with rows, given the row before the first of them.
pub(crate) type EffectsAt<'a> = &'a (dyn Fn(Seq) -> Vec<Effect> + Sync);

/// What is stored together with an agent's own rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beside {
    /// Other agents whose logs grow.
    pub(crate) heads: Vec<HeadClaim>,
    /// Their rows.
    pub(crate) rows: Vec<NewRow>,
    /// What else becomes true.
    pub(crate) with: Vec<Effect>,
}

/// What goes with rows, given the row before the first of them.
pub(crate) type BesideAt<'a> = &'a (dyn Fn(Seq) -> Beside + Sync);

/// Rows that are to be stored.
pub(crate) struct Attempt {
    rows: Vec<NewRow>,
    /// Events whose tags depend on their rows' positions, by index of the row.
    granting: Vec<(usize, Event)>,
    /// They may be stored already, after this one.
    perhaps_after: Option<Seq>,
}

impl Attempt {
    /// Sets the time of the last row, if one is given.
    pub(crate) fn date_last(&mut self, at: Option<Micros>) {
        if let (Some(row), Some(at)) = (self.rows.last_mut(), at) {
            row.created_at = at;
        }
    }
}

/// A living agent.
pub struct Worker {
    pub(crate) engine: Engine,
    pub(crate) agent: Agent,
    pub(crate) epoch: Epoch,
    pub(crate) tally: Tally,
    /// What tools may do without asking in this process, if it is not what the settings say.
    pub(crate) approve: Option<Approve>,
    /// Those that it started and that have not ended their work yet.
    pub(crate) children: Vec<Started>,
    /// The summary that is being written beside its work.
    pub(crate) summary: Option<Summary>,
    /// Most bytes that the model is given of each result of the newest response.
    pub(crate) result_bytes: usize,
    /// Summaries that failed one after the other.
    pub(crate) summary_failures: u32,
    /// Why its last turn was stopped, if it was.
    pub(crate) stopped: Option<Stop>,
    /// What was stored to settle a former process's work and was not told yet.
    pub(crate) settled: Vec<Row>,
    /// A turn has begun and was not brought to its end: it failed, or was dropped.
    pub(crate) unsettled: bool,
    /// Who gave that turn up, because the store did not come back.
    pub(crate) gave_up: Option<Cause>,
    control_rows: usize,
}

impl Worker {
    /// Reads the agent whose lease was taken at `epoch`.
    pub(crate) async fn begin(
        engine: Engine,
        agent: AgentId,
        epoch: Epoch,
    ) -> Result<Self, EngineError> {
        let agent = Agent::restore(engine.store(), agent).await?;
        let newest = RowRef::new(agent.state.agent(), agent.state.head());
        let tally = Tally::read(engine.store(), newest).await?;
        // Counted on from what former workers left, each of which may have stored a few only.
        let most = CONTROL_ROWS_PER_SNAPSHOT;
        let control_rows =
            history::control_rows_since_snapshot(engine.store(), newest, most).await?;
        Ok(Self {
            engine,
            agent,
            epoch,
            tally,
            approve: None,
            children: Vec::new(),
            summary: None,
            result_bytes: MOST_SENT_BYTES,
            summary_failures: 0,
            stopped: None,
            settled: Vec::new(),
            unsettled: false,
            gave_up: None,
            control_rows,
        })
    }

    /// Whom it keeps alive.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Puts the columns of the agent's row right where they differ from its log, which wins.
    pub(crate) async fn mend_columns(&mut self, found: &AgentRecord) -> Result<(), EngineError> {
        let state = &self.agent.state;
        let mut with = Vec::new();
        if let Some(name) = state.settings().name.clone()
            && name != found.name
        {
            with.push(Effect::SetName {
                agent: found.id,
                name,
            });
        }
        let fork = state.fork().cloned().unwrap_or_default();
        let (parent, fork_point) = (fork.parent_uuid, state.inherits_from());
        if (parent, fork_point) != (found.parent, found.fork_point) {
            with.push(Effect::SetOrigin {
                agent: found.id,
                parent,
                fork_point,
            });
        }
        for effect in with {
            match self.commit(Vec::new(), vec![effect]).await {
                // Somebody else has the name by now, or the log names what is not there. The
                // columns are only a cache, so the agent goes on.
                Err(EngineError::Commit(
                    CommitError::NameTaken(_) | CommitError::BadBatch(_) | CommitError::NoAgent(_),
                )) => {}
                other => drop(other?),
            }
        }
        Ok(())
    }

    /// Lets tools do so much without asking, as long as this worker holds the agent. The log tells
    /// that it was so.
    pub async fn approve_for_now(&mut self, mode: Approve) -> Result<Vec<Row>, EngineError> {
        let data = CommandData {
            command: Some("approve".to_owned()),
            args: Some(format!("{} for now", mode.word())),
            ..CommandData::default()
        };
        let rows = self
            .commit(vec![Event::Command { output: None, data }], Vec::new())
            .await?;
        self.approve = Some(mode);
        Ok(rows)
    }

    /// Answers with another model from the next request on.
    pub async fn choose_model(&mut self, choice: ModelChoice) -> Result<Vec<Row>, EngineError> {
        if self.agent.state.settings().model.as_ref() == Some(&choice) {
            return Ok(Vec::new());
        }
        let settings = Settings {
            model: Some(choice),
            ..Settings::default()
        };
        self.commit(vec![Event::set("model", settings.as_set())], Vec::new())
            .await
    }

    /// Stores events, then applies them. Returns the rows; nothing has happened if it fails.
    pub(crate) async fn commit(
        &mut self,
        events: Vec<Event>,
        with: Vec<Effect>,
    ) -> Result<Vec<Row>, EngineError> {
        self.commit_at(events, &|_| with.clone()).await
    }

    /// The same, with effects that name the places of the rows: they are given the head.
    pub(crate) async fn commit_at(
        &mut self,
        events: Vec<Event>,
        with: EffectsAt<'_>,
    ) -> Result<Vec<Row>, EngineError> {
        let beside = |head| Beside {
            with: with(head),
            ..Beside::default()
        };
        self.commit_beside(events, &beside).await
    }

    /// The same, together with rows of other agents: they are given the head.
    pub(crate) async fn commit_beside(
        &mut self,
        events: Vec<Event>,
        beside: BesideAt<'_>,
    ) -> Result<Vec<Row>, EngineError> {
        let mut attempt = self.attempt(events);
        self.try_commit(&mut attempt, beside).await
    }

    /// Makes the rows of events, which may then be offered to the store more than once.
    pub(crate) fn attempt(&self, events: Vec<Event>) -> Attempt {
        let id = self.agent.state.agent();
        let now = self.engine.environment.now();
        let granting = events.iter().enumerate();
        let granting = granting.filter(|(_, event)| awaits_tag(event));
        let granting = granting.map(|(index, event)| (index, event.clone()));
        let granting = granting.collect();
        let rows = events.into_iter().map(|event| event.into_row(id, now));
        Attempt {
            rows: rows.collect(),
            granting,
            perhaps_after: None,
        }
    }

    /// Stores rows, then applies them. If it fails it may be tried again: what may be stored
    /// already is read back first.
    pub(crate) async fn try_commit(
        &mut self,
        attempt: &mut Attempt,
        beside: BesideAt<'_>,
    ) -> Result<Vec<Row>, EngineError> {
        for _ in 0..MOST_RACES {
            if let Some(after) = attempt.perhaps_after {
                if self.is_stored(after, &attempt.rows).await? {
                    return self.apply(after, &attempt.rows).await;
                }
                attempt.perhaps_after = None;
            }
            let expected = self.agent.state.head();
            self.tag_attempt(attempt, expected);
            let batch = self.batch(&attempt.rows, beside(expected));
            let sends = |effect: &Effect| matches!(effect, Effect::SendMail { .. });
            let mails = batch.with.iter().any(sends);
            match self.engine.store.commit(batch).await {
                Ok(_) => {
                    if mails {
                        self.engine.hub.bump();
                    }
                    attempt.perhaps_after = Some(expected);
                    return self.apply(expected, &attempt.rows).await;
                }
                Err(CommitError::Behind { .. }) => self.catch_up().await?,
                // Nothing tells an effect without rows from one that was never stored.
                Err(CommitError::Unknown(_)) if !attempt.rows.is_empty() => {
                    attempt.perhaps_after = Some(expected);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let actual = self.agent.state.head();
        Err(CommitError::Behind {
            agent: self.agent.state.agent(),
            expected: actual,
            actual,
        }
        .into())
    }

    /// Tags the rows that grant something for their positions after `head`.
    fn tag_attempt(&self, attempt: &mut Attempt, head: Seq) {
        for (index, event) in &attempt.granting {
            let mut event = event.clone();
            self.tag_grants(&mut event, Seq(head.0 + 1 + *index as u64));
            if let Some(row) = attempt.rows.get_mut(*index) {
                *row = event.into_row(row.agent, row.created_at);
            }
        }
    }

    fn batch(&self, rows: &[NewRow], beside: Beside) -> Batch {
        let agent = self.agent.state.agent();
        let lease = LeaseClaim {
            epoch: self.epoch,
            expected: self.agent.state.head(),
        };
        let head = HeadClaim {
            agent,
            lease: Some(lease),
        };
        Batch {
            heads: [head].into_iter().chain(beside.heads).collect(),
            rows: rows.iter().cloned().chain(beside.rows).collect(),
            with: beside.with.into_iter().chain(self.due_snapshot()).collect(),
        }
    }

    /// The snapshot that goes with the next commit, if there is something to keep.
    fn due_snapshot(&self) -> Option<Effect> {
        let due = self.control_rows >= CONTROL_ROWS_PER_SNAPSHOT;
        due.then(|| {
            Effect::PutSnapshot(Snapshot {
                upto: RowRef::new(self.agent.state.agent(), self.agent.state.head()),
                folded: self.agent.state.to_snapshot(),
            })
        })
    }

    async fn apply(&mut self, after: Seq, rows: &[NewRow]) -> Result<Vec<Row>, EngineError> {
        if self.control_rows >= CONTROL_ROWS_PER_SNAPSHOT {
            self.control_rows = 0;
        }
        let mut seq = after;
        let mut applied = Vec::with_capacity(rows.len());
        for row in rows {
            seq = seq.next();
            let row = Row {
                at: RowRef::new(row.agent, seq),
                kind: StoredKind::Known(row.kind),
                content: row.content.clone(),
                data: row.data.clone(),
                created_at: row.created_at,
            };
            if seq > self.agent.state.head() {
                self.apply_one(row.clone()).await?;
            }
            applied.push(row);
        }
        Ok(applied)
    }

    async fn apply_one(&mut self, row: Row) -> Result<(), EngineError> {
        self.tally.add(&row);
        let applied = self.agent.apply(&*self.engine.store, row).await?;
        self.control_rows += usize::from(applied.control);
        Ok(())
    }

    /// Applies what others appended without the lease.
    async fn catch_up(&mut self) -> Result<(), EngineError> {
        loop {
            let head = self.agent.state.head();
            let span = Span::new(self.agent.state.agent(), head.next(), Seq(i64::MAX as u64));
            let query = PageQuery {
                span,
                direction: Direction::Forwards,
                limit: PAGE_ROWS,
            };
            let rows = self.engine.store.page(query).await?;
            if rows.is_empty() {
                return Ok(());
            }
            for row in rows {
                self.apply_one(row).await?;
            }
        }
    }

    /// Reads back whether a commit of unknown outcome was stored.
    async fn is_stored(&self, after: Seq, rows: &[NewRow]) -> Result<bool, EngineError> {
        let agent = self.agent.state.agent();
        let span = Span::new(agent, after.next(), Seq(after.0 + rows.len() as u64));
        let query = PageQuery {
            span,
            direction: Direction::Forwards,
            limit: rows.len(),
        };
        let stored = self.engine.store.page(query).await?;
        let same = |(stored, row): (&Row, &NewRow)| {
            stored.kind == StoredKind::Known(row.kind)
                && stored.created_at == row.created_at
                && stored.content == row.content
                && stored.data == row.data
        };
        Ok(stored.len() == rows.len() && stored.iter().zip(rows).all(same))
    }

    /// Gives the lease back, so that another process need not find out that this one is gone.
    ///
    /// The observer gets the rows that settled a former process's work, if no front end did yet: a
    /// screen may have read the agent before.
    pub async fn release(mut self) -> Result<(), EngineError> {
        let agent = self.agent.state.agent();
        let settled = std::mem::take(&mut self.settled);
        if let (Some(observer), _) = self.engine.hub.observer() {
            let name = self.settings().name.clone().unwrap_or_default();
            for row in settled {
                observer(agent, &name, &Update::Settled(row));
            }
        }
        let with = vec![Effect::GiveLease {
            agent,
            epoch: self.epoch,
        }];
        self.engine
            .store
            .commit(Batch {
                with,
                ..Batch::default()
            })
            .await?;
        Ok(())
    }
}

/// What is counted over an agent's own rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Number of the newest response.
    pub(crate) response: u64,
    /// What all responses cost together.
    pub(crate) spent: Amounts,
}

impl Tally {
    /// Takes in the agent's next row.
    fn add(&mut self, row: &Row) {
        let data = row.data.as_deref();
        let response = match row.kind.read_as() {
            Some(Kind::Usage) => {
                let usage: UsageData = data::read(data);
                self.spent = usage.sum.unwrap_or(usage.amounts);
                usage.response
            }
            Some(Kind::Assistant) => data::read::<AssistantData>(data).response,
            Some(Kind::ToolCall) => data::read::<ToolCallData>(data).response,
            _ => None,
        };
        self.response = self.response.max(response.unwrap_or(0));
    }

    /// Reads back to the newest `usage` row, which has the sums, and counts from there.
    pub(crate) async fn read(store: &dyn Log, newest: RowRef) -> Result<Self, EngineError> {
        let lowest = newest.seq.0.saturating_sub(LOOK_BACK_ROWS);
        let mut since: Vec<Row> = Vec::new();
        let mut to = newest.seq;
        while to.0 > lowest && !since.last().is_some_and(is_usage) {
            let span = Span::new(newest.agent, Seq(lowest + 1), to);
            let query = PageQuery {
                span,
                direction: Direction::Backwards,
                limit: PAGE_ROWS,
            };
            let rows = store.page(query).await?;
            to = rows.last().map_or(Seq(0), |oldest| oldest.at.seq.before());
            let usage = rows.iter().position(is_usage);
            since.extend(
                rows.into_iter()
                    .take(usage.map_or(PAGE_ROWS, |index| index + 1)),
            );
        }
        if lowest > 0 && !since.last().is_some_and(is_usage) {
            // It has an index of its own, so it is found however far back it stands.
            let older = Span::new(newest.agent, Seq(1), Seq(lowest));
            since.extend(store.usage(older, 1).await?);
        }
        let mut tally = Self::default();
        since.iter().rev().for_each(|row| tally.add(row));
        Ok(tally)
    }
}

fn is_usage(row: &Row) -> bool {
    row.kind == StoredKind::Known(Kind::Usage)
}
