//! What fills the window: `/context`, `/compact`.

use std::fmt::Write as _;

use ikigai_core::data::{self, SummaryData};
use ikigai_core::{Event, RowRef, Settings};
use ikigai_providers::WindowSource;
use ikigai_store::history;
use serde_json::{Map, Value};

use super::reply::{Later, Then};
use super::rows::name_of;
use super::{
    Command, CommandOption, Completes, During, Group, Reply, Shows, Takes, Trouble, Typed,
};
use crate::context::{Context, ContextTurn};
use crate::figures::{read_tokens, tokens, turns};
use crate::frontend::Desk;
use crate::turn::Written;
use crate::{EngineError, Worker};

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

pub(super) const COMPACT: Command = Command {
    arguments: "[instructions | --show | --undo]",
    help: "the model writes a summary, which is sent in the place of what was said so far",
    examples: &[
        ("/compact", "a summary of everything"),
        ("/compact keep the names of all files", "with a wish"),
        ("/compact --show", "the newest summary"),
        ("/compact --undo", "what it stands for is sent again"),
    ],
    takes: Takes::WordsThenText(0),
    options: &[CommandOption::Flag("--show"), CommandOption::Flag("--undo")],
    completes: &[Completes::Words(&["--show", "--undo"])],
    during: During::Interrupts,
    shows: Shows::OverlayWith("--show"),
    ..Command::new("compact", Group::Context, |worker, typed, _| {
        Box::pin(compact(worker, typed))
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

async fn compact(worker: &mut Worker, typed: &Typed) -> Result<Reply, Trouble> {
    let (shows, undoes) = (typed.flag("--show"), typed.flag("--undo"));
    match typed.text.as_deref() {
        Some(_) if shows || undoes => {
            Trouble::refused("--show and --undo stand alone · /compact --show")
        }
        None if shows && undoes => Trouble::refused("choose one: --show or --undo"),
        None if shows => show(worker).await,
        None if undoes => undo(worker, Newest::Text).await,
        wishes => {
            if let Some(reason) = worker.ledger.engine.used_up(&worker.ledger.agent).await? {
                return Trouble::refused(reason);
            }
            let Some(range) = worker.summary_range().await? else {
                return Trouble::refused(NOTHING);
            };
            let output = format!("summarising {}", turns(range.turns));
            let wishes = wishes.map(str::to_owned);
            let later: Later = Box::new(move |worker, desk| Box::pin(write(worker, wishes, desk)));
            Ok(Reply::says(output).then(Then::Later(later)))
        }
    }
}

const NOTHING: &str = "there is nothing to summarise";

/// Has the summary written, while whoever typed it can stop that.
async fn write(
    worker: &mut Worker,
    wishes: Option<String>,
    desk: &mut Desk<'_>,
) -> Result<String, Trouble> {
    let Some(summary) = worker.begin_summary(wishes.as_deref()).await? else {
        return Trouble::refused(NOTHING);
    };
    match worker.see_written(summary, desk).await? {
        Written::Shrunk(shrunk) => Ok(shrunk.to_string()),
        Written::Nothing(reason) => Trouble::refused(format!(
            "no summary: {reason} · the conversation is sent as before"
        )),
        Written::Stopped(stop) => {
            let told = "⚠ interrupted · the conversation is sent as before";
            Err(Trouble::Stopped(stop, told.to_owned()))
        }
    }
}

async fn show(worker: &mut Worker) -> Result<Reply, Trouble> {
    let Some((at, to, Some(text))) = newest(worker, Newest::Text).await? else {
        return Trouble::refused("nothing was summarised");
    };
    let (place, range) = (name_of(worker, at).await?, name_of(worker, to).await?);
    Ok(Reply::says(format!(
        "{place} stands for everything up to {range} · /compact --undo\n\n{text}"
    )))
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

/// Which of the rows that move the window is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Newest {
    /// The newest.
    Any,
    /// The newest with a text.
    Text,
}

/// The newest row that moves the window and was not taken back: its place, where its range ends,
/// and its text.
pub(super) async fn newest(
    worker: &mut Worker,
    which: Newest,
) -> Result<Option<(RowRef, RowRef, Option<String>)>, EngineError> {
    let store = worker.ledger.engine.store.clone();
    loop {
        for (at, _, to) in worker.ledger.agent.state.summaries().into_iter().rev() {
            let text = history::row_at(&*store, at)
                .await?
                .and_then(|row| row.content);
            if which == Newest::Any || text.is_some() {
                return Ok(Some((at, to, text)));
            }
        }
        // Most are near the end; one that is not is looked for.
        if worker.ledger.agent.state.path().is_complete() {
            return Ok(None);
        }
        history::extend(&*store, worker.ledger.agent.state.path_mut()).await?;
    }
}

/// Takes back the newest row that moves the window.
pub(super) async fn undo(worker: &mut Worker, which: Newest) -> Result<Reply, Trouble> {
    let Some((at, to, text)) = newest(worker, which).await? else {
        return Trouble::refused(match which {
            Newest::Any => "nothing was cut off or summarised",
            Newest::Text => "nothing was summarised",
        });
    };
    let row = history::row_at(worker.ledger.engine.store(), at).await;
    let row = row.map_err(EngineError::from)?;
    let stored: SummaryData = data::read(row.as_ref().and_then(|row| row.data.as_deref()));
    let what = match (text, stored.elide) {
        (Some(_), _) => "summary",
        (None, Some(_)) => "shortening",
        (None, None) => "cut",
    };
    let data = SummaryData {
        undo: Some(at),
        ..SummaryData::default()
    };
    let place = name_of(worker, at).await?;
    let range = name_of(worker, to).await?;
    let output = format!(
        "{what} {place} taken back · what it stood for, up to {range}, is sent again as far as it fits"
    );
    Ok(Reply::does(Event::Summary { text: None, data }, output))
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
