//! Rows around the conversation: work, the tree, and the status.

use std::time::Instant;

use ikigai_core::AgentId;
use ikigai_core::AgentState;
use ikigai_core::settings::Approve;
use ikigai_engine::figures::{dollars, token_count, tokens};
use ikigai_engine::{Live, Phase};

use super::hints::Hints;
use super::{AgentActivity, KnownAgent, Roster, UiContext, inbox};
use crate::line::{TextLine, TextSpan};
use crate::look::{Look, Tone};
use crate::rows::duration;
use crate::signs::Symbols;
use crate::text::{clean, cut, one_line};
use crate::width::width;

/// Fewest columns of a screen that is not narrow.
pub(super) const NARROW: u16 = 60;

/// Shorter silence is not shown.
const SILENT_SECONDS: u64 = 5;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const SPINNER_ASCII: [&str; 4] = ["|", "/", "-", "\\"];

/// Returns the spinner at some time since the turn began.
pub(super) fn spinner(symbols: Symbols, since: Instant, now: Instant) -> &'static str {
    let step = usize::try_from(now.saturating_duration_since(since).as_millis() / 125).unwrap_or(0);
    match symbols {
        Symbols::Utf8 => SPINNER[step % SPINNER.len()],
        Symbols::Ascii => SPINNER_ASCII[step % SPINNER_ASCII.len()],
    }
}

pub(super) fn sign(state: AgentActivity, symbols: Symbols) -> &'static str {
    match (state, symbols) {
        (AgentActivity::Asks, _) => "?",
        (AgentActivity::Works, Symbols::Utf8) => "◐",
        (AgentActivity::Works, Symbols::Ascii) => "*",
        (AgentActivity::Done | AgentActivity::Merged, Symbols::Utf8) => "✓",
        (AgentActivity::Done | AgentActivity::Merged, Symbols::Ascii) => "+",
        (AgentActivity::Idle, Symbols::Utf8) => "·",
        (AgentActivity::Idle, Symbols::Ascii) => ".",
        (AgentActivity::Stopped, Symbols::Utf8) => "⏸",
        (AgentActivity::Stopped, Symbols::Ascii) => "=",
        (AgentActivity::Failed | AgentActivity::Dead, Symbols::Utf8) => "✗",
        (AgentActivity::Failed | AgentActivity::Dead, Symbols::Ascii) => "x",
    }
}

/// Renders running work and its silence, with the key that stops it.
pub(super) fn busy(
    agent: &Live,
    provider: &str,
    symbols: Symbols,
    now: Instant,
) -> Option<(TextLine, Option<Hints<'static>>)> {
    if let Some(reason) = &agent.store_away {
        let text = format!("⏸ store unreachable, nothing is lost · retrying · {reason}");
        return Some((TextLine::of(clean(&text), Tone::Warning), None));
    }
    let since = |since: Instant| now.saturating_duration_since(since);
    if let Some(shell) = &agent.shell {
        let command = first_line(&shell.command);
        let text = format!("!{command} {}", duration(since(shell.since)));
        let spinner = spinner(symbols, shell.since, now);
        let line = TextLine::of(format!("{spinner} {}", clean(&text)), Tone::Busy);
        return Some((line, Some(way_out("Esc to stop", Tone::Faint))));
    }
    let doing = agent.turn.as_ref()?;
    let silent = since(doing.last_event);
    let silence = |text: &str| match silent.as_secs() {
        ..SILENT_SECONDS => String::new(),
        _ => format!(", {text} {}", duration(silent)),
    };
    let whole = duration(since(doing.since));
    let came = match doing.letters / 4 {
        0 => String::new(),
        estimated => format!(" · {}", token_count(estimated as u64)),
    };
    let text = match &doing.phase {
        Phase::Retries { text, at } => {
            let left = at.saturating_duration_since(now).as_secs();
            let text = TextLine::of(clean(&format!("↻ {text} in {left} s")), Tone::Warning);
            return Some((text, Some(way_out("Esc stop", Tone::Warning))));
        }
        _ if !agent.questions.is_empty() => format!("Waiting for your answer · {whole}"),
        Phase::Requested => format!("Waiting for {provider} {whole}{}", silence("no data for")),
        Phase::Thinks => format!("Thinking {whole}{came}{}", silence("silent for")),
        Phase::Says => format!("Answering {whole}{came}{}", silence("silent for")),
        Phase::Calls(name) => format!("Calling {name} {whole}{came}"),
        Phase::Runs => match agent.running.as_slice() {
            [] => format!("Working {whole}"),
            [one] => {
                let printed = match one.line.trim() {
                    // Its output is below the call.
                    _ if !one.output.is_empty() => String::new(),
                    "" => String::new(),
                    last => format!(" · last line: {last}"),
                };
                format!(
                    "{} {}{printed}",
                    one_line(&one.shown),
                    duration(since(one.since))
                )
            }
            several => format!("{} tools running {whole}", several.len()),
        },
    };
    let spinner = spinner(symbols, doing.since, now);
    let line = TextLine::of(format!("{spinner} {}", clean(&text)), Tone::Busy);
    // A question lists its own keys.
    let hint = agent.questions.is_empty();
    Some((line, hint.then(|| way_out("Esc to interrupt", Tone::Faint))))
}

