//! Display form of rows, for any front end.

use std::fmt;

use crate::data::{
    self, AgentKilledData, Amounts, Category, Cause, CommandData, ErrorData, ForkData, ForkRole,
    InterruptedData, MarkData, Merge, ProcessCause, ProcessData, ProcessState, RewindData, Shell,
    SummaryData, UsageData, UserData, UserOrigin, Via,
};
use crate::environment_block::without_blocks;
use crate::event::Row;
use crate::ids::{AgentId, RowRef};
use crate::kind::Kind;
use crate::load::{LoadError, Loaded, Part, load};
use crate::message::Block;
use crate::words::Severity;

/// Shown in place of an answer without text, thinking and calls.
const EMPTY_ANSWER: &str = "(empty answer)";

/// Display form of one event.
///
/// Front ends add signs, colours and folds; [`fmt::Display`] is the form for a plain terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The row is not drawn.
    Nothing,
    /// A system prompt.
    System(String),
    /// A message to the agent.
    User {
        /// Text for the user.
        text: String,
        /// Text for the model, if it differs.
        sent: Option<String>,
        /// Origin of the message.
        said: Said,
    },
    /// Thinking and text of the model.
    Assistant { thinking: Vec<String>, text: String },
    /// A tool call.
    ToolCall {
        /// Thinking of the model before the call.
        thinking: Vec<String>,
        /// Name of the tool.
        name: String,
        /// The call as one line.
        text: String,
        /// The arguments as the model wrote them.
        arguments: String,
    },
    /// Result of a tool call.
    ToolResult {
        /// Name of the tool.
        name: String,
        /// Text for the user: a line, and a diff if there is one.
        text: String,
        /// Output for the model.
        output: String,
        /// True if the tool succeeded.
        success: bool,
        /// The call that is answered.
        call: Option<RowRef>,
    },
    /// The path was cleared.
    Cleared,
    /// A mark with its label.
    Mark(Option<String>),
    /// A return to an earlier row.
    Rewound(RewindData),
    /// One side of a fork.
    Forked {
        /// The line that was written for it.
        text: String,
        /// Side of the fork that the row belongs to.
        role: Option<ForkRole>,
        /// The agent on the other side.
        other: Option<AgentId>,
        /// Its name at the fork.
        name: Option<String>,
    },
    /// A command's echo and output.
    Command {
        /// The line as typed.
        echo: String,
        /// Its output, without a sign.
        output: String,
        /// Severity of the output.
        severity: Severity,
    },
    /// Agents that were killed.
    Killed(Vec<AgentId>),
    /// Cost of a response.
    Usage(Amounts),
    /// A turn was stopped.
    Interrupted(Option<Cause>),
    /// A turn failed.
    Failed {
        category: Option<Category>,
        /// HTTP status of the response, if there was one.
        status: Option<u16>,
        text: String,
    },
    /// A summary, or a gap, in place of a range of rows.
    Summary {
        range: Option<(RowRef, RowRef)>,
        text: Option<String>,
        /// True if the row only shortens the tool outputs of the range.
        elides: bool,
        /// The summary that the row undoes.
        undo: Option<RowRef>,
    },
    /// A background process ended.
    ProcessEnded {
        /// Its command line.
        command: String,
        /// Its number and the reason for the end.
        data: ProcessData,
    },
    /// A row that could not be read.
    Warning(String),
}

/// Origin of a message to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The user, or an unknown sender.
    Typed,
    /// The prompt of a fork.
    Fork,
    /// Mail from this agent.
    Mail(Option<AgentId>),
    /// Output of a shell command that the user ran.
    Shell(Shell),
    /// Result of a child.
    Merge(Merge),
    /// Automatic notice about the background process of this number.
    Notice(Option<u64>),
}

impl Said {
    fn of(data: &UserData) -> Self {
        match (&data.shell, &data.merge, data.origin) {
            (Some(shell), _, _) => Self::Shell(shell.clone()),
            (None, Some(merge), _) => Self::Merge(merge.clone()),
            (None, None, Some(UserOrigin::Mail)) => Self::Mail(data.from),
            (None, None, Some(UserOrigin::Fork)) => Self::Fork,
            (None, None, Some(UserOrigin::Notice)) => Self::Notice(data.process),
            (None, None, Some(UserOrigin::Typed) | None) => Self::Typed,
        }
    }
}

