//! Settling: whoever takes a lease ends what the former holder left unfinished. Nothing is sent.

use ikigai_core::Event;
use ikigai_core::data::Cause;
use ikigai_store::Effect;

use crate::engine::target_of;
use crate::response::partial;
use crate::{EngineError, Worker};

/// How many rows are read at a time to find out whether a turn was going on.
const PAGE_ROWS: usize = 64;

impl Worker {
    /// Ends an unfinished turn: the draft's text becomes a row, and a row says why it ended.
    pub(crate) async fn settle(&mut self) -> Result<(), EngineError> {
        let id = self.agent.state.agent();
        let draft = self.engine.store.draft(id).await?;
        let busy = self.is_busy().await?;
        let mut events = Vec::new();
        if let Some(draft) = draft.as_ref().filter(|draft| !draft.text.is_empty()) {
            let target = self.agent.state.settings().model.as_ref().map(target_of);
            let text = draft.text.clone();
            events.push(partial(text, "interrupted", &self.tally, target.as_ref()));
        }
        if busy || !events.is_empty() {
            events.push(Event::interrupted(Cause::Crash));
        }
        let drop = draft.map(|_| Effect::DropDraft {
            agent: id,
            epoch: self.epoch,
        });
        if events.is_empty() && drop.is_none() {
            return Ok(());
        }
        self.commit(events, drop.into_iter().collect()).await?;
        Ok(())
    }

    async fn is_busy(&mut self) -> Result<bool, EngineError> {
        loop {
            let Worker { agent, engine, .. } = &mut *self;
            let empty = agent.view.entries().is_empty();
            let busy = agent.view.is_busy(agent.state.path()).filter(|_| !empty);
            if let Some(busy) = busy {
                return Ok(busy);
            }
            if !agent.lengthen(engine.store(), PAGE_ROWS).await? {
                return Ok(false);
            }
        }
    }
}
