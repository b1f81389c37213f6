//! `process`: lists, reads, feeds, awaits and stops background processes.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use grep_regex::RegexMatcher;
use ikigai_core::EffectClass;
use ikigai_core::counts::counted;
use ikigai_core::project::{FileChanges, OutputPreview, ReadMode, ToolAction, ToolFacts, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::arguments::{self, Aliases, MILLISECONDS, ToolArguments};
use crate::background::{KnownProcess, LineSearch, ProcessReport, compile};
use crate::output::visible;
use crate::permission::literal_pattern;
use crate::process::keeper::{
    self, KeptState, OutputFollower, OutputNews, OutputPart, StopCause, read_output,
};
use crate::{
    BadArguments, CallContext, CallInputs, Need, Output, Place, Prepared, Run, Tool, Touches,
};

/// Name of the tool.
pub(super) const NAME: &str = "process";

/// Facts about its calls.
pub(super) const FACTS: ToolFacts = ToolFacts {
    changes: FileChanges::None,
    preview: OutputPreview::FewLines,
    in_read_mode: ReadMode::Runs,
    action: ToolAction::Execute,
};

/// Default timeout of a wait.
const WAIT_SECONDS: u64 = 60;

/// Longest wait.
const MOST_WAIT_SECONDS: u64 = 3600;

/// Time limit of all other actions.
const DEADLINE: Duration = Duration::from_secs(30);

/// Most bytes of output that one call reads; more are left out at the beginning.
const MOST_READ_BYTES: usize = 1024 * 1024;

/// Bytes of output that a call shows of another agent's process.
const TAIL_BYTES: usize = 16 * 1024;

/// The tool.
pub(super) struct ProcessTool;

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum ProcessAction {
    List,
    Read,
    Send,
    Wait,
    Stop,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProcessArguments {
    action: ProcessAction,
    /// Number of the process, or `NAME.1` for a process of a child.
    #[serde(default)]
    process: Option<String>,
    /// `send`: text for its standard input, with line breaks.
    #[serde(default)]
    text: Option<String>,
    /// `send`: close its standard input afterwards.
    #[serde(default)]
    close: Option<bool>,
    /// `wait`: return when a new line matches this regular expression.
    #[serde(default)]
    pattern: Option<String>,
    /// `wait`: seconds, 60 by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = 3600))]
    timeout: Option<u64>,
}

impl ToolArguments for ProcessArguments {
    const ALIASES: Aliases = &[
        ("command", "action"),
        ("id", "process"),
        ("number", "process"),
        ("process_id", "process"),
        ("bash_id", "process"),
        ("shell_id", "process"),
        ("session_id", "process"),
        ("input", "text"),
        ("data", "text"),
        ("chars", "text"),
        ("regex", "pattern"),
        ("until", "pattern"),
        ("timeout_seconds", "timeout"),
        ("timeout_ms", MILLISECONDS),
    ];

    fn convert(fields: &mut Map<String, Value>) -> Result<(), String> {
        if let Some(Value::Number(number)) = fields.get("process") {
            let text = number.to_string();
            fields.insert("process".to_owned(), text.into());
        }
        arguments::convert_timeout(fields, MOST_WAIT_SECONDS)
    }
}

/// Parsed call.
enum ProcessOrder {
    List,
    Read,
    Send {
        text: String,
        closes: bool,
    },
    Wait {
        pattern: Option<RegexMatcher>,
        patience: Duration,
    },
    Stop,
}

impl Tool for ProcessTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Background processes that `bash` started with `background`. `list` shows \
                          them, `read` returns output that you have not read, `wait` returns at the \
                          end of the process, at a matching line or at the timeout, `send` writes \
                          to its standard input, `stop` ends it with all its children."
                .to_owned(),
            parameters: arguments::schema_of::<ProcessArguments>(),
            facts: FACTS,
        }
    }

    fn prepare(&self, arguments: &str, _place: &Place) -> Result<Prepared, BadArguments> {
        let call = arguments::read::<ProcessArguments>(arguments)?;
        let arguments = call.values;
        let action = arguments.action;
        let named = || {
            let missing =
                || BadArguments("`process` is missing: the number of a process".to_owned());
            arguments.process.clone().ok_or_else(missing)
        };
        let (order, target, class, shown) = match action {
            ProcessAction::List => (
                ProcessOrder::List,
                None,
                EffectClass::Read,
                "list".to_owned(),
            ),
            ProcessAction::Read => {
                let name = named()?;
                let shown = format!("read {name}");
                (ProcessOrder::Read, Some(name), EffectClass::Read, shown)
            }
            ProcessAction::Wait => {
                let name = named()?;
                let seconds = arguments.timeout.unwrap_or(WAIT_SECONDS);
                let pattern = arguments.pattern.as_deref();
                let shown = match pattern {
                    Some(pattern) => format!("wait {name} for {pattern}"),
                    None => format!("wait {name}"),
                };
                let order = ProcessOrder::Wait {
                    pattern: pattern.map(compile).transpose()?,
                    patience: Duration::from_secs(seconds.clamp(1, MOST_WAIT_SECONDS)),
                };
                (order, Some(name), EffectClass::Read, shown)
            }
            ProcessAction::Send => {
                let name = named()?;
                let text = arguments.text.clone().unwrap_or_default();
                let closes = arguments.close == Some(true);
                if text.is_empty() && !closes {
                    return Err(BadArguments("`text` is missing".to_owned()));
                }
                let shown = format!("send {name} {text}");
                // The process runs the text as it likes, so it is judged as a command is.
                let order = ProcessOrder::Send { text, closes };
                (order, Some(name), EffectClass::Execute, shown)
            }
            ProcessAction::Stop => {
                let name = named()?;
                let shown = format!("stop {name}");
                (ProcessOrder::Stop, Some(name), EffectClass::Agent, shown)
            }
        };
        let deadline = match &order {
            ProcessOrder::Wait { patience, .. } => *patience + DEADLINE,
            _ => DEADLINE,
        };
        Ok(Prepared {
            class,
            touches: Touches::default(),
            pattern: literal_pattern(&shown),
            subject: shown.clone(),
            shown,
            // Without a process there is nothing to ask about.
            preview: Some(Arc::new(|inputs| match reachable(inputs) {
                Ok(_) => Ok(String::new()),
                Err(reason) => Err(Box::new(Output::failed(reason))),
            })),
            deadline,
            needs: vec![Need::Processes(target)],
            unconfined: None,
            run: Run::Async(Box::new(move |context| {
                Box::pin(async move { carry_out(order, context).await })
            })),
        }
        .with_remark(call.remark))
    }
}

