//! One session: the live state of its agent, and the changes that its client must see.

use std::collections::{HashSet, VecDeque};
use std::time::Instant;

use ikigai_core::data::{self, AssistantData, Category, UserData};
use ikigai_core::render::{Shown, render};
use ikigai_core::spelling::{clean, clean_line};
use ikigai_core::words::Severity;
use ikigai_core::{AgentId, Kind, Row, RowRef, Seq};
use ikigai_engine::commands::Next;
use ikigai_engine::{LineChange, Live, LiveChange, MailId, Outcome, Question, UiEvent};
use serde_json::Value;

use super::foreign_sessions::SessionFollower;
use super::row_updates::{
    NameLookup, call_id, call_update, failure_category, output_update, row_updates,
};
use super::updates::{CallStatus, ContentChunk, SessionUpdate, ToolCallChange};

/// Newest lines shown of a running call.
const OUTPUT_LINES: usize = 100;

/// Session of a client.
pub(super) struct AcpSession {
    pub(super) agent: AgentId,
    /// Id in messages.
    pub(super) id: String,
    /// Working directory, for relative paths.
    pub(super) workdir: String,
    live: Live,
    /// Prompts without an answer.
    pub(super) prompts: Vec<PendingPrompt>,
    /// Texts of prompts whose rows are not stored yet.
    pub(super) sent: VecDeque<String>,
    /// The last row that the client has seen.
    pub(super) shown_to: Seq,
    /// End of the newest turn since the oldest pending prompt.
    last_end: Option<Outcome>,
    /// Stop reason of the provider in the newest answer.
    last_stop: Option<String>,
    last_failure: Option<Category>,
    /// Number of the message that streams.
    message: u64,
    has_thought: bool,
    has_printed: bool,
    /// Running calls with output that the client has not seen.
    unsent_output: HashSet<RowRef>,
    /// Follows the agent while another process holds it.
    pub(super) follower: Option<SessionFollower>,
}

/// A prompt whose turn runs.
pub(super) struct PendingPrompt {
    /// Id of the request.
    pub(super) request: Value,
    /// Id of its submission.
    pub(super) submission: MailId,
    /// True if it is stored.
    pub(super) is_received: bool,
    /// True if the client cancelled it.
    pub(super) is_cancelled: bool,
}

/// Change that a client must see, or that concerns its requests.
#[derive(Debug)]
pub(super) enum ViewChange {
    /// Update of the session.
    Update(SessionUpdate),
    /// Text that is not stored.
    Note(Severity, String),
    /// A call waits for approval.
    Ask(Question),
    /// A question needs no answer any more.
    Unask(RowRef),
    /// A prompt could not be stored, for this reason.
    Rejected(Option<MailId>, String),
}

impl AcpSession {
    pub(super) fn new(agent: AgentId, workdir: String, shown_to: Seq) -> Self {
        Self {
            agent,
            id: agent.to_string(),
            workdir,
            live: Live::default(),
            prompts: Vec::new(),
            sent: VecDeque::new(),
            shown_to,
            last_end: None,
            last_stop: None,
            last_failure: None,
            message: 0,
            has_thought: false,
            has_printed: false,
            unsent_output: HashSet::new(),
            follower: None,
        }
    }

    /// Adds a prompt. Without others, earlier turns do not matter any more.
    pub(super) fn add_prompt(&mut self, prompt: PendingPrompt) {
        if self.prompts.is_empty() {
            self.last_end = None;
            self.last_stop = None;
            self.last_failure = None;
        }
        self.prompts.push(prompt);
    }

    /// Applies an event of the agent.
    pub(super) fn apply(
        &mut self,
        event: &UiEvent,
        now: Instant,
        names: NameLookup<'_>,
    ) -> Vec<ViewChange> {
        let streamed = match event {
            UiEvent::Stored(row) if row.kind.read_as() == Some(Kind::Assistant) => {
                self.live.text.clone()
            }
            _ => String::new(),
        };
        let change = self.live.apply(event, now);
        match change {
            LiveChange::Answer(text) => vec![self.says(text)],
            LiveChange::Restarted => {
                self.message += 1;
                vec![note("The answer starts again")]
            }
            LiveChange::Retry(wait) => vec![note(&format!(
                "Waiting: {}, try {} of {}",
                wait.error, wait.attempt, wait.attempts
            ))],
            LiveChange::State => self.state_changed(event),
            LiveChange::ToolLine(_) => {
                self.note_output(event);
                Vec::new()
            }
            LiveChange::ShellLine(line) => {
                self.has_printed = true;
                vec![self.says(&format!("{line}\n"))]
            }
            LiveChange::Row(row) => self.stored(row, &streamed, names),
            LiveChange::Settled(row) => self.not_seen(row, names),
            LiveChange::Question(question) => vec![ViewChange::Ask(question.clone())],
            LiveChange::Unasked(call) => vec![ViewChange::Unask(call)],
            LiveChange::Ended { outcome, .. } => {
                self.last_end = Some(outcome.clone());
                self.message += 1;
                Vec::new()
            }
            LiveChange::Line(line) => self.line_changed(line),
            LiveChange::Preview {
                output, severity, ..
            } => vec![self.says(&severity.signed(output))],
            LiveChange::Notice(text) => vec![note(text)],
            LiveChange::Warning(text) | LiveChange::GrantOffer(text) => vec![warning(text)],
            LiveChange::StoreAway(reason) => {
                vec![warning(&format!(
                    "store unreachable, nothing is lost: {reason}"
                ))]
            }
            LiveChange::Next(next) => next_note(next),
            LiveChange::Began => Vec::new(),
        }
    }

