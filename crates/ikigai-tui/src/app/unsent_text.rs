//! Unsent text: pending messages above the input, and saved drafts.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use ikigai_core::counts::counted;
use ikigai_core::data::{self, UserData};
use ikigai_core::{AgentId, Kind};
use ikigai_engine::{MailId, Submission, looks_like_key};

use super::{EngineRequest, Pane, UiContext, lines};
use crate::drafts::{PendingMessage, SavedDraft};
use crate::line::TextLine;
use crate::look::Tone;
use crate::outbox::{Outbox, OutboxEntry, SubmissionState};
use crate::text::{clean, cut};

/// A changed input is saved after this time, so at most this often.
const SAVE_PAUSE: Duration = Duration::from_secs(2);

/// Pause before the draft of a just sent line is checked again.
const SENT_PAUSE: Duration = Duration::from_millis(300);

/// Rows of pending messages above the input.
const ROWS: usize = 3;

/// Drafts of all inputs: copies on disk, and time of the next check.
#[derive(Default)]
pub(super) struct InputDrafts {
    due: Option<Instant>,
    saved: HashMap<AgentId, String>,
    /// Text for agents that are not shown yet.
    waiting: HashMap<AgentId, String>,
}

impl UiContext {
    /// Returns the lines on their way into the log.
    pub(crate) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Records a line that goes to an agent.
    pub(crate) fn submitted(&mut self, agent: AgentId, submission: Submission) {
        self.outbox.send(agent, submission, Instant::now());
    }

    /// Adds a message behind pending ones of its agent. Returns false if there are none.
    pub(crate) fn submitted_behind(&mut self, agent: AgentId, submission: &Submission) -> bool {
        let is_behind = self.outbox.send_behind(agent, submission, Instant::now());
        self.ask_outbox();
        is_behind
    }

    /// Notes that an agent has a line.
    pub(crate) fn mark_delivered(&mut self, id: MailId) {
        self.outbox.mark_delivered(id);
    }

    /// Records that a line is stored, or that its command ran.
    ///
    /// Returns true if it was on its way.
    pub(super) fn mark_received(&mut self, id: MailId) -> bool {
        if self.outbox.mark_received(id).is_none() {
            return false;
        }
        // Its draft is of no more use.
        self.drafts.due = Some(self.now);
        self.ask_outbox();
        true
    }

    /// Notes that the store could not take a message.
    pub(super) fn mark_unstored(&mut self, id: MailId, reason: &str) {
        let reason = format!("store is away: {reason}");
        self.outbox.mark_unstored(id, &reason, self.now);
        self.ask_outbox();
    }

    /// Notes that a line was not stored and is back in the input.
    pub(super) fn mark_returned(&mut self, id: MailId, reason: &str) {
        // First the draft, then the file of the message: one of them is always there.
        self.save_drafts();
        self.outbox.mark_returned(id, reason);
        self.ask_outbox();
    }

    /// Notes that the shell command of a line runs.
    pub(super) fn shell_runs(&mut self, id: Option<MailId>) {
        if let Some(id) = id {
            self.outbox.running(id);
        }
    }

    /// Records if the file of a pending message was written.
    pub(crate) fn pending_saved(&mut self, id: MailId, on_disk: bool) {
        self.outbox.mark_saved(id, on_disk);
    }

    /// Restores messages that a former process could not store.
    pub(crate) fn restore_pending(&mut self, pending: Vec<PendingMessage>) {
        let commands = self.outbox.restore(pending, Instant::now());
        for command in commands {
            self.hand_back(command.agent, command.submission.line());
        }
        self.save_drafts();
        self.ask_outbox();
    }

    /// Restores the draft that a former process left for an agent.
    pub(crate) fn restore_draft(&mut self, agent: AgentId, draft: SavedDraft) {
        let pane = self.panes.get(&agent);
        let SavedDraft { text, at } = draft;
        if pane.is_some_and(|pane| was_sent(pane, &text, at)) {
            return self
                .effects
                .push(EngineRequest::SaveDraft(agent, String::new()));
        }
        self.drafts.saved.insert(agent, text.clone());
        self.hand_back(agent, &text);
    }

    /// Returns the lines that were lost with a former holder of an agent.
    pub(crate) fn lost_by(&self, agent: AgentId) -> Vec<MailId> {
        self.outbox.sent_to(agent)
    }

    /// Records that an agent ended with a line. A message is stored again, a command handed back.
    pub(crate) fn agent_lost(&mut self, agent: AgentId, id: MailId) {
        let Some(input) = self.outbox.input(id).cloned() else {
            return;
        };
        if input.is_message() {
            self.outbox.mark_unstored(id, "the agent ended", self.now);
            return self.ask_outbox();
        }
        self.hand_back(agent, input.line());
        self.mark_returned(id, "the agent ended");
    }

    /// Puts returned text into the input of its agent.
    pub(super) fn hand_back(&mut self, agent: AgentId, text: &str) {
        self.draft_changed();
        let Some(pane) = self.panes.get_mut(&agent) else {
            let waiting = self.drafts.waiting.entry(agent).or_default();
            *waiting = join(waiting, text);
            return;
        };
        let typed = pane.editor.text();
        pane.editor.set(&join(text, &typed));
    }

