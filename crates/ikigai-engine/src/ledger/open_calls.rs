//! Calls of an agent's newest response that have no result.

use ikigai_core::Event;

use super::Ledger;
use crate::EngineError;
use crate::calls::{OpenCall, close, open_calls};

/// Rows read at a time to find the newest response.
const PAGE_ROWS: usize = 64;

impl Ledger {
    /// Returns the calls of the newest response that have no result.
    pub(crate) async fn open_calls(&mut self) -> Result<Vec<OpenCall>, EngineError> {
        loop {
            if let Some(open) = open_calls(&self.agent) {
                return Ok(open);
            }
            let store = self.engine.shared_reader().clone();
            if !self.agent.lengthen(&*store, PAGE_ROWS).await? {
                return Ok(Vec::new());
            }
        }
    }

    /// Builds the rows that close open calls, because the user sends another message.
    pub(crate) async fn close_open_calls(&mut self) -> Result<Vec<Event>, EngineError> {
        let open = self.open_calls().await?;
        Ok(close(
            &open,
            "not run: the user said something else instead",
        ))
    }
}
