//! `ikigai search`: full-text search of all agents' rows.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use ikigai_core::find::Snippet;
use ikigai_core::spelling::clean_line;
use ikigai_engine::search::{Named, SearchOptions, SearchResults};
use ikigai_store::{SearchCursor, SortOrder};
use serde_json::{Value, json};

use crate::arguments::{SearchOrder, exit};
use crate::context::ProgramContext;
use crate::index;
use crate::output::{local_time, print_exact, print_json, print_stderr, visible};
use crate::store_location::Here;

pub(crate) fn search(db: Option<String>, order: &SearchOrder) -> Result<ExitCode> {
    let program = ProgramContext::open_reading(db)?;
    let here = Here::find()?;
    let options = SearchOptions {
        limit: order.limit,
        order: if order.best {
            SortOrder::Relevance
        } else {
            SortOrder::Newest
        },
        cursor: order.from.map(SearchCursor),
        workdir: Some(Path::new(&here.workdir)),
        ..SearchOptions::default()
    };
    let typed = order.text.join(" ");
    let found = program.block_on(async {
        // A store that cannot be written is searched as far as it is indexed.
        let _ = index::catch_up(program.engine.reader()).await;
        program.engine.search(&typed, options).await
    })?;
    let found = match found {
        Ok(found) => found,
        Err(reason) => {
            print_stderr(&format!("error: {}", visible(&reason)));
            return Ok(exit::USAGE.into());
        }
    };
    show(&found, order.json)?;
    Ok(if found.hits.is_empty() {
        exit::FAILED.into()
    } else {
        ExitCode::SUCCESS
    })
}

fn show(found: &SearchResults, as_json: bool) -> Result<()> {
    let is_bold = !as_json && io::stdout().is_terminal();
    for named in &found.hits {
        if as_json {
            print_json(&json_of(named))?;
            continue;
        }
        let hit = &named.hit;
        let (name, time) = (named.reference(None), local_time(hit.created_at));
        let line = mark_matches(&hit.snippet, is_bold);
        let author = hit.author.as_ref();
        let author = author.map_or_else(String::new, |author| format!(" by {author}"));
        print_exact(&format!(
            "{} {time} {}{}\n  {line}\n",
            clean_line(&name),
            clean_line(hit.kind.name()),
            clean_line(&author)
        ))?;
    }
    if found.hits.is_empty() && !as_json {
        print_stderr("No results");
    }
    for note in &found.notes {
        print_stderr(&format!("warning: {note}"));
    }
    if let Some(first) = found.hits.first()
        && is_bold
    {
        let name = visible(&first.reference(None));
        print_stderr(&format!("hint: open it with `ikigai --at '{name}'`"));
    }
    if let Some(next) = found.next {
        print_stderr(&format!("More results: --from {}", next.0));
    }
    Ok(())
}

fn mark_matches(snippet: &Snippet, is_bold: bool) -> String {
    if !is_bold {
        return visible(&snippet.text);
    }
    let mut line = String::new();
    let mut done = 0;
    for mark in &snippet.marks {
        let before = snippet.text.get(done..mark.start).unwrap_or_default();
        let word = snippet.text.get(mark.clone()).unwrap_or_default();
        line.push_str(&visible(before));
        line.push_str("\x1b[1m");
        line.push_str(&visible(word));
        line.push_str("\x1b[22m");
        done = mark.end;
    }
    line.push_str(&visible(snippet.text.get(done..).unwrap_or_default()));
    line
}

fn json_of(named: &Named) -> Value {
    let hit = &named.hit;
    let marks: Vec<_> = hit
        .snippet
        .marks
        .iter()
        .map(|mark| [mark.start, mark.end])
        .collect();
    json!({
        "agent": hit.at.agent,
        "name": named.agent,
        "row": named.reference(None),
        "seq": hit.at.seq,
        "kind": hit.kind.name(),
        "created_at": hit.created_at,
        "author": hit.author,
        "snippet": hit.snippet.text,
        "marks": marks,
    })
}
