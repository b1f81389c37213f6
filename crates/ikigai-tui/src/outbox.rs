//! Outbox: typed lines on their way into the log, with their state and retries.
//!
//! Does no I/O: it requests files and commits by [`OutboxAction`]s.

use std::time::{Duration, Instant};

use ikigai_core::AgentId;
use ikigai_engine::{MailId, Submission, UserInput, looks_like_key};

use crate::drafts::PendingMessage;

/// A line that was not received within this time is saved and shown.
const SAVED_AFTER: Duration = Duration::from_millis(250);

/// Pause between two tries to store a pending message.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Number of results kept for late callers.
const MOST_RESULTS: usize = 64;

/// Work for the owner of the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboxAction {
    /// Write a message to its file.
    Save(PendingMessage),
    /// Remove the file of a message.
    Drop(MailId),
    /// Store a pending message.
    Store(PendingMessage),
}

/// State of a line for a waiting caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmissionState {
    /// The agent has not answered yet.
    Sent,
    /// It is stored, or its command runs.
    Received,
    /// It is saved but not stored, for this reason.
    Pending(String),
    /// It was not stored and is back in the input, for this reason.
    Returned(String),
}

/// A line that is not stored yet.
#[derive(Clone, Debug)]
pub struct OutboxEntry {
    number: u64,
    /// Receiver of the line.
    pub agent: AgentId,
    /// The line with its id.
    pub submission: Submission,
    since: Instant,
    state: EntryState,
    saved: SaveState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum EntryState {
    /// It is on its way to the agent.
    Delivering,
    /// The agent has it.
    Sent,
    /// Its shell command runs.
    Running,
    /// The store failed.
    Waiting { reason: String, retry_at: Instant },
    /// It is being stored.
    Storing { reason: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SaveState {
    Not,
    /// Requested; not answered yet.
    Requested,
    OnDisk,
    InMemory,
}

/// Lines that are not stored yet, and results for callers.
#[derive(Default)]
pub struct Outbox {
    entries: Vec<OutboxEntry>,
    /// Lines added so far.
    added: u64,
    results: Vec<(u64, SubmissionState)>,
    actions: Vec<OutboxAction>,
}

impl OutboxEntry {
    /// Returns the reason why it is not stored, if the store failed.
    pub fn reason(&self) -> Option<&str> {
        match &self.state {
            EntryState::Waiting { reason, .. } | EntryState::Storing { reason } => Some(reason),
            EntryState::Delivering | EntryState::Sent | EntryState::Running => None,
        }
    }

    /// Returns true if the file of the message could not be written.
    pub fn is_in_memory(&self) -> bool {
        self.saved == SaveState::InMemory
    }

    fn pending(&self) -> PendingMessage {
        PendingMessage {
            agent: self.agent,
            submission: self.submission.clone(),
        }
    }
}

impl Outbox {
    /// Returns the number of lines added so far; the next one gets this number.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// Adds a line that is on its way to its agent.
    pub fn send(&mut self, agent: AgentId, submission: Submission, now: Instant) {
        self.add(agent, submission, EntryState::Delivering, now);
    }

    /// Records that the agent has a line.
    pub fn mark_delivered(&mut self, id: MailId) {
        if let Some(entry) = self.get_mut(id)
            && entry.state == EntryState::Delivering
        {
            entry.state = EntryState::Sent;
        }
    }

    /// Adds a message behind pending ones of its agent. Returns false if there are none.
    pub fn send_behind(&mut self, agent: AgentId, submission: &Submission, now: Instant) -> bool {
        let mut before = self.entries.iter().filter(|entry| entry.agent == agent);
        let Some(reason) = before.find_map(OutboxEntry::reason).map(str::to_owned) else {
            return false;
        };
        if !submission.input.is_message() {
            return false;
        }
        let retry_at = now;
        let state = EntryState::Waiting { reason, retry_at };
        self.add(agent, submission.clone(), state, now);
        self.save_late(now);
        true
    }

    /// Adds messages of a former process; commands among them are returned instead.
    pub fn restore(&mut self, pending: Vec<PendingMessage>, now: Instant) -> Vec<PendingMessage> {
        let mut commands = Vec::new();
        for pending in pending {
            if !pending.submission.input.is_message() {
                self.actions.push(OutboxAction::Drop(pending.submission.id));
                commands.push(pending);
                continue;
            }
            let state = EntryState::Waiting {
                reason: "from the last run".to_owned(),
                retry_at: now,
            };
            self.add(pending.agent, pending.submission, state, now);
            if let Some(entry) = self.entries.last_mut() {
                entry.saved = SaveState::OnDisk;
            }
        }
        commands
    }

    fn add(&mut self, agent: AgentId, submission: Submission, state: EntryState, now: Instant) {
        self.entries.push(OutboxEntry {
            number: self.added,
            agent,
            submission,
            since: now,
            state,
            saved: SaveState::Not,
        });
        self.added += 1;
    }

    fn get_mut(&mut self, id: MailId) -> Option<&mut OutboxEntry> {
        let has_id = |entry: &&mut OutboxEntry| entry.submission.id == id;
        self.entries.iter_mut().find(has_id)
    }

    /// Returns a line.
    pub fn input(&self, id: MailId) -> Option<&UserInput> {
        let mut entries = self.entries.iter();
        let entry = entries.find(|entry| entry.submission.id == id)?;
        Some(&entry.submission.input)
    }

    /// Returns true if the outbox has a line.
    pub fn has(&self, id: MailId) -> bool {
        self.entries.iter().any(|entry| entry.submission.id == id)
    }

    /// Removes a line that is stored, or whose command ran.
    pub fn mark_received(&mut self, id: MailId) -> Option<OutboxEntry> {
        self.remove(id, SubmissionState::Received)
    }

    /// Removes a line that was not stored and goes back to the input.
    pub fn mark_returned(&mut self, id: MailId, reason: &str) -> Option<OutboxEntry> {
        self.remove(id, SubmissionState::Returned(reason.to_owned()))
    }

    fn remove(&mut self, id: MailId, result: SubmissionState) -> Option<OutboxEntry> {
        let place = self
            .entries
            .iter()
            .position(|entry| entry.submission.id == id)?;
        let entry = self.entries.remove(place);
        if entry.saved != SaveState::Not {
            self.actions.push(OutboxAction::Drop(id));
        }
        if self.results.len() >= MOST_RESULTS {
            self.results.remove(0);
        }
        self.results.push((entry.number, result));
        Some(entry)
    }

    /// Records that the shell command of a line runs.
    pub fn running(&mut self, id: MailId) {
        if let Some(entry) = self.get_mut(id) {
            entry.state = EntryState::Running;
        }
    }

    /// Records a failure of the store, so that the message waits.
    pub fn mark_unstored(&mut self, id: MailId, reason: &str, now: Instant) {
        if let Some(entry) = self.get_mut(id) {
            entry.state = EntryState::Waiting {
                reason: reason.to_owned(),
                retry_at: now + RETRY_PAUSE,
            };
        }
        self.save_late(now);
    }

    /// Records if the file of a message was written.
    pub fn mark_saved(&mut self, id: MailId, on_disk: bool) {
        if let Some(entry) = self.get_mut(id) {
            entry.saved = if on_disk {
                SaveState::OnDisk
            } else {
                SaveState::InMemory
            };
        }
    }

    /// Takes out the newest waiting message of an agent that is not being stored.
    pub fn take_back(&mut self, agent: AgentId) -> Option<OutboxEntry> {
        let waits = |entry: &&OutboxEntry| {
            entry.agent == agent && matches!(entry.state, EntryState::Waiting { .. })
        };
        let id = self.entries.iter().rev().find(waits)?.submission.id;
        self.mark_returned(id, "moved back to the input")
    }

    /// Returns the lines handed to an agent, for callers that know it is gone.
    pub fn sent_to(&self, agent: AgentId) -> Vec<MailId> {
        let is_lost = |entry: &&OutboxEntry| {
            let is_with_agent = matches!(entry.state, EntryState::Sent | EntryState::Running);
            entry.agent == agent && is_with_agent && entry.saved != SaveState::Not
        };
        let lost = self.entries.iter().filter(is_lost);
        lost.map(|entry| entry.submission.id).collect()
    }

    /// Returns the agents with lines here, each once.
    pub fn agents(&self) -> Vec<AgentId> {
        let mut agents: Vec<_> = self.entries.iter().map(|entry| entry.agent).collect();
        agents.sort();
        agents.dedup();
        agents
    }

    /// Returns the lines of an agent without an answer for a moment.
    pub fn queued(&self, agent: AgentId) -> impl Iterator<Item = &OutboxEntry> {
        self.entries.iter().filter(move |entry| {
            let is_late = entry.saved != SaveState::Not;
            let is_sent = matches!(entry.state, EntryState::Delivering | EntryState::Sent);
            entry.agent == agent && is_sent && is_late
        })
    }

    /// Returns the messages that the store could not accept.
    pub fn pending(&self) -> impl Iterator<Item = &OutboxEntry> {
        self.entries.iter().filter(|entry| entry.reason().is_some())
    }

    /// Returns true if a line of an agent is neither received nor on disk.
    pub fn is_unsaved(&self, agent: AgentId) -> bool {
        self.entries
            .iter()
            .any(|entry| entry.agent == agent && entry.saved == SaveState::Not)
    }

    /// Returns the state of the line with a number, if any.
    pub fn state(&self, number: u64) -> Option<SubmissionState> {
        if let Some((_, result)) = self.results.iter().find(|(of, _)| *of == number) {
            return Some(result.clone());
        }
        let entry = self.entries.iter().find(|entry| entry.number == number)?;
        Some(match (&entry.state, entry.reason()) {
            (EntryState::Running, _) => SubmissionState::Received,
            (_, Some(reason)) => SubmissionState::Pending(reason.to_owned()),
            (_, None) => SubmissionState::Sent,
        })
    }

    /// Requests due work: saving late lines, storing pending ones in order.
    pub fn tick(&mut self, now: Instant) {
        self.save_late(now);
        let mut seen = Vec::new();
        for entry in &mut self.entries {
            if entry.reason().is_none() || seen.contains(&entry.agent) {
                continue;
            }
            // The others of this agent wait behind it.
            seen.push(entry.agent);
            if let EntryState::Waiting { reason, retry_at } = &entry.state
                && *retry_at <= now
            {
                let reason = reason.clone();
                entry.state = EntryState::Storing { reason };
                self.actions.push(OutboxAction::Store(entry.pending()));
            }
        }
    }

    fn save_late(&mut self, now: Instant) {
        for entry in &mut self.entries {
            let is_due = entry.reason().is_some() || now >= entry.since + SAVED_AFTER;
            if entry.saved == SaveState::Not && is_due {
                entry.saved = SaveState::Requested;
                if !looks_like_key(entry.submission.line()) {
                    self.actions.push(OutboxAction::Save(entry.pending()));
                }
            }
        }
    }

    /// Requests saving of all lines that are not on disk, because the program ends.
    pub fn save_all(&mut self) {
        for entry in &mut self.entries {
            entry.since = entry.since.checked_sub(SAVED_AFTER).unwrap_or(entry.since);
        }
        self.save_late(Instant::now());
    }

    /// Returns the time of the next [`Self::tick`] that does something.
    pub fn due(&self) -> Option<Instant> {
        let mut seen = Vec::new();
        let times = self.entries.iter().filter_map(|entry| {
            if entry.saved == SaveState::Not {
                return Some(entry.since + SAVED_AFTER);
            }
            let is_first = entry.reason().is_some() && !seen.contains(&entry.agent);
            if is_first {
                seen.push(entry.agent);
            }
            match entry.state {
                EntryState::Waiting { retry_at, .. } if is_first => Some(retry_at),
                _ => None,
            }
        });
        times.min()
    }

    /// Takes the requested work, in order.
    pub fn take_actions(&mut self) -> Vec<OutboxAction> {
        std::mem::take(&mut self.actions)
    }
}

#[cfg(test)]
mod tests;
