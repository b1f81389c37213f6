//! Draft: the received part of a running answer, stored while it streams.

use std::time::Duration;

use ikigai_store::{CommitError, DraftEffect, Effect};
use tokio::time::Instant;

use super::turn_loop::TurnLoop;
use crate::EngineError;
use crate::frontend::{FrontEnd, UiEvent};
use crate::ledger::{CommitPlan, report_silence};

/// Interval between two commits of a running answer.
const DRAFT_EVERY: Duration = Duration::from_millis(250);

/// Text of an answer so far.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) text: String,
    /// Bytes of the text that are stored.
    stored_bytes: usize,
    /// The stored part may differ from the text's beginning and has to be replaced.
    stale: bool,
    /// The front end knows that the store is away.
    away: bool,
    /// Deadline for storing the rest.
    pub(super) due: Option<Instant>,
}

impl Draft {
    pub(super) fn add(&mut self, text: &str) {
        self.text.push_str(text);
        self.due.get_or_insert_with(|| Instant::now() + DRAFT_EVERY);
    }

    /// Starts the answer again.
    pub(super) fn restart(&mut self) {
        self.text.clear();
        if self.stored_bytes > 0 || self.stale {
            self.replace();
        }
    }

    fn replace(&mut self) {
        self.stale = true;
        self.stored_bytes = 0;
        self.due = Some(Instant::now() + DRAFT_EVERY);
    }

    /// Reports a store that is away, once: several attempts are made per second.
    fn tell_away(&mut self, reason: String, front: &mut FrontEnd<'_>) {
        if !std::mem::replace(&mut self.away, true) {
            front.emit(UiEvent::StoreAway(reason));
        }
    }

    /// Returns true if a part of it is, or may be, stored.
    pub(super) fn is_stored(&self) -> bool {
        self.stored_bytes > 0 || self.stale
    }
}

impl TurnLoop<'_> {
    /// Stores the text since the last commit. Failures of the store do not end the stream.
    pub(super) async fn store_draft(
        &mut self,
        draft: &mut Draft,
        front: &mut FrontEnd<'_>,
    ) -> Result<(), EngineError> {
        let append = Effect::Draft(DraftEffect::Append {
            agent: self.worker.agent().state.agent(),
            epoch: self.worker.ledger().epoch,
            text: draft.text[draft.stored_bytes..].to_owned(),
            at: self.worker.engine().environment().now(),
        });
        let drop = draft.stale.then(|| self.drop_draft());
        let with = drop.into_iter().chain([append]).collect();
        match report_silence(self.worker.commit(CommitPlan::effects(with)), front).await {
            Ok(_) => {
                draft.stored_bytes = draft.text.len();
                draft.stale = false;
                draft.away = false;
                draft.due = None;
            }
            Err(EngineError::Commit(CommitError::Store(error))) => {
                draft.tell_away(error.to_string(), front);
                draft.due = Some(Instant::now() + DRAFT_EVERY);
            }
            Err(EngineError::Commit(CommitError::Unknown(error))) => {
                draft.tell_away(error.to_string(), front);
                draft.replace();
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Builds the effect that drops the draft, for the commit of its rows.
    pub(super) fn drop_draft(&self) -> Effect {
        Effect::Draft(DraftEffect::Drop {
            agent: self.worker.agent().state.agent(),
            epoch: self.worker.ledger().epoch,
        })
    }
}
