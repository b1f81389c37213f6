//! Unstored work of an agent, drawn below its stored rows.

use std::time::Instant;

use ikigai_core::data::{self, CommandData, ToolCallData, ToolResultData};
use ikigai_core::{Kind, Row, RowRef};
use ikigai_engine::{MailId, Question, UiEvent};

use super::tool_output::ToolOutput;
use crate::line::TextLine;
use crate::markdown::{MarkdownStyle, Streaming};

/// Limit of lines kept of a shell command before it is stored.
const PRINTED_LINES: usize = 200;

/// Unstored work of an agent.
#[derive(Default)]
pub struct Live {
    /// The running turn.
    pub turn: Option<RunningTurn>,
    /// Text that the model streams.
    pub text: StreamedText,
    /// Thinking that the model streams.
    pub thinking: String,
    /// Running calls, in the order of their start.
    pub running: Vec<RunningCall>,
    /// Calls that wait for an approval.
    pub questions: Vec<Question>,
    /// Queued messages.
    pub queued: Vec<(MailId, String)>,
    /// Running shell command of the user.
    pub shell: Option<ShellRun>,
    /// Newest lines of the user's shell command.
    pub printed: Vec<String>,
    /// Reason why the store fails.
    pub store_away: Option<String>,
}

/// Streamed text, and the layout of its drawn part.
#[derive(Default)]
pub struct StreamedText {
    text: String,
    drawn: Option<Streaming>,
    /// Bytes that are laid out.
    upto: usize,
}

impl StreamedText {
    /// Reports whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the whole text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns its rows; lays out only the text since the last call.
    pub fn lines(&mut self, style: MarkdownStyle) -> &[TextLine] {
        let width = style.width;
        let drawn = self.drawn.get_or_insert_with(|| Streaming::new(style));
        drawn.push(self.text.get(self.upto..).unwrap_or_default());
        self.upto = self.text.len();
        drawn.lines(width)
    }
}

/// A running turn.
#[derive(Clone, Debug)]
pub struct RunningTurn {
    /// Time of its start.
    pub since: Instant,
    /// Time of its newest event.
    pub heard: Instant,
    /// Phase of a turn.
    pub phase: Phase,
    /// Letters received since the request.
    pub letters: usize,
}

/// Phase of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The request is sent and no answer has come.
    Asked,
    /// The model thinks.
    Thinks,
    /// The model answers.
    Says,
    /// The model writes a call.
    Calls(String),
    /// Calls run.
    Runs,
    /// The request failed and is sent again later.
    Retries {
        /// Reason and number of attempts.
        text: String,
        /// Time of the next attempt.
        at: Instant,
    },
}

/// Running shell command of the user.
#[derive(Clone, Debug)]
pub struct ShellRun {
    /// The command line.
    pub command: String,
    /// Time of its start.
    pub since: Instant,
}

/// Running call.
#[derive(Clone, Debug)]
pub struct RunningCall {
    /// Row of the call.
    pub call: RowRef,
    /// Tool and arguments.
    pub shown: String,
    /// Time of its start.
    pub since: Instant,
    /// Its newest line.
    pub line: String,
    /// Its whole lines.
    pub output: ToolOutput,
}

impl Live {
    /// Reports whether a turn or a shell command of the user runs.
    pub fn is_busy(&self) -> bool {
        self.turn.is_some() || self.shell.is_some()
    }

    /// Returns true if there is no state to keep.
    pub fn is_empty(&self) -> bool {
        !self.is_busy() && self.questions.is_empty() && self.queued.is_empty()
    }

