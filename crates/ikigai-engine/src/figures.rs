//! Figures for people: formats and parsers of tokens and money.

use std::time::Duration;

use ikigai_core::Micros;
use ikigai_core::data::Amounts;

/// Billionths of a dollar per dollar.
pub const NANO_USD: u64 = 1_000_000_000;

/// Formats a number of tokens: `340`, `2.1k`, `48k`, `1.2M`.
pub fn tokens(tokens: u64) -> String {
    match tokens {
        ..1000 => tokens.to_string(),
        1000..10_000 => format!("{}.{}k", tokens / 1000, tokens % 1000 / 100),
        10_000..1_000_000 => format!("{}k", tokens / 1000),
        _ => format!("{}.{}M", tokens / 1_000_000, tokens % 1_000_000 / 100_000),
    }
}

/// Formats a number of tokens with its noun: `1 token`, `2.1k tokens`.
pub fn token_count(number: u64) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} token{plural}", tokens(number))
}

/// Formats what a kill takes along: ` and its 2 descendants`; empty for no descendants.
pub fn with_descendants(below: usize) -> String {
    match below {
        0 => String::new(),
        1 => " and its child".to_owned(),
        below => format!(" and its {below} descendants"),
    }
}

/// Formats billionths of a dollar: `$0.04`; with four digits below a cent.
pub fn dollars(nano_usd: u64) -> String {
    let (whole, part) = (nano_usd / NANO_USD, nano_usd % NANO_USD);
    if (1..NANO_USD / 100).contains(&nano_usd) {
        format!("$0.{:04}", part.div_ceil(NANO_USD / 10_000))
    } else {
        format!("${whole}.{:02}", part / (NANO_USD / 100))
    }
}

/// Formats usage and cost: `48k tokens in (36k cached) · 2.1k out · $0.04`.
pub fn amounts(amounts: &Amounts) -> String {
    let cached = match amounts.cache_read.unwrap_or(0) {
        0 => String::new(),
        cached => format!(" ({} cached)", tokens(cached)),
    };
    let cost = amounts
        .cost_nano_usd
        .map_or_else(|| "price unknown".to_owned(), dollars);
    format!(
        "{} in{cached} · {} out · {cost}",
        token_count(amounts.tokens_in()),
        tokens(amounts.output.unwrap_or(0)),
    )
}

/// Formats a duration: `0.4 s`, `12 s`, `2 min 5 s`, `3 h 20 min`, `2 d 4 h`.
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

/// Parses a number of tokens: `200k`, `1.5M`, `4096`.
pub fn read_tokens(typed: &str) -> Option<u64> {
    let unit = |end: char| typed.strip_suffix([end, end.to_ascii_uppercase()]);
    let (digits, unit) = match (unit('k'), unit('m')) {
        (Some(digits), _) => (digits, 1000),
        (_, Some(digits)) => (digits, 1_000_000),
        (None, None) => (typed, 1),
    };
    read_decimal(digits, unit)
}

/// Parses a duration with its unit: `90s`, `30m`, `2h`, `1d`.
pub fn read_duration(typed: &str) -> Option<Duration> {
    let units = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)];
    let mut found = units.into_iter().filter_map(|(unit, seconds)| {
        let number = typed.strip_suffix(unit)?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.parse::<u64>().ok().filter(|_| is_number)?;
        number.checked_mul(seconds)
    });
    found.next().map(Duration::from_secs)
}

/// Parses dollars, `$5` or `$0.50`, into billionths.
pub fn read_dollars(typed: &str) -> Option<u64> {
    read_decimal(typed.strip_prefix('$')?, NANO_USD)
}

/// Reads a decimal number of units; refuses fractions of a unit instead of rounding.
fn read_decimal(digits: &str, unit: u64) -> Option<u64> {
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(part) || digits.ends_with('.') {
        return None;
    }
    let mut sum = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    let mut place = unit;
    for digit in part.bytes() {
        if !place.is_multiple_of(10) {
            return None;
        }
        place /= 10;
        sum = sum.checked_add(u64::from(digit - b'0') * place)?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests;

/// Formats the time elapsed since a moment.
pub fn since(at: Micros, now: Micros) -> String {
    let seconds = (now.0 - at.0).max(0) / 1_000_000;
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Returns the beginning of a text on one line.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let line = words.join(" ");
    if line.chars().count() <= most {
        return line;
    }
    let kept: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}
