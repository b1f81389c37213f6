//! Contents of an export page, independent of the output format.

use std::collections::HashMap;

use ikigai_core::counts::counted;
use ikigai_core::data::{ForkRole, Shell};
use ikigai_core::kind::Kind;
use ikigai_core::load::LoadError;
use ikigai_core::render::{Names, Said, Shown, render};
use ikigai_core::{AgentId, Micros, Row};
use ikigai_store::{AgentRecord, Status};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::TurnFigures;
use crate::figures::{dollars, duration, token_count};

/// Limit of one output or message; the log and a JSON export have the rest.
const MOST_BYTES: usize = 256 * 1024;

/// All agents of a page.
pub(super) struct Page {
    agents: Vec<(AgentRecord, usize)>,
    /// Names of all agents, on the page or not.
    names: HashMap<AgentId, String>,
    now: Micros,
    zone: TimeZone,
}

/// Row as people see it.
pub(super) enum Item {
    /// Invisible row.
    Nothing,
    /// Message or answer, in Markdown.
    Said {
        who: Speaker,
        thinking: Vec<String>,
        text: String,
    },
    /// A folded part: summary line and contents.
    Folded {
        sign: &'static str,
        name: String,
        line: String,
        text: String,
        failed: bool,
    },
    /// One line.
    Note { text: String, failed: bool },
}

/// Author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Model,
    Summary,
}

impl Speaker {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Model => "assistant",
            Self::Summary => "summary",
        }
    }
}

impl Page {
    pub(super) fn new(
        agents: Vec<(AgentRecord, usize)>,
        names: HashMap<AgentId, String>,
        now: Micros,
        zone: TimeZone,
    ) -> Self {
        Self {
            agents,
            names,
            now,
            zone,
        }
    }

    pub(super) fn agents(&self) -> &[(AgentRecord, usize)] {
        &self.agents
    }

    pub(super) fn rows(&self) -> u64 {
        self.agents.iter().map(|(agent, _)| agent.head.0).sum()
    }

    /// Returns the title of the page.
    pub(super) fn title(&self) -> String {
        match self.agents.as_slice() {
            [] => "no agent".to_owned(),
            [(only, _)] => visible(&only.name),
            [(first, _), ..]
                if self.agents.iter().filter(|(_, depth)| *depth == 0).count() == 1 =>
            {
                format!("{} and its children", visible(&first.name))
            }
            all => counted(all.len(), "agent"),
        }
    }

    /// Returns the time of the export.
    pub(super) fn made(&self) -> String {
        self.time(self.now)
    }

    /// Formats a time in the user's time zone.
    pub(super) fn time(&self, at: Micros) -> String {
        Timestamp::from_microsecond(at.0).map_or_else(
            |_| "(no time)".to_owned(),
            |time| {
                let zoned = time.to_zoned(self.zone.clone());
                zoned.strftime("%Y-%m-%d %H:%M").to_string()
            },
        )
    }

    pub(super) fn name(&self, agent: AgentId) -> String {
        let name = self.names.get(&agent);
        name.map_or_else(|| agent.to_string(), |name| visible(name))
    }

    /// Returns true if an agent is on the page.
    pub(super) fn has(&self, agent: AgentId) -> bool {
        self.agents.iter().any(|(known, _)| known.id == agent)
    }
}

/// Returns the state of an agent in one word.
pub(super) fn state(agent: &AgentRecord) -> &'static str {
    match agent.status {
        Status::Running => "alive",
        Status::Dead | Status::Reaped => "dead",
    }
}

/// Formats the usage line. Example: `demo · 12 s · 3 tools · 2.1k tokens · $0.01 · 14:03`.
pub(super) fn turn_line(page: &Page, turn: &TurnFigures) -> String {
    let mut parts = turn
        .models
        .iter()
        .map(|model| one_line(model))
        .collect::<Vec<_>>();
    parts.push(duration(turn.took()));
    if turn.calls > 0 {
        parts.push(counted(turn.calls, "tool"));
    }
    if turn.tokens > 0 {
        parts.push(token_count(turn.tokens));
    }
    parts.extend(turn.cost.filter(|cost| *cost > 0).map(dollars));
    parts.push(page.time(turn.ended));
    parts.join(" · ")
}

