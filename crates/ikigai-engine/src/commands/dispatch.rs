//! Dispatcher: the only writer of `command` rows with an echo.

use ikigai_core::data::{Cause, CommandData};
use ikigai_core::words::Severity;
use ikigai_core::{Event, RowRef};
use ikigai_providers::looks_like_key;
use ikigai_store::{BoxFuture, CommitError};

use super::actions::CommandAction;
use super::fork::child_of_call;
use super::reply::Then;
use super::shell;
use super::{COMMANDS, Reply, Trouble, Typed, all, name_suggestion};
use crate::frontend::{
    FrontEnd, Listing, ListingView, Outcome, Stop, UiEvent, UserRequest, WaitingLine,
};
use crate::grants::pending_tag;
use crate::input::{CommandLine, ShellLine, UnknownCommand, UserInput};
use crate::ledger::CommitPlan;
use crate::turn::Interpreter;
use crate::{AgentJob, EngineError, Worker};

/// Most bytes of a listing that its row stores; the rest can be listed again.
const MOST_LISTED_BYTES: usize = 32 * 1024;

/// Room for the note below a listing that was cut.
const CUT_NOTE_BYTES: usize = 64;

/// Result of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// True for a command that only printed a warning, or that was stopped.
    pub warned: bool,
    /// Outcome of the turn that it started, if any.
    pub outcome: Option<Outcome>,
}

impl Done {
    /// Creates a successful command.
    pub fn command() -> Self {
        Self {
            warned: false,
            outcome: None,
        }
    }

    /// Creates a turn with this outcome.
    pub fn turn(outcome: Outcome) -> Self {
        Self {
            warned: false,
            outcome: Some(outcome),
        }
    }
}

/// Result of a command before its follow-up.
pub(crate) struct Carried {
    pub(crate) warned: bool,
    /// Request that stopped it, if any.
    pub(crate) stopped: Option<Stop>,
    /// The command's own row.
    row: RowRef,
    then: Then,
}

impl Carried {
    fn stored(warned: bool, row: RowRef, then: Then) -> Self {
        Self {
            warned,
            stopped: None,
            row,
            then,
        }
    }
}

/// Result of a command's follow-up.
pub(crate) enum ChainOutcome {
    /// Finished.
    Done,
    /// The slow part only printed a warning.
    Warned,
    /// The slow part was stopped, and reported that.
    Stopped(Stop),
    Work(AgentJob),
}

impl ChainOutcome {
    pub(crate) fn job(self) -> Option<AgentJob> {
        match self {
            Self::Work(job) => Some(job),
            Self::Done | Self::Warned | Self::Stopped(_) => None,
        }
    }
}

/// Line of a `command` row.
struct Echo<'a> {
    line: &'a str,
    name: &'a str,
    arguments: &'a str,
}

/// Runs the lines that a user types.
pub(crate) struct Dispatcher;

impl Interpreter for Dispatcher {
    fn run<'a, 'd>(
        &self,
        worker: &'a mut Worker,
        line: WaitingLine,
        front: &'a mut FrontEnd<'d>,
    ) -> BoxFuture<'a, ()>
    where
        'd: 'a,
    {
        Box::pin(carry_out_now(worker, line, front))
    }

    fn list<'a, 'd>(
        &self,
        worker: &'a mut Worker,
        listing: Listing,
        front: &'a mut FrontEnd<'d>,
    ) -> BoxFuture<'a, Result<(), EngineError>>
    where
        'd: 'a,
    {
        Box::pin(list(worker, listing, front))
    }
}

/// Runs a read-only command: shows its output, and stores its row. Ignores other lines.
///
/// A failed commit gives a warning: the output is on the screen, and nothing else depends on it.
async fn list(
    worker: &mut Worker,
    listing: Listing,
    front: &mut FrontEnd<'_>,
) -> Result<(), EngineError> {
    let Listing { command, view } = listing;
    if !command.only_shows() {
        return Ok(());
    }
    let reply = match view {
        ListingView::Text(ref output) => Reply::says(output),
        ListingView::Overlay | ListingView::Screen => {
            answer(worker, &command).await.or_else(warning)?
        }
    };
    if view == ListingView::Overlay {
        front.emit(UiEvent::Preview {
            line: command.line.clone(),
            output: reply.output.clone(),
            severity: reply.severity.unwrap_or(Severity::Info),
        });
    }
    if let Err(error) = store_reply(worker, &UserInput::Command(command), reply, front).await {
        front.emit(UiEvent::Warning(format!("not stored: {error}")));
    }
    Ok(())
}

