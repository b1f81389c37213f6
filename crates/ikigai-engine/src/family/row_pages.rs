//! One stored row in pages, for a model that needs omitted text.

use ikigai_core::data::Verdict;
use ikigai_core::project::prefix_within;
use ikigai_core::{RowRef, Seq};
use ikigai_store::history;
use ikigai_tools::output::OutputLimit;

use super::{Family, FamilyOutcome, FamilyResult, done};
use crate::EngineError;
use crate::blobs::images_in;
use crate::calls::{Came, OpenCall};
use crate::frontend::FrontEnd;
use crate::ledger::CommitPlan;
use crate::recall::whole_text;

/// Longest page, in bytes; small windows have shorter ones.
const PAGE_BYTES: usize = 24 * 1024;

/// Shortest page, in bytes.
const LEAST_PAGE_BYTES: usize = 2 * 1024;

/// Shortest page, in estimated tokens.
const LEAST_PAGE_TOKENS: u64 = 512;

/// Room for the line above a page.
const HEADING_BYTES: usize = 256;

impl Family<'_> {
    /// Answers a call of `recall` that names a row.
    pub(super) async fn deal_row(
        &mut self,
        name: &str,
        page: Option<usize>,
        call: &OpenCall,
        front: &mut FrontEnd<'_>,
    ) -> FamilyResult {
        let came = match self.row_page(name, page.unwrap_or(1)).await? {
            Ok(came) => came,
            Err(reason) => return Ok(Err(reason)),
        };
        let result = call.result(came, Verdict::Ran);
        let rows = self
            .ledger
            .commit(CommitPlan::events(vec![result]).waiting(front))
            .await?;
        front.emit_rows(rows);
        Ok(Ok(FamilyOutcome::Done))
    }

    async fn row_page(&self, name: &str, page: usize) -> Result<Result<Came, String>, EngineError> {
        let Some(at) = self.named_row(name).await? else {
            return Ok(Err(format!(
                "`{name}` is not a row: use `#12`, or `#name.12` of another agent"
            )));
        };
        let Some(row) = history::row_at(self.ledger.engine.reader(), at).await? else {
            return Ok(Err(format!("there is no row {name}")));
        };
        let text = whole_text(self.ledger.engine.reader(), &row).await?;
        let size = self.result_size;
        let bytes = size.bytes.saturating_sub(HEADING_BYTES);
        let tokens = size.tokens.saturating_sub(HEADING_BYTES as u64);
        let limit = OutputLimit {
            bytes: bytes.clamp(LEAST_PAGE_BYTES, PAGE_BYTES),
            tokens: tokens.max(LEAST_PAGE_TOKENS),
        };
        let pages = pages_of(&text, limit);
        let Some(shown) = page.checked_sub(1).and_then(|index| pages.get(index)) else {
            return Ok(Err(format!("{name} has {} pages", pages.len())));
        };
        let heading = heading(name, row.kind.name(), page, pages.len());
        let images = if page == 1 {
            images_in(&row)
        } else {
            Vec::new()
        };
        Ok(Ok(Came {
            images,
            shown: Some(heading.clone()),
            ..done(format!("{heading}\n{shown}"))
        }))
    }

    async fn named_row(&self, name: &str) -> Result<Option<RowRef>, EngineError> {
        let name = name.trim().trim_start_matches('#');
        let (agent, number) = match name.rsplit_once('.') {
            Some((agent, number)) => (Some(agent), number),
            None => (None, name),
        };
        let Ok(seq) = number.parse().map(Seq) else {
            return Ok(None);
        };
        let agent = match agent {
            None => self.ledger.agent.state.agent(),
            Some(agent) => match self.ledger.engine.find_near(self.ledger.id(), agent).await {
                Ok(found) => {
                    let scope = self.recall_scope().await?;
                    if scope.is_some_and(|session| session != found.session) {
                        return Ok(None);
                    }
                    found.id
                }
                Err(EngineError::NoSuchAgent(_) | EngineError::Ambiguous { .. }) => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            },
        };
        Ok(Some(RowRef::new(agent, seq)))
    }
}

/// Returns the line above a page.
fn heading(name: &str, kind: &str, page: usize, pages: usize) -> String {
    let next = if page < pages {
        format!("; continue with page {}", page + 1)
    } else {
        String::new()
    };
    format!("{name} ({kind}), page {page} of {pages}{next}")
}

/// Splits a text into pages of at most `most` bytes, at line ends if possible.
fn pages_of(text: &str, limit: OutputLimit) -> Vec<&str> {
    let mut pages = Vec::new();
    let mut left = text;
    loop {
        let fitting = prefix_within(left, limit.tokens);
        let end = fitting.floor_char_boundary(limit.bytes);
        if end == left.len() {
            pages.push(left);
            return pages;
        }
        let end = match left[..end].rfind('\n') {
            Some(line) if line >= end / 2 => line + 1,
            _ => end,
        };
        let (page, rest) = left.split_at(end);
        pages.push(page);
        left = rest;
    }
}

#[cfg(test)]
mod tests;