    /// Puts waiting text into the input of an agent shown for the first time.
    pub(super) fn give_waiting(&mut self, agent: AgentId) {
        if let Some(text) = self.drafts.waiting.remove(&agent) {
            self.hand_back(agent, &text);
        }
    }

    /// Notes that an input may have changed.
    pub(super) fn draft_changed(&mut self) {
        self.drafts.due.get_or_insert(self.now + SAVE_PAUSE);
    }

    /// Returns the time of the next save or store of typed text.
    pub(crate) fn typed_due(&self) -> Option<Instant> {
        [self.drafts.due, self.outbox.due()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Saves and stores due lines.
    pub(super) fn keep_typed(&mut self) {
        self.outbox.tick(self.now);
        self.ask_outbox();
        if self.drafts.due.is_some_and(|due| self.now >= due) {
            self.save_drafts();
        }
    }

    /// Saves everything that was typed, because the program ends.
    pub(crate) fn keep_all(&mut self) {
        self.save_drafts();
        self.outbox.save_all();
        self.ask_outbox();
    }

    fn ask_outbox(&mut self) {
        let actions = self.outbox.take_actions().into_iter();
        self.effects.extend(actions.map(EngineRequest::Outbox));
    }

    fn save_drafts(&mut self) {
        self.drafts.due = None;
        let mut texts: HashMap<AgentId, String> = self.drafts.waiting.clone();
        let panes = self.panes.iter();
        texts.extend(panes.map(|(agent, pane)| (*agent, pane.editor.text())));
        for (agent, text) in texts {
            let saved = self.drafts.saved.get(&agent).map_or("", String::as_str);
            if saved == text || looks_like_key(&text) {
                continue;
            }
            // A line that was just sent may exist only in its draft.
            if text.is_empty() && self.outbox.is_unsaved(agent) {
                self.drafts.due = Some(self.now + SENT_PAUSE);
                continue;
            }
            self.drafts.saved.insert(agent, text.clone());
            self.effects.push(EngineRequest::SaveDraft(agent, text));
        }
    }

    /// Takes the newest pending message of the visible agent back into its input.
    pub(super) fn take_back_pending(&mut self) -> bool {
        let Some(entry) = self.outbox.take_back(self.current) else {
            return false;
        };
        self.hand_back(self.current, entry.submission.line());
        self.save_drafts();
        self.ask_outbox();
        true
    }

    /// Returns the rows of the messages that the store could not take, above the input.
    pub(super) fn pending_lines(&self) -> Vec<TextLine> {
        let pending = self.outbox.pending();
        let own: Vec<_> = pending.filter(|one| one.agent == self.current).collect();
        let others = self.outbox.pending().count() - own.len();
        let rows = if self.is_tight() { 1 } else { ROWS };
        let mut shown: Vec<_> = own.iter().take(rows).map(|one| pending_row(one)).collect();
        let more = own.len().saturating_sub(rows) + others;
        if let Some(last) = shown.last_mut().filter(|_| more > 0) {
            let _ = write!(last, " · {more} more");
        } else if others > 0 {
            shown.push(format!("⏸ pending: {others} for other agents"));
        }
        let line = |text: String| cut(&TextLine::of(text, Tone::Warning), self.columns, "…");
        shown.into_iter().map(line).collect()
    }

    /// Returns the question before leaving while messages are pending; none if none is.
    pub(super) fn leaving_pending(&self) -> Option<String> {
        let pending = self.outbox.pending().count();
        let in_memory = self.outbox.pending().any(OutboxEntry::is_in_memory);
        if pending == 0 {
            return None;
        }
        let messages = counted(pending, "message");
        let them = if pending == 1 { "it" } else { "them" };
        let fate = if in_memory {
            "quit and lose"
        } else {
            "quit, send"
        };
        let when = if in_memory { "" } else { " at the next start" };
        Some(format!(
            "{messages} not sent:  q {fate} {them}{when} · Esc cancel"
        ))
    }

    pub(crate) fn submission_state(&self, number: u64) -> Option<SubmissionState> {
        self.outbox.state(number)
    }
}

fn pending_row(entry: &OutboxEntry) -> String {
    let memory = if entry.is_in_memory() {
        "in memory only · "
    } else {
        ""
    };
    let reason = entry.reason().unwrap_or_default();
    let (reason, detail) = match reason.split_once(": ") {
        Some((reason, detail)) => (reason, format!(" · {detail}")),
        None => (reason, String::new()),
    };
    let text = lines::first_line(entry.submission.line());
    clean(&format!("⏸ pending: {reason} · {memory}{text}{detail}")).into_owned()
}

fn join(first: &str, second: &str) -> String {
    match (first, second) {
        ("", text) | (text, "") => text.to_owned(),
        (first, second) => format!("{first}\n{second}"),
    }
}

/// Returns true if a draft became a message before its file could be removed.
fn was_sent(pane: &Pane, draft: &str, at: ikigai_core::Micros) -> bool {
    pane.agent.view.entries().iter().rev().any(|entry| {
        let row = &entry.row;
        if row.kind.read_as() != Some(Kind::User) || row.created_at < at {
            return false;
        }
        let typed = data::read::<UserData>(row.data.as_deref()).typed;
        let text = typed.as_deref().or(row.content.as_deref());
        text.is_some_and(|text| text.trim() == draft.trim())
    })
}