impl Shown {
    /// Makes the warning about a bad row: agent, number, kind and error.
    pub fn warning(row: &Row, error: &LoadError) -> Self {
        let line = format!(
            "event {} of kind `{:.64}` is skipped: {error}",
            row.at, row.kind
        );
        // The name of an unknown kind can contain any character, line breaks included.
        Self::Warning(line.replace(char::is_control, "\u{fffd}"))
    }
}

/// Renders a row. Total.
pub fn render(row: &Row) -> Shown {
    render_loaded(row, &load(row))
}

/// Renders a row that is already loaded. Every kind has an arm, even one that draws nothing.
pub(crate) fn render_loaded(row: &Row, loaded: &Result<Loaded, LoadError>) -> Shown {
    let part = match loaded {
        Ok(Loaded::Message(part)) => Some(part),
        Ok(Loaded::Nothing) => None,
        Err(error) => return Shown::warning(row, error),
    };
    let Some(kind) = row.kind.read_as() else {
        return Shown::Nothing;
    };
    let data = row.data.as_deref();
    let content = row.content.clone().unwrap_or_default();
    match kind {
        Kind::System => Shown::System(content),
        Kind::User => render_user(&content, data::read(data)),
        Kind::Assistant => render_answer(content, thinking_of(part)),
        Kind::ToolCall => render_call(row.content.as_deref(), part),
        Kind::ToolResult => render_result(row.content.as_deref(), part),
        Kind::Clear => Shown::Cleared,
        Kind::Mark => Shown::Mark(data::read::<MarkData>(data).label),
        Kind::Rewind => Shown::Rewound(data::read(data)),
        Kind::Fork => {
            let fork: ForkData = data::read(data);
            let other = fork.child_uuid.or(fork.parent_uuid);
            let name = fork.child_name.or(fork.parent_name);
            Shown::Forked {
                name: name.or_else(|| name_in_text(&content, other?)),
                text: content,
                role: fork.role,
                other,
            }
        }
        Kind::Command => render_command(content, data::read(data)),
        Kind::AgentKilled => Shown::Killed(
            data::read::<AgentKilledData>(data)
                .killed
                .unwrap_or_default(),
        ),
        Kind::Usage => Shown::Usage(data::read::<UsageData>(data).amounts),
        Kind::Interrupted => Shown::Interrupted(data::read::<InterruptedData>(data).cause),
        Kind::Error => {
            let error: ErrorData = data::read(data);
            Shown::Failed {
                category: error.category,
                status: error.status,
                text: content,
            }
        }
        Kind::Summary => {
            let summary: SummaryData = data::read(data);
            Shown::Summary {
                range: summary.from.zip(summary.to),
                text: row.content.clone(),
                elides: summary.elide.is_some(),
                undo: summary.undo,
            }
        }
        // The call, or the command that restored them, is drawn.
        Kind::Files => Shown::Nothing,
        Kind::Process => {
            let data: ProcessData = data::read(data);
            if data.state == Some(ProcessState::Ended) {
                let command = content;
                Shown::ProcessEnded { command, data }
            } else {
                // The call that started it is drawn.
                Shown::Nothing
            }
        }
    }
}

fn render_user(content: &str, data: UserData) -> Shown {
    let said = Said::of(&data);
    // The row of the end that it reports is drawn.
    if matches!(said, Said::Notice(_)) && data.typed.as_deref() == Some("") {
        return Shown::Nothing;
    }
    let content = without_blocks(content, &data).to_owned();
    match data.typed {
        Some(text) => Shown::User {
            sent: Some(content).filter(|sent| *sent != text),
            text,
            said,
        },
        None => Shown::User {
            text: content,
            sent: None,
            said,
        },
    }
}

fn blocks_of(part: Option<&Part>) -> &[Block] {
    part.map_or(&[], |part| part.message.blocks.as_slice())
}

fn render_answer(content: String, thinking: Vec<String>) -> Shown {
    let is_empty = thinking.is_empty() && content.trim().is_empty();
    Shown::Assistant {
        thinking,
        text: if is_empty {
            EMPTY_ANSWER.to_owned()
        } else {
            content
        },
    }
}