    /// Takes the output that running calls printed since the last time.
    pub(super) fn take_output(&mut self) -> Vec<SessionUpdate> {
        let unsent = std::mem::take(&mut self.unsent_output);
        let running = self.live.running.iter();
        let running = running.filter(|running| unsent.contains(&running.call));
        let update = |running: &ikigai_engine::RunningCall| {
            output_update(running.call, &running.newest(OUTPUT_LINES).0)
        };
        running.map(update).collect()
    }

    /// Returns the text that streams and is not stored.
    pub(super) fn streamed_text(&self) -> &str {
        &self.live.text
    }

    /// Notes that the client cancelled all prompts.
    pub(super) fn cancel_prompts(&mut self) {
        for prompt in &mut self.prompts {
            prompt.is_cancelled = true;
        }
    }

    /// Returns true if running calls printed output that the client has not seen.
    pub(super) fn has_output(&self) -> bool {
        !self.unsent_output.is_empty()
    }

    /// Returns the stop reason of the turns since the oldest prompt, or the error that ended them.
    pub(super) fn stop_reason(&self) -> Result<&'static str, String> {
        match &self.last_end {
            None | Some(Outcome::Completed) => Ok(stop_word(self.last_stop.as_deref())),
            Some(Outcome::Interrupted(_)) => Ok("cancelled"),
            Some(Outcome::Failed(_)) if self.last_failure == Some(Category::Limit) => {
                Ok("max_turn_requests")
            }
            Some(Outcome::Failed(reason)) => Err(reason.clone()),
        }
    }

    fn says(&self, text: &str) -> ViewChange {
        let message_id = format!("{}-{}", self.shown_to, self.message);
        let chunk = ContentChunk::new(clean(text), Some(message_id));
        ViewChange::Update(SessionUpdate::AgentMessageChunk(chunk))
    }

    fn state_changed(&mut self, event: &UiEvent) -> Vec<ViewChange> {
        match event {
            UiEvent::Thinking(text) => {
                self.has_thought = true;
                let chunk = ContentChunk::new(clean(text), None);
                vec![ViewChange::Update(SessionUpdate::AgentThoughtChunk(chunk))]
            }
            UiEvent::Running(call) => {
                let update = ToolCallChange {
                    tool_call_id: call_id(*call),
                    status: Some(CallStatus::InProgress),
                    ..ToolCallChange::default()
                };
                vec![ViewChange::Update(SessionUpdate::ToolCallUpdate(update))]
            }
            _ => {
                self.note_output(event);
                Vec::new()
            }
        }
    }

    fn note_output(&mut self, event: &UiEvent) {
        if let UiEvent::Output { call, .. } | UiEvent::Progress { call, .. } = event {
            self.unsent_output.insert(*call);
        }
    }

    /// Shows a row that no event of a running turn showed before.
    fn not_seen(&mut self, row: &Row, names: NameLookup<'_>) -> Vec<ViewChange> {
        if !self.take_seq(row) {
            return Vec::new();
        }
        let updates = row_updates(row, &self.workdir, names).into_iter();
        updates.map(ViewChange::Update).collect()
    }

    /// Notes that the client sees a row; returns false if it has seen it.
    fn take_seq(&mut self, row: &Row) -> bool {
        let is_new = row.at.agent != self.agent || row.at.seq > self.shown_to;
        if is_new && row.at.agent == self.agent {
            self.shown_to = row.at.seq;
        }
        is_new
    }

    fn stored(&mut self, row: &Row, streamed: &str, names: NameLookup<'_>) -> Vec<ViewChange> {
        let has_thought = std::mem::take(&mut self.has_thought);
        let kind = row.kind.read_as();
        match kind {
            Some(Kind::User) if self.is_known_message(row) => {
                self.take_seq(row);
                Vec::new()
            }
            Some(Kind::Assistant) => {
                let data: AssistantData = data::read(row.data.as_deref());
                self.last_stop = data.stop;
                let rest = rest_of(row.content.as_deref().unwrap_or_default(), streamed);
                let rest = rest.map(|rest| self.says(rest));
                let mut changes = if streamed.is_empty() {
                    self.not_seen(row, names)
                } else {
                    self.take_seq(row);
                    rest.into_iter().collect()
                };
                drop_thoughts(&mut changes, has_thought);
                self.message += 1;
                changes
            }
            Some(Kind::ToolCall) => {
                let mut changes = if has_thought {
                    self.take_seq(row);
                    let update = call_update(row, &self.workdir);
                    update.map(ViewChange::Update).into_iter().collect()
                } else {
                    self.not_seen(row, names)
                };
                drop_thoughts(&mut changes, has_thought);
                changes
            }
            Some(Kind::Error) => {
                self.last_failure = failure_category(row);
                // The answer to the prompt has the reason.
                if self.prompts.is_empty() || self.last_failure == Some(Category::Limit) {
                    return self.not_seen(row, names);
                }
                self.take_seq(row);
                Vec::new()
            }
            Some(Kind::Interrupted) if !self.prompts.is_empty() => {
                self.take_seq(row);
                Vec::new()
            }
            _ => self.not_seen(row, names),
        }
    }

    /// Returns true if the client has shown a message itself, or its output was printed.
    fn is_known_message(&mut self, row: &Row) -> bool {
        let data: UserData = data::read(row.data.as_deref());
        if data.shell.is_some() {
            return std::mem::take(&mut self.has_printed);
        }
        let Shown::User { text, .. } = render(row) else {
            return false;
        };
        let index = self.sent.iter().position(|sent| *sent == text);
        index.is_some_and(|index| self.sent.remove(index).is_some())
    }

    fn line_changed(&mut self, line: LineChange<'_>) -> Vec<ViewChange> {
        match line {
            LineChange::Received(id) => {
                for prompt in &mut self.prompts {
                    prompt.is_received |= prompt.submission == id;
                }
                Vec::new()
            }
            LineChange::Unstored { id, reason } => {
                vec![ViewChange::Rejected(Some(id), reason.to_owned())]
            }
            LineChange::NotStored { id, reason, .. } => {
                vec![ViewChange::Rejected(id, reason.to_owned())]
            }
            LineChange::TakenBack(text) => {
                vec![warning(&format!("not sent: {}", clean_line(text)))]
            }
            LineChange::Queued(_) | LineChange::Delivered | LineChange::Running(_) => Vec::new(),
        }
    }
}

