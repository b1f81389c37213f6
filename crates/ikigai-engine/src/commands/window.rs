//! `/context`: contents of the context window.

use std::fmt::Write as _;

use ikigai_core::Settings;
use ikigai_core::counts::counted;
use ikigai_core::project::FillingParts;
use ikigai_providers::WindowSource;
use serde_json::{Map, Value};

use super::compact::{Newest, undo};
use super::{Command, Completes, Group, Reply, Shows, SlashCommand, Takes, Trouble, Typed};
use crate::context::{Context, ContextTurn};
use crate::figures::{read_tokens, tokens};
use crate::turn::CommandContext;

pub(super) const CONTEXT: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[undo | budget N]",
        help: "show what fills the context; undo cuts; limit its size",
        examples: &[
            ("/context", "show what is sent, in tokens"),
            ("/context undo", "undo the newest cut or summary"),
            ("/context budget 100k", "leave out older turns beyond that"),
            ("/context budget off", "use the whole window of the model"),
        ],
        takes: Takes::Words,
        completes: &[Completes::Words(&["undo", "budget"])],
        shows: Shows::OverlayWithoutArguments,
        ..Command::new("context", Group::Context)
    },
    handler: |ctx, typed| Box::pin(context(ctx, typed)),
};

/// Width of the bar in characters.
const BAR: u64 = 40;

/// Number of the largest parts that are named.
const NAMED: usize = 3;

async fn context(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let words: Vec<_> = typed.words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => {
            ctx.engine().look_up_window(ctx.settings()).await?;
            let context = ctx.engine().context_of(ctx.agent().clone()).await?;
            Ok(Reply::says(table(ctx, &context)))
        }
        ["undo"] => undo(ctx, Newest::Any).await,
        ["budget", "off"] => Ok(Reply {
            set: Some(Map::from_iter([("budget_tokens".to_owned(), Value::Null)])),
            ..Reply::says("Limit removed")
        }),
        ["budget", typed] => budget(ctx, typed).await,
        _ => Trouble::refused("usage: /context [undo | budget N]"),
    }
}

async fn budget(ctx: &mut CommandContext<'_>, typed: &str) -> Result<Reply, Trouble> {
    let Some(most) = read_tokens(typed).filter(|most| *most > 0) else {
        return Trouble::refused(format!(
            "invalid number of tokens `{typed}` · /context budget 100k or /context budget off"
        ));
    };
    let context = ctx.engine().context_of(ctx.agent().clone()).await?;
    let mut output = format!("Limit set to {} tokens", tokens(most));
    if most > context.window {
        let _ = write!(
            output,
            ", more than the {} of this model",
            tokens(context.window)
        );
    }
    if context.fixed_tokens() >= most {
        let fixed = tokens(context.fixed_tokens());
        let _ = write!(
            output,
            ", but system prompt, pins and tools already need {fixed}"
        );
    } else if context.fixed_tokens() + context.total_tokens() > most {
        output.push_str(". The next turn leaves out the oldest ones");
    }
    let settings = Settings {
        budget_tokens: Some(most),
        ..Settings::default()
    };
    Ok(Reply::sets(&settings, output))
}

/// Characters next to the figures of a row, so that the table fits 80 columns.
const NOTE_CHARS: usize = 58;

/// Table of the context: name, tokens and contents per line.
struct ContextTable(String);

impl ContextTable {
    fn row(&mut self, name: &str, size: u64, more: &str) {
        let line = format!("{name:<10} {:>7}  {more}", tokens(size));
        let _ = write!(self.0, "\n{}", line.trim_end());
    }

    /// Adds a row with the notes that fit.
    fn row_of(&mut self, name: &str, size: u64, notes: Vec<String>) {
        let mut more = String::new();
        for note in notes {
            let gap = if more.is_empty() { "" } else { " · " };
            let length = more.chars().count() + gap.len() + note.chars().count();
            if length > NOTE_CHARS {
                let room = NOTE_CHARS.saturating_sub(more.chars().count() + 2);
                match gap {
                    "" => more.extend(note.chars().take(room).chain(['…'])),
                    _ => more.push_str(" …"),
                }
                break;
            }
            more.push_str(gap);
            more.push_str(&note);
        }
        self.row(name, size, &more);
    }
}

