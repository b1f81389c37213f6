//! Rows that the client has not seen: the history of a loaded session, and rows of other processes.

use ikigai_core::render::render;
use ikigai_core::words::Severity;
use ikigai_core::{AgentId, PageQuery, Row, Seq, Span};
use ikigai_engine::{Agent, StoreError, UiEvent};
use ikigai_store::history::extend;

use super::row_updates::row_updates;
use super::server::AcpServer;

/// Rows that a loaded session shows at most: the newest ones. Clients keep them all in memory.
const MOST_ROWS: u64 = 20_000;

/// Rows read at a time.
const PAGE_ROWS: usize = 256;

impl AcpServer {
    /// Shows the newest rows of an agent's path, oldest first.
    ///
    /// Memory is bounded by a page, and time by [`MOST_ROWS`], however long the history is.
    pub(super) async fn replay(&mut self, agent: &mut Agent) -> Result<(), StoreError> {
        let id = agent.state.agent();
        let (spans, is_whole) = self.newest_spans(agent, MOST_ROWS).await?;
        if !is_whole {
            let name = agent.state.settings().name.clone().unwrap_or_default();
            let text = format!("Older events are not shown here. `ikigai log {name}` prints them");
            self.note(id, Severity::Info, &text).await;
        }
        for span in spans {
            self.replay_span(id, span).await?;
        }
        Ok(())
    }

    /// Returns the spans of the newest rows, oldest first, and whether they are the whole path.
    async fn newest_spans(
        &self,
        agent: &mut Agent,
        most: u64,
    ) -> Result<(Vec<Span>, bool), StoreError> {
        loop {
            let path = agent.state.path();
            let limit = usize::try_from(most).unwrap_or(usize::MAX);
            let mut spans = path.spans_before(None, limit);
            let rows: u64 = spans.iter().map(Span::len).sum();
            if rows < most && !path.is_complete() {
                extend(self.engine.reader(), agent.state.path_mut()).await?;
                continue;
            }
            let surplus = rows.saturating_sub(most);
            let is_whole = surplus == 0 && path.spans().len() == spans.len() && path.is_complete();
            if let Some(oldest) = spans.last_mut() {
                oldest.from = Seq(oldest.from.0.saturating_add(surplus));
            }
            spans.reverse();
            return Ok((spans, is_whole));
        }
    }

    async fn replay_span(&mut self, id: AgentId, span: Span) -> Result<(), StoreError> {
        let mut from = span.from;
        while from <= span.to {
            let query = PageQuery::oldest(Span { from, ..span }, PAGE_ROWS);
            let rows = self.engine.reader().page(query).await?;
            let Some(last) = rows.last() else {
                break;
            };
            from = last.at.seq.next();
            for row in &rows {
                self.replay_row(id, row).await;
            }
        }
        Ok(())
    }

    async fn replay_row(&mut self, id: AgentId, row: &Row) {
        for agent in render(row).mentions() {
            self.learn_name(agent).await;
        }
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        if row.at.agent == id {
            session.shown_to = session.shown_to.max(row.at.seq);
        }
        let workdir = session.workdir.clone();
        let names = |agent: AgentId| self.name_of(agent);
        let updates = row_updates(row, &workdir, &names);
        for update in &updates {
            self.update(id, update).await;
        }
    }

    /// Shows rows that another process has stored since the last one that was shown.
    pub(super) async fn catch_up(&mut self, id: AgentId) -> Result<(), StoreError> {
        loop {
            let Some(session) = self.sessions.get(&id) else {
                return Ok(());
            };
            let span = Span::new(id, session.shown_to.next(), Span::whole(id).to);
            let query = PageQuery::oldest(span, PAGE_ROWS);
            let rows = self.engine.reader().page(query).await?;
            if rows.is_empty() {
                return Ok(());
            }
            for row in rows {
                self.show_event(id, &UiEvent::Stored(row)).await;
            }
        }
    }
}
