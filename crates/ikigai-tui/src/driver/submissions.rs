//! Typed lines on their way to agents, the store and draft files.

use std::time::{Duration, Instant};

use ikigai_core::AgentId;
use ikigai_engine::{CommitError, EngineError, Submission, UiEvent, UserInput, UserRequest};
use tokio::sync::oneshot;

use super::Driver;
use super::background::LoadResult;
use crate::app::{EngineRequest, UiEffect};
use crate::drafts::{DraftFiles, DraftJob, DraftReport, DraftWriter};
use crate::outbox::OutboxAction;

/// Longest time for which the screen waits for an agent to accept a line.
const DELIVERY: Duration = Duration::from_millis(250);

/// Longest time for which exiting waits for typed text to reach the disk.
const LAST_WRITES: Duration = Duration::from_millis(300);

impl Driver {
    /// Keeps drafts and pending messages in these files, from [`Driver::start`] on.
    pub fn set_drafts(&mut self, files: DraftFiles) {
        self.draft_files = Some(files);
    }

    /// Starts saving drafts, and takes over those of dead processes.
    pub(super) fn start_drafts(&mut self) {
        let (mailbox, files) = (self.mailbox(), self.draft_files.take());
        let writer =
            DraftWriter::start(files, move |report| mailbox.found(LoadResult::Kept(report)));
        writer.queue(DraftJob::ClaimPending);
        self.drafts = Some(writer);
        self.claim_draft(self.app.current());
    }

    /// Asks for the draft that a dead process left for an agent.
    pub(super) fn claim_draft(&self, agent: AgentId) {
        if let Some(writer) = &self.drafts {
            writer.queue(DraftJob::ClaimDraft(agent));
        }
    }

    /// Gives a typed line to an agent.
    pub(super) async fn submit(&mut self, agent: AgentId, input: UserInput) {
        let submission = self.engine.submission(input);
        if self.app.ctx.submitted_behind(agent, &submission) {
            return;
        }
        self.app.ctx.submitted(agent, submission.clone());
        let engine = self.engine.clone();
        let request = UserRequest::Submit(submission.clone());
        // A store that does not answer must not keep keys from being seen.
        let mut delivery = tokio::spawn(async move { engine.say(agent, request).await });
        match tokio::time::timeout(DELIVERY, &mut delivery).await {
            Ok(Ok(delivered)) => self.mark_delivered(agent, submission, delivered).await,
            Ok(Err(_)) => {}
            Err(_) => {
                let mailbox = self.mailbox();
                tokio::spawn(async move {
                    if let Ok(delivered) = delivery.await {
                        mailbox.found(LoadResult::Delivered(agent, submission, delivered));
                    }
                });
            }
        }
    }

    /// Handles the delivery of a line to an agent.
    pub(super) async fn mark_delivered(
        &mut self,
        agent: AgentId,
        submission: Submission,
        delivered: Result<(), EngineError>,
    ) {
        let Err(error) = delivered else {
            return self.app.ctx.mark_delivered(submission.id);
        };
        if let EngineError::Commit(CommitError::Held { owner, .. }) = &error
            && self.send_to_holder(agent, &submission, owner).await
        {
            return;
        }
        if matches!(error, EngineError::Dead(_))
            && Box::pin(self.runs_without_agent(agent, &submission)).await
        {
            return;
        }
        self.not_submitted(agent, &submission, &error);
    }

    /// Keeps a message that the store could not take; hands any other line back.
    pub(super) fn not_submitted(
        &mut self,
        agent: AgentId,
        submission: &Submission,
        error: &EngineError,
    ) {
        let reason = match error {
            EngineError::Dead(name) => {
                format!("{name} has ended. /fork continues from it, Ctrl-X ↑ shows its parent")
            }
            error => error.to_string(),
        };
        let id = submission.id;
        let update = if submission.input.is_message() && error.may_pass() {
            UiEvent::Unstored { id, reason }
        } else {
            UiEvent::NotStored {
                id: Some(id),
                input: submission.input.clone(),
                reason,
            }
        };
        self.app.handle_event(agent, &update, Instant::now());
    }