    /// Handles an event.
    pub fn handle_event(&mut self, update: &UiEvent, now: Instant) {
        if let Some(doing) = &mut self.turn {
            doing.heard = now;
        }
        match update {
            UiEvent::Began => {
                self.turn = Some(RunningTurn {
                    since: now,
                    heard: now,
                    phase: Phase::Asked,
                    letters: 0,
                });
            }
            UiEvent::Ended(_) => {
                self.turn = None;
                self.text.clear();
                self.thinking.clear();
                self.running.clear();
                self.questions.clear();
                self.store_away = None;
            }
            UiEvent::Text(text) => {
                self.text.push(text);
                self.goes_on(Phase::Says, text.len());
            }
            UiEvent::Thinking(text) => {
                self.thinking.push_str(text);
                self.goes_on(Phase::Thinks, text.len());
            }
            UiEvent::Calling(name) => self.goes_on(Phase::Calls(name.clone()), 0),
            UiEvent::Again => {
                self.text.clear();
                self.thinking.clear();
                self.goes_on(Phase::Asked, 0);
            }
            UiEvent::Waiting(wait) => {
                let text = format!("{}, try {} of {}", wait.error, wait.attempt, wait.attempts);
                let at = now + wait.pause;
                self.goes_on(Phase::Retries { text, at }, 0);
            }
            UiEvent::Running(call) => {
                if let Some(running) = self.running.iter_mut().find(|one| one.call == *call) {
                    running.since = now;
                }
                self.goes_on(Phase::Runs, 0);
            }
            UiEvent::Progress { call, line } => {
                if let Some(running) = self.running.iter_mut().find(|one| one.call == *call) {
                    running.line.clone_from(line);
                }
            }
            UiEvent::Output { call, text } => {
                if let Some(running) = self.running.iter_mut().find(|one| one.call == *call) {
                    running.output.push(text);
                }
            }
            UiEvent::Question(question) => {
                self.questions.retain(|one| one.call != question.call);
                self.questions.push(question.clone());
            }
            UiEvent::Unasked(call) => self.questions.retain(|one| one.call != *call),
            UiEvent::Queued { mail, text } => {
                // A process that activates an agent reports messages that were queued before.
                self.queued.retain(|(queued, _)| queued != mail);
                self.queued.push((*mail, text.clone()));
            }
            UiEvent::TakenBack { mail, .. } | UiEvent::Delivered(mail) => {
                self.queued.retain(|(queued, _)| queued != mail);
            }
            UiEvent::ShellStarted { command, .. } => {
                self.shell = Some(ShellRun {
                    command: command.clone(),
                    since: now,
                });
            }
            UiEvent::ShellEnded => {
                self.shell = None;
                self.printed.clear();
                self.store_away = None;
            }
            UiEvent::Printed(line) => {
                self.printed.push(line.clone());
                let surplus = self.printed.len().saturating_sub(PRINTED_LINES);
                self.printed.drain(..surplus);
            }
            UiEvent::StoreAway(reason) => self.store_away = Some(reason.clone()),
            UiEvent::Stored(row) => self.stored(row, now),
            UiEvent::Settled(_)
            | UiEvent::NotStored { .. }
            | UiEvent::Received(_)
            | UiEvent::Unstored { .. }
            | UiEvent::Next(_)
            | UiEvent::Preview { .. }
            | UiEvent::Notice(_)
            | UiEvent::Warning(_)
            | UiEvent::GrantOffer(_) => {}
        }
    }

    fn goes_on(&mut self, phase: Phase, letters: usize) {
        if let Some(doing) = &mut self.turn {
            doing.phase = phase;
            doing.letters += letters;
        }
    }

    /// Drops the live parts that a stored row replaces.
    fn stored(&mut self, row: &Row, now: Instant) {
        self.store_away = None;
        let data = row.data.as_deref();
        match row.kind.read_as() {
            Some(Kind::Assistant) => {
                self.text.clear();
                self.thinking.clear();
            }
            Some(Kind::ToolCall) => {
                let call: ToolCallData = data::read(data);
                let name = call.name.unwrap_or_default();
                let shown = row.content.clone().unwrap_or_default();
                self.running.push(RunningCall {
                    call: row.at,
                    shown: format!("{name}: {shown}"),
                    since: now,
                    line: String::new(),
                    output: ToolOutput::default(),
                });
            }
            Some(Kind::ToolResult) => {
                let of = data::read::<ToolResultData>(data).call;
                self.running.retain(|one| Some(one.call) != of);
                self.questions.retain(|one| Some(one.call) != of);
                if self.running.is_empty() {
                    self.goes_on(Phase::Asked, 0);
                    if let Some(doing) = &mut self.turn {
                        doing.letters = 0;
                    }
                }
            }
            Some(Kind::Command) => {
                let of = data::read::<CommandData>(data).of;
                self.questions.retain(|one| Some(one.call) != of);
                self.printed.clear();
            }
            Some(Kind::User) => {
                self.printed.clear();
            }
            _ => {}
        }
    }
}
