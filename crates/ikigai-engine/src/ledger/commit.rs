//! One commit: rows are stored, then applied.

use ikigai_core::{
    Event, Micros, NewRow, PageQuery, PersonName, Row, RowRef, Seq, Span, StoredKind,
};
use ikigai_store::history::CONTROL_ROWS_PER_SNAPSHOT;
use ikigai_store::{
    Batch, BudgetEffect, CommitError, Effect, HeadClaim, LeaseClaim, MailEffect, MailRecord,
    Snapshot,
};

use super::Ledger;
use super::retry::{TRIES, may_return, pause, report_silence};
use crate::EngineError;
use crate::frontend::FrontEnd;
use crate::grants::awaits_tag;

/// Rows read at a time when catching up.
const PAGE_ROWS: usize = 64;

/// Attempts against others that append lease-free rows at the same time.
const MOST_RACES: usize = 64;

/// Rows of other agents and effects stored with an agent's own rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExtraWrites {
    /// Heads of other agents whose logs grow.
    pub(crate) heads: Vec<HeadClaim>,
    /// Rows of other agents.
    pub(crate) rows: Vec<NewRow>,
    pub(crate) with: Vec<Effect>,
}

impl ExtraWrites {
    /// Adds effects before the others.
    pub(crate) fn counted(mut self, effects: &[Effect]) -> Self {
        self.with.splice(0..0, effects.iter().cloned());
        self
    }
}

/// Makes rows and effects besides the agent's rows, given its head before them.
type ExtraWritesAt<'a> = &'a (dyn Fn(Seq) -> ExtraWrites + Sync);

/// Makes effects that name positions of the rows, given the agent's head before them.
type EffectsAt<'a> = &'a (dyn Fn(Seq) -> Vec<Effect> + Sync);

/// Options of one commit.
pub(crate) struct CommitPlan<'a, 'd> {
    events: Vec<Event>,
    effects: Vec<Effect>,
    effects_at: Option<EffectsAt<'a>>,
    extra: Option<ExtraWritesAt<'a>>,
    /// Authors of rows, by index; the others follow from the events.
    authors: Vec<(usize, Option<PersonName>)>,
    /// Time of the last row; now if none is given.
    dated: Option<Micros>,
    /// Front end that waits with the agent while the store is away.
    waits: Option<&'a mut FrontEnd<'d>>,
}

impl<'a, 'd> CommitPlan<'a, 'd> {
    /// Stores the rows of events.
    pub(crate) fn events(events: Vec<Event>) -> Self {
        Self {
            events,
            effects: Vec::new(),
            effects_at: None,
            extra: None,
            authors: Vec::new(),
            dated: None,
            waits: None,
        }
    }

    /// Stores effects without rows.
    pub(crate) fn effects(effects: Vec<Effect>) -> Self {
        Self::events(Vec::new()).with(effects)
    }

    /// Adds effects.
    pub(crate) fn with(mut self, effects: Vec<Effect>) -> Self {
        self.effects.extend(effects);
        self
    }

    /// Adds effects that name positions of the rows.
    pub(crate) fn with_at(mut self, effects: EffectsAt<'a>) -> Self {
        self.effects_at = Some(effects);
        self
    }

    /// Adds rows of other agents, with their effects.
    pub(crate) fn extra(mut self, extra: ExtraWritesAt<'a>) -> Self {
        self.extra = Some(extra);
        self
    }

    /// Makes the senders of mail the authors of the rows that show it, from the row `first` on.
    pub(crate) fn by_senders(mut self, first: usize, mail: &[MailRecord]) -> Self {
        let authors = mail.iter().map(|mail| mail.author.clone());
        self.authors.extend((first..).zip(authors));
        self
    }

    /// Sets the time of the last row, if one is given.
    pub(crate) fn at_time(mut self, at: Option<Micros>) -> Self {
        self.dated = at;
        self
    }

    /// Waits for a store that is away, without a limit. The commit must not be lost.
    pub(crate) fn waiting(self, front: &'a mut FrontEnd<'d>) -> Self {
        self.waiting_if(Some(front))
    }

    /// Waits for a store that is away, if there is a front end.
    pub(crate) fn waiting_if(mut self, front: Option<&'a mut FrontEnd<'d>>) -> Self {
        self.waits = front;
        self
    }
}

/// Rows on their way into the store; a commit may be repeated.
struct Attempt<'a> {
    rows: Vec<NewRow>,
    effects: Vec<Effect>,
    effects_at: Option<EffectsAt<'a>>,
    extra: Option<ExtraWritesAt<'a>>,
    /// Events whose tags depend on their rows' positions, by index of the row.
    granting: Vec<(usize, Event)>,
    /// They may be stored already, after this one.
    perhaps_after: Option<Seq>,
}

impl Ledger {
    /// Stores events and effects in one transaction, then applies the rows.
    ///
    /// Returns the stored rows with their positions. On an error nothing has happened, except
    /// after [`CommitError::Unknown`].
    pub(crate) async fn commit(
        &mut self,
        plan: CommitPlan<'_, '_>,
    ) -> Result<Vec<Row>, EngineError> {
        let CommitPlan {
            events,
            effects,
            effects_at,
            extra,
            authors,
            dated,
            waits,
        } = plan;
        let mut attempt = Attempt {
            effects,
            effects_at,
            extra,
            ..self.attempt(events)
        };
        for (index, author) in authors {
            if let Some(row) = attempt.rows.get_mut(index) {
                row.author = author;
            }
        }
        if let (Some(row), Some(at)) = (attempt.rows.last_mut(), dated) {
            row.created_at = at;
        }
        let Some(front) = waits else {
            return self.try_commit(&mut attempt).await;
        };
        for _ in 1..TRIES {
            match report_silence(self.try_commit(&mut attempt), front).await {
                Err(error) if may_return(&error) => pause(&error, front).await?,
                other => return other,
            }
        }
        self.try_commit(&mut attempt).await
    }