async fn carry_out(order: ProcessOrder, context: CallContext) -> Output {
    if matches!(order, ProcessOrder::List) {
        return list(&context.inputs.processes).await;
    }
    let process = match reachable(&context.inputs) {
        Ok(process) => process.clone(),
        Err(reason) => return Output::failed(reason),
    };
    match order {
        ProcessOrder::List => Output::stopped(),
        ProcessOrder::Read => {
            let state = keeper::look(&process.directory).await;
            answer(&process, state, None).await
        }
        ProcessOrder::Send { text, closes } => send(&process, text, closes).await,
        ProcessOrder::Wait { pattern, patience } => {
            let (state, reason) = wait(&process, pattern, patience, &context.stop).await;
            answer(&process, state, Some(reason)).await
        }
        ProcessOrder::Stop => {
            let state = keeper::stop(&process.directory, StopCause::Request).await;
            answer(&process, state, None).await
        }
    }
}

/// Returns the process that a call names; an error says why there is none on this machine.
fn reachable(inputs: &CallInputs) -> Result<&KnownProcess, String> {
    let process = inputs.processes.last().ok_or(
        "there is no such process; `list` shows your processes and those of your children",
    )?;
    if process.is_here {
        Ok(process)
    } else {
        Err(format!("process {} runs on {}", process.name, process.host))
    }
}

async fn list(known: &[KnownProcess]) -> Output {
    let mut lines = String::new();
    for process in known {
        let state = match (process.has_ended, process.is_here) {
            (true, _) => "ended".to_owned(),
            (false, false) => format!("runs on {}", process.host),
            (false, true) => match keeper::look(&process.directory).await {
                KeptState::Running => "running".to_owned(),
                KeptState::Ended(end) => end.describe(),
                KeptState::Gone => "lost".to_owned(),
            },
        };
        let command = visible(process.command.as_bytes());
        let command = command.lines().next().unwrap_or_default();
        let _ = writeln!(lines, "{}  {state}  {command}", process.name);
    }
    let shown = match known.len() {
        0 => "no background processes".to_owned(),
        number => counted(number, "process"),
    };
    if lines.is_empty() {
        lines.clone_from(&shown);
    }
    Output::done(lines, shown)
}

