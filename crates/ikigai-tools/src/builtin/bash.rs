//! `bash`: runs a command line.

mod background;
mod foreground;
mod sandbox_hint;
mod watched_files;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::EffectClass;
use ikigai_core::counts::counted;
use ikigai_core::project::{FileChanges, OutputPreview, ReadMode, ToolAction, ToolFacts, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::arguments::{Aliases, MILLISECONDS, ToolArguments};
use crate::file_history::{RecordedChanges, RecordingPlan, collect};
use crate::permission::{pattern_for, reads_with_git};
use crate::process::{
    self, Cause, ChildEnvironment, Ended, OutputListeners, describe_exit, describe_left_behind,
};
use crate::sandbox::Force;
use crate::{
    BadArguments, CallContext, CallEnding, Confinement, Need, Output, Place, Prepared, Preview,
    Run, Tool, Touches, arguments, paths, sandbox,
};
use foreground::{CommandEnd, ForegroundCommand};
use watched_files::WatchedFiles;

/// Name of the tool.
pub(super) const NAME: &str = "bash";

/// Facts about its calls.
pub(super) const FACTS: ToolFacts = ToolFacts {
    changes: FileChanges::Unknown,
    preview: OutputPreview::FewLines,
    in_read_mode: ReadMode::InSandbox,
    action: ToolAction::Execute,
};

/// Default timeout of a command.
const DEADLINE_SECONDS: u64 = 120;

/// Longest timeout that a model can set.
const MOST_SECONDS: u64 = 3600;

/// Fields of other programs: a word for the sandbox, and the purpose of a call.
const SANDBOX_PERMISSIONS: &str = "sandbox_permissions";
const DESCRIPTION: &str = "description";

/// Runs command lines.
#[derive(Clone, Debug, Default)]
pub struct Bash {
    environment: ChildEnvironment,
}

/// Arguments of a call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BashArguments {
    /// The command line, as bash reads it.
    command: String,
    /// Timeout in seconds: 120 by default, at most 3600.
    #[serde(default)]
    #[schemars(range(min = 1, max = 3600))]
    timeout: Option<u64>,
    /// Directory to run in instead of the working directory.
    #[serde(default)]
    workdir: Option<String>,
    /// Run outside the sandbox; the user is asked first. Give a `reason`.
    #[serde(default)]
    unconfined: Option<bool>,
    /// Why the command cannot run in the sandbox.
    #[serde(default)]
    reason: Option<String>,
    /// Start it in the background and return at once: for servers and long builds.
    #[serde(default)]
    background: Option<bool>,
    /// With `background`: notify you once when a line matches this regular expression.
    #[serde(default)]
    notify: Option<String>,
}

impl ToolArguments for BashArguments {
    const ALIASES: Aliases = &[
        ("cmd", "command"),
        ("command_line", "command"),
        ("script", "command"),
        ("cwd", "workdir"),
        ("directory", "workdir"),
        ("working_directory", "workdir"),
        ("timeout_seconds", "timeout"),
        ("timeout_secs", "timeout"),
        ("timeout_ms", MILLISECONDS),
        ("dangerously_disable_sandbox", "unconfined"),
        ("with_escalated_permissions", "unconfined"),
        ("sandbox_permissions", SANDBOX_PERMISSIONS),
        ("justification", "reason"),
        ("run_in_background", "background"),
        ("is_background", "background"),
        ("description", DESCRIPTION),
    ];

    fn convert(fields: &mut Map<String, Value>) -> Result<(), String> {
        if let Some(Value::Array(words)) = fields.get("command") {
            let line = command_line(words)?;
            fields.insert("command".to_owned(), line.into());
        }
        if let Some(permissions) = fields.remove(SANDBOX_PERMISSIONS)
            && permissions == "require_escalated"
        {
            fields.insert("unconfined".to_owned(), true.into());
        }
        if let Some(description) = fields.remove(DESCRIPTION)
            && fields.get("unconfined") == Some(&Value::Bool(true))
        {
            fields.entry("reason").or_insert(description);
        }
        arguments::convert_timeout(fields, MOST_SECONDS)
    }
}

