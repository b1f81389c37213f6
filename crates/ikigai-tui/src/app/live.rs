//! What an agent does at the moment and is not in its log yet: an overlay over its scrollback.

use std::time::Instant;

use ikigai_core::data::{self, CommandData, ToolCallData, ToolResultData};
use ikigai_core::{Kind, Row, RowRef};
use ikigai_engine::{MailId, Question, Update};

use super::tool_output::ToolOutput;
use crate::line::Line;
use crate::markdown::{Streaming, Style};

/// At most so much of what a shell prints is shown before it is stored.
const PRINTED_LINES: usize = 200;

/// See the module.
#[derive(Default)]
pub struct Live {
    /// The turn that goes on; none between turns.
    pub turn: Option<Doing>,
    /// What the model says.
    pub text: Said,
    /// What it thinks.
    pub thinking: String,
    /// The calls that run, in the order in which they began.
    pub running: Vec<Running>,
    /// The calls that wait for a person.
    pub questions: Vec<Question>,
    /// Messages that wait for the next break.
    pub queued: Vec<(MailId, String)>,
    /// The shell command of the user that runs.
    pub shell: Option<ShellRun>,
    /// What a shell of the user printed last.
    pub printed: Vec<String>,
    /// The store fails, for this reason.
    pub store_away: Option<String>,
}

/// What the model says, as it comes: drawn as far as somebody has looked.
#[derive(Default)]
pub struct Said {
    text: String,
    drawn: Option<Streaming>,
    /// How much of the text is drawn.
    upto: usize,
}

impl Said {
    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// All of it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn clear(&mut self) {
        *self = Self::default();
    }

    /// Its rows. Only what came since the last time is drawn.
    pub fn lines(&mut self, style: Style) -> &[Line] {
        let width = style.width;
        let drawn = self.drawn.get_or_insert_with(|| Streaming::new(style));
        drawn.push(self.text.get(self.upto..).unwrap_or_default());
        self.upto = self.text.len();
        drawn.lines(width)
    }
}

/// A turn that goes on.
#[derive(Clone, Debug)]
pub struct Doing {
    /// Since when.
    pub since: Instant,
    /// When something was heard last.
    pub heard: Instant,
    /// What goes on.
    pub phase: Phase,
    /// How many letters came since the model was asked.
    pub letters: usize,
}

/// What goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The model was asked and has not said anything yet.
    Asked,
    /// It thinks.
    Thinks,
    /// It says something.
    Says,
    /// It begins to call a tool.
    Calls(String),
    /// Its calls run.
    Runs,
    /// It failed and is asked again later.
    Retries {
        /// Why, and how often.
        text: String,
        /// When.
        at: Instant,
    },
}

/// A shell command of the user that runs.
#[derive(Clone, Debug)]
pub struct ShellRun {
    /// The command line.
    pub command: String,
    /// Time of its start.
    pub since: Instant,
}

/// A call that runs.
#[derive(Clone, Debug)]
pub struct Running {
    /// Which.
    pub call: RowRef,
    /// Of which tool, and with what.
    pub shown: String,
    /// Since when.
    pub since: Instant,
    /// What it printed last.
    pub line: String,
    /// Whole lines that it printed.
    pub output: ToolOutput,
}

impl Live {
    /// Returns whether a turn goes on or a shell command of the user runs.
    pub fn is_busy(&self) -> bool {
        self.turn.is_some() || self.shell.is_some()
    }

    /// Whether nothing of it is worth keeping.
    pub fn is_empty(&self) -> bool {
        !self.is_busy() && self.questions.is_empty() && self.queued.is_empty()
    }

    /// Takes in what the engine tells.
    pub fn told(&mut self, update: &Update, now: Instant) {
        if let Some(doing) = &mut self.turn {
            doing.heard = now;
        }
        match update {
            Update::Began => {
                self.turn = Some(Doing {
                    since: now,
                    heard: now,
                    phase: Phase::Asked,
                    letters: 0,
                });
            }
            Update::Ended(_) => {
                self.turn = None;
                self.text.clear();
                self.thinking.clear();
                self.running.clear();
                self.questions.clear();
                self.store_away = None;
            }
            Update::Text(text) => {
                self.text.push(text);
                self.goes_on(Phase::Says, text.len());
            }
            Update::Thinking(text) => {
                self.thinking.push_str(text);
                self.goes_on(Phase::Thinks, text.len());
            }
            Update::Calling(name) => self.goes_on(Phase::Calls(name.clone()), 0),
            Update::Again => {
                self.text.clear();
                self.thinking.clear();
                self.goes_on(Phase::Asked, 0);
            }
            Update::Waiting(wait) => {
                let text = format!("{}, try {} of {}", wait.error, wait.attempt, wait.attempts);
                let at = now + wait.pause;
                self.goes_on(Phase::Retries { text, at }, 0);
            }
            Update::Running(call) => {
                if let Some(running) = self.running.iter_mut().find(|one| one.call == *call) {
                    running.since = now;
                }
                self.goes_on(Phase::Runs, 0);
            }
            Update::Progress { call, line } => {
                if let Some(running) = self.running.iter_mut().find(|one| one.call == *call) {
                    running.line.clone_from(line);
                }
            }
            Update::Output { call, text } => {
                if let Some(running) = self.running.iter_mut().find(|one| one.call == *call) {
                    running.output.push(text);
                }
            }
            Update::Question(question) => {
                self.questions.retain(|one| one.call != question.call);
                self.questions.push(question.clone());
            }
            Update::Unasked(call) => self.questions.retain(|one| one.call != *call),
            Update::Queued { mail, text } => {
                // A process that begins to look after the agent reports what was queued before.
                self.queued.retain(|(queued, _)| queued != mail);
                self.queued.push((*mail, text.clone()));
            }
            Update::TakenBack { mail, .. } | Update::Delivered(mail) => {
                self.queued.retain(|(queued, _)| queued != mail);
            }
            Update::ShellStarted { command, .. } => {
                self.shell = Some(ShellRun {
                    command: command.clone(),
                    since: now,
                });
            }
            Update::ShellEnded => {
                self.shell = None;
                self.printed.clear();
                self.store_away = None;
            }
            Update::Printed(line) => {
                self.printed.push(line.clone());
                let surplus = self.printed.len().saturating_sub(PRINTED_LINES);
                self.printed.drain(..surplus);
            }
            Update::StoreAway(reason) => self.store_away = Some(reason.clone()),
            Update::Stored(row) => self.stored(row, now),
            Update::Settled(_)
            | Update::NotStored { .. }
            | Update::Received(_)
            | Update::Unstored { .. }
            | Update::Next(_)
            | Update::Preview { .. }
            | Update::Notice(_)
            | Update::Warning(_)
            | Update::GrantOffer(_) => {}
        }
    }

    fn goes_on(&mut self, phase: Phase, letters: usize) {
        if let Some(doing) = &mut self.turn {
            doing.phase = phase;
            doing.letters += letters;
        }
    }

    /// What is in the log is no overlay any more.
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
                self.running.push(Running {
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
