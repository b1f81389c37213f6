//! Time, calls, tokens and cost of one turn, read off its rows.

use std::time::Duration;

use ikigai_core::data::{self, AssistantData, CommandData, ErrorData, ToolCallData, UsageData};
use ikigai_core::{Kind, Micros, Row};

/// Figures of one turn. Rows that come after its end do not change them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnFigures {
    /// Time of its first row.
    pub began: Micros,
    /// Time of its last row.
    pub ended: Micros,
    /// Number of tool calls.
    pub calls: usize,
    /// Tokens read and written.
    pub tokens: u64,
    /// Cost in 10⁻⁹ dollars, if known.
    pub cost: Option<u64>,
    /// Models that answered, in order, each once.
    pub models: Vec<String>,
    /// The model answered or called a tool.
    pub answered: bool,
    /// The last row ended the turn.
    is_over: bool,
    /// Number of the newest response.
    response: Option<u64>,
    /// Calls of the newest response have no result yet.
    is_calling: bool,
}

impl TurnFigures {
    /// Starts at a row that begins a turn.
    pub fn starting_at(row: &Row) -> Self {
        Self {
            began: row.created_at,
            ended: row.created_at,
            ..Self::default()
        }
    }

    /// Returns the time from the first row to the last.
    pub fn took(&self) -> Duration {
        let micros = self.ended.0.saturating_sub(self.began.0);
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    }

    /// Returns true if the turn is over and a row comes after it.
    ///
    /// The rows of one response are stored together, usage last; `/compact` and others store
    /// separate usage rows later.
    pub fn ends_before(&self, row: &Row) -> bool {
        if !self.is_over {
            return false;
        }
        let data = row.data.as_deref();
        let response = match row.kind.read_as() {
            Some(Kind::Assistant) => data::read::<AssistantData>(data).response,
            Some(Kind::ToolCall) => data::read::<ToolCallData>(data).response,
            Some(Kind::Usage) => data::read::<UsageData>(data).response,
            Some(Kind::Command) => {
                return data::read::<CommandData>(data).resume != Some(true);
            }
            Some(
                Kind::System
                | Kind::User
                | Kind::ToolResult
                | Kind::Clear
                | Kind::Mark
                | Kind::Rewind
                | Kind::Fork
                | Kind::AgentKilled
                | Kind::Interrupted
                | Kind::Error
                | Kind::Summary
                | Kind::Process
                | Kind::Files,
            )
            | None => return true,
        };
        response != self.response
    }

    /// Adds a row of the turn. A row after its end changes nothing.
    pub fn add(&mut self, row: &Row) {
        if self.ends_before(row) {
            return;
        }
        let data = row.data.as_deref();
        let Some(kind) = row.kind.read_as() else {
            return;
        };
        match kind {
            Kind::Assistant => {
                let response = data::read::<AssistantData>(data).response;
                self.is_calling &= response == self.response;
                self.response = response;
                self.answered = true;
                self.is_over = !self.is_calling;
            }
            Kind::ToolCall => {
                self.response = data::read::<ToolCallData>(data).response;
                self.is_calling = true;
                self.calls += 1;
                self.answered = true;
                self.is_over = false;
            }
            Kind::Usage => self.add_usage(&data::read(data)),
            Kind::ToolResult => {
                self.is_calling = false;
                self.is_over = false;
            }
            Kind::User => self.is_over = false,
            Kind::Command => {
                // A resumed turn continues; other commands run in parallel.
                if data::read::<CommandData>(data).resume == Some(true) {
                    self.is_over = false;
                }
                return;
            }
            Kind::Interrupted => self.is_over = true,
            Kind::Error => self.is_over |= data::read::<ErrorData>(data).omit.is_none(),
            Kind::Rewind => {
                if !self.answered {
                    self.began = row.created_at;
                }
                return;
            }
            Kind::System
            | Kind::Clear
            | Kind::Mark
            | Kind::Fork
            | Kind::AgentKilled
            | Kind::Summary
            | Kind::Process
            | Kind::Files => return,
        }
        self.ended = row.created_at;
    }

    fn add_usage(&mut self, used: &UsageData) {
        let amounts = &used.amounts;
        let parts = [
            amounts.input,
            amounts.cache_read,
            amounts.cache_write,
            amounts.output,
        ];
        self.tokens = parts
            .into_iter()
            .flatten()
            .fold(self.tokens, u64::saturating_add);
        if let Some(cost) = amounts.cost_nano_usd {
            self.cost = Some(self.cost.unwrap_or(0).saturating_add(cost));
        }
        if let Some(model) = &used.model
            && !self.models.contains(model)
        {
            self.models.push(model.clone());
        }
    }
}