fn thinking_of(part: Option<&Part>) -> Vec<String> {
    let thinking = blocks_of(part).iter().filter_map(|block| match block {
        Block::Thinking { text, .. } => Some(text.clone()),
        _ => None,
    });
    thinking.collect()
}

fn render_call(shown: Option<&str>, part: Option<&Part>) -> Shown {
    let called = blocks_of(part).iter().find_map(|block| match block {
        Block::ToolCall {
            name, arguments, ..
        } => Some((name.as_str(), arguments.as_str())),
        _ => None,
    });
    let (name, arguments) = called.unwrap_or_default();
    Shown::ToolCall {
        thinking: thinking_of(part),
        name: name.to_owned(),
        text: shown.unwrap_or(arguments).to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn render_result(shown: Option<&str>, part: Option<&Part>) -> Shown {
    let came = blocks_of(part).iter().find_map(|block| match block {
        Block::ToolResult {
            content, is_error, ..
        } => Some((content.as_str(), !is_error)),
        _ => None,
    });
    let (content, success) = came.unwrap_or_default();
    Shown::ToolResult {
        name: part.and_then(|part| part.tool.clone()).unwrap_or_default(),
        text: shown.unwrap_or(content).to_owned(),
        output: content.to_owned(),
        success,
        call: part.and_then(|part| part.answers),
    }
}

/// Names of agents and rows for display.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    /// Agent whose rows are shown; references to other agents' rows include the agent.
    pub own: Option<AgentId>,
    /// Looks up an agent's name; an agent without one is shown by its id.
    pub name_of: &'a dyn Fn(AgentId) -> Option<String>,
}

impl Names<'_> {
    /// Returns the agent's name.
    pub fn agent(&self, agent: AgentId) -> String {
        (self.name_of)(agent).unwrap_or_else(|| agent.to_string())
    }

    /// Returns `#12`, or `#docs.12` for another agent's row.
    pub fn row(&self, row: RowRef) -> String {
        if self.own == Some(row.agent) {
            return format!("#{}", row.seq);
        }
        format!("#{}.{}", self.agent(row.agent), row.seq)
    }
}

/// Display form of an event for a plain terminal, with names of agents and rows.
pub struct PlainRow<'a> {
    shown: &'a Shown,
    names: Names<'a>,
}

impl Shown {
    /// Adds names of agents and rows for [`fmt::Display`].
    pub fn plain<'a>(&'a self, names: Names<'a>) -> PlainRow<'a> {
        PlainRow { shown: self, names }
    }

