//! Command on background processes: `/ps`.

use std::fmt::Write as _;
use std::path::PathBuf;

use ikigai_store::JobRecord;
use ikigai_tools::output::clean;
use ikigai_tools::process::keeper::{StopCause, read_output};

use super::{Command, Group, Reply, Shows, SlashCommand, Takes, Trouble, Typed};
use crate::figures::since;
use crate::processes::{is_here, running_processes, stop_process};
use crate::turn::CommandContext;

/// Bytes at the end of the output that `/ps NAME` shows.
const SHOWN_BYTES: usize = 8 * 1024;

/// Longest command line in the list, in characters.
const COMMAND_CHARS: usize = 60;

pub(super) const PS: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[[stop] NAME]",
        help: "list background processes, show the output of one, or stop it",
        examples: &[
            ("/ps", "list the running processes of all agents"),
            ("/ps 1", "show the newest output of this agent's process 1"),
            ("/ps stop coder.2", "stop process 2 of the agent coder"),
        ],
        takes: Takes::Words,
        shows: Shows::OverlayWithoutArguments,
        ..Command::new("ps", Group::Tools)
    },
    handler: |ctx, typed| Box::pin(ps(ctx, typed)),
};

async fn ps(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let running = named(ctx).await?;
    let words: Vec<&str> = typed.words.iter().map(String::as_str).collect();
    let find = |name: &str| {
        let name = name.trim_start_matches('#');
        let found = running.iter().find(|(known, _)| known == name);
        let missing = || Trouble::Refused(format!("No process {name} is running · /ps lists them"));
        found.map(|(_, job)| job).ok_or_else(missing)
    };
    match words.as_slice() {
        [] => Ok(list(ctx, &running)),
        ["stop", name] => stop(ctx, name, find(name)?).await,
        [name] => output_of(ctx, name, find(name)?).await,
        _ => Trouble::refused("Usage: /ps [[stop] NAME]"),
    }
}

/// Returns the running processes of all agents: `1` of this agent, `NAME.1` of another.
async fn named(ctx: &CommandContext<'_>) -> Result<Vec<(String, JobRecord)>, Trouble> {
    let mut named = Vec::new();
    for job in running_processes(ctx.engine()).await? {
        let name = if job.agent == ctx.id() {
            job.number.to_string()
        } else {
            let owner = ctx.engine().reader().agent(job.agent).await?;
            let owner = owner.map_or_else(|| job.agent.to_string(), |owner| owner.name);
            format!("{owner}.{}", job.number)
        };
        named.push((name, job));
    }
    Ok(named)
}

fn list(ctx: &CommandContext<'_>, running: &[(String, JobRecord)]) -> Reply {
    if running.is_empty() {
        return Reply::says("No background process is running");
    }
    let now = ctx.engine().environment().now();
    let mut lines = String::new();
    for (name, job) in running {
        let command = job.command.lines().next().unwrap_or_default();
        let command: String = command.chars().take(COMMAND_CHARS).collect();
        let age = since(job.started, now);
        let _ = write!(lines, "{name}  {age}  {command}");
        if !is_here(ctx.engine(), job) {
            let _ = write!(lines, "  (on {})", job.host);
        } else if let Some(line) = ctx.engine().processes().last_line(job.id) {
            let line = (ctx.engine().safety().blank)(line.as_bytes()).into_owned();
            let _ = write!(lines, "  · {}", String::from_utf8_lossy(&line));
        }
        lines.push('\n');
    }
    lines.push_str("/ps NAME shows the output · /ps stop NAME ends it");
    Reply::says(lines)
}

async fn stop(ctx: &CommandContext<'_>, name: &str, job: &JobRecord) -> Result<Reply, Trouble> {
    refuse_elsewhere(ctx, name, job)?;
    let end = stop_process(job, StopCause::Request).await;
    Ok(Reply::says(match end {
        Some(end) => format!("Process {name}: {}", end.describe()),
        None => format!("Process {name}: lost, exit status unknown. All it started was ended"),
    }))
}

async fn output_of(
    ctx: &CommandContext<'_>,
    name: &str,
    job: &JobRecord,
) -> Result<Reply, Trouble> {
    refuse_elsewhere(ctx, name, job)?;
    let directory = PathBuf::from(&job.directory);
    let read = move || read_output(&directory, 0, SHOWN_BYTES);
    let part = match tokio::task::spawn_blocking(read).await {
        Ok(Ok(part)) => part,
        Ok(Err(error)) => {
            return Trouble::refused(format!("Cannot read the output of process {name}: {error}"));
        }
        Err(_) => return Trouble::refused("ikigai is exiting"),
    };
    let text = clean(&(ctx.engine().safety().blank)(&part.bytes));
    let first = format!("Process {name}: {}", job.command.trim());
    Ok(Reply::says(match text.trim_end() {
        "" => format!("{first}\n(no output yet)"),
        text => format!("{first}\n{text}"),
    }))
}

fn refuse_elsewhere(ctx: &CommandContext<'_>, name: &str, job: &JobRecord) -> Result<(), Trouble> {
    if is_here(ctx.engine(), job) {
        return Ok(());
    }
    Trouble::refused(format!(
        "Process {name} runs on another machine: {}",
        job.host
    ))
}
