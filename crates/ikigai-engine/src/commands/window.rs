//! `/context`: what fills the window.

use std::fmt::Write as _;

use ikigai_core::Settings;
use ikigai_providers::WindowSource;
use serde_json::{Map, Value};

use super::compact::{Newest, undo};
use super::{Command, Completes, Group, Reply, Shows, Takes, Trouble, Typed};
use crate::Worker;
use crate::context::{Context, ContextTurn};
use crate::figures::{read_tokens, tokens};

pub(super) const CONTEXT: Command = Command {
    arguments: "[undo | budget N]",
    help: "what fills the window; brings back what was cut off; how large requests may be",
    examples: &[
        ("/context", "what is sent, and how much of it"),
        ("/context undo", "takes the newest cut or summary back"),
        (
            "/context budget 100k",
            "older turns are cut off beyond that",
        ),
        ("/context budget off", "as much as the model takes"),
    ],
    takes: Takes::Words,
    completes: &[Completes::Words(&["undo", "budget"])],
    shows: Shows::OverlayWithoutArguments,
    ..Command::new("context", Group::Context, |worker, typed, _| {
        Box::pin(context(worker, typed))
    })
};

/// How many characters the bar has.
const BAR: u64 = 40;

/// How many of the largest parts are named.
const NAMED: usize = 3;

async fn context(worker: &mut Worker, typed: &Typed) -> Result<Reply, Trouble> {
    let words: Vec<_> = typed.words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => {
            worker.look_up_window().await?;
            let context = worker.context().await?;
            Ok(Reply::says(table(worker, &context)))
        }
        ["undo"] => undo(worker, Newest::Any).await,
        ["budget", "off"] => Ok(Reply {
            set: Some(Map::from_iter([("budget_tokens".to_owned(), Value::Null)])),
            ..Reply::says("requests may be as large as the configuration and the model allow")
        }),
        ["budget", typed] => budget(worker, typed).await,
        _ => Trouble::refused("/context [undo | budget N]"),
    }
}

async fn budget(worker: &mut Worker, typed: &str) -> Result<Reply, Trouble> {
    let Some(most) = read_tokens(typed).filter(|most| *most > 0) else {
        return Trouble::refused(format!(
            "`{typed}` is no number of tokens · /context budget 100k or /context budget off"
        ));
    };
    let context = worker.context().await?;
    let mut output = format!("requests have at most {} tokens", tokens(most));
    if most > context.window {
        let _ = write!(output, " · this model takes {}", tokens(context.window));
    }
    if context.fixed_tokens() >= most {
        let fixed = tokens(context.fixed_tokens());
        let _ = write!(
            output,
            " · ⚠ system prompt, pins and tools alone have {fixed}"
        );
    } else if context.fixed_tokens() + context.total_tokens() > most {
        output.push_str(" · the next turn cuts off the oldest ones");
    }
    let settings = Settings {
        budget_tokens: Some(most),
        ..Settings::default()
    };
    Ok(Reply::sets(&settings, output))
}

fn table(worker: &Worker, context: &Context) -> String {
    let used = context.fixed_tokens() + context.total_tokens();
    let full = (used.saturating_mul(BAR) / context.budget.max(1)).min(BAR);
    let bar: String = (0..BAR)
        .map(|at| if at < full { '█' } else { '░' })
        .collect();
    let mut text = format!("{bar} {}% of {}", context.percent(), tokens(context.budget));
    let mut row = |name: &str, size: u64, more: &str| {
        let line = format!("{name:<10} {:>7}  {more}", tokens(size));
        let _ = write!(text, "\n{}", line.trim_end());
    };
    row("system", context.system, "");
    row("pins", sum(&context.pins), &largest(&context.pins));
    row("tools", sum(&context.tools), &largest(&context.tools));
    let (summaries, turns): (Vec<_>, Vec<_>) =
        context.turns.iter().partition(|turn| turn.is_summary);
    let size = |turns: &[&ContextTurn]| turns.iter().map(|turn| turn.tokens).sum();
    row("summaries", size(&summaries), "");
    row("turns", size(&turns), &named(worker, &turns));
    row("free", context.budget.saturating_sub(used), "");
    if let Some(reserve) = context.reserve {
        row("reserve", reserve, "kept for the answer, beside the budget");
    }
    let source = match context.source {
        WindowSource::Known => None,
        WindowSource::Served => Some("as the server states it"),
        WindowSource::Assumed => Some("assumed; set context_window if the model has another"),
        WindowSource::Refusal => Some("corrected: the server refused a longer request"),
    };
    if let Some(source) = source {
        let window = context.window + context.reserve.unwrap_or(0);
        row("window", window, source);
    }
    match context.start_index {
        0 => {}
        1 => text.push_str("\n1 earlier turn is replaced · /context undo"),
        some => {
            let _ = write!(text, "\n{some} earlier turns are replaced · /context undo");
        }
    }
    text
}

fn sum(parts: &[(String, u64)]) -> u64 {
    parts.iter().map(|(_, tokens)| tokens).sum()
}

/// The largest parts by name.
fn largest(parts: &[(String, u64)]) -> String {
    let mut parts: Vec<_> = parts.iter().collect();
    parts.sort_by_key(|(_, tokens)| std::cmp::Reverse(*tokens));
    let named: Vec<_> = parts
        .iter()
        .take(NAMED)
        .map(|(name, size)| format!("{name} {}", tokens(*size)))
        .collect();
    let more = if parts.len() > NAMED { " …" } else { "" };
    format!("{}{more}", named.join(" · "))
}

/// How many turns there are, and the largest of them by their first words.
fn named(worker: &Worker, turns: &[&ContextTurn]) -> String {
    let own = worker.ledger.agent.state.agent();
    let count = crate::figures::turns(turns.len());
    let mut turns = turns.to_vec();
    turns.sort_by_key(|turn| std::cmp::Reverse(turn.tokens));
    let named = turns.iter().take(NAMED).map(|turn| {
        // An ancestor's row has a long name; its words tell enough.
        let place = if turn.from.agent == own {
            format!("#{} ", turn.from.seq)
        } else {
            String::new()
        };
        format!(" · {place}\"{}\" {}", turn.title, tokens(turn.tokens))
    });
    format!("{count}{}", named.collect::<String>())
}