/// Returns the text of a row for people, or the problem with it.
pub(super) fn item(page: &Page, row: &Row, problem: Option<&LoadError>) -> Item {
    let shown = match problem {
        Some(problem) => Shown::warning(row, problem),
        None => render(row),
    };
    match shown {
        Shown::Nothing | Shown::Usage(_) => Item::Nothing,
        Shown::System(text) => fold("⚙", "system prompt", "", &text, false),
        Shown::User {
            text,
            said: Said::Shell(shell),
            ..
        } => ran(&shell, &text),
        Shown::User {
            text,
            sent: Some(sent),
            said: Said::Merge(_),
        } => fold("⇐", text.trim_start_matches("⇐ "), "", &sent, false),
        Shown::User { text, .. } => speech(Speaker::User, &[], &text),
        Shown::Assistant { thinking, text } => speech(Speaker::Model, &thinking, &text),
        Shown::ToolCall {
            thinking,
            name,
            text,
            arguments,
        } => {
            let mut all = thinking.join("\n\n");
            if !all.is_empty() {
                all.push_str("\n\n");
            }
            all.push_str(&laid_out(&arguments));
            fold("→", &name, &text, &all, false)
        }
        Shown::ToolResult {
            name,
            text,
            output,
            success,
            ..
        } => {
            // For a change of a file, use the diff that the user saw.
            let whole = if is_diff(&text) { &text } else { &output };
            fold("←", &name, &text, whole, !success)
        }
        Shown::Command {
            echo,
            output,
            severity,
        } => fold("❯", &echo, "", &severity.signed(&output), false),
        Shown::Summary {
            text: Some(text), ..
        } => speech(Speaker::Summary, &[], &text),
        Shown::Forked {
            role,
            other: Some(other),
            ..
        } => {
            let from = if role == Some(ForkRole::Child) {
                " from"
            } else {
                ""
            };
            note(&format!("forked{from} {}", page.name(other)), false)
        }
        Shown::Killed(killed) => {
            let names: Vec<_> = killed.into_iter().map(|agent| page.name(agent)).collect();
            note(&format!("✗ killed {}", names.join(", ")), true)
        }
        Shown::Failed { text, .. } => note(&format!("✗ {text}"), true),
        other => {
            let names = Names {
                own: Some(row.at.agent),
                name_of: &|agent| Some(page.name(agent)),
            };
            note(
                &other.plain(names).to_string(),
                row.kind.read_as() == Some(Kind::Interrupted),
            )
        }
    }
}

/// Renders a shell command of a user, with its output.
fn ran(shell: &Shell, text: &str) -> Item {
    let command = shell.command.as_deref().unwrap_or_default();
    // It begins with the command, which is already in the summary line.
    let output = text.strip_prefix(&format!("$ {command}\n")).unwrap_or(text);
    fold("$", command, "", output, shell.exit != Some(0))
}

fn speech(who: Speaker, thinking: &[String], text: &str) -> Item {
    let thinking = thinking.iter().filter(|text| !text.trim().is_empty());
    let thinking: Vec<_> = thinking.map(|text| bound(text)).collect();
    if thinking.is_empty() && text.trim().is_empty() {
        return Item::Nothing;
    }
    Item::Said {
        who,
        thinking,
        text: bound(text),
    }
}

fn note(text: &str, failed: bool) -> Item {
    Item::Note {
        text: bound(text),
        failed,
    }
}

fn fold(sign: &'static str, name: &str, line: &str, text: &str, failed: bool) -> Item {
    Item::Folded {
        sign,
        name: one_line(name),
        line: one_line(line),
        text: bound(text),
        failed,
    }
}

/// Pretty-prints arguments that are JSON.
fn laid_out(arguments: &str) -> String {
    serde_json::from_str::<serde_json::Value>(arguments)
        .and_then(|value| serde_json::to_string_pretty(&value))
        .unwrap_or_else(|_| arguments.to_owned())
}

/// Returns true if a text has hunks of a unified diff.
pub(super) fn is_diff(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("@@ -"))
}

/// Returns the first line of a text, shortened.
fn one_line(text: &str) -> String {
    const MOST_CHARS: usize = 160;
    let line = text.trim().lines().next().unwrap_or_default();
    let mut chars = line.chars();
    let mut cut: String = chars.by_ref().take(MOST_CHARS).collect();
    if chars.next().is_some() {
        cut.push('…');
    }
    visible(&cut)
}

fn bound(text: &str) -> String {
    if text.len() <= MOST_BYTES {
        return visible(text);
    }
    let end = text.floor_char_boundary(MOST_BYTES);
    format!(
        "{}\n[… {} more bytes are in the log]",
        visible(&text[..end]),
        text.len() - end
    )
}

/// Replaces terminal sequences and bidirectional controls in a text.
pub(super) fn visible(text: &str) -> String {
    ikigai_core::spelling::clean(text).into_owned()
}
