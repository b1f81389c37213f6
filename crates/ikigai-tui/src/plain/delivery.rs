//! Typed lines of the plain front end: pending messages are reported, saved and stored later.

use std::collections::HashMap;
use std::io::Write;
use std::time::{Duration, Instant};

use ikigai_core::AgentId;
use ikigai_engine::{
    CommitError, EngineError, LineChange, MailId, Submission, UserInput, UserRequest,
};
use tokio::sync::oneshot;

use super::Plain;
use super::talk::NOT_STORED_CHARS;
use crate::drafts::{DraftFiles, DraftJob, DraftReport, DraftWriter, PendingMessage};
use crate::driver::LoadResult;
use crate::outbox::OutboxAction;
use crate::text::{beginning, clean_line};

/// Longest time for which exiting waits for typed text to reach the disk.
const LAST_WRITES: Duration = Duration::from_millis(300);

impl<W: Write> Plain<W> {
    /// Starts saving pending messages, and takes over those of dead processes.
    pub(super) fn start_drafts(&mut self, files: Option<DraftFiles>) {
        let mailbox = self.mailbox.clone();
        let writer =
            DraftWriter::start(files, move |report| mailbox.found(LoadResult::Kept(report)));
        writer.queue(DraftJob::ClaimPending);
        self.drafts = Some(writer);
    }