async fn send(process: &KnownProcess, text: String, closes: bool) -> Output {
    let bytes = text.len();
    match keeper::send(&process.directory, text, closes).await {
        Ok(()) => {
            let ending = if closes { ", input closed" } else { "" };
            let line = format!("{bytes} bytes sent{ending}");
            Output::done(line.clone(), line)
        }
        Err(reason) => Output::failed(format!("not sent: {reason}")),
    }
}

/// Waits for the end, a matching line, or the timeout; returns the state and the reason.
async fn wait(
    process: &KnownProcess,
    pattern: Option<RegexMatcher>,
    patience: Duration,
    stop: &CancellationToken,
) -> (KeptState, String) {
    let until = Instant::now() + patience;
    let mut follower = OutputFollower::new(&process.directory).await;
    let mut search = pattern.map(|pattern| LineSearch::new(pattern, process.read_to));
    loop {
        let news = tokio::select! {
            biased;
            () = stop.cancelled() => return (KeptState::Running, "the wait was stopped".to_owned()),
            news = follower.next() => news,
            () = sleep_until(until) => {
                let reason = format!("no end after {} s", patience.as_secs());
                return (KeptState::Running, reason);
            }
        };
        if let Some(search) = &mut search
            && let Ok(part) = read(&process.directory, search.position()).await
            && let Some(line) = search.find(&part, matches!(news, OutputNews::Over(_)))
        {
            let state = match news {
                OutputNews::Over(state) => state,
                OutputNews::Printed(_) => KeptState::Running,
            };
            return (state, format!("this line matches: {line}"));
        }
        if let OutputNews::Over(state) = news {
            return (state, "it ended".to_owned());
        }
    }
}

/// Returns the unread output with the state of the process.
async fn answer(process: &KnownProcess, state: KeptState, reason: Option<String>) -> Output {
    let from = if process.is_own { process.read_to } else { 0 };
    let most = if process.is_own {
        MOST_READ_BYTES
    } else {
        TAIL_BYTES
    };
    let directory = process.directory.clone();
    let part = tokio::task::spawn_blocking(move || read_output(&directory, from, most)).await;
    let part = match part {
        Ok(Ok(part)) => part,
        Ok(Err(error)) => {
            let text = format!(
                "cannot read the output of process {}: {error}",
                process.name
            );
            return Output::failed(text);
        }
        Err(_) => return Output::stopped(),
    };
    let mut body = Vec::new();
    let skipped = part.from.saturating_sub(from);
    if skipped > 0 {
        body.extend_from_slice(format!("[{skipped} bytes before this are left out]\n").as_bytes());
    }
    body.extend_from_slice(&part.bytes);
    let state_text = match &state {
        KeptState::Running => "running".to_owned(),
        KeptState::Ended(end) => end.describe(),
        KeptState::Gone => "lost: exit status unknown".to_owned(),
    };
    let lines = part.bytes.split_inclusive(|byte| *byte == b'\n').count();
    let lines = match lines {
        0 => "no new output".to_owned(),
        lines => counted(lines, "new line"),
    };
    let reason = reason.map_or_else(String::new, |reason| format!("; {reason}"));
    let line = format!("process {}: {state_text}, {lines}{reason}", process.name);
    let report = process.is_own.then(|| ProcessReport {
        cookie: process.cookie.clone(),
        read_to: Some(part.to),
        end: match state {
            KeptState::Ended(end) if !process.has_ended => Some(end),
            _ => None,
        },
        is_started: false,
        left: None,
    });
    let warning = report
        .as_ref()
        .and_then(|report| report.end.as_ref()?.warning.clone());
    let mut output = Output {
        process: report,
        ..Output::done(body, line.clone())
    }
    .with_remark(&line);
    if let Some(warning) = warning {
        output = output.with_remark(&warning);
    }
    output
}

async fn read(directory: &Path, from: u64) -> std::io::Result<OutputPart> {
    let directory = directory.to_owned();
    let read = move || read_output(&directory, from, MOST_READ_BYTES);
    tokio::task::spawn_blocking(read)
        .await
        .map_err(std::io::Error::other)?
}