/// Returns the command line of a list of words, such as `["bash", "-lc", "ls"]`.
fn command_line(words: &[Value]) -> Result<String, String> {
    let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
    let Some(words) = words else {
        return Err("`command` must be a text or a list of texts".to_owned());
    };
    Ok(match words.as_slice() {
        [shell, "-c" | "-lc" | "-cl" | "-ic", line] if is_shell(shell) => (*line).to_owned(),
        words => {
            let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
            words.join(" ")
        }
    })
}

fn is_shell(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    matches!(name, "bash" | "sh" | "zsh")
}

/// Quotes a word for the shell, if it needs quotes.
fn quote(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_@%+:,./-".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

impl Bash {
    /// Creates the tool; its processes get this environment.
    pub fn new(environment: ChildEnvironment) -> Self {
        Self { environment }
    }
}

impl Tool for Bash {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description:
                "Runs a command line in bash; returns standard output and error together, \
                          the exit status and the duration. There is no terminal, no input, and \
                          no editor: give commit messages with -m. When the command ends, \
                          everything that it started is ended too. At its timeout it goes on in \
                          the background. It waits for the calls before it in the same answer. $TMPDIR is your own directory for \
                          temporary files."
                    .to_owned(),
            parameters: arguments::schema_of::<BashArguments>(),
            facts: FACTS,
        }
    }

    fn prepare(&self, text: &str, place: &Place) -> Result<Prepared, BadArguments> {
        let call = arguments::read::<BashArguments>(text)?;
        let arguments = call.values;
        let command = arguments.command;
        if command.trim().is_empty() {
            return Err(BadArguments("`command` is empty".to_owned()));
        }
        if command.contains('\0') {
            return Err(BadArguments("`command` holds a zero byte".to_owned()));
        }
        let seconds = arguments.timeout.unwrap_or(DEADLINE_SECONDS);
        if !(1..=MOST_SECONDS).contains(&seconds) {
            return Err(BadArguments(format!(
                "`timeout` is {seconds}; it must be from 1 to {MOST_SECONDS} seconds"
            )));
        }
        let deadline = Duration::from_secs(seconds);
        let workdir = match arguments.workdir {
            Some(text) => paths::resolve(place, &text),
            None => place.workdir.clone(),
        };
        let unconfined = unconfined_reason(arguments.unconfined, arguments.reason)?;
        let environment = self.environment.clone();
        let subject = subject(&command, &workdir, place);
        let order = background::order(
            &command,
            &workdir,
            arguments.background == Some(true),
            arguments.notify,
        )?;
        let preview = preview(workdir.clone(), unconfined.clone());
        let (deadline, needs, run): (_, _, Run) = match order {
            Some(order) => (
                background::DEADLINE,
                vec![Need::Background(order)],
                Run::Async(Box::new(move |context| {
                    Box::pin(background::start(command, workdir, environment, context))
                })),
            ),
            None => (
                deadline,
                vec![Need::ReadFiles, Need::Keeper],
                Run::Async(Box::new(move |context| {
                    Box::pin(async move {
                        carry_out(&command, workdir, deadline, &environment, context).await
                    })
                })),
            ),
        };
        Ok(Prepared {
            class: EffectClass::Execute,
            touches: Touches::everything(),
            shown: subject.clone(),
            pattern: pattern_for(&subject),
            subject,
            preview: Some(preview),
            deadline,
            needs,
            unconfined,
            run,
        }
        .with_remark(call.remark))
    }
}

/// Returns the reason to leave the sandbox, which such a call must have.
fn unconfined_reason(
    unconfined: Option<bool>,
    reason: Option<String>,
) -> Result<Option<String>, BadArguments> {
    if unconfined != Some(true) {
        return Ok(None);
    }
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    let missing = || BadArguments("`unconfined` needs a `reason` for the user".to_owned());
    reason.map(Some).ok_or_else(missing)
}

