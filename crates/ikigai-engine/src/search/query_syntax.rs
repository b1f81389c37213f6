//! Parser of search queries: words, with filters between them.

#[cfg(test)]
mod tests;

use ikigai_core::find::Words;
use ikigai_core::identity::BadPersonName;
use ikigai_core::{Kind, Micros, PersonName};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Syntax of filters, for help.
pub const SYNTAX: &str = "agent:NAME by:PERSON kind:user,assistant,… model:NAME before:2026-11-30 after:7d path:DIRECTORY";

/// Size limit of a query.
const MOST_BYTES: usize = 4096;

/// Filters of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filters {
    pub(super) agent: Option<String>,
    pub(super) author: Option<PersonName>,
    pub(super) kinds: Vec<Kind>,
    pub(super) model: Option<Words>,
    pub(super) before: Option<Micros>,
    pub(super) after: Option<Micros>,
    pub(super) path: Option<String>,
}

/// Clock and time zone for reading times.
pub(super) struct Moments {
    pub(super) now: Micros,
    pub(super) zone: TimeZone,
}

/// Splits a query into words and filters.
pub(super) fn read(typed: &str, moments: &Moments) -> Result<(Words, Filters), String> {
    if typed.len() > MOST_BYTES {
        return Err(format!("search text too long: at most {MOST_BYTES} bytes"));
    }
    let mut filters = Filters::default();
    let mut left = String::new();
    for part in parts(typed) {
        let (name, value) = part.split_once(':').unwrap_or((part, ""));
        let value = value.strip_prefix('"').unwrap_or(value);
        let value = value.strip_suffix('"').unwrap_or(value);
        match name {
            "agent" | "by" | "kind" | "model" | "before" | "after" | "path" if value.is_empty() => {
                if part.contains(':') {
                    return Err(format!("{name}: needs a value · {SYNTAX}"));
                }
                left.push_str(part);
            }
            "agent" => filters.agent = Some(value.trim_start_matches('#').to_owned()),
            "by" => {
                let person = value
                    .parse()
                    .map_err(|error: BadPersonName| format!("by:{value}: {error}"))?;
                filters.author = Some(person);
            }
            "kind" => filters.kinds.extend(kinds(value)?),
            "model" => filters.model = Some(Words::parse(&format!("\"{value}\""))),
            "before" => filters.before = Some(moments.read(value)?),
            "after" => filters.after = Some(moments.read(value)?),
            "path" => filters.path = Some(value.to_owned()),
            _ => left.push_str(part),
        }
        left.push(' ');
    }
    let words = Words::parse(&left);
    if words.is_empty() && filters == Filters::default() {
        return Err(format!("type words to search for, or {SYNTAX}"));
    }
    Ok((words, filters))
}

/// Splits at spaces outside quotes.
fn parts(typed: &str) -> Vec<&str> {
    let mut is_quoted = false;
    typed
        .split(move |c: char| {
            is_quoted ^= c == '"';
            c.is_whitespace() && !is_quoted
        })
        .filter(|part| !part.is_empty())
        .collect()
}

fn kinds(names: &str) -> Result<Vec<Kind>, String> {
    let read = |name: &str| match name {
        "tool" => Ok(vec![Kind::ToolCall, Kind::ToolResult]),
        name => name.parse().map(|kind| vec![kind]).map_err(|_| {
            let all: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
            format!("unknown kind {name}: use {} or tool", all.join(" "))
        }),
    };
    let kinds: Result<Vec<_>, _> = names.split(',').map(read).collect();
    Ok(kinds?.concat())
}

impl Moments {
    /// Parses a day, a day and a time, or an age: `2026-11-30`, `2026-11-30T18:00`, `7d`.
    fn read(&self, text: &str) -> Result<Micros, String> {
        let wrong =
            || format!("invalid time {text}: use 2026-11-30, 2026-11-30T18:00, 90m, 12h, 7d or 2w");
        if let Some(ago) = ago(text) {
            return Ok(Micros(self.now.0.saturating_sub(ago)));
        }
        let day = if text.contains('T') {
            text.to_owned()
        } else {
            format!("{text}T00:00")
        };
        let civil: DateTime = day.parse().map_err(|_| wrong())?;
        let zoned = civil.to_zoned(self.zone.clone()).map_err(|_| wrong())?;
        Ok(Micros(zoned.timestamp().as_microsecond()))
    }
}

/// Parses `90m`, `12h`, `7d`, `2w` into microseconds.
fn ago(text: &str) -> Option<i64> {
    let seconds = match text.chars().next_back()? {
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return None,
    };
    let number: i64 = text.get(..text.len() - 1)?.parse().ok()?;
    number.checked_mul(seconds * 1_000_000)
}
