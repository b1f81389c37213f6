//! Answers of the control socket: one line of JSON each.

use ikigai_core::{AgentId, RowRef, Seq};
use ikigai_engine::{Branch, Context, Question};
use serde::{Deserialize, Serialize};

use crate::look::Look;
use crate::paint::{CellStyle, Colour, Grid, StyledRun, Theme};

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ControlAnswer {
    /// A tagged answer.
    Said(ControlOutput),
    /// To `read_token_cache`.
    TokenCache(TokenCache),
    /// It could not be done.
    Error {
        /// Why.
        error: String,
    },
}

/// Answers with a `type` tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ControlOutput {
    /// It is done.
    Ok,
    /// To `submit`: the line is saved, but not stored or executed yet.
    Pending {
        /// Why.
        reason: String,
    },
    /// The agent has nothing to do.
    Idle {
        /// It waits for an answer to a question.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        asks: bool,
    },
    /// The time was over before.
    Timeout,
    /// To `read_framebuffer`.
    Framebuffer(Framebuffer),
    /// To `agents`.
    Agents {
        /// All that are not reaped, parents before their children.
        agents: Vec<AgentSeen>,
    },
    /// To `release`.
    Released {
        /// Agents that this process owned.
        agents: Vec<Released>,
    },
    /// To `version`.
    Version(Version),
}

/// Contents of the screen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Framebuffer {
    /// Number of rows.
    pub rows: u16,
    /// Number of columns.
    pub cols: u16,
    /// Position of the cursor.
    pub cursor: CursorSeen,
    /// Every row.
    pub lines: Vec<RowSeen>,
}

/// Position of the cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CursorSeen {
    /// Its row, from 0.
    pub row: u16,
    /// Its column, from 0.
    pub col: u16,
    /// True if it is visible.
    pub visible: bool,
}

/// One row of the screen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowSeen {
    /// Number of the row, from 0.
    pub row: u16,
    /// Text without blanks at its end.
    pub spans: Vec<SpanSeen>,
}

/// Run of text with one style.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanSeen {
    /// The text.
    pub text: String,
    /// Style of the text.
    pub style: StyleSeen,
}

/// Style of text; defaults are omitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "ways of setting text off")]
pub struct StyleSeen {
    /// Colour number of the terminal's palette; the default colour if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fg: Option<u8>,
    /// Heavier.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bold: bool,
    /// Fainter.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dim: bool,
    /// Reverse video.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reverse: bool,
    /// Underlined.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub underline: bool,
    /// Slanted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub italic: bool,
}

/// Usage of an agent's context window, in tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCache {
    /// Of the turns in the window.
    pub total_tokens: u64,
    /// Of the system prompt, pins and tools.
    pub fixed_tokens: u64,
    /// Budget of the window.
    pub budget: u64,
    /// Turns in the window.
    pub turn_count: u64,
    /// Turns before them that are not sent.
    pub context_start_index: u64,
    /// The turns in the window, oldest first.
    pub turns: Vec<TurnSeen>,
}

/// One turn in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnSeen {
    /// Its place among all turns, from 0.
    pub index: u64,
    /// Tokens of the turn.
    pub tokens: u64,
}

/// One agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSeen {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The id of its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// `running` or `dead`.
    pub status: String,
    /// True if a turn runs.
    pub working: bool,
    /// True if it is on the screen.
    pub current: bool,
    /// The number of its newest row.
    pub head: u64,
    /// Process that owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerSeen>,
    /// Its open question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<QuestionSeen>,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerSeen {
    /// Its machine.
    pub host: String,
    /// Its number there.
    pub pid: u32,
}

/// A call that waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionSeen {
    /// Name of the tool.
    pub tool: String,
    /// The whole call, control and invisible characters spelled out.
    pub shown: String,
    /// Directory in which it would run, spelled out.
    pub workdir: String,
    /// The whole diff of an edit, spelled out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Exact pattern that `always` allows.
    pub pattern: String,
    /// Hash of the exact call and the pattern; an approval names it.
    pub call: String,
    /// Number of the call's row; older versions do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<u64>,
}

impl QuestionSeen {
    /// Returns the question of an agent as screens show it; none without its row.
    pub fn question(self, agent: AgentId, name: &str) -> Option<Question> {
        Some(Question {
            call: RowRef::new(agent, Seq(self.row?)),
            agent: name.to_owned(),
            tool: self.tool,
            shown: self.shown,
            hash: self.call,
            workdir: self.workdir,
            preview: self.preview,
            pattern: self.pattern,
        })
    }
}

