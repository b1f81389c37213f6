//! Conversation as lines of text, without a terminal or runtime.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use ikigai_core::data::{AnsweredBy, Cause, UserData, UserOrigin};
use ikigai_core::render::{Names, Shown, render};
use ikigai_core::settings::Settings;
use ikigai_core::{AgentId, Kind, Row, RowRef, data};
use ikigai_engine::commands::Next;
use ikigai_engine::{
    Answer, LineChange, Live, LiveChange, Outcome, Phase, Question, Stop, TypedKey, UiEvent,
    UserInput, UserRequest, looks_like_key,
};

use super::questions::{PrintedQuestions, TypedLine};
use super::words::{in_words, row_text};
use crate::rows::{RenderContext, duration};
use crate::signs::Symbols;
use crate::text::{beginning, clean, clean_line};

/// A second Ctrl-C within this time leaves.
const AGAIN: Duration = Duration::from_secs(2);

/// Lines are not folded here: the terminal does that.
const WIDTH: u16 = 1000;

/// Characters shown of a line that was not stored.
pub(super) const NOT_STORED_CHARS: usize = 500;

/// Action for the driver of the conversation.
pub(super) enum Want {
    /// Send this.
    Say(AgentId, UserRequest),
    /// Go to another agent.
    Show(AgentId),
    /// Read the names of agents.
    ReadNames,
    /// Turn echo off.
    Hide,
    /// Show it again.
    Unhide,
    /// Verify and save this key of a provider.
    TakeKey(String, TypedKey),
    /// Leave.
    Quit,
}

/// See the module.
pub(super) struct Talk {
    current: AgentId,
    /// Unstored work of the agents of this process.
    lives: HashMap<AgentId, Live>,
    names: HashMap<AgentId, String>,
    questions: PrintedQuestions,
    /// Output to write.
    text: String,
    /// The line of an answer that has not ended.
    coming: String,
    /// An answer is streaming.
    is_speaking: bool,
    /// Last prompt, if the user is being asked.
    prompt: Option<&'static str>,
    /// A line that looks like a key; it is sent only if typed again.
    held: Option<String>,
    /// Provider whose key is being typed.
    secret: Option<String>,
    interrupted: Option<Instant>,
    /// A line was sent, and no output for it came yet.
    is_said: bool,
    /// Output of the user's shell was printed, so that its row need not repeat it.
    is_printed: bool,
    wants: Vec<Want>,
}

impl Talk {
    pub(super) fn new(current: AgentId) -> Self {
        Self {
            current,
            lives: HashMap::new(),
            names: HashMap::new(),
            questions: PrintedQuestions::default(),
            text: String::new(),
            coming: String::new(),
            is_speaking: false,
            prompt: None,
            held: None,
            secret: None,
            interrupted: None,
            is_said: false,
            is_printed: false,
            wants: Vec::new(),
        }
    }

    /// Adds lines.
    pub(super) fn add(&mut self, text: &str) {
        if self.prompt.take().is_some() {
            self.text.push('\n');
        }
        self.text.push_str(&clean(text));
        self.text.push('\n');
    }

    pub(super) fn go_to(&mut self, agent: AgentId, settings: &Settings) {
        self.current = agent;
        let name = settings.name.as_deref().unwrap_or_default();
        let model = settings.model.as_ref();
        let model = model.and_then(|model| model.model.as_deref());
        let workdir = settings.workdir.as_deref().unwrap_or_default();
        self.add(&format!(
            "agent {name} in {workdir}, model {}",
            model.unwrap_or("demo")
        ));
    }

    /// Reports a line that could not be sent, for this reason.
    pub(super) fn not_said(&mut self, reason: &str) {
        self.is_said = false;
        if !reason.is_empty() {
            self.add(reason);
        }
    }

    pub(super) fn set_names(&mut self, names: HashMap<AgentId, String>) {
        self.names = names;
    }

    /// Asks for the names of new agents, and to show one of them.
    pub(super) fn show_forked(&mut self, agent: Option<AgentId>) {
        self.wants.push(Want::ReadNames);
        self.wants.extend(agent.map(Want::Show));
    }

    pub(super) fn take_wants(&mut self) -> Vec<Want> {
        std::mem::take(&mut self.wants)
    }

    /// Takes the output; appends a prompt if the agent is idle.
    pub(super) fn take_text(&mut self) -> String {
        let wanted = match self.questions.first() {
            _ if self.secret.is_some() => Some("API key (hidden): "),
            Some(_) => Some("answer 1 to 4: "),
            None if self.is_busy() || self.is_said => None,
            None => Some("you: "),
        };
        if self.prompt.is_none() && wanted.is_some() {
            self.text.push_str(wanted.unwrap_or_default());
            self.prompt = wanted;
        }
        std::mem::take(&mut self.text)
    }