/// Checks that the command can start, and says what it may do outside the sandbox.
fn preview(workdir: PathBuf, unconfined: Option<String>) -> Preview {
    Arc::new(move |_| match check_workdir(&workdir) {
        Ok(()) => Ok(unconfined.as_deref().map_or_else(String::new, warning)),
        Err(reason) => Err(Box::new(Output::failed(reason))),
    })
}

fn warning(reason: &str) -> String {
    format!(
        "Runs outside the sandbox: it can change all your files and use the network.\n\
         The model's reason: {reason}"
    )
}

fn check_workdir(workdir: &Path) -> Result<(), String> {
    if workdir.is_dir() {
        return Ok(());
    }
    Err(format!("`{}` is not a directory", workdir.display()))
}

async fn carry_out(
    command: &str,
    workdir: PathBuf,
    deadline: Duration,
    environment: &ChildEnvironment,
    context: CallContext,
) -> Output {
    if let Err(reason) = check_workdir(&workdir) {
        return Output::failed(reason);
    }
    let mut variables = environment.variables();
    let is_reading = context.confinement.is_reading();
    let script = restrict_git(command, &context.confinement, &mut variables);
    let mut remarks = Vec::new();
    context.set_temporary(&mut variables);
    let read_files = context.inputs.read_files;
    let watched = if is_reading || read_files.is_empty() {
        None
    } else {
        let record = move || WatchedFiles::record(read_files);
        tokio::task::spawn_blocking(record).await.ok()
    };
    let confinement = context.confinement.clone();
    let recording = plan_of(context.inputs.recording, &confinement);
    let directory = recording.as_ref().map(|plan| plan.directory.clone());
    let command = ForegroundCommand {
        line: command.to_owned(),
        script,
        workdir,
        variables,
        deadline,
        cookie: context.cookie,
        confinement: context.confinement,
        recording,
    };
    let listeners = OutputListeners {
        line: context.progress,
        output: context.output,
    };
    // Commands that only read are stopped at their deadline.
    let keeper = context.inputs.keeper.filter(|_| !is_reading);
    let begun = tokio::time::Instant::now();
    let ended = match command.run(keeper, &context.stop, listeners).await {
        Ok(CommandEnd::Ended(ended)) => ended,
        Ok(CommandEnd::Left(output)) => {
            if let Some(temporary) = &context.temporary {
                temporary.leave();
            }
            return Output {
                changes: changes_in(directory).await,
                ..*output
            };
        }
        Err(reason) => {
            return Output {
                changes: changes_in(directory).await,
                ..Output::failed(reason)
            };
        }
    };
    let taken = begun.elapsed();
    if let Some(watched) = watched {
        let place = context.place;
        let describe = move || watched.describe_changes(&place);
        remarks.extend(tokio::task::spawn_blocking(describe).await.ok().flatten());
    }
    let times = CommandTimes { deadline, taken };
    Output {
        changes: changes_in(directory).await,
        ..output(ended, &times, &confinement, remarks)
    }
}

/// Plans the recording of a command that may change files.
fn plan_of(directory: Option<PathBuf>, confinement: &Confinement) -> Option<RecordingPlan> {
    let roots = match confinement {
        Confinement::Sandbox { write, .. } if write.is_empty() => return None,
        Confinement::Sandbox { guarded, .. } => guarded.clone(),
        Confinement::None => Vec::new(),
    };
    directory.map(|directory| RecordingPlan { directory, roots })
}

/// Returns the changes that a command made; nothing if they were not recorded.
async fn changes_in(directory: Option<PathBuf>) -> RecordedChanges {
    let collected = tokio::task::spawn_blocking(move || collect(&directory?)).await;
    collected.ok().flatten().unwrap_or_default()
}

/// Keeps git from running programs of the repository, if the line only reads with it. Returns the
/// line to run.
fn restrict_git(
    line: &str,
    confinement: &Confinement,
    variables: &mut Vec<(OsString, OsString)>,
) -> String {
    if confinement.is_reading() {
        process::restrict_git(variables);
    } else if *confinement != Confinement::None && reads_with_git(line) {
        return process::restrict_git_line(line, variables);
    }
    line.to_owned()
}

