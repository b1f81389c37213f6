//! Sums over an agent's own rows.

use ikigai_core::data::{self, Amounts, AssistantData, ToolCallData, UsageData};
use ikigai_core::{Kind, PageQuery, Row, RowRef, Seq, Span, StoredKind};
use ikigai_store::ReadLog;

use crate::EngineError;

/// Rows read at a time when looking back.
const PAGE_ROWS: usize = 64;

/// Limit of rows searched for the newest response's number.
const LOOK_BACK_ROWS: u64 = 4096;

/// Number of responses and sum of their usage.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Number of the newest response.
    pub(crate) response: u64,
    /// Sum of all responses' usage.
    pub(crate) spent: Amounts,
}

impl Tally {
    /// Adds the agent's next row.
    pub(super) fn add(&mut self, row: &Row) {
        let data = row.data.as_deref();
        let response = match row.kind.read_as() {
            Some(Kind::Usage) => {
                let usage: UsageData = data::read(data);
                self.spent = usage.sum.unwrap_or(usage.amounts);
                usage.response
            }
            Some(Kind::Assistant) => data::read::<AssistantData>(data).response,
            Some(Kind::ToolCall) => data::read::<ToolCallData>(data).response,
            Some(
                Kind::System
                | Kind::User
                | Kind::ToolResult
                | Kind::Clear
                | Kind::Mark
                | Kind::Rewind
                | Kind::Fork
                | Kind::Command
                | Kind::AgentKilled
                | Kind::Interrupted
                | Kind::Error
                | Kind::Summary
                | Kind::Process
                | Kind::Files,
            )
            | None => None,
        };
        self.response = self.response.max(response.unwrap_or(0));
    }

    /// Reads back to the newest `usage` row, which has the sums, and counts from there.
    pub(crate) async fn read(store: &dyn ReadLog, newest: RowRef) -> Result<Self, EngineError> {
        let lowest = newest.seq.0.saturating_sub(LOOK_BACK_ROWS);
        let mut since: Vec<Row> = Vec::new();
        let mut to = newest.seq;
        while to.0 > lowest && !since.last().is_some_and(is_usage) {
            let span = Span::new(newest.agent, Seq(lowest + 1), to);
            let query = PageQuery::newest(span, PAGE_ROWS);
            let rows = store.page(query).await?;
            to = rows.last().map_or(Seq(0), |oldest| oldest.at.seq.before());
            let usage = rows.iter().position(is_usage);
            since.extend(
                rows.into_iter()
                    .take(usage.map_or(PAGE_ROWS, |index| index + 1)),
            );
        }
        if lowest > 0 && !since.last().is_some_and(is_usage) {
            // Usage rows have an index, so this is fast at any distance.
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
