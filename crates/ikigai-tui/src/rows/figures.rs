//! Figures as people read them, and the line after each turn.

use std::time::Duration;

use ikigai_engine::figures::{dollars, tokens};

use super::signs::{Sign, Symbols};
use crate::line::Line;
use crate::look::Role;
use crate::text::clean_line;

/// A size: `940 B`, `2.1 kB`, `4.9 MB`.
pub fn bytes(count: u64) -> String {
    const STEP: u64 = 1000;
    let units = [" B", " kB", " MB", " GB"];
    let mut unit = 1;
    let mut name = units[0];
    for next in &units[1..] {
        // What would be rounded up to a whole next unit is told in that one.
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

/// A time span: `0.4 s`, `12 s`, `2 min 5 s`, `3 h 20 min`, `2 d 4 h`.
pub fn duration(span: Duration) -> String {
    let seconds = span.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0 if span.as_millis() >= 50 => format!("0.{} s", (span.as_millis() / 100).clamp(1, 9)),
        0..60 => format!("{seconds} s"),
        60..3600 => two(minutes, "min", seconds % 60, "s"),
        3600..86_400 => two(hours, "h", minutes % 60, "min"),
        _ => two(days, "d", hours % 24, "h"),
    }
}

fn two(large: u64, unit: &str, small: u64, other: &str) -> String {
    match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {other}"),
    }
}

/// What a turn took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// How long it was.
    pub took: Duration,
    /// How many calls there were.
    pub tools: usize,
    /// How many tokens were answered and read afresh.
    pub tokens: u64,
    /// What it cost in billionths of a dollar, if that is known.
    pub cost_nano_usd: Option<u64>,
    /// When it ended, by the clock on the wall.
    pub clock: String,
}

/// The faint line after a turn: `12 s · 3 tools · 2.1k tokens · $0.01 · 14:03`.
pub fn turn_line(turn: &Turn, symbols: Symbols) -> Line {
    let mut parts = vec![duration(turn.took)];
    match turn.tools {
        0 => {}
        1 => parts.push("1 tool".to_owned()),
        tools => parts.push(format!("{tools} tools")),
    }
    if turn.tokens > 0 {
        parts.push(format!("{} tokens", tokens(turn.tokens)));
    }
    let cost = turn.cost_nano_usd.filter(|cost| *cost > 0);
    parts.extend(cost.map(dollars));
    if !turn.clock.is_empty() {
        parts.push(clean_line(&turn.clock).into_owned());
    }
    let between = format!(" {} ", Sign::Dot.text(symbols));
    Line::of(parts.join(&between), Role::Faint)
}
