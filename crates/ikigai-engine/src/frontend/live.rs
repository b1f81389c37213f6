//! The reducer of events: every front end shows the state that it computes.

use std::time::Instant;

use ikigai_core::data::{self, CommandData, ToolCallData, ToolResultData};
use ikigai_core::{Kind, Row, RowRef};
use ikigai_providers::RetryPause;
use ikigai_store::MailId;

use super::live_change::{LineChange, LiveChange};
use super::tool_output::ToolOutput;
use super::{AgentSummary, Outcome, Question, UiEvent};

/// Limit of lines kept of a shell command before it is stored.
const PRINTED_LINES: usize = 200;

/// Unstored work of one agent, and a summary of its newest rows.
#[derive(Debug, Default)]
pub struct Live {
    /// The running turn.
    pub turn: Option<RunningTurn>,
    /// End of the last turn in this process; none while one runs.
    pub outcome: Option<Outcome>,
    /// Text that the model streams.
    pub text: String,
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
    /// Newest words and usage.
    pub summary: AgentSummary,
    /// Time of the newest event.
    pub last_event: Option<Instant>,
    /// True if this process runs the agent.
    pub is_ours: bool,
    /// True if a turn has ended and the user has not seen it.
    pub is_news: bool,
}

/// A running turn.
#[derive(Clone, Debug)]
pub struct RunningTurn {
    /// Time of its start.
    pub since: Instant,
    /// Time of its newest event.
    pub last_event: Instant,
    /// Phase of a turn.
    pub phase: Phase,
    /// Letters received since the request.
    pub letters: usize,
}