/// Executes the commands that ended a turn or waited for its end.
/// Stops at one that gives the agent a job.
pub(crate) async fn carry_out_waiting(
    worker: &mut Worker,
    front: &mut FrontEnd<'_>,
) -> Result<Option<AgentJob>, EngineError> {
    loop {
        // Lines that wait while the program ends stay with the front end.
        if front.has_pending_end() {
            return Ok(None);
        }
        let waiting = front.at_break.pop_front();
        let Some(waiting) = waiting.or_else(|| front.after_turn.pop_front()) else {
            return Ok(None);
        };
        let carried = match dispatch(worker, &waiting, front).await {
            Ok(carried) => carried,
            Err(error) => {
                let goes_on = error.may_pass() || error.refuses_message();
                front.not_stored(waiting, &error);
                if goes_on {
                    continue;
                }
                return Err(error);
            }
        };
        if let ChainOutcome::Work(job) = follow(worker, &waiting.input, carried, front).await? {
            return Ok(Some(job));
        }
    }
}

/// Executes a command within a turn, which continues in any case.
pub(crate) async fn carry_out_now(
    worker: &mut Worker,
    waiting: WaitingLine,
    front: &mut FrontEnd<'_>,
) {
    let carried = match dispatch(worker, &waiting, front).await {
        Ok(carried) => carried,
        Err(error) => return front.not_stored(waiting, &error),
    };
    if let Err(error) = follow(worker, &waiting.input, carried, front).await {
        front.emit(UiEvent::Warning(error.to_string()));
    }
}

/// Executes the follow-up of a command, except for the agent's job.
pub(crate) async fn follow(
    worker: &mut Worker,
    input: &UserInput,
    carried: Carried,
    front: &mut FrontEnd<'_>,
) -> Result<ChainOutcome, EngineError> {
    match carried.then {
        Then::Nothing => Ok(ChainOutcome::Done),
        Then::Work(job) => Ok(ChainOutcome::Work(job)),
        Then::Front(next) => {
            front.emit(UiEvent::Next(next));
            Ok(ChainOutcome::Done)
        }
        Then::Later(later) => {
            let (reply, followed) = match later.run(worker, front).await {
                Ok(reply) => (reply, ChainOutcome::Done),
                Err(Trouble::Stopped(stop, message)) => {
                    // An exit also stops all later work; an interrupt only ends this command.
                    if stop != Stop::Interrupt(Cause::User) {
                        front.pending.push(UserRequest::Stop(stop.clone()));
                    }
                    (Reply::warns(message), ChainOutcome::Stopped(stop))
                }
                Err(trouble) => (warning(trouble)?, ChainOutcome::Warned),
            };
            if reply.output.is_empty() && reply.severity.is_none() {
                return Ok(followed);
            }
            let data = CommandData {
                of: Some(carried.row),
                severity: reply.severity,
                ..Echo::of(input).data()
            };
            let output = Some(reply.output);
            let late = vec![Event::Command { output, data }];
            let rows = worker.ledger_mut().commit(CommitPlan::events(late)).await?;
            front.emit_rows(rows);
            Ok(followed)
        }
    }
}

/// Stores the effects and the output of a command, in one transaction.
pub(crate) async fn dispatch(
    worker: &mut Worker,
    waiting: &WaitingLine,
    front: &mut FrontEnd<'_>,
) -> Result<Carried, EngineError> {
    let carried = dispatch_line(worker, waiting, front).await?;
    if let Some(id) = waiting.id {
        front.emit(UiEvent::Received(id));
    }
    Ok(carried)
}

async fn dispatch_line(
    worker: &mut Worker,
    waiting: &WaitingLine,
    front: &mut FrontEnd<'_>,
) -> Result<Carried, EngineError> {
    let input = &waiting.input;
    let reply = match input {
        UserInput::Command(typed) => reply(worker, typed, front).await?,
        UserInput::Unknown(typed) => call_in_child(worker, typed, front).await?,
        UserInput::Shell(typed) => {
            front.emit(UiEvent::ShellStarted {
                id: waiting.id,
                command: typed.command.clone(),
            });
            let carried = shell(worker, typed, front).await;
            front.emit(UiEvent::ShellEnded);
            return carried;
        }
        UserInput::Message(_) => Reply::default(),
    };
    let warned = reply.severity == Some(Severity::Warning);
    match store_reply(worker, input, reply, front).await {
        // Another process was quicker.
        Err(EngineError::Commit(CommitError::NameTaken(name))) => {
            let reply = Reply::warns(format!("the name {name} is taken"));
            let (row, then) = store_reply(worker, input, reply, front).await?;
            Ok(Carried::stored(true, row, then))
        }
        other => {
            let (row, then) = other?;
            Ok(Carried::stored(warned, row, then))
        }
    }
}

