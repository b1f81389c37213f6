//! The model table: context, prices, and what thinking levels mean on the wire.

use serde::Deserialize;
use serde_json::Value;

/// Where a thinking value goes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingStyle {
    /// Responses `reasoning.effort`, Chat `reasoning_effort`.
    Effort,
    /// Messages `output_config.effort` with adaptive thinking.
    Adaptive,
    /// Messages `budget_tokens`, Gemini `thinkingBudget`.
    Budget,
    /// Gemini `thinkingLevel`.
    Level,
    /// The model does not think.
    None,
}

/// A thinking level as the wire wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThinkingValue {
    /// Where it goes.
    pub style: ThinkingStyle,
    /// The exact value from the table: a word or a number.
    pub value: Value,
}