fn table(ctx: &CommandContext<'_>, context: &Context) -> String {
    let used = context.fixed_tokens() + context.total_tokens();
    let full = (used.saturating_mul(BAR) / context.budget.max(1)).min(BAR);
    let bar: String = (0..BAR)
        .map(|at| if at < full { '█' } else { '░' })
        .collect();
    let mut table = ContextTable(format!(
        "{bar} {}% of {}",
        context.percent(),
        tokens(context.budget)
    ));
    table.row("system", context.system, "");
    table.row_of("pins", sum(&context.pins), largest(&context.pins));
    table.row_of("tools", sum(&context.tools), largest(&context.tools));
    let FillingParts {
        summaries,
        verbatim,
        messages,
        whole_outputs,
        elided_outputs,
    } = context.parts;
    table.row("summary", summaries.tokens, &replaced_text(context));
    let kept = match verbatim.number {
        0 => String::new(),
        number => format!("{number} of your messages word for word"),
    };
    table.row("verbatim", verbatim.tokens, &kept);
    let whole: Vec<_> = context
        .turns
        .iter()
        .filter(|turn| !turn.is_summary)
        .collect();
    table.row_of("messages", messages.tokens, name_turns(ctx, &whole));
    let outputs = output_note(whole_outputs.number, "whole");
    table.row("outputs", whole_outputs.tokens, &outputs);
    if elided_outputs.number > 0 {
        let shortened = output_note(elided_outputs.number, "shortened · /context undo");
        table.row("shortened", elided_outputs.tokens, &shortened);
    }
    table.row("free", context.budget.saturating_sub(used), "");
    if let Some(reserve) = context.reserve {
        table.row("reserve", reserve, "reserved for the answer");
    }
    let window = context.window + context.reserve.unwrap_or(0);
    table.row("window", window, source(context.source));
    table.0
}

/// Returns `1 tool output whole`, `12 tool outputs whole`; empty if there is none.
fn output_note(number: usize, state: &str) -> String {
    match number {
        0 => String::new(),
        number => format!("{} {state}", counted(number, "tool output")),
    }
}

/// Returns the description of the window size's origin.
fn source(source: WindowSource) -> &'static str {
    match source {
        WindowSource::Known => "from the table of models or the configuration",
        WindowSource::Served => "from the server",
        WindowSource::Assumed => "assumed; set context_window to correct it",
        WindowSource::Refusal => "corrected: the server refused a longer request",
    }
}

/// Returns the number of replaced turns, and the command to restore them.
fn replaced_text(context: &Context) -> String {
    match context.start_index {
        0 => String::new(),
        turns => format!(
            "replaces {} · /context undo",
            counted(turns, "earlier turn")
        ),
    }
}

fn sum(parts: &[(String, u64)]) -> u64 {
    parts.iter().map(|(_, tokens)| tokens).sum()
}

/// Returns the names of the largest parts.
fn largest(parts: &[(String, u64)]) -> Vec<String> {
    let mut parts: Vec<_> = parts.iter().collect();
    parts.sort_by_key(|(_, tokens)| std::cmp::Reverse(*tokens));
    let more = if parts.len() > NAMED { " …" } else { "" };
    let named = parts.iter().take(NAMED);
    let mut named: Vec<_> = named
        .map(|(name, size)| format!("{name} {}", tokens(*size)))
        .collect();
    if let Some(last) = named.last_mut() {
        last.push_str(more);
    }
    named
}

/// Returns the number of turns, and the first words of the largest ones.
fn name_turns(ctx: &CommandContext<'_>, whole: &[&ContextTurn]) -> Vec<String> {
    let own = ctx.id();
    let count = counted(whole.len(), "turn");
    let mut largest = whole.to_vec();
    largest.sort_by_key(|turn| std::cmp::Reverse(turn.tokens));
    let named = largest.iter().take(NAMED).map(|turn| {
        // An ancestor's row has a long name; its first words suffice.
        let place = if turn.from.agent == own {
            format!("#{} ", turn.from.seq)
        } else {
            String::new()
        };
        format!("{place}\"{}\" {}", turn.title, tokens(turn.tokens))
    });
    [count].into_iter().chain(named).collect()
}
