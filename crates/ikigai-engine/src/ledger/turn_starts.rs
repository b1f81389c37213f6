//! Messages with which turns start.

use std::sync::Arc;

use ikigai_core::data::{self, UserData};
use ikigai_core::{Kind, Row, RowRef};

use super::Ledger;
use crate::{EngineError, window};

impl Ledger {
    /// Returns the newest row that started a turn and satisfies a condition.
    pub(crate) async fn last_start(
        &mut self,
        is_wanted: impl Fn(&UserData) -> bool,
    ) -> Result<Option<RowRef>, EngineError> {
        let Ledger { agent, engine, .. } = self;
        loop {
            let starts = agent.view.turn_starts(agent.state.path());
            let mut entries = agent.view.entries().iter().rev();
            let found = entries.find(|entry| {
                starts.contains(&entry.at()) && is_wanted(&data::read(entry.row.data.as_deref()))
            });
            if let Some(found) = found {
                return Ok(Some(found.at()));
            }
            if !agent
                .lengthen(engine.reader(), window::FIRST_PAGE_ROWS)
                .await?
            {
                return Ok(None);
            }
        }
    }

    /// Returns the last message that started the last turn. There are several if some were queued.
    pub(crate) async fn last_message(&mut self) -> Result<RowRef, EngineError> {
        let start = self.last_start(is_message).await?;
        let start = start.ok_or(EngineError::NothingToRetry)?;
        Ok(self.opening(start).last().map_or(start, |row| row.at))
    }

    /// Returns the messages with which a turn begins, before the first answer.
    pub(crate) fn opening(&self, start: RowRef) -> Vec<Arc<Row>> {
        let entries = self.agent.view.entries().iter();
        let since = entries.skip_while(|entry| entry.at() != start);
        let opening = since.take_while(|entry| {
            !matches!(
                entry.kind(),
                Some(Kind::Assistant | Kind::ToolCall | Kind::Error | Kind::Interrupted)
            )
        });
        let messages = opening.filter(|entry| entry.kind() == Some(Kind::User));
        messages.map(|entry| entry.row.clone()).collect()
    }
}

/// Returns true if a message starts a turn; shell output and merges do not.
pub(crate) fn is_message(user: &UserData) -> bool {
    user.shell.is_none() && user.merge.is_none()
}