    /// Returns the agents that the event names by id.
    pub fn mentions(&self) -> Vec<AgentId> {
        match self {
            Self::Rewound(data) => {
                let rows = [data.target, data.from].into_iter().flatten();
                rows.map(|row| row.agent).collect()
            }
            Self::Killed(killed) => killed.clone(),
            Self::User { said, .. } => match said {
                Said::Mail(from) => from.iter().copied().collect(),
                Said::Merge(merge) => merge.agent.into_iter().collect(),
                Said::Typed | Said::Fork | Said::Shell(_) | Said::Notice(_) => Vec::new(),
            },
            Self::Summary { range, undo, .. } => {
                let (from, to) = range.unzip();
                let rows = [from, to, *undo].into_iter().flatten();
                rows.map(|row| row.agent).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Names {
            own: None,
            name_of: &|_| None,
        };
        self.plain(names).fmt(f)
    }
}

impl fmt::Display for PlainRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names;
        match self.shown {
            Shown::Nothing => Ok(()),
            Shown::System(text) => write!(f, "system: {text}"),
            Shown::User { text, .. } => write!(f, "❯ {text}"),
            Shown::Assistant { text, .. } => write!(f, "● {text}"),
            Shown::ToolCall { name, text, .. } => write!(f, "→ {name}: {text}"),
            Shown::ToolResult {
                name,
                text,
                success: true,
                ..
            } => write!(f, "← {name}: {text}"),
            Shown::ToolResult {
                name,
                text,
                success: false,
                ..
            } => write!(f, "✗ {name}: {text}"),
            Shown::Cleared => f.write_str("── cleared ──"),
            Shown::Mark(Some(label)) => write!(f, "⚑ {label}"),
            Shown::Mark(None) => f.write_str("⚑"),
            Shown::Rewound(data) => match data.target {
                Some(target) if data.via == Some(Via::Redo) => {
                    write!(f, "↷ redone to {}", names.row(target))
                }
                Some(target) => write!(f, "↶ rewound to {}", names.row(target)),
                None => f.write_str("↶"),
            },
            Shown::Forked {
                text, role, name, ..
            } => {
                write!(f, "├ {}", fork_text(text, *role, name.as_deref()))
            }
            Shown::Command { echo, output, .. } if output.is_empty() => f.write_str(echo),
            Shown::Command {
                echo,
                output,
                severity,
            } => write!(f, "{echo}\n\n{}", severity.signed(output)),
            Shown::Killed(killed) => {
                f.write_str("✗ killed")?;
                let mut killed = killed.iter().map(|agent| names.agent(*agent));
                killed.try_for_each(|agent| write!(f, " {agent}"))
            }
            Shown::Usage(amounts) => write!(
                f,
                "{} tokens in, {} out",
                amounts.tokens_in(),
                amounts.output.unwrap_or_default()
            ),
            Shown::Interrupted(cause) => write!(f, "✗ interrupted{}", by(*cause)),
            Shown::Failed { text, .. } => write!(f, "✗ {text}"),
            Shown::Summary {
                text: Some(text), ..
            } => write!(f, "── summary ──\n{text}"),
            Shown::Summary {
                elides: true,
                range: Some((_, to)),
                ..
            } => {
                let to = names.row(*to);
                write!(
                    f,
                    "── old tool output up to {to} shortened · /context undo ──"
                )
            }
            Shown::Summary { range: None, .. } => f.write_str("── summary undone ──"),
            Shown::Summary {
                range: Some((_, to)),
                text: None,
                ..
            } => {
                let to = names.row(*to);
                write!(
                    f,
                    "── context full: events up to {to} left out · /context undo ──"
                )
            }
            Shown::ProcessEnded { command, data } => {
                write!(f, "■ {}: {command}", process_ended(data))
            }
            Shown::Warning(text) => f.write_str(&Severity::Warning.signed(text)),
        }
    }
}

/// Describes the end of a process. Example: `process 2 ended: exit 1`.
pub fn process_ended(data: &ProcessData) -> String {
    let number = data.process.unwrap_or_default();
    let status = match (data.exit, data.signal) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "exit status unknown".to_owned(),
    };
    match data.cause {
        Some(ProcessCause::Stop) => format!("process {number} was stopped"),
        Some(ProcessCause::Kill) => format!("process {number} ended with its agent"),
        Some(ProcessCause::Lost) => format!("process {number} was lost: exit status unknown"),
        Some(ProcessCause::Exit) | None => format!("process {number} ended: {status}"),
    }
}

/// Describes a fork in a few words.
pub fn fork_text(text: &str, role: Option<ForkRole>, name: Option<&str>) -> String {
    match (role, name) {
        (Some(ForkRole::Parent), Some(name)) => format!("forked {name}"),
        (Some(ForkRole::Child), Some(name)) => format!("forked from {name}"),
        _ => text.to_owned(),
    }
}

/// Reads the other agent's name out of the text of a row that has no field for it.
fn name_in_text(text: &str, other: AgentId) -> Option<String> {
    let (_, rest) = text.split_once(&other.to_string())?;
    let name = rest.trim().strip_prefix('(')?.strip_suffix(')')?;
    Some(name.to_owned())
}

/// Renders a command; rows without a severity may begin with the sign of one.
fn render_command(content: String, data: CommandData) -> Shown {
    let Some(echo) = data.echo else {
        return Shown::Nothing;
    };
    let (severity, output) = match data.severity {
        Some(severity) => (severity, content),
        // Output of a program may begin with any sign.
        None if echo.starts_with("!!") => (Severity::Info, content),
        None => {
            let (severity, output) = Severity::split_sign(&content);
            (severity, output.to_owned())
        }
    };
    Shown::Command {
        echo,
        output,
        severity,
    }
}

fn by(cause: Option<Cause>) -> &'static str {
    match cause {
        Some(Cause::User) => " by you",
        Some(Cause::Exit) => ": ikigai quit",
        Some(Cause::Crash) => ": ikigai stopped unexpectedly",
        Some(Cause::Kill) => ": the agent was killed",
        None => "",
    }
}
