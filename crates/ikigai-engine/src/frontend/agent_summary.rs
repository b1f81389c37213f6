//! Newest words and usage of an agent, for lists of agents.

use ikigai_core::data::{self, Amounts, ErrorData, ToolCallData, UsageData};
use ikigai_core::{Kind, Row};

/// Characters kept of an agent's newest words.
const LAST_CHARS: usize = 200;

/// Newest words and usage of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSummary {
    /// Its newest words or call.
    pub last: String,
    /// True if it has answered; none if unknown.
    pub answered: Option<bool>,
    /// Tokens used.
    pub tokens: u64,
    /// Cost of them, in 10⁻⁹ dollars.
    pub cost: Option<u64>,
}

impl AgentSummary {
    /// Adds streamed text.
    pub(super) fn add_text(&mut self, text: &str) {
        append_last(&mut self.last, text);
    }

    /// Adds a stored row.
    pub fn add_row(&mut self, row: &Row) {
        let data = row.data.as_deref();
        let text = row.content.as_deref().unwrap_or_default();
        let Some(kind) = row.kind.read_as() else {
            return;
        };
        match kind {
            Kind::Assistant => {
                self.answered = Some(true);
                if !text.trim().is_empty() {
                    self.replace_last(text);
                }
            }
            Kind::ToolCall => {
                let name = data::read::<ToolCallData>(data).name.unwrap_or_default();
                self.last = format!("{name}: {}", text.lines().next().unwrap_or_default());
            }
            Kind::User => self.last.clear(),
            Kind::Error => {
                if data::read::<ErrorData>(data).omit.is_none() {
                    self.replace_last(text);
                }
            }
            Kind::Usage => {
                let used: UsageData = data::read(data);
                self.set_usage(&used.sum.unwrap_or(used.amounts));
            }
            Kind::System
            | Kind::ToolResult
            | Kind::Clear
            | Kind::Mark
            | Kind::Rewind
            | Kind::Fork
            | Kind::Command
            | Kind::AgentKilled
            | Kind::Interrupted
            | Kind::Summary
            | Kind::Process
            | Kind::Files => {}
        }
    }

    /// Sets the usage of the whole life.
    pub fn set_usage(&mut self, sum: &Amounts) {
        let parts = [sum.input, sum.cache_read, sum.cache_write, sum.output];
        self.tokens = parts.into_iter().flatten().fold(0, u64::saturating_add);
        self.cost = sum.cost_nano_usd;
    }

    /// Keeps the last line of a finished text, from its beginning.
    fn replace_last(&mut self, text: &str) {
        let line = text.trim_end().lines().next_back().unwrap_or_default();
        self.last = match line.char_indices().nth(LAST_CHARS) {
            Some((end, _)) => {
                let words = line[..end].rsplit_once(char::is_whitespace);
                format!("{}…", words.map_or(&line[..end], |(words, _)| words))
            }
            None => line.to_owned(),
        };
    }
}

/// Appends text, and keeps the end from a word boundary on.
fn append_last(last: &mut String, text: &str) {
    last.push_str(text);
    let surplus = last.chars().count().saturating_sub(LAST_CHARS);
    if surplus > 0 {
        let end: String = last.chars().skip(surplus).collect();
        let words = end.split_once(char::is_whitespace);
        *last = format!("…{}", words.map_or(end.as_str(), |(_, words)| words));
    }
}