/// Returns the part of a stored text that was not streamed.
fn rest_of<'t>(stored: &'t str, streamed: &str) -> Option<&'t str> {
    let rest = stored.strip_prefix(streamed).unwrap_or_default();
    (!rest.trim().is_empty()).then_some(rest)
}

/// Removes thoughts that the client has seen as a stream.
fn drop_thoughts(changes: &mut Vec<ViewChange>, has_thought: bool) {
    if has_thought {
        changes.retain(|change| {
            !matches!(
                change,
                ViewChange::Update(SessionUpdate::AgentThoughtChunk(_))
            )
        });
    }
}

fn note(text: &str) -> ViewChange {
    ViewChange::Note(Severity::Info, text.to_owned())
}

fn warning(text: &str) -> ViewChange {
    ViewChange::Note(Severity::Warning, text.to_owned())
}

/// Says what a command would have done on a screen.
fn next_note(next: &Next) -> Vec<ViewChange> {
    match next {
        Next::Input(text) => vec![note(&format!("Edit and send again: {text}"))],
        Next::Switch(agent) => vec![note(&format!(
            "This agent has another session: open {agent}"
        ))],
        Next::Quit => vec![note("Close the session in your editor")],
        Next::Copy(_)
        | Next::Theme(_)
        | Next::Mouse(_)
        | Next::View(_)
        | Next::Refresh
        | Next::EditSummary(_) => Vec::new(),
    }
}

/// Maps a provider's stop reason.
fn stop_word(stop: Option<&str>) -> &'static str {
    match stop.map(str::to_ascii_lowercase).as_deref() {
        Some("max_tokens" | "length" | "max_output_tokens") => "max_tokens",
        Some("refusal" | "content_filter" | "safety") => "refusal",
        _ => "end_turn",
    }
}