    pub(super) fn is_busy(&self) -> bool {
        self.lives.get(&self.current).is_some_and(Live::is_busy)
    }

    pub(super) fn current(&self) -> AgentId {
        self.current
    }

    fn say(&mut self, request: UserRequest) {
        self.wants.push(Want::Say(self.current, request));
    }

    /// Notes that all output was written.
    pub(super) fn set_written(&mut self, now: Instant) {
        self.questions.set_written(now);
    }

    /// Handles a typed line, which was read at a time.
    pub(super) fn line(&mut self, line: &str, read_at: Instant) {
        // The terminal has ended the line.
        self.prompt = None;
        self.interrupted = None;
        if let Some(provider) = self.secret.take() {
            return self.take_key(provider, line);
        }
        match self.questions.interpret(line, read_at) {
            TypedLine::Answer(call, answer) => return self.answer(call, answer),
            TypedLine::Early => {
                return self.add("Typed before the question was shown. Type the answer again");
            }
            TypedLine::Invalid => return self.add("Type 1, 2, 3 or 4 REASON"),
            TypedLine::Other => {}
        }
        if line.trim().is_empty() {
            return;
        }
        if looks_like_key(line) && self.held.take().as_deref() != Some(line) {
            self.held = Some(line.to_owned());
            return self.add("This looks like an API key. Type the same line again to send it");
        }
        self.held = None;
        let input = UserInput::parse(line);
        if let UserInput::Command(typed) = &input
            && typed.command.name == "key"
            && is_word(&typed.arguments)
        {
            self.secret = Some(typed.arguments.clone());
            return self.wants.push(Want::Hide);
        }
        self.is_said = true;
        self.say(UserRequest::Line(input));
    }

    /// Takes a key that was typed without echo.
    fn take_key(&mut self, provider: String, typed: &str) {
        self.wants.push(Want::Unhide);
        match TypedKey::new(typed) {
            Some(key) => {
                self.is_said = true;
                self.wants.push(Want::TakeKey(provider, key));
            }
            None if typed.trim().is_empty() => self.add("Cancelled. Key not saved"),
            None => self.add("Not a valid key. Nothing saved"),
        }
    }

    fn answer(&mut self, call: RowRef, answer: Answer) {
        let request = UserRequest::Answer {
            call,
            answer,
            by: AnsweredBy::User,
        };
        self.wants.push(Want::Say(call.agent, request));
        self.ask_next();
    }

    /// Handles Ctrl-C: stops the running work; the second time it quits.
    pub(super) fn interrupt(&mut self, now: Instant) {
        if self.secret.take().is_some() {
            self.wants.push(Want::Unhide);
            return self.add("Cancelled. Key not saved");
        }
        let before = self.interrupted.replace(now);
        if before.is_some_and(|before| now.saturating_duration_since(before) < AGAIN) {
            self.wants.push(Want::Quit);
        } else if self.is_busy() {
            self.add("Interrupting. Ctrl-C again to quit");
            self.say(UserRequest::Stop(Stop::Interrupt(Cause::User)));
        } else {
            self.add("Ctrl-C again to quit");
        }
    }