    /// Executes an action of the outbox.
    pub(super) fn do_outbox(&mut self, action: OutboxAction) {
        match (action, &self.drafts) {
            (OutboxAction::Save(pending), Some(writer)) => {
                let id = pending.submission.id;
                if !writer.queue(DraftJob::SavePending(pending)) {
                    self.app.ctx.pending_saved(id, false);
                }
            }
            (OutboxAction::Save(pending), None) => {
                self.app.ctx.pending_saved(pending.submission.id, false);
            }
            (OutboxAction::Drop(id), writer) => {
                if let Some(writer) = writer {
                    writer.queue(DraftJob::DropPending(id));
                }
            }
            (OutboxAction::Store(pending), _) => {
                let (engine, mailbox) = (self.engine.clone(), self.mailbox());
                tokio::spawn(async move {
                    let (agent, submission) = (pending.agent, pending.submission);
                    let stored = engine.store_pending(agent, &submission).await;
                    mailbox.found(LoadResult::PendingStored(agent, submission, stored));
                });
            }
        }
    }

    /// Handles the result of storing a pending message.
    pub(super) fn pending_stored(
        &mut self,
        agent: AgentId,
        submission: &Submission,
        stored: Result<(), EngineError>,
    ) {
        match stored {
            Ok(()) => self.app.mark_received(submission.id),
            Err(error) => self.not_submitted(agent, submission, &error),
        }
    }

    pub(super) fn save_draft(&self, agent: AgentId, text: String) {
        if let Some(writer) = &self.drafts {
            writer.queue(DraftJob::SaveDraft(agent, text));
        }
    }

    /// Handles results about draft files.
    pub(super) fn kept(&mut self, report: DraftReport) {
        match report {
            DraftReport::Draft(agent, draft) => self.app.ctx.restore_draft(agent, draft),
            DraftReport::Pending(pending) => self.app.ctx.restore_pending(pending),
            DraftReport::Saved(id, on_disk) => self.app.ctx.pending_saved(id, on_disk),
        }
    }

    /// Finds lines whose agent ended without a report; saves and stores due lines.
    pub(super) fn keep_typed(&mut self) {
        let now = Instant::now();
        if self.app.ctx.typed_due().is_some_and(|due| due <= now) {
            self.app.tick(now);
        }
        for agent in self.app.ctx.outbox().agents() {
            if self.engine.is_working(agent).is_none() {
                for id in self.app.ctx.lost_by(agent) {
                    self.app.ctx.agent_lost(agent, id);
                }
            }
        }
    }

    /// Saves everything that was typed and is not in the log, because the program ends.
    pub async fn keep_all(&mut self) {
        self.app.ctx.keep_all();
        // Everything else is of no more use.
        for effect in self.app.take_effects() {
            match effect {
                UiEffect::Engine(EngineRequest::Outbox(
                    action @ (OutboxAction::Save(_) | OutboxAction::Drop(_)),
                )) => self.do_outbox(action),
                UiEffect::Engine(EngineRequest::SaveDraft(agent, text)) => {
                    self.save_draft(agent, text);
                }
                UiEffect::Engine(
                    EngineRequest::Outbox(OutboxAction::Store(_))
                    | EngineRequest::Send(..)
                    | EngineRequest::Show(_)
                    | EngineRequest::MarkRead(_)
                    | EngineRequest::Dismiss(_)
                    | EngineRequest::AskHolder(_)
                    | EngineRequest::TakeOver(_)
                    | EngineRequest::SetKey { .. },
                )
                | UiEffect::Load(_)
                | UiEffect::Terminal(_) => {}
            }
        }
        if let Some(writer) = &self.drafts {
            let (done, is_done) = oneshot::channel();
            writer.queue(DraftJob::Flush(done));
            let _ = tokio::time::timeout(LAST_WRITES, is_done).await;
        }
    }
}
