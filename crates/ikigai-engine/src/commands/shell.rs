//! `!command` and `!!command`: commands for the user's own shell.

use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::Event;
use ikigai_core::data::{CommandData, Shell, UserData, UserOrigin};
use ikigai_tools::Confinement;
use ikigai_tools::output::{MOST_KEPT_BYTES, present};
use ikigai_tools::process::{self, Cause, Ended, Errors, Job};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::environment::{cookie_of, draw_run};
use crate::frontend::{FrontEnd, Stop, TerminalRun, UiEvent, UserRequest};
use crate::ledger::CommitPlan;
use crate::{EngineError, Worker, file_system};

/// Timeout of a command: enough for any build, and an end for a forgotten one.
const DEADLINE: Duration = Duration::from_hours(1);

/// Capacity of the queue of output lines; more are dropped.
const LINES: usize = 64;

/// Result of a shell command.
pub(super) struct Ran {
    /// Command, output and exit code, for people and for the model.
    pub(super) text: String,
    /// Exit code; none if it was stopped.
    exit: Option<i32>,
    /// Request that stopped it, if any.
    pub(super) stopped: Option<Stop>,
}

impl Ran {
    /// Returns true if the command ended by itself with exit code 0.
    pub(super) fn has_succeeded(&self) -> bool {
        self.exit == Some(0)
    }

    /// Returns the row by which the model sees it with the next message.
    pub(super) fn for_the_model(self, command: &str) -> Event {
        let shell = Shell {
            command: Some(command.to_owned()),
            exit: self.exit,
        };
        let data = UserData {
            origin: Some(UserOrigin::Typed),
            shell: Some(shell),
            ..UserData::default()
        };
        Event::User {
            text: self.text,
            data,
        }
    }
}

/// Stores that a line ran on the terminal; its output is not captured.
pub(crate) async fn store_terminal_run(
    worker: &mut Worker,
    run: TerminalRun,
    front: &mut FrontEnd<'_>,
) -> Result<(), EngineError> {
    let TerminalRun {
        command,
        exit,
        sent,
    } = run;
    let word = exit.map_or_else(|| "ended".to_owned(), |exit| format!("exit {exit}"));
    let text = format!("$ {command}\n(ran on the terminal, {word})");
    let event = if sent {
        let ran = Ran {
            text,
            exit,
            stopped: None,
        };
        ran.for_the_model(&command)
    } else {
        let data = CommandData {
            command: Some("!!".to_owned()),
            echo: Some(format!("!!{command}")),
            args: Some(command),
            ..CommandData::default()
        };
        let output = Some(text);
        Event::Command { output, data }
    };
    let rows = worker
        .ledger_mut()
        .commit(CommitPlan::events(vec![event]).waiting(front))
        .await?;
    front.emit_rows(rows);
    front.emit(UiEvent::ShellEnded);
    Ok(())
}

/// Runs a command as the user, in the agent's directory.
/// It is the user's own command, so it needs no approval and no sandbox; it has no terminal, and
/// ends with all processes that it started.
pub(super) async fn run_in_shell(
    worker: &mut Worker,
    command: &str,
    front: &mut FrontEnd<'_>,
) -> Result<Result<Ran, String>, EngineError> {
    let workdir = worker.ledger().workdir();
    let found = file_system::metadata(&workdir).await;
    if !found.is_ok_and(|found| found.is_dir()) {
        return Ok(Err(format!(
            "{} is not a directory · /cd PATH",
            workdir.display()
        )));
    }
    let job = Job {
        program: process::shell().into(),
        arguments: vec!["-c".into(), "--".into(), command.into()],
        workdir,
        variables: worker.engine().safety().shell.variables(),
        input: None,
        errors: Errors::Together,
        most_bytes: MOST_KEPT_BYTES,
        deadline: DEADLINE,
        cookie: cookie_of(Some(draw_run(worker.engine().environment()))),
        confinement: Confinement::None,
        recording: None,
    };
    let (sender, mut lines) = mpsc::channel(LINES);
    let blank = worker.engine().safety().blank.clone();
    let progress = Arc::new(move |line: &str| {
        let line = String::from_utf8_lossy(&blank(line.as_bytes())).into_owned();
        // A slow front end misses lines, but the output is complete.
        let _ = sender.try_send(line);
    });
    let stop = CancellationToken::new();
    let run = process::run(job, &stop, progress);
    tokio::pin!(run);
    let mut stopped = None;
    let mut pending = Vec::new();
    let ended = loop {
        tokio::select! {
            biased;
            ended = &mut run => break ended,
            Some(line) = lines.recv() => front.emit(UiEvent::Printed(line)),
            request = front.next(), if stopped.is_none() => match request {
                UserRequest::Stop(wish) => {
                    stop.cancel();
                    stopped = Some(wish);
                }
                // Queue it at once, so that it is durable and visible.
                UserRequest::Submit(message) if message.input.is_message() => {
                    worker.inbox().queue(message.into(), front).await;
                }
                other => pending.push(other),
            },
        }
    };
    while let Ok(line) = lines.try_recv() {
        front.emit(UiEvent::Printed(line));
    }
    // Handle them later, in order.
    front.pending.splice(0..0, pending);
    match ended {
        Ok(ended) => ran(worker, command, &ended, stopped, front).await.map(Ok),
        Err(error) => Ok(Err(error.to_string())),
    }
}

async fn ran(
    worker: &Worker,
    command: &str,
    ended: &Ended,
    stopped: Option<Stop>,
    front: &mut FrontEnd<'_>,
) -> Result<Ran, EngineError> {
    let presented = present(&ended.output, &*worker.engine().safety().blank);
    if let Some(bytes) = &presented.blob {
        worker.ledger().put_blob(bytes, front).await?;
    }
    let (exit, word) = match ended.cause {
        Cause::Exited(status) => {
            // Exit code of a death by a signal, as shells report it.
            let killed = || status.signal().map(|signal| 128 + signal);
            let exit = status.code().or_else(killed).unwrap_or(-1);
            (Some(exit), format!("exit {exit}"))
        }
        Cause::Stopped => (None, "stopped".to_owned()),
        Cause::Deadline => (None, format!("stopped after {} s", DEADLINE.as_secs())),
    };
    let output = presented.text.trim_end_matches('\n');
    let gap = if output.is_empty() { "" } else { "\n" };
    Ok(Ran {
        text: format!("$ {command}\n{output}{gap}({word})"),
        exit,
        stopped,
    })
}