/// Runs a command in the user's shell, and stores its result.
async fn shell(
    worker: &mut Worker,
    typed: &ShellLine,
    front: &mut FrontEnd<'_>,
) -> Result<Carried, EngineError> {
    let (event, warned, stopped) = match shell::run_in_shell(worker, &typed.command, front).await? {
        Ok(mut ran) => {
            let stopped = ran.stopped.take();
            let failed = stopped.is_none() && !ran.has_succeeded();
            let event = if typed.sent {
                ran.for_the_model(&typed.command)
            } else {
                Echo::of_shell(typed).event(ran.text)
            };
            (event, failed, stopped)
        }
        Err(reason) => {
            let data = CommandData {
                severity: Some(Severity::Warning),
                ..Echo::of_shell(typed).data()
            };
            let output = Some(reason);
            (Event::Command { output, data }, true, None)
        }
    };
    // The command ran: its output must not be lost.
    let rows = worker
        .ledger_mut()
        .commit(CommitPlan::events(vec![event]).waiting(front))
        .await?;
    front.emit_rows(rows);
    // An exit also stops the turn; an interrupt only ends this command.
    if let Some(stop @ Stop::Interrupt(Cause::Exit | Cause::Kill)) = &stopped {
        front.pending.push(UserRequest::Stop(stop.clone()));
    }
    Ok(Carried {
        warned,
        stopped,
        row: worker.newest(),
        then: Then::Nothing,
    })
}

async fn store_reply(
    worker: &mut Worker,
    input: &UserInput,
    reply: Reply,
    front: &mut FrontEnd<'_>,
) -> Result<(RowRef, Then), EngineError> {
    let granted = reply.set.as_ref().filter(|_| reply.grants);
    let data = CommandData {
        grant: granted.and_then(pending_tag),
        set: reply.set,
        severity: reply.severity,
        ..Echo::of(input).data()
    };
    let sets_mode = data
        .set
        .as_ref()
        .is_some_and(|set| set.contains_key("approve"));
    for blob in reply.blobs {
        worker.ledger().try_put_blob(&blob).await?;
    }
    let output = match input {
        UserInput::Command(typed) if typed.only_shows() => bound_output(reply.output),
        _ => reply.output,
    };
    let output = Some(output);
    let mut events = reply.events;
    events.push(Event::Command { output, data });
    let rows = worker
        .ledger_mut()
        .commit(CommitPlan::events(events).with(reply.effects))
        .await?;
    if sets_mode {
        // The new mode replaces an earlier one that applied only to this process.
        let agent = worker.id();
        worker.engine().hub().set_process_mode(agent, None);
    }
    front.emit_rows(rows);
    Ok((worker.newest(), reply.then))
}

/// Returns the beginning of a listing that is stored, up to a line end.
fn bound_output(output: String) -> String {
    if output.len() <= MOST_LISTED_BYTES {
        return output;
    }
    let near = output.floor_char_boundary(MOST_LISTED_BYTES - CUT_NOTE_BYTES);
    let end = output[..near].rfind('\n').unwrap_or(near);
    let (listed, left) = output.split_at(end);
    let left_kb = left.len().div_ceil(1024);
    format!("{listed}\n… {left_kb} KB more, not stored")
}

/// Runs a command; trouble becomes a warning.
async fn reply(
    worker: &mut Worker,
    typed: &CommandLine,
    front: &mut FrontEnd<'_>,
) -> Result<Reply, EngineError> {
    let answered = match answer(worker, typed).await {
        Ok(Reply {
            first: Some(action),
            ..
        }) => action.run(worker, front).await,
        answered => answered,
    };
    answered.or_else(warning)
}

/// Runs a command or skill that wants a child agent; warns about an unknown name.
async fn call_in_child(
    worker: &mut Worker,
    typed: &UnknownCommand,
    front: &mut FrontEnd<'_>,
) -> Result<Reply, EngineError> {
    let answered = match child_of_call(worker, typed).await {
        Ok(Some(request)) => {
            let action = CommandAction::Fork(vec![request], false);
            action.run(worker, front).await
        }
        Ok(None) => Trouble::refused(unknown(&typed.name)),
        Err(trouble) => Err(trouble),
    };
    answered.or_else(warning)
}