/// Timeout and duration of a command.
struct CommandTimes {
    deadline: Duration,
    taken: Duration,
}

impl CommandTimes {
    /// Formats the duration: `0.3 s`, `12 s`, `3 min 20 s`.
    fn duration(&self) -> String {
        let seconds = self.taken.as_secs();
        match seconds {
            0..10 => format!("{:.1} s", self.taken.as_secs_f64()),
            10..120 => format!("{seconds} s"),
            _ => format!("{} min {} s", seconds / 60, seconds % 60),
        }
    }

    fn stopped(&self) -> String {
        format!("stopped after {} s", self.deadline.as_secs())
    }
}

/// Builds the result for the model and the screen.
fn output(
    ended: Ended,
    times: &CommandTimes,
    confinement: &Confinement,
    others: Vec<String>,
) -> Output {
    let lines = count_lines(&ended.output);
    let (verdict, success, ending) = match ended.cause {
        Cause::Exited(status) => (describe_exit(status), status.success(), CallEnding::Ran),
        // The engine's timer can fire first; it is the same deadline.
        Cause::Deadline => (times.stopped(), false, CallEnding::Stopped),
        Cause::Stopped if times.taken >= times.deadline => {
            (times.stopped(), false, CallEnding::Stopped)
        }
        Cause::Stopped => ("stopped".to_owned(), false, CallEnding::Stopped),
    };
    let mut remarks = Vec::new();
    remarks.extend(describe_left_behind(ended.left_behind));
    remarks.extend(ended.warning);
    let only_line = only_line(&ended.output).filter(|_| success && remarks.is_empty());
    let mut refused = ended.refused;
    if !success
        && !matches!(sandbox::in_force(), Force::None(_))
        && let Some(hint) = sandbox_hint::hint(&ended.output, &refused, confinement)
    {
        remarks.push(hint);
        if refused.is_empty() {
            refused.extend(sandbox_hint::evidence(&ended.output));
        }
    }
    if *confinement != Confinement::None {
        remarks.extend(sandbox_hint::git_hint(&ended.output));
    }
    remarks.extend(others);
    remarks.push(match ending {
        CallEnding::Ran => format!("{verdict}, {}", times.duration()),
        CallEnding::Stopped if times.taken >= times.deadline => {
            format!("{verdict}; `timeout` sets another limit, up to {MOST_SECONDS} s")
        }
        CallEnding::Stopped => format!("{verdict} after {}", times.duration()),
    });

    let shown = only_line.unwrap_or_else(|| match lines {
        0 => verdict,
        lines => format!("{verdict} · {}", counted(lines, "line")),
    });
    let mut body = ended.output;
    if !body.is_empty() && !body.ends_with(b"\n") {
        body.push(b'\n');
    }
    for remark in remarks {
        body.extend_from_slice(format!("[{remark}]\n").as_bytes());
    }
    Output {
        success,
        ending,
        refused,
        ..Output::done(body, shown)
    }
}

fn count_lines(output: &[u8]) -> usize {
    let lines = output.strip_suffix(b"\n").unwrap_or(output);
    if output.is_empty() {
        0
    } else {
        lines.split(|byte| *byte == b'\n').count()
    }
}

/// Returns the output if it is one short line of plain text.
fn only_line(output: &[u8]) -> Option<String> {
    const MOST_BYTES: usize = 200;
    let line = output.strip_suffix(b"\n").unwrap_or(output);
    let text = std::str::from_utf8(line).ok()?;
    (!text.trim().is_empty() && text.len() <= MOST_BYTES && !text.contains(char::is_control))
        .then(|| text.to_owned())
}

/// Returns the command as rules see it, with the directory it runs in.
fn subject(command: &str, workdir: &Path, place: &Place) -> String {
    if workdir == place.workdir {
        return command.to_owned();
    }
    let there = workdir.strip_prefix(&place.workdir).unwrap_or(workdir);
    let there = there.to_string_lossy().replace('\'', r"'\''");
    format!("cd '{there}' && {command}")
}

#[cfg(test)]
mod tests;
