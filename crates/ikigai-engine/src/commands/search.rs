//! `/search`: full-text search in the log.

use std::fmt::Write as _;
use std::path::Path;

use ikigai_core::find::SEARCH_COMMAND;

use super::{Command, Group, Reply, Shows, SlashCommand, Takes, Trouble, Typed};
use crate::figures::since;
use crate::search::SearchOptions;
use crate::turn::CommandContext;

pub(super) const SEARCH: SlashCommand = SlashCommand {
    command: Command {
        arguments: "TEXT",
        help: "search the history of all agents, newest first",
        examples: &[
            (
                "/search lexer \"off by one\"",
                "both, the second as a phrase",
            ),
            ("/search pars* agent:docs after:7d", "docs, within a week"),
            (
                "/search kind:error path:~/project",
                "also model:NAME before:2026-11-30",
            ),
        ],
        takes: Takes::WordsThenText(0),
        shows: Shows::Overlay,
        ..Command::new(SEARCH_COMMAND, Group::Time)
    },
    handler: |ctx, typed| Box::pin(search(ctx, typed)),
};

async fn search(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let workdir = ctx.place().workdir;
    let options = SearchOptions {
        workdir: Some(Path::new(&workdir)),
        ..SearchOptions::default()
    };
    let found = ctx.engine().search(&typed.rest, options).await??;
    let now = ctx.engine().environment().now();
    let own = ctx.id();
    let names: Vec<_> = found
        .hits
        .iter()
        .map(|named| named.reference(Some(own)))
        .collect();
    let widest = names.iter().map(|name| name.chars().count()).max();
    let width = widest.unwrap_or(0);
    let mut text = String::new();
    for (named, name) in found.hits.iter().zip(&names) {
        let hit = &named.hit;
        let ago = since(hit.created_at, now);
        let (kind, line) = (&hit.kind, &hit.snippet.text);
        let _ = writeln!(text, "{name:<width$}  {ago:>8}  {kind:<11}  {line}");
    }
    if found.hits.is_empty() {
        text.push_str("No match\n");
    }
    if found.next.is_some() {
        text.push_str("… and more: add words, or narrow with before:\n");
    }
    for note in found.notes {
        let _ = writeln!(text, "⚠ {note}");
    }
    Ok(Reply::says(text.trim_end()))
}