/// Runs the handler of a command, which stores nothing.
async fn answer(worker: &mut Worker, typed: &CommandLine) -> Result<Reply, Trouble> {
    let command = typed.command;
    let Some(entry) = COMMANDS.iter().find(|entry| entry.command == *command) else {
        return Trouble::refused(unknown(command.name));
    };
    match Typed::read(command, &typed.arguments) {
        Ok(typed) => (entry.handler)(&mut worker.command_context(), &typed).await,
        Err(reason) => Trouble::refused(format!("{reason} · {}", command.usage())),
    }
}

impl<'a> Echo<'a> {
    fn of(input: &'a UserInput) -> Self {
        let (name, arguments) = match input {
            UserInput::Command(typed) if typed.command.name == "key" => {
                return Self::without_key(typed);
            }
            UserInput::Command(typed) => (typed.command.name, &*typed.arguments),
            UserInput::Unknown(UnknownCommand {
                name, arguments, ..
            }) => (&**name, &**arguments),
            UserInput::Shell(typed) => return Self::of_shell(typed),
            UserInput::Message(_) => ("", ""),
        };
        Self {
            line: input.line().trim_end(),
            name,
            arguments,
        }
    }

    fn of_shell(typed: &'a ShellLine) -> Self {
        Self {
            line: typed.line.trim_end(),
            name: if typed.sent { "!" } else { "!!" },
            arguments: &typed.command,
        }
    }

    /// Keeps `/key` and the provider; other words may be the key itself.
    fn without_key(typed: &'a CommandLine) -> Self {
        let (line, rest) = (typed.line.trim_end(), &*typed.arguments);
        let provider = rest.split_whitespace().next();
        let provider = provider.filter(|provider| !looks_like_key(provider));
        let arguments = provider.unwrap_or_default();
        let end = line.len() - rest.len() + arguments.len();
        Self {
            line: line[..end].trim_end(),
            name: typed.command.name,
            arguments,
        }
    }

    /// Builds the row of a command that only prints text.
    fn event(&self, output: String) -> Event {
        Event::Command {
            output: Some(output),
            data: self.data(),
        }
    }

    fn data(&self) -> CommandData {
        let arguments = Some(self.arguments).filter(|arguments| !arguments.is_empty());
        CommandData {
            command: Some(self.name.to_owned()),
            args: arguments.map(str::to_owned),
            echo: Some(self.line.to_owned()),
            ..CommandData::default()
        }
    }
}

/// Warns of trouble. An error if the store fails, or nothing is to be stored.
fn warning(trouble: Trouble) -> Result<Reply, EngineError> {
    match trouble {
        Trouble::Refused(reason) | Trouble::Stopped(_, reason) => Ok(Reply::warns(reason)),
        Trouble::Engine(EngineError::NoModel(missing)) => {
            let (reason, advice) = (missing.reason, missing.advice);
            Ok(Reply::warns(format!("{reason} · {advice}")))
        }
        Trouble::Engine(
            error @ (EngineError::Store(_)
            | EngineError::Commit(_)
            | EngineError::Agent(_)
            | EngineError::StoreAway(_)
            | EngineError::LongMessage { .. }),
        ) => Err(error),
        Trouble::Engine(error) => Ok(Reply::warns(error.to_string())),
    }
}

/// Commands of other programs, with the way to the same here.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "new",
        "/clear empties the context, /fork --fresh makes a new agent",
    ),
    ("status", "see /context, /cost and /model"),
    ("usage", "see /cost"),
    ("init", "ask the model to write AGENTS.md"),
    ("memory", "edit AGENTS.md, or attach a file with /pin"),
    ("review", "ask the model to review the output of git diff"),
    ("config", "run ikigai config in a shell"),
    ("settings", "run ikigai config in a shell"),
    ("permissions", "see /approve"),
    ("login", "see /key"),
    ("doctor", "run ikigai doctor in a shell"),
    ("continue", "see /resume"),
    ("branch", "see /fork"),
    ("checkpoint", "see /mark and /rewind"),
];

fn unknown(name: &str) -> String {
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(known, _)| *known == name) {
        return format!("no command /{name} · {instead}");
    }
    let known = all().flat_map(|command| command.aliases.iter().chain([&command.name]).copied());
    let near = name_suggestion::nearest(name, known);
    let meant: Vec<_> = near.iter().take(3).map(|name| format!("/{name}")).collect();
    let meant = match meant.as_slice() {
        [] => " · /help lists them".to_owned(),
        meant => format!(" · did you mean {}?", meant.join(" or ")),
    };
    format!("no command /{name}{meant} · start with a space to send it as text")
}
