//! `recall`: search in the log for models.

use std::fmt::Write as _;
use std::path::Path;

use ikigai_core::SessionId;
use ikigai_core::counts::counted;
use ikigai_core::data::Verdict;
use ikigai_core::settings::Approve;

use super::{Family, FamilyOutcome, FamilyResult, done};
use crate::EngineError;
use crate::agent_tools::RecallArguments;
use crate::calls::{Came, OpenCall};
use crate::figures::since;
use crate::frontend::FrontEnd;
use crate::ledger::{CommitPlan, Ledger};
use crate::search::{SearchOptions, SearchResults};
use ikigai_store::SortOrder;

/// Default and maximum number of hits.
const HITS: usize = 10;
const MOST_HITS: usize = 50;

/// Length of a hit's line.
const LINE_CHARS: usize = 480;

impl Family<'_> {
    /// Executes a call of `recall`.
    pub(super) async fn run_recall(
        &mut self,
        arguments: RecallArguments,
        call: &OpenCall,
        front: &mut FrontEnd<'_>,
    ) -> FamilyResult {
        if let Some(row) = &arguments.row {
            return self.deal_row(row, arguments.page, call, front).await;
        }
        if arguments.query.trim().is_empty() {
            return Ok(Err("`query` or `row` is missing".to_owned()));
        }
        let found = match self.recall(&arguments).await? {
            Ok(found) => found,
            Err(reason) => return Ok(Err(reason)),
        };
        let result = call.result(list_hits(self.ledger, &found), Verdict::Ran);
        let rows = self
            .ledger
            .commit(CommitPlan::events(vec![result]).waiting(front))
            .await?;
        front.emit_rows(rows);
        Ok(Ok(FamilyOutcome::Done))
    }

    async fn recall(
        &self,
        arguments: &RecallArguments,
    ) -> Result<Result<SearchResults, String>, EngineError> {
        let mut typed = arguments.query.clone();
        for (name, value) in [("agent", &arguments.agent), ("kind", &arguments.kind)] {
            if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
                let _ = write!(typed, " {name}:\"{}\"", value.replace('"', ""));
            }
        }
        let session = self.recall_scope().await?;
        let workdir = self.ledger.workdir();
        let options = SearchOptions {
            limit: arguments.limit.unwrap_or(HITS).clamp(1, MOST_HITS),
            order: SortOrder::Relevance,
            workdir: Some(Path::new(&workdir)),
            line_chars: LINE_CHARS,
            session,
            ..SearchOptions::default()
        };
        self.ledger.engine.search(&typed, options).await
    }

    /// Returns the session that `recall` is limited to; none for all sessions.
    ///
    /// Reading mode is for this project, and other projects have their own secrets.
    pub(super) async fn recall_scope(&self) -> Result<Option<SessionId>, EngineError> {
        match self.ledger.grant().mode {
            Approve::Read => Ok(Some(self.session().await?)),
            Approve::Ask | Approve::Edits | Approve::All => Ok(None),
        }
    }

    async fn session(&self) -> Result<SessionId, EngineError> {
        let own = self.ledger.agent.state.agent();
        let record = self.ledger.engine.reader().agent(own).await?;
        let record = record.ok_or_else(|| EngineError::NoSuchAgent(own.to_string()))?;
        Ok(record.session)
    }
}

/// Lists the hits for the model.
fn list_hits(ledger: &Ledger, found: &SearchResults) -> Came {
    let now = ledger.engine.environment().now();
    let mut text = String::new();
    for named in &found.hits {
        let hit = &named.hit;
        let name = named.reference(Some(ledger.agent.state.agent()));
        let ago = since(hit.created_at, now);
        let _ = writeln!(
            text,
            "{name} ({}, {ago} ago): {}",
            hit.kind, hit.snippet.text
        );
    }
    if found.hits.is_empty() {
        text.push_str("Nothing found. Try fewer or other words; `begin*` matches longer ones.\n");
    }
    if found.next.is_some() {
        text.push_str("There is more; add words to narrow it.\n");
    }
    for note in &found.notes {
        let _ = writeln!(text, "Note: {note}.");
    }
    let shown = counted(found.hits.len(), "row");
    Came {
        shown: Some(shown),
        ..done(text.trim_end())
    }
}
