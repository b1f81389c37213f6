//! `ikigai run`: one turn of one agent, without a screen.

use std::future::Future;
use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use ikigai_core::Kind;
use ikigai_core::data::Cause;
use ikigai_engine::{EngineError, Outcome, Stop, Update, Worker};
use ikigai_providers::Wait;
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::{RunOrder, exit};
use crate::output::{is_reader_gone, json_of, print, tell, visible};
use crate::place::Here;
use crate::world::World;

/// The longest message that is read; a larger one is a mistake, not a message.
const LONGEST_PROMPT_BYTES: u64 = 16 * 1024 * 1024;

pub(crate) fn run(db: Option<String>, order: RunOrder) -> Result<ExitCode> {
    let prompt = prompt_of(order.prompt)?;
    if prompt.trim().is_empty() {
        return Err(EngineError::EmptyMessage.into());
    }
    let world = World::open(db)?;
    let agent = if order.new {
        None
    } else {
        world.find(order.agent.as_deref())?
    };
    let choice = order
        .model
        .as_deref()
        .map(|name| world.registry.choose(name));
    let choice = choice.transpose().map_err(EngineError::from)?;
    let timeout = order.timeout.map(Duration::from_secs);
    let outcome = world.runtime.block_on(async {
        let stop = stop_after(timeout)?;
        let mut stop = std::pin::pin!(stop);
        let mut worker = if let Some(agent) = agent {
            world.engine.open(&agent).await?
        } else {
            let here = Here::find()?;
            world
                .engine
                .create_root(&here.session, &here.workdir)
                .await?
        };
        if let Some(choice) = choice {
            worker.choose_model(choice).await?;
        }
        let mut front = FrontEnd::new(order.json);
        let mut update = |update: Update| front.show(&update);
        let outcome = worker.turn(&prompt, stop.as_mut(), &mut update).await;
        give_back(worker).await;
        front.finish();
        let outcome = outcome?;
        if let Some(failure) = front.failure {
            return Err(failure).context("the turn is stored, but its answer cannot be printed");
        }
        anyhow::Ok(outcome)
    })?;
    Ok(match outcome {
        Outcome::Completed => ExitCode::SUCCESS,
        Outcome::Interrupted(_) => {
            tell("interrupted; what came so far is stored");
            exit::INTERRUPTED.into()
        }
        Outcome::Failed(reason) => {
            tell(&format!("error: {}", visible(&reason)));
            exit::FAILED.into()
        }
    })
}

/// The lease ends with the process anyway, so a failure here costs nobody anything.
async fn give_back(worker: Worker) {
    let _ = worker.release().await;
}

fn prompt_of(argument: String) -> Result<String> {
    if argument != "-" {
        return Ok(argument);
    }
    let mut bytes = Vec::new();
    let read = io::stdin()
        .lock()
        .take(LONGEST_PROMPT_BYTES + 1)
        .read_to_end(&mut bytes);
    read.context("cannot read the message from standard input")?;
    if bytes.len() as u64 > LONGEST_PROMPT_BYTES {
        bail!(
            "the message is longer than {} MB",
            LONGEST_PROMPT_BYTES >> 20
        );
    }
    String::from_utf8(bytes).context("the message is not UTF-8")
}

/// Ends a turn on Ctrl-C, on a request to terminate, or at its deadline.
fn stop_after(timeout: Option<Duration>) -> Result<impl Future<Output = Stop> + Send> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut hangup = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
    Ok(async move {
        let deadline = async {
            match timeout {
                Some(after) => {
                    tokio::time::sleep(after).await;
                    Stop::Deadline(after)
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => Stop::Interrupt(Cause::User),
            _ = terminate.recv() => Stop::Interrupt(Cause::Exit),
            _ = hangup.recv() => Stop::Interrupt(Cause::Exit),
            stop = deadline => stop,
        }
    })
}

/// The line that tells of a failed try and the next one.
fn waiting(wait: &Wait) -> String {
    format!(
        "↻ {}, try {} of {} in {:.1} s",
        visible(&wait.error.message),
        wait.attempt,
        wait.attempts,
        wait.pause.as_secs_f64()
    )
}

/// Shows a turn as it goes on.
struct FrontEnd {
    json: bool,
    /// What stands on standard output of the answer that is coming.
    shown: String,
    /// What came of an answer that has begun anew, while it says nothing that was not shown.
    again: Option<String>,
    /// An answer before it stands on the same line.
    unfinished_line: bool,
    failure: Option<io::Error>,
}

impl FrontEnd {
    fn new(json: bool) -> Self {
        Self {
            json,
            shown: String::new(),
            again: None,
            unfinished_line: false,
            failure: None,
        }
    }

    fn show(&mut self, update: &Update) {
        match update {
            Update::Text(text) if !self.json => self.say(text),
            Update::Stored(row) if self.json => self.print(&json_of(row)),
            Update::Stored(row) => {
                if row.kind.read_as() == Some(Kind::Assistant) {
                    self.unfinished_line |= ends_in_a_line(&self.shown);
                    self.shown.clear();
                    self.again = None;
                }
            }
            Update::Again => self.again = Some(String::new()),
            Update::Waiting(wait) => self.tell(&waiting(wait)),
            Update::StoreAway(reason) => {
                self.tell(&format!("⏸ {}; trying again", visible(reason)));
            }
            Update::Text(_) | Update::Thinking(_) | Update::Calling(_) => {}
        }
    }

    /// Prints what is new of an answer. One that begins anew is not printed twice: as long as it
    /// says the same, nothing is printed, and if it says something else it gets a line of its own.
    fn say(&mut self, text: &str) {
        let Some(came) = &mut self.again else {
            self.shown.push_str(text);
            return self.print_new(text);
        };
        came.push_str(text);
        if self.shown.starts_with(came.as_str()) {
            return;
        }
        let came = std::mem::take(came);
        self.again = None;
        let new = if let Some(rest) = came.strip_prefix(&self.shown) {
            rest.to_owned()
        } else {
            self.unfinished_line |= ends_in_a_line(&self.shown);
            came.clone()
        };
        self.shown = came;
        self.print_new(&new);
    }

    fn print_new(&mut self, text: &str) {
        self.end_line();
        if io::stdout().is_terminal() {
            self.print(&visible(text));
        } else {
            self.print(text);
        }
    }

    /// Says something beside the answer, on a line of its own where both are on one terminal.
    fn tell(&mut self, text: &str) {
        if io::stdout().is_terminal() && ends_in_a_line(&self.shown) {
            self.print("\n");
        }
        tell(text);
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.unfinished_line) {
            self.print("\n");
        }
    }

    /// Ends the last line, so that the shell's prompt begins a new one.
    fn finish(&mut self) {
        self.unfinished_line |= ends_in_a_line(&self.shown);
        self.end_line();
    }

    fn print(&mut self, text: &str) {
        // The turn goes on and is stored, whether or not somebody reads it.
        if let Err(error) = print(text)
            && !is_reader_gone(&error)
        {
            self.failure.get_or_insert(error);
        }
    }
}

fn ends_in_a_line(text: &str) -> bool {
    !text.is_empty() && !text.ends_with('\n')
}