/// Phase of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The request is sent and no answer has come.
    Requested,
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

    /// Applies an event; returns the part that a front end may have to show at once.
    pub fn apply<'e>(&mut self, event: &'e UiEvent, now: Instant) -> LiveChange<'e> {
        self.last_event = Some(now);
        if let Some(turn) = &mut self.turn {
            turn.last_event = now;
        }
        match event {
            UiEvent::Began => self.begin(now),
            UiEvent::Ended(outcome) => self.end(outcome, now),
            UiEvent::Stored(row) => self.stored(row, now),
            UiEvent::Settled(row) => {
                self.summary.add_row(row);
                LiveChange::Settled(row)
            }
            UiEvent::Text(text) => self.answer(text),
            UiEvent::Thinking(text) => {
                self.thinking.push_str(text);
                self.goes_on(Phase::Thinks, text.len())
            }
            UiEvent::Calling(name) => self.goes_on(Phase::Calls(name.clone()), 0),
            UiEvent::Again => self.restart(),
            UiEvent::Waiting(wait) => self.retry(wait, now),
            UiEvent::Running(call) => self.run(*call, now),
            UiEvent::Progress { call, line } => self.progress(*call, line),
            UiEvent::Output { call, text } => self.output(*call, text),
            UiEvent::Question(question) => self.ask(question),
            UiEvent::Unasked(call) => {
                self.drop_question(Some(*call));
                LiveChange::Unasked(*call)
            }
            UiEvent::Queued { mail, text } => self.queue(*mail, text),
            UiEvent::Delivered(mail) => self.leave_queue(*mail, LineChange::Delivered),
            UiEvent::TakenBack { mail, text } => {
                self.leave_queue(*mail, LineChange::TakenBack(text))
            }
            UiEvent::Received(id) => {
                self.is_ours = true;
                LiveChange::Line(LineChange::Received(*id))
            }
            UiEvent::Unstored { id, reason } => {
                LiveChange::Line(LineChange::Unstored { id: *id, reason })
            }
            UiEvent::NotStored { id, input, reason } => {
                let id = *id;
                LiveChange::Line(LineChange::NotStored { id, input, reason })
            }
            UiEvent::Next(next) => LiveChange::Next(next),
            UiEvent::ShellStarted { id, command } => self.start_shell(*id, command, now),
            UiEvent::ShellEnded => self.end_shell(),
            UiEvent::Printed(line) => self.print(line),
            UiEvent::Preview {
                line,
                output,
                severity,
            } => LiveChange::Preview {
                line,
                output,
                severity: *severity,
            },
            UiEvent::Notice(text) => LiveChange::Notice(text),
            UiEvent::Warning(text) => LiveChange::Warning(text),
            UiEvent::GrantOffer(text) => LiveChange::GrantOffer(text),
            UiEvent::StoreAway(reason) => self.lose_store(reason),
        }
    }

    fn begin(&mut self, now: Instant) -> LiveChange<'static> {
        self.is_ours = true;
        self.is_news = false;
        self.outcome = None;
        self.turn = Some(RunningTurn {
            since: now,
            last_event: now,
            phase: Phase::Requested,
            letters: 0,
        });
        LiveChange::Began
    }

    fn end<'e>(&mut self, outcome: &'e Outcome, now: Instant) -> LiveChange<'e> {
        let turn = self.turn.take();
        self.clear_answer();
        self.running.clear();
        self.questions.clear();
        self.store_away = None;
        self.is_news = true;
        self.outcome = Some(outcome.clone());
        let took = turn.map(|turn| now.saturating_duration_since(turn.since));
        LiveChange::Ended { outcome, took }
    }

    fn answer<'e>(&mut self, text: &'e str) -> LiveChange<'e> {
        self.text.push_str(text);
        self.summary.add_text(text);
        self.goes_on(Phase::Says, text.len());
        LiveChange::Answer(text)
    }

    fn restart(&mut self) -> LiveChange<'static> {
        self.clear_answer();
        self.goes_on(Phase::Requested, 0);
        LiveChange::Restarted
    }

    fn retry<'e>(&mut self, wait: &'e RetryPause, now: Instant) -> LiveChange<'e> {
        let text = format!(
            "{}; attempt {} of {}",
            wait.error, wait.attempt, wait.attempts
        );
        let at = now + wait.pause;
        self.goes_on(Phase::Retries { text, at }, 0);
        LiveChange::Retry(wait)
    }

    fn run(&mut self, call: RowRef, now: Instant) -> LiveChange<'static> {
        if let Some(running) = self.running_mut(call) {
            running.since = now;
        }
        self.goes_on(Phase::Runs, 0)
    }

    fn progress<'e>(&mut self, call: RowRef, line: &'e str) -> LiveChange<'e> {
        if let Some(running) = self.running_mut(call) {
            line.clone_into(&mut running.line);
        }
        LiveChange::ToolLine(line)
    }

    fn output(&mut self, call: RowRef, text: &str) -> LiveChange<'static> {
        if let Some(running) = self.running_mut(call) {
            running.output.push(text);
        }
        LiveChange::State
    }

    fn ask<'e>(&mut self, question: &'e Question) -> LiveChange<'e> {
        self.drop_question(Some(question.call));
        self.questions.push(question.clone());
        LiveChange::Question(question)
    }

    fn queue<'e>(&mut self, mail: MailId, text: &'e str) -> LiveChange<'e> {
        // A process that activates an agent reports messages that were queued before.
        let change = self.leave_queue(mail, LineChange::Queued(text));
        self.queued.push((mail, text.to_owned()));
        change
    }

    fn leave_queue<'e>(&mut self, mail: MailId, change: LineChange<'e>) -> LiveChange<'e> {
        self.queued.retain(|(queued, _)| *queued != mail);
        LiveChange::Line(change)
    }

    fn start_shell(
        &mut self,
        id: Option<MailId>,
        command: &str,
        now: Instant,
    ) -> LiveChange<'static> {
        self.is_ours = true;
        self.shell = Some(ShellRun {
            command: command.to_owned(),
            since: now,
        });
        LiveChange::Line(LineChange::Running(id))
    }

    fn end_shell(&mut self) -> LiveChange<'static> {
        self.is_ours = true;
        self.shell = None;
        self.printed.clear();
        self.store_away = None;
        LiveChange::State
    }

    fn print<'e>(&mut self, line: &'e str) -> LiveChange<'e> {
        self.printed.push(line.to_owned());
        let surplus = self.printed.len().saturating_sub(PRINTED_LINES);
        self.printed.drain(..surplus);
        LiveChange::ShellLine(line)
    }

    /// Notes that the store fails; only the first report is a change to show.
    fn lose_store<'e>(&mut self, reason: &'e str) -> LiveChange<'e> {
        match self.store_away.replace(reason.to_owned()) {
            None => LiveChange::StoreAway(reason),
            Some(_) => LiveChange::State,
        }
    }

    fn clear_answer(&mut self) {
        self.text = String::new();
        self.thinking = String::new();
    }

    fn drop_question(&mut self, call: Option<RowRef>) {
        self.questions.retain(|one| Some(one.call) != call);
    }

    fn running_mut(&mut self, call: RowRef) -> Option<&mut RunningCall> {
        self.running.iter_mut().find(|one| one.call == call)
    }

    fn goes_on(&mut self, phase: Phase, letters: usize) -> LiveChange<'static> {
        if let Some(turn) = &mut self.turn {
            turn.phase = phase;
            turn.letters += letters;
        }
        LiveChange::State
    }

    fn stored<'e>(&mut self, row: &'e Row, now: Instant) -> LiveChange<'e> {
        self.store_away = None;
        self.summary.add_row(row);
        if let Some(kind) = row.kind.read_as() {
            self.replace_live(kind, row, now);
        }
        LiveChange::Row(row)
    }

    /// Drops the live parts that a stored row replaces.
    fn replace_live(&mut self, kind: Kind, row: &Row, now: Instant) {
        let data = row.data.as_deref();
        match kind {
            Kind::Assistant => self.clear_answer(),
            Kind::ToolCall => {
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
            Kind::ToolResult => {
                let of = data::read::<ToolResultData>(data).call;
                self.running.retain(|one| Some(one.call) != of);
                self.drop_question(of);
                if self.running.is_empty() {
                    self.goes_on(Phase::Requested, 0);
                    if let Some(turn) = &mut self.turn {
                        turn.letters = 0;
                    }
                }
            }
            Kind::Command => {
                self.drop_question(data::read::<CommandData>(data).of);
                self.printed.clear();
            }
            Kind::User => self.printed.clear(),
            Kind::System
            | Kind::Clear
            | Kind::Mark
            | Kind::Rewind
            | Kind::Fork
            | Kind::AgentKilled
            | Kind::Usage
            | Kind::Interrupted
            | Kind::Error
            | Kind::Summary
            | Kind::Process
            | Kind::Files => {}
        }
    }
}

#[cfg(test)]
mod tests;