    /// Handles an event of the engine; returns the change that it made.
    pub(super) fn handle_event<'e>(
        &mut self,
        agent: AgentId,
        update: &'e UiEvent,
        now: Instant,
    ) -> LiveChange<'e> {
        let change = self.lives.entry(agent).or_default().apply(update, now);
        if agent == self.current {
            self.is_said &= is_before_output(&change);
            self.show(&change);
        } else {
            self.show_other(agent, &change);
        }
        change
    }

    /// Prints a change of the current agent.
    fn show(&mut self, change: &LiveChange<'_>) {
        match change {
            LiveChange::Answer(text) => self.speak(text),
            LiveChange::Restarted => {
                self.coming.clear();
                if std::mem::take(&mut self.is_speaking) {
                    self.add("The answer starts again");
                }
            }
            LiveChange::Retry(wait) => self.add(&format!(
                "retry: {}; attempt {} of {} in {}",
                wait.error,
                wait.attempt,
                wait.attempts,
                duration(wait.pause)
            )),
            LiveChange::Row(row) | LiveChange::Settled(row) => self.stored(row),
            LiveChange::ShellLine(line) => {
                self.is_printed = true;
                self.add(line);
            }
            LiveChange::Question(question) => self.open_question(question),
            LiveChange::Unasked(call) => self.close_question(*call),
            LiveChange::Ended { .. } => self.end_speech(),
            LiveChange::Line(line) => self.line_changed(*line),
            LiveChange::Preview {
                output, severity, ..
            } => self.add(&in_words(&severity.signed(output))),
            LiveChange::Notice(text) => self.add(text),
            LiveChange::Warning(text) | LiveChange::GrantOffer(text) => {
                self.add(&format!("warning: {text}"));
            }
            LiveChange::StoreAway(reason) => {
                self.add(&format!("store unreachable, nothing is lost: {reason}"));
            }
            LiveChange::Next(next) => self.next(next),
            // The progress line reports them.
            LiveChange::State | LiveChange::Began | LiveChange::ToolLine(_) => {}
        }
    }

    fn line_changed(&mut self, line: LineChange<'_>) {
        match line {
            LineChange::Queued(text) => self.add(&format!("queued: {}", clean_line(text))),
            LineChange::TakenBack(text) => self.add(&format!("not sent: {}", clean_line(text))),
            LineChange::NotStored { input, reason, .. } => {
                let text = beginning(input.line(), NOT_STORED_CHARS);
                self.add(&format!("not done ({reason}): {text}"));
            }
            LineChange::Delivered
            | LineChange::Received(_)
            | LineChange::Unstored { .. }
            | LineChange::Running(_) => {}
        }
    }

    /// Prints a change of another agent.
    fn show_other(&mut self, agent: AgentId, change: &LiveChange<'_>) {
        let name = self.name_of(agent);
        match change {
            LiveChange::Question(question) => self.open_question(question),
            LiveChange::Unasked(call) => self.close_question(*call),
            LiveChange::Ended { outcome, .. } => match outcome {
                Outcome::Completed => self.add(&format!("agent {name}: done")),
                Outcome::Failed(reason) => self.add(&format!("agent {name}: failed: {reason}")),
                Outcome::Interrupted(_) => {}
            },
            LiveChange::Warning(text) => self.add(&format!("agent {name}: warning: {text}")),
            LiveChange::Row(row) => {
                if row.kind.read_as() == Some(Kind::Fork) {
                    self.wants.push(Want::ReadNames);
                }
            }
            LiveChange::State
            | LiveChange::Began
            | LiveChange::Answer(_)
            | LiveChange::Restarted
            | LiveChange::Retry(_)
            | LiveChange::Settled(_)
            | LiveChange::ToolLine(_)
            | LiveChange::ShellLine(_)
            | LiveChange::Line(_)
            | LiveChange::Preview { .. }
            | LiveChange::Notice(_)
            | LiveChange::GrantOffer(_)
            | LiveChange::StoreAway(_)
            | LiveChange::Next(_) => {}
        }
    }

    fn next(&mut self, next: &Next) {
        match next {
            Next::Switch(agent) => self.wants.push(Want::Show(*agent)),
            Next::Quit => self.wants.push(Want::Quit),
            Next::Input(text) => self.add(&format!("edit and send again: {text}")),
            // Only a screen is given these.
            Next::Copy(_)
            | Next::Theme(_)
            | Next::Mouse(_)
            | Next::View(_)
            | Next::Refresh
            | Next::EditSummary(_) => {}
        }
    }

    /// Prints whole lines of a streaming answer.
    fn speak(&mut self, text: &str) {
        self.coming.push_str(text);
        while let Some(end) = self.coming.find('\n') {
            let line: String = self.coming.drain(..=end).collect();
            self.speak_line(line.trim_end());
        }
    }

    fn speak_line(&mut self, line: &str) {
        let is_first = !std::mem::replace(&mut self.is_speaking, true);
        let said = if is_first { "assistant: " } else { "" };
        self.add(&format!("{said}{line}"));
    }

    fn end_speech(&mut self) {
        let rest = std::mem::take(&mut self.coming);
        if !rest.trim().is_empty() {
            self.speak_line(rest.trim_end());
        }
        self.is_speaking = false;
    }

    fn stored(&mut self, row: &Row) {
        match row.kind.read_as() {
            Some(Kind::Assistant) if self.is_speaking || !self.coming.is_empty() => {
                self.end_speech();
            }
            // The user has typed it and seen it.
            Some(Kind::User) if is_typed(row) => {}
            // The command's own output reports it.
            Some(Kind::Mark | Kind::Rewind) => {}
            Some(Kind::User) if std::mem::take(&mut self.is_printed) => {
                let shell = data::read::<UserData>(row.data.as_deref()).shell;
                match shell.and_then(|shell| shell.exit) {
                    Some(0) => {}
                    Some(code) => self.add(&format!("exit code {code}")),
                    None => self.add_row(row),
                }
            }
            Some(Kind::Command) => {
                if let Shown::Command {
                    output, severity, ..
                } = render(row)
                    && !output.is_empty()
                {
                    self.add(&in_words(&severity.signed(&output)));
                }
                self.wants.push(Want::ReadNames);
            }
            Some(Kind::Fork) => {
                self.wants.push(Want::ReadNames);
                self.add_row(row);
            }
            Some(
                Kind::System
                | Kind::User
                | Kind::Assistant
                | Kind::ToolCall
                | Kind::ToolResult
                | Kind::Clear
                | Kind::AgentKilled
                | Kind::Usage
                | Kind::Interrupted
                | Kind::Error
                | Kind::Summary
                | Kind::Process
                | Kind::Files,
            )
            | None => self.add_row(row),
        }
    }

    /// Adds an event.
    pub(super) fn add_row(&mut self, row: &Row) {
        let names = |agent| self.names.get(&agent).cloned();
        let text = row_text(row, &context(Some(self.current), &names));
        if !text.is_empty() {
            self.add(&text);
        }
    }

    fn open_question(&mut self, question: &Question) {
        if self.questions.add(question) {
            self.ask_next();
        }
    }

    fn close_question(&mut self, call: RowRef) {
        if self.questions.remove(call) {
            self.add("This question no longer needs an answer");
            self.ask_next();
        }
    }

    /// Asks the first question that waits.
    fn ask_next(&mut self) {
        let Some(question) = self.questions.first().cloned() else {
            return;
        };
        let whose = if question.call.agent == self.current {
            String::new()
        } else {
            format!("{}: ", clean_line(&question.agent))
        };
        self.add(&format!(
            "question: {whose}{} in {}",
            clean_line(&question.tool),
            clean_line(&question.workdir)
        ));
        let preview = question.preview.as_deref().unwrap_or_default();
        for line in question.shown.split('\n').chain(preview.lines()) {
            self.add(&format!("  {line}"));
        }
        // Indent the lines after the first, so that none looks like an answer.
        let pattern = question.spelled_pattern().replace('\n', "\n      ");
        self.add(&format!(
            "  1  once\n  2  always allow {} \"{pattern}\"\n  3  no\n  4  no, and tell the model why: 4 REASON",
            question.tool
        ));
    }

    /// Prints progress.
    pub(super) fn add_progress(&mut self, now: Instant) {
        let Some(work) = self.lives.get(&self.current) else {
            return;
        };
        let Some(doing) = &work.turn else {
            return;
        };
        let what = match (&doing.phase, work.running.first()) {
            _ if !self.questions.is_empty() => "waiting for your answer".to_owned(),
            (Phase::Runs, Some(running)) => {
                let line = running.shown.lines().next().unwrap_or_default();
                format!("running {line}")
            }
            (Phase::Requested, _) => "waiting for the model".to_owned(),
            (Phase::Thinks, _) => "thinking".to_owned(),
            (Phase::Retries { text, .. }, _) => text.clone(),
            (Phase::Says | Phase::Calls(_) | Phase::Runs, _) => "answering".to_owned(),
        };
        let time = duration(now.saturating_duration_since(doing.since));
        self.add(&format!("working: {what}, {time}"));
    }

    /// Prints the command to continue.
    pub(super) fn add_farewell(&mut self) {
        let name = self.name_of(self.current);
        self.end_speech();
        self.add(&format!(
            "Everything is saved. Resume with: ikigai --plain --agent {name}"
        ));
        // The questions are void.
        self.questions.clear();
        self.prompt = Some("");
    }

    fn name_of(&self, agent: AgentId) -> String {
        let name = self.names.get(&agent).cloned();
        name.unwrap_or_else(|| agent.to_string())
    }
}