/// Released agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Released {
    /// Its id.
    pub id: String,
    /// True if a turn was running and was stopped.
    pub worked: bool,
}

/// Version of the program that answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// The program's version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// `screen`, `headless`, or `background` for one that ends by itself.
    pub mode: String,
    /// Id of the visible agent.
    pub agent: String,
    /// Its name.
    pub name: String,
    /// True if commands run in the sandbox; older versions do not say it.
    #[serde(default)]
    pub sandbox: Option<bool>,
}

impl ControlAnswer {
    /// It is done.
    pub const OK: Self = Self::Said(ControlOutput::Ok);

    /// Creates an error answer.
    pub fn error(reason: impl Into<String>) -> Self {
        Self::Error {
            error: reason.into(),
        }
    }

    /// Serializes it as one line.
    pub fn to_line(&self) -> String {
        // Serialization cannot fail.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

impl Framebuffer {
    /// Reads the rows of a grid with a theme.
    pub fn of(grid: &Grid, theme: Theme) -> Self {
        let cursor = grid.cursor.map(|(row, col)| CursorSeen {
            row,
            col,
            visible: true,
        });
        let line = |row: u16| RowSeen {
            row,
            spans: spans(grid.spans(row, theme)),
        };
        Self {
            rows: grid.rows(),
            cols: grid.columns(),
            cursor: cursor.unwrap_or_default(),
            lines: (0..grid.rows()).map(line).collect(),
        }
    }

    /// Returns plain text, a line for each row.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            text.extend(line.spans.iter().map(|span| span.text.as_str()));
            text.push('\n');
        }
        text
    }
}

/// Runs without the blanks at the end of their row.
fn spans(runs: Vec<StyledRun>) -> Vec<SpanSeen> {
    let seen = runs.into_iter().map(|run| SpanSeen {
        style: StyleSeen::of(run.style),
        text: run.text,
    });
    let mut spans: Vec<_> = seen.collect();
    while let Some(last) = spans.last_mut() {
        if last.style.reverse || last.style.underline {
            break;
        }
        last.text.truncate(last.text.trim_end_matches(' ').len());
        if !last.text.is_empty() {
            break;
        }
        spans.pop();
    }
    spans
}

impl StyleSeen {
    fn of(style: CellStyle) -> Self {
        Self {
            fg: match style.fg {
                Colour::Default => None,
                Colour::Indexed(index) => Some(index),
            },
            bold: style.has(Look::BOLD),
            dim: style.has(Look::DIM),
            reverse: style.has(Look::REVERSE),
            underline: style.has(Look::UNDERLINE),
            italic: style.has(Look::ITALIC),
        }
    }
}

impl From<&Context> for TokenCache {
    fn from(context: &Context) -> Self {
        // Summaries precede the first verbatim turn.
        let summaries = context.turns.iter().take_while(|turn| turn.is_summary);
        let before = u64::try_from(summaries.count()).unwrap_or(0);
        let first = context.start_index.saturating_sub(before);
        let turns = (first..).zip(&context.turns);
        Self {
            total_tokens: context.total_tokens(),
            fixed_tokens: context.fixed_tokens(),
            budget: context.budget,
            turn_count: u64::try_from(context.turns.len()).unwrap_or(u64::MAX),
            context_start_index: context.start_index,
            turns: turns
                .map(|(index, turn)| TurnSeen {
                    index,
                    tokens: turn.tokens,
                })
                .collect(),
        }
    }
}

impl AgentSeen {
    /// Describes an agent with its questions.
    pub fn of(branch: &Branch, is_current: bool, questions: &[Question]) -> Self {
        let agent = &branch.agent;
        let owner = agent.owner.as_ref().filter(|owner| owner.may_live());
        Self {
            id: agent.id.to_string(),
            name: agent.name.clone(),
            parent: agent.parent.map(|parent| parent.to_string()),
            status: agent.status.word().to_owned(),
            working: branch.works,
            current: is_current,
            head: agent.head.0,
            owner: owner.map(|owner| OwnerSeen {
                host: owner.host.clone(),
                pid: owner.pid,
            }),
            questions: questions
                .iter()
                .map(|question| QuestionSeen {
                    tool: question.tool.clone(),
                    shown: question.shown.clone(),
                    workdir: question.workdir.clone(),
                    preview: question.preview.clone(),
                    pattern: question.pattern.clone(),
                    call: question.hash.clone(),
                    row: Some(question.call.seq.0),
                })
                .collect(),
        }
    }
}
