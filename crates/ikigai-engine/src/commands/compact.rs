//! `/compact`: summaries that replace older rows.

use ikigai_core::data::{self, SummaryData};
use ikigai_core::project::estimate_tokens;
use ikigai_core::{Event, RowRef};
use ikigai_store::history;

use super::dispatch::late_data;
use super::reply::{Later, Then};
use super::rows::name_of;
use super::{
    Command, CommandOption, Completes, During, Group, Reply, Shows, Takes, Trouble, Typed,
};
use crate::figures::{tokens, turns};
use crate::frontend::{FrontEnd, Next, UiEvent};
use crate::turn::Written;
use crate::{EngineError, Worker};

pub(super) const COMPACT: Command = Command {
    arguments: "[--edit] [instructions] | --show | --undo",
    help: "summarise the conversation to free context",
    examples: &[
        ("/compact", "a summary of everything"),
        ("/compact keep the names of all files", "with a wish"),
        ("/compact --edit", "change the summary in your editor"),
        ("/compact --show", "the newest summary"),
        ("/compact --undo", "send the original messages again"),
    ],
    takes: Takes::WordsThenText(0),
    options: &[
        CommandOption::Flag("--edit"),
        CommandOption::Flag("--show"),
        CommandOption::Flag("--undo"),
    ],
    completes: &[Completes::Words(&["--edit", "--show", "--undo"])],
    during: During::Interrupts,
    shows: Shows::OverlayWith("--show"),
    ..Command::new("compact", Group::Context, |worker, typed, _| {
        Box::pin(compact(worker, typed))
    })
};

const NOTHING: &str = "there is nothing to summarise";

async fn compact(worker: &mut Worker, typed: &Typed) -> Result<Reply, Trouble> {
    let (edits, shows, undoes) = (
        typed.flag("--edit"),
        typed.flag("--show"),
        typed.flag("--undo"),
    );
    let instructions = typed.text.as_deref();
    if [edits, shows, undoes].iter().filter(|flag| **flag).count() > 1 {
        return Trouble::refused("choose one: --edit, --show or --undo");
    }
    match instructions {
        Some(_) if shows || undoes => {
            Trouble::refused("--show and --undo stand alone · /compact --show")
        }
        None if shows => show(worker).await,
        None if undoes => undo(worker, Newest::Text).await,
        instructions if edits => edit(worker, instructions).await,
        instructions => {
            let output = summarising(worker).await?;
            let instructions = instructions.map(str::to_owned);
            let later: Later =
                Box::new(move |worker, front| Box::pin(write(worker, instructions, front)));
            Ok(Reply::says(output).then(Then::Later(later)))
        }
    }
}

/// Announces the summary; refuses an empty range, or a used up budget.
async fn summarising(worker: &mut Worker) -> Result<String, Trouble> {
    if let Some(reason) = worker.ledger.engine.used_up(&worker.ledger.agent).await? {
        return Trouble::refused(reason);
    }
    match worker.context_keeper().summary_range().await? {
        Some(range) => Ok(format!("summarising {}", turns(range.turns))),
        None => Trouble::refused(NOTHING),
    }
}

/// Requests the summary, until the user stops it.
async fn write(
    worker: &mut Worker,
    instructions: Option<String>,
    front: &mut FrontEnd<'_>,
) -> Result<String, Trouble> {
    let Some(summary) = worker
        .context_keeper()
        .begin_summary(instructions.as_deref())
        .await?
    else {
        return Trouble::refused(NOTHING);
    };
    let written = worker.context_keeper().see_written(summary, front).await?;
    outcome(written)
}

/// Reports the result of a summary.
fn outcome(written: Written) -> Result<String, Trouble> {
    match written {
        Written::Shrunk(shrunk) => Ok(shrunk.to_string()),
        Written::Nothing(reason) => Trouble::refused(format!(
            "no summary: {reason} · the conversation is sent as before"
        )),
        Written::Stopped(stop) => {
            let told = "interrupted · the conversation is sent as before";
            Err(Trouble::Stopped(stop, told.to_owned()))
        }
    }
}