fn context(own: Option<AgentId>, name_of: &dyn Fn(AgentId) -> Option<String>) -> RenderContext<'_> {
    RenderContext {
        width: WIDTH,
        symbols: Symbols::Utf8,
        names: Names { own, name_of },
    }
}

/// Returns true if the output for the user's line comes after this change.
fn is_before_output(change: &LiveChange<'_>) -> bool {
    match change {
        // The row of a message comes before its turn begins; a command's row comes before its
        // output.
        LiveChange::Row(row) => is_typed(row) || is_deed(row),
        LiveChange::ShellLine(_) => true,
        LiveChange::Line(line) => matches!(
            line,
            LineChange::Running(_) | LineChange::Received(_) | LineChange::Delivered
        ),
        _ => false,
    }
}

/// Returns true if a following command row reports it.
fn is_deed(row: &Row) -> bool {
    use Kind::{AgentKilled, Clear, Fork, Mark, Rewind};
    matches!(
        row.kind.read_as(),
        Some(AgentKilled | Clear | Fork | Mark | Rewind)
    )
}

/// Returns true if it is a message typed by the user.
fn is_typed(row: &Row) -> bool {
    if row.kind.read_as() != Some(Kind::User) {
        return false;
    }
    let user: UserData = data::read(row.data.as_deref());
    user.origin == Some(UserOrigin::Typed) && user.merge.is_none() && user.shell.is_none()
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}
