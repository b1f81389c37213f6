//! Formatting of figures, and the line after each turn.

use ikigai_core::counts::counted;
use std::time::Duration;

pub use ikigai_engine::figures::duration;
use ikigai_engine::figures::{dollars, token_count};

use crate::line::TextLine;
use crate::look::Tone;
use crate::signs::{Sign, Symbols};
use crate::text::clean_line;

/// Formats a size: `940 B`, `2.1 kB`, `4.9 MB`.
pub fn bytes(count: u64) -> String {
    const STEP: u64 = 1000;
    let units = [" B", " kB", " MB", " GB"];
    let mut unit = 1;
    let mut name = units[0];
    for next in &units[1..] {
        // A value that rounds up to the next unit is written in that unit.
        if count.saturating_add(unit / 2) < unit * STEP {
            break;
        }
        unit *= STEP;
        name = next;
    }
    let tenths = count.saturating_mul(10).saturating_add(unit / 2) / unit;
    if unit == 1 || tenths >= 100 {
        return format!("{}{name}", count.saturating_add(unit / 2) / unit);
    }
    format!("{}.{}{name}", tenths / 10, tenths % 10)
}

/// Figures of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnSummary {
    /// Duration.
    pub took: Duration,
    /// Number of calls.
    pub tools: usize,
    /// Tokens answered and read without cache.
    pub tokens: u64,
    /// Cost in 10⁻⁹ dollars, if known.
    pub cost_nano_usd: Option<u64>,
    /// Time of its end.
    pub clock: String,
}

/// Renders the line after a turn. Example: `12 s · 3 tools · 2.1k tokens · $0.01 · 14:03`.
pub fn turn_line(turn: &TurnSummary, symbols: Symbols) -> TextLine {
    let mut parts = vec![duration(turn.took)];
    if turn.tools > 0 {
        parts.push(counted(turn.tools, "tool"));
    }
    if turn.tokens > 0 {
        parts.push(token_count(turn.tokens));
    }
    let cost = turn.cost_nano_usd.filter(|cost| *cost > 0);
    parts.extend(cost.map(dollars));
    if !turn.clock.is_empty() {
        parts.push(clean_line(&turn.clock).into_owned());
    }
    let between = format!(" {} ", Sign::Dot.text(symbols));
    TextLine::of(parts.join(&between), Tone::Faint)
}