    /// Gives a typed line to an agent.
    pub(super) async fn submit(&mut self, agent: AgentId, input: UserInput) {
        let submission = self.engine.submission(input);
        if self.outbox.send_behind(agent, &submission, Instant::now()) {
            self.talk.not_said("");
            return self.report_pending(submission.id);
        }
        self.outbox.send(agent, submission.clone(), Instant::now());
        let request = UserRequest::Submit(submission.clone());
        let error = match self.engine.say(agent, request).await {
            Ok(()) => return self.outbox.mark_delivered(submission.id),
            Err(error) => error,
        };
        let is_held = matches!(&error, EngineError::Commit(CommitError::Held { .. }));
        if is_held || matches!(&error, EngineError::Dead(_)) {
            match self.fork_here(agent, &submission).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => return self.not_submitted(&submission, &error),
            }
        }
        if !is_held || !submission.input.is_message() {
            return self.not_submitted(&submission, &error);
        }
        match self.engine.store_pending(agent, &submission).await {
            Ok(()) => {
                self.outbox.mark_received(submission.id);
                let notice = "This agent is open in another ikigai. Your message was queued there";
                self.talk.not_said(notice);
            }
            Err(error) => self.not_submitted(&submission, &error),
        }
    }

    /// Forks an agent that this process cannot open; `false` if the line asks for no fork.
    async fn fork_here(
        &mut self,
        agent: AgentId,
        submission: &Submission,
    ) -> Result<bool, EngineError> {
        let Some(record) = self.engine.reader().agent(agent).await? else {
            return Ok(false);
        };
        let forked = self.engine.fork_here(&record, &submission.input).await?;
        let Some((output, idle)) = forked else {
            return Ok(false);
        };
        self.outbox.mark_received(submission.id);
        self.talk.not_said(output.trim_end());
        self.talk.show_forked(idle);
        Ok(true)
    }

    /// Keeps a message that the store could not take. Reports any other line as not stored.
    fn not_submitted(&mut self, submission: &Submission, error: &EngineError) {
        let (id, reason) = (submission.id, error.to_string());
        if submission.input.is_message() && error.may_pass() {
            return self.mark_unstored(id, &reason);
        }
        self.outbox.mark_returned(id, &reason);
        let line = beginning(submission.line(), NOT_STORED_CHARS);
        self.talk
            .not_said(&format!("not stored ({reason}): {line}"));
    }

    fn mark_unstored(&mut self, id: MailId, reason: &str) {
        let is_new = !self.outbox.pending().any(|one| one.submission.id == id);
        let reason = format!("store is away: {reason}");
        self.outbox.mark_unstored(id, &reason, Instant::now());
        if is_new {
            self.report_pending(id);
        }
    }

    fn report_pending(&mut self, id: MailId) {
        let pending = self.outbox.pending().find(|one| one.submission.id == id);
        let Some(entry) = pending else {
            return;
        };
        let text = clean_line(entry.submission.line());
        let reason = entry.reason().unwrap_or_default();
        self.talk.not_said(&format!("pending: {reason}: {text}"));
    }

    /// Updates the outbox after a line moved on.
    pub(super) fn line_changed(&mut self, line: LineChange<'_>) {
        match line {
            LineChange::Received(id) => {
                self.outbox.mark_received(id);
            }
            LineChange::Unstored { id, reason } => self.mark_unstored(id, reason),
            LineChange::NotStored { id, reason, .. } => {
                if let Some(id) = id {
                    self.outbox.mark_returned(id, reason);
                }
            }
            LineChange::Running(id) => {
                if let Some(id) = id {
                    self.outbox.running(id);
                }
            }
            LineChange::Queued(_) | LineChange::Delivered | LineChange::TakenBack(_) => {}
        }
    }

    /// Handles results about pending messages and their files.
    pub(super) fn take_found(&mut self, found: LoadResult) {
        match found {
            LoadResult::PendingStored(_, submission, Ok(())) => {
                self.outbox.mark_received(submission.id);
                let text = clean_line(submission.line());
                self.talk.add(&format!("stored: {text}"));
            }
            LoadResult::PendingStored(_, submission, Err(error)) => {
                self.not_submitted(&submission, &error);
            }
            LoadResult::Kept(DraftReport::Saved(id, on_disk)) => {
                let is_pending = self.outbox.pending().any(|one| one.submission.id == id);
                self.outbox.mark_saved(id, on_disk);
                if is_pending && !on_disk {
                    self.talk.add("in memory only: lost if ikigai exits");
                }
            }
            LoadResult::Kept(DraftReport::Pending(pending)) => {
                let messages = pending.iter().map(|pending| &pending.submission);
                for message in messages.filter(|message| message.input.is_message()) {
                    let text = clean_line(message.line());
                    self.talk.add(&format!("from the last run: {text}"));
                }
                let commands = self.outbox.restore(pending, Instant::now());
                self.keep_as_drafts(&commands);
            }
            _ => {}
        }
    }

    /// Shows command lines of a former process, and saves them for the input of the next screen.
    fn keep_as_drafts(&mut self, commands: &[PendingMessage]) {
        let mut drafts = HashMap::<AgentId, Vec<&str>>::new();
        for PendingMessage { agent, submission } in commands {
            let text = clean_line(submission.line());
            let notice = format!("not run, from the last run: {text} (type it again to run it)");
            self.talk.add(&notice);
            drafts.entry(*agent).or_default().push(submission.line());
        }
        for (agent, lines) in drafts {
            if let Some(writer) = &self.drafts {
                writer.queue(DraftJob::SaveDraft(agent, lines.join("\n")));
            }
        }
    }

    /// Saves and stores due lines.
    pub(super) fn keep_typed(&mut self) {
        self.outbox.tick(Instant::now());
        for agent in self.outbox.agents() {
            if self.engine.is_working(agent).is_none() {
                for id in self.outbox.sent_to(agent) {
                    self.lost_by_agent(id);
                }
            }
        }
        for action in self.outbox.take_actions() {
            self.do_outbox(action);
        }
    }

    /// Handles the end of an agent that had a line.
    fn lost_by_agent(&mut self, id: MailId) {
        let Some(input) = self.outbox.input(id).cloned() else {
            return;
        };
        if input.is_message() {
            return self
                .outbox
                .mark_unstored(id, "the agent ended", Instant::now());
        }
        self.outbox.mark_returned(id, "the agent ended");
        let line = clean_line(input.line());
        self.talk
            .not_said(&format!("not stored, the agent ended: {line}"));
    }

    fn do_outbox(&mut self, action: OutboxAction) {
        let job = match action {
            OutboxAction::Save(pending) => DraftJob::SavePending(pending),
            OutboxAction::Drop(id) => DraftJob::DropPending(id),
            OutboxAction::Store(pending) => {
                let (engine, mailbox) = (self.engine.clone(), self.mailbox.clone());
                tokio::spawn(async move {
                    let (agent, submission) = (pending.agent, pending.submission);
                    let stored = engine.store_pending(agent, &submission).await;
                    mailbox.found(LoadResult::PendingStored(agent, submission, stored));
                });
                return;
            }
        };
        if let Some(writer) = &self.drafts {
            writer.queue(job);
        }
    }

    /// Saves lines that are not in the log, because the program ends, and reports them.
    pub(super) async fn keep_all(&mut self) {
        self.outbox.save_all();
        for action in self.outbox.take_actions() {
            if !matches!(action, OutboxAction::Store(_)) {
                self.do_outbox(action);
            }
        }
        if let Some(writer) = &self.drafts {
            let (done, is_done) = oneshot::channel();
            writer.queue(DraftJob::Flush(done));
            let _ = tokio::time::timeout(LAST_WRITES, is_done).await;
        }
        self.take_in();
        for entry in self.outbox.pending() {
            let text = clean_line(entry.submission.line());
            let fate = if entry.is_in_memory() {
                "lost"
            } else {
                "will be sent at the next start"
            };
            self.talk.add(&format!("not stored, {fate}: {text}"));
        }
    }
}