/// Opens a summary in the user's editor: the one in force, or a new one.
///
/// Instructions ask for a new one. The front end sends the edited text back, which is stored then.
async fn edit(worker: &mut Worker, instructions: Option<&str>) -> Result<Reply, Trouble> {
    if !worker.ledger.engine.hub.has_editor() {
        return Trouble::refused(
            "/compact --edit opens your editor and needs a screen · use /compact INSTRUCTIONS here",
        );
    }
    let line = match instructions {
        Some(instructions) => format!("/compact --edit {instructions}"),
        None => "/compact --edit".to_owned(),
    };
    let in_force = match instructions {
        Some(_) => None,
        None => match newest(worker, Newest::Replacing).await? {
            Some((at, data, Some(text))) => Some((at, data, text)),
            _ => None,
        },
    };
    let output = match &in_force {
        Some((at, _, _)) => format!(
            "summary {} opens in your editor",
            name_of(worker, *at).await?
        ),
        None => summarising(worker).await?,
    };
    let instructions = instructions.map(str::to_owned);
    let later: Later = Box::new(move |worker, front| {
        Box::pin(async move {
            // The newest row is that of the command.
            let state = &worker.ledger.agent.state;
            let command = late_data(&line, RowRef::new(state.agent(), state.head()));
            let draft = if let Some(in_force) = in_force {
                worker.context_keeper().draft_of(in_force, command).await?
            } else {
                let Some(summary) = worker
                    .context_keeper()
                    .begin_summary(instructions.as_deref())
                    .await?
                else {
                    return Trouble::refused(NOTHING);
                };
                match worker
                    .context_keeper()
                    .draft_summary(summary, command, front)
                    .await?
                {
                    Ok(draft) => draft,
                    Err(written) => return outcome(written),
                }
            };
            let size = draft.scale.counted(estimate_tokens(&draft.text));
            front.tell(UiEvent::Next(Next::EditSummary(Box::new(draft))));
            Ok(format!("{} tokens, in your editor", tokens(size)))
        })
    });
    Ok(Reply::says(output).then(Then::Later(later)))
}

async fn show(worker: &mut Worker) -> Result<Reply, Trouble> {
    let Some((at, data, Some(text))) = newest(worker, Newest::Text).await? else {
        return Trouble::refused("nothing was summarised");
    };
    let place = name_of(worker, at).await?;
    let range = range_end(worker, &data).await?;
    Ok(Reply::says(format!(
        "{place} stands for everything up to {range} · /compact --edit · /compact --undo\n\n{text}"
    )))
}

/// Returns the name of the last row that a summary replaces.
async fn range_end(worker: &Worker, data: &SummaryData) -> Result<String, EngineError> {
    match data.to {
        Some(to) => Ok(name_of(worker, to).await?),
        None => Ok("its beginning".to_owned()),
    }
}

/// Selection among the context rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Newest {
    /// The newest.
    Any,
    /// The newest with a text.
    Text,
    /// The newest that replaces rows: a summary or a cut.
    Replacing,
}

/// Returns the newest context row in force: its place, data and text.
async fn newest(
    worker: &mut Worker,
    which: Newest,
) -> Result<Option<(RowRef, SummaryData, Option<String>)>, EngineError> {
    let store = worker.ledger.engine.store.clone();
    loop {
        for (at, _, _) in worker.ledger.agent.state.summaries().into_iter().rev() {
            let Some(row) = history::row_at(&*store, at).await? else {
                continue;
            };
            let data: SummaryData = data::read(row.data.as_deref());
            let is_meant = match which {
                Newest::Any => true,
                Newest::Text => row.content.is_some(),
                Newest::Replacing => row.content.is_some() || data.elide.is_none(),
            };
            if is_meant {
                return Ok(Some((at, data, row.content)));
            }
        }
        // Most are near the end; otherwise extend the path.
        if worker.ledger.agent.state.path().is_complete() {
            return Ok(None);
        }
        history::extend(&*store, worker.ledger.agent.state.path_mut()).await?;
    }
}

/// Takes back the newest context row.
pub(super) async fn undo(worker: &mut Worker, which: Newest) -> Result<Reply, Trouble> {
    let Some((at, stored, text)) = newest(worker, which).await? else {
        return Trouble::refused(match which {
            Newest::Text => "nothing was summarised",
            Newest::Any | Newest::Replacing => "nothing was cut off or summarised",
        });
    };
    let what = match (&text, &stored.elide) {
        (Some(_), _) => "summary",
        (None, Some(_)) => "shortening",
        (None, None) => "cut",
    };
    let data = SummaryData {
        undo: Some(at),
        ..SummaryData::default()
    };
    let place = name_of(worker, at).await?;
    let effect = if let Some(earlier) = earlier(worker, at, &stored).await? {
        format!("summary {earlier} holds again")
    } else {
        let range = range_end(worker, &stored).await?;
        format!("what it stood for, up to {range}, is sent again as far as it fits")
    };
    let output = format!("{what} {place} taken back · {effect}");
    Ok(Reply::does(Event::Summary { text: None, data }, output))
}

/// Returns the name of the summary that the row `at` edited.
async fn earlier(
    worker: &Worker,
    at: RowRef,
    data: &SummaryData,
) -> Result<Option<String>, EngineError> {
    let summaries = worker.ledger.agent.state.summaries().into_iter().rev();
    let mut older = summaries.skip_while(|(row, ..)| *row != at).skip(1);
    let range = data.from.zip(data.to);
    let same = older.find(|(_, from, to)| range == Some((*from, *to)));
    match same {
        Some((row, ..)) if data.elide.is_none() => Ok(Some(name_of(worker, row).await?)),
        _ => Ok(None),
    }
}