const fn way_out(key: &'static str, role: Tone) -> Hints<'static> {
    Hints {
        gap: " · ",
        keys: &[],
        way_out: key,
        look: Look::of(role),
    }
}

/// Renders the tree around the current agent.
pub(super) fn tree(ctx: &UiContext, columns: u16) -> TextLine {
    let roster = &ctx.roster;
    let symbols = ctx.options.symbols;
    let rule = match symbols {
        Symbols::Utf8 => "─",
        Symbols::Ascii => "-",
    };
    let mut line = TextLine::of(format!("{rule} "), Tone::Rule);
    let name = |id: AgentId| roster.get(id).map(|known| name_span(known, symbols));
    let own = roster.get(ctx.current);
    let own_name = own.map_or_else(String::new, |known| name_span(known, symbols));
    let own_span = TextSpan::new(
        format!("[{own_name}]"),
        Look::of(Tone::Text).with(Look::BOLD),
    );
    let below = children(roster, ctx.current, symbols);
    if columns < NARROW {
        line.spans.push(own_span);
        line.spans.extend(below);
    } else {
        let siblings = roster.siblings(ctx.current);
        let place = siblings.iter().position(|id| *id == ctx.current);
        let beside = |step: isize| {
            let index = place?.checked_add_signed(step)?;
            siblings.get(index).copied().and_then(name)
        };
        let parent = own
            .and_then(|known| known.branch.agent.parent)
            .and_then(name);
        let sides = [("↑", parent), ("←", beside(-1))];
        for (arrow, found) in sides {
            line.spans
                .extend(found.map(|name| TextSpan::new(format!("{arrow}{name}  "), Tone::Faint)));
        }
        line.spans.push(own_span);
        line.spans
            .extend(beside(1).map(|name| TextSpan::new(format!("  →{name}"), Tone::Faint)));
        line.spans.extend(below);
    }
    if let Some(holder) = &ctx.holder {
        line.spans
            .push(TextSpan::new(format!("  {holder}"), Tone::Warning));
    }
    let line = cut(&line, columns, "…");
    let used = width(&line.text());
    let mut line = line;
    let left = usize::from(columns).saturating_sub(used + 1);
    line.spans
        .push(TextSpan::new(format!(" {}", rule.repeat(left)), Tone::Rule));
    line
}

fn name_span(known: &KnownAgent, symbols: Symbols) -> String {
    let name = &known.branch.agent.name;
    match known.state() {
        AgentActivity::Idle => name.clone(),
        AgentActivity::Merged => format!("{name} {} merged", sign(AgentActivity::Merged, symbols)),
        state => format!("{name} {}", sign(state, symbols)),
    }
}

/// Renders the number of children by activity: `↓5 (3◐ 1✓ 1?)`.
fn children(roster: &Roster, parent: AgentId, symbols: Symbols) -> Option<TextSpan> {
    let states: Vec<_> = roster
        .children(parent)
        .map(|(_, known)| known.state())
        .collect();
    if states.is_empty() {
        return None;
    }
    let mut parts = Vec::new();
    for state in [
        AgentActivity::Works,
        AgentActivity::Done,
        AgentActivity::Failed,
        AgentActivity::Stopped,
        AgentActivity::Asks,
    ] {
        let count = states.iter().filter(|one| **one == state).count();
        if count > 0 {
            parts.push(format!("{count}{}", sign(state, symbols)));
        }
    }
    let merged = states
        .iter()
        .filter(|one| **one == AgentActivity::Merged)
        .count();
    if merged > 0 {
        parts.push(format!(
            "{merged}{} merged",
            sign(AgentActivity::Merged, symbols)
        ));
    }
    let parts = match parts.as_slice() {
        [] => String::new(),
        parts => format!(" ({})", parts.join(" ")),
    };
    let arrow = match symbols {
        Symbols::Utf8 => "↓",
        Symbols::Ascii => "v",
    };
    Some(TextSpan::new(
        format!("  {arrow}{}{parts}", states.len()),
        Tone::Agent,
    ))
}

/// Status line at the bottom.
/// Drops parts that do not fit: key of the inbox, keys, branch, cost, "of 200k", directory except for its last part,
/// level.
pub(super) fn status(ctx: &UiContext, state: &AgentState, columns: u16) -> TextLine {
    let settings = state.settings();
    let directory = settings.workdir.as_deref().unwrap_or_default();
    let directory = match ctx.options.home.as_deref() {
        Some(home) if directory == home => "~".to_owned(),
        Some(home) => match directory.strip_prefix(home) {
            Some(rest) if rest.starts_with('/') => format!("~{rest}"),
            _ => directory.to_owned(),
        },
        None => directory.to_owned(),
    };
    let last = directory.rsplit('/').next().unwrap_or_default().to_owned();
    let choice = settings.model.as_ref();
    let model = choice
        .and_then(|choice| choice.model.clone())
        .unwrap_or_else(|| "demo".to_owned());
    let level = choice.and_then(|choice| choice.level.clone());
    let mode = ctx.approval_of(state);
    let known = ctx.roster.get(ctx.current);
    let cost = known
        .and_then(|known| known.live.summary.cost)
        .filter(|cost| *cost > 0);
    for dropped in 0..=7 {
        let directory = if dropped >= 6 { &last } else { &directory };
        let branch = ctx.branch.as_ref().filter(|_| dropped < 3);
        let level = level.as_ref().filter(|_| dropped < 7);
        let mut parts = vec![match branch {
            Some(branch) => format!("{directory} ({branch})"),
            None => directory.clone(),
        }];
        parts.push(match level {
            Some(level) => format!("{model}/{level}"),
            None => model.clone(),
        });
        if let Some(filled) = ctx.filled.filter(|filled| filled.of > 0) {
            let share = filled.used.saturating_mul(100) / filled.of;
            let of = tokens(filled.of);
            parts.push(match filled.source {
                Some(source) if dropped < 4 => format!("{share}% of {of} ({source})"),
                _ if dropped < 5 => format!("{share}% of {of}"),
                _ => format!("{share}%"),
            });
        }
        if let Some(cost) = cost.filter(|_| dropped < 4) {
            parts.push(dollars(cost));
        }
        let inbox = inbox::status(ctx, dropped < 1).unwrap_or_default();
        let before = format!(" {} · ", clean(&parts.join(" · ")));
        let confined = if ctx.options.is_confined {
            ""
        } else {
            "·nosandbox"
        };
        let mode_text = format!("{}{confined}", mode.word());
        let keys = if dropped < 2 { " · ? keys" } else { "" };
        let total = width(&inbox) + width(&before) + width(&mode_text) + width(keys);
        if total <= usize::from(columns) || dropped == 7 {
            let mode_look = match mode {
                Approve::All => Look::of(Tone::Alert).with(Look::REVERSE),
                Approve::Read | Approve::Ask | Approve::Edits => Look::of(Tone::Status),
            };
            let line = TextLine::new(vec![
                TextSpan::new(inbox, Look::of(Tone::Question).with(Look::BOLD)),
                TextSpan::new(before, Tone::Status),
                TextSpan::new(mode_text, mode_look),
                TextSpan::new(keys, Tone::Faint),
            ]);
            return cut(&line, columns, "…");
        }
    }
    TextLine::default()
}

/// Renders a child at work: activity, duration, usage.
pub(super) fn child(
    known: &KnownAgent,
    symbols: Symbols,
    (columns, names): (u16, usize),
    now: Instant,
) -> TextLine {
    let state = known.state();
    let mut facts = Vec::new();
    if let Some(doing) = &known.live.turn {
        facts.push(duration(now.saturating_duration_since(doing.since)));
        let silent = now.saturating_duration_since(doing.last_event);
        // A question waits for its user, not for the model.
        if silent.as_secs() >= 3 && known.live.questions.is_empty() {
            facts.push(format!("silent {}", duration(silent)));
        }
    }
    if known.live.summary.tokens > 0 {
        facts.push(tokens(known.live.summary.tokens));
    }
    facts.extend(
        known
            .live
            .summary
            .cost
            .filter(|cost| *cost > 0)
            .map(dollars),
    );
    let facts = facts.join(" · ");
    let name = format!(
        "  {} {:<names$} ",
        sign(state, symbols),
        known.branch.agent.name
    );
    let question = known.live.questions.first();
    let doing = match question {
        Some(question) => format!(
            "needs approval: {} {}",
            question.tool,
            one_line(&question.shown)
        ),
        None => last_line(&known.live.summary.last).to_owned(),
    };
    let room = usize::from(columns).saturating_sub(width(&name) + width(&facts) + 2);
    let doing = cut(
        &TextLine::of(clean(&doing), Tone::Faint),
        u16::try_from(room).unwrap_or(columns),
        "…",
    );
    let gap = room.saturating_sub(width(&doing.text()));
    let mut line = TextLine::of(
        name,
        if question.is_some() {
            Tone::Question
        } else {
            Tone::Agent
        },
    );
    line.spans.extend(doing.spans);
    line.spans.push(TextSpan::new(
        format!("{} {facts}", " ".repeat(gap)),
        Tone::Faint,
    ));
    line
}

pub(super) fn first_line(text: &str) -> &str {
    text.trim_start().lines().next().unwrap_or_default()
}

pub(super) fn last_line(text: &str) -> &str {
    text.trim_end().lines().next_back().unwrap_or_default()
}