    fn attempt(&self, events: Vec<Event>) -> Attempt<'static> {
        let id = self.id();
        let now = self.engine.environment().now();
        let granting = events.iter().enumerate();
        let granting = granting.filter(|(_, event)| awaits_tag(event));
        let granting = granting.map(|(index, event)| (index, event.clone()));
        let granting = granting.collect();
        let engine = &self.engine;
        let rows = events
            .into_iter()
            .map(|event| engine.row_of(event, id, now));
        Attempt {
            rows: rows.collect(),
            effects: Vec::new(),
            effects_at: None,
            extra: None,
            granting,
            perhaps_after: None,
        }
    }

    /// Stores rows, then applies them.
    ///
    /// After a failure it may be called again: rows that may be stored already are read back first.
    async fn try_commit(&mut self, attempt: &mut Attempt<'_>) -> Result<Vec<Row>, EngineError> {
        for _ in 0..MOST_RACES {
            if let Some(after) = attempt.perhaps_after {
                if self.is_stored(after, &attempt.rows).await? {
                    return self.apply(after, &attempt.rows).await;
                }
                attempt.perhaps_after = None;
            }
            let expected = self.agent.state.head();
            self.tag_attempt(attempt, expected);
            let mut batch = self.batch(attempt, expected);
            let ended = self.ended_reservations();
            let releases = ended.iter().map(|reservation| BudgetEffect::Release {
                reservation: *reservation,
            });
            batch.with.extend(releases.map(Effect::Budget));
            let sends = |effect: &Effect| matches!(effect, Effect::Mail(MailEffect::Send { .. }));
            let mails = batch.with.iter().any(sends);
            match self.engine.log().commit(batch).await {
                Ok(_) => {
                    self.forget_reservations(&ended);
                    if mails {
                        self.engine.hub().bump();
                    }
                    attempt.perhaps_after = Some(expected);
                    return self.apply(expected, &attempt.rows).await;
                }
                Err(CommitError::Behind { .. }) => self.catch_up().await?,
                // An effect without rows leaves no row to read back its outcome from.
                Err(CommitError::Unknown(_)) if !attempt.rows.is_empty() => {
                    attempt.perhaps_after = Some(expected);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let actual = self.agent.state.head();
        Err(CommitError::Behind {
            agent: self.id(),
            expected: actual,
            actual,
        }
        .into())
    }

    /// Tags the granting rows for their positions after `head`.
    fn tag_attempt(&self, attempt: &mut Attempt<'_>, head: Seq) {
        for (index, event) in &attempt.granting {
            let mut event = event.clone();
            self.tag_grants(&mut event, Seq(head.0 + 1 + *index as u64));
            if let Some(row) = attempt.rows.get_mut(*index) {
                *row = event
                    .into_row(row.agent, row.created_at)
                    .by(row.author.take());
            }
        }
    }

    fn batch(&self, attempt: &Attempt<'_>, head: Seq) -> Batch {
        let extra = attempt.extra.map(|extra| extra(head));
        let extra = extra.unwrap_or_default();
        let own = HeadClaim {
            agent: self.id(),
            lease: Some(LeaseClaim {
                epoch: self.epoch,
                expected: head,
            }),
        };
        let at = attempt.effects_at.map(|effects| effects(head));
        let effects = attempt.effects.iter().cloned();
        let effects = effects.chain(at.unwrap_or_default()).chain(extra.with);
        Batch {
            heads: [own].into_iter().chain(extra.heads).collect(),
            rows: attempt.rows.iter().cloned().chain(extra.rows).collect(),
            with: effects.chain(self.due_snapshot()).collect(),
        }
    }

    /// Returns the snapshot for the next commit, if one is due.
    fn due_snapshot(&self) -> Option<Effect> {
        let due = self.control_rows >= CONTROL_ROWS_PER_SNAPSHOT;
        due.then(|| {
            Effect::PutSnapshot(Snapshot {
                upto: RowRef::new(self.id(), self.agent.state.head()),
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
                author: row.author.clone(),
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
        let applied = self.agent.apply(self.engine.reader(), row).await?;
        self.control_rows += usize::from(applied.control);
        Ok(())
    }

    /// Applies rows that others appended without the lease.
    async fn catch_up(&mut self) -> Result<(), EngineError> {
        loop {
            let head = self.agent.state.head();
            let query = PageQuery::oldest(
                Span::new(self.id(), head.next(), Seq(i64::MAX as u64)),
                PAGE_ROWS,
            );
            let rows = self.engine.reader().page(query).await?;
            if rows.is_empty() {
                return Ok(());
            }
            for row in rows {
                self.apply_one(row).await?;
            }
        }
    }

    /// Returns true if a commit of unknown outcome was stored.
    async fn is_stored(&self, after: Seq, rows: &[NewRow]) -> Result<bool, EngineError> {
        let query = PageQuery::oldest(
            Span::new(self.id(), after.next(), Seq(after.0 + rows.len() as u64)),
            rows.len(),
        );
        let stored = self.engine.reader().page(query).await?;
        let same = |(stored, row): (&Row, &NewRow)| {
            stored.kind == StoredKind::Known(row.kind)
                && stored.created_at == row.created_at
                && stored.content == row.content
                && stored.data == row.data
                && stored.author == row.author
        };
        Ok(stored.len() == rows.len() && stored.iter().zip(rows).all(same))
    }
}
