//! `/compact`: summaries that replace older rows.

use ikigai_core::counts::counted;
use ikigai_core::data::{self, CommandData, SummaryData};
use ikigai_core::{Event, RowRef};
use ikigai_store::history;

use super::actions::CommandAction;
use super::rows::name_of;
use super::{
    Command, CommandOption, Completes, During, Group, Reply, Shows, SlashCommand, Takes, Trouble,
    Typed,
};
use crate::EngineError;
use crate::budget::used_up;
use crate::turn::CommandContext;

pub(super) const COMPACT: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[--edit] [instructions] | --show | --undo",
        help: "summarise the conversation to free context",
        examples: &[
            ("/compact", "a summary of everything"),
            (
                "/compact keep the names of all files",
                "say what the summary must keep",
            ),
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
        ..Command::new("compact", Group::Context)
    },
    handler: |ctx, typed| Box::pin(compact(ctx, typed)),
};

pub(super) const NOTHING: &str = "nothing to summarise";

async fn compact(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
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
        Some(_) if shows || undoes => Trouble::refused("use --show or --undo alone"),
        None if shows => show(ctx).await,
        None if undoes => undo(ctx, Newest::Text).await,
        instructions if edits => edit(ctx, instructions).await,
        instructions => {
            let output = summarising(ctx).await?;
            let instructions = instructions.map(str::to_owned);
            let action = CommandAction::Summarise(instructions);
            Ok(Reply::says(output).later(action))
        }
    }
}

/// Announces the summary; refuses an empty range, or a used up budget.
async fn summarising(ctx: &mut CommandContext<'_>) -> Result<String, Trouble> {
    if let Some(reason) = used_up(ctx.engine(), ctx.agent()).await? {
        return Trouble::refused(reason);
    }
    match ctx.summary_range().await? {
        Some(range) => Ok(format!("summarising {}", counted(range.turns, "turn"))),
        None => Trouble::refused(NOTHING),
    }
}

/// Opens a summary in the user's editor: the one in force, or a new one.
///
/// Instructions ask for a new one. The front end sends the edited text back, which is stored then.
async fn edit(ctx: &mut CommandContext<'_>, instructions: Option<&str>) -> Result<Reply, Trouble> {
    if !ctx.engine().hub().has_editor() {
        return Trouble::refused(
            "/compact --edit opens your editor and needs a screen · use /compact INSTRUCTIONS here",
        );
    }
    let arguments = match instructions {
        Some(instructions) => format!("--edit {instructions}"),
        None => "--edit".to_owned(),
    };
    let echo = CommandData {
        command: Some("compact".to_owned()),
        echo: Some(format!("/compact {arguments}")),
        args: Some(arguments),
        ..CommandData::default()
    };
    let in_force = match instructions {
        Some(_) => None,
        None => match newest(ctx, Newest::Replacing).await? {
            Some((at, data, Some(text))) => Some((at, data, text)),
            _ => None,
        },
    };
    let output = match &in_force {
        Some((at, _, _)) => format!("summary {} opens in your editor", name_of(ctx, *at).await?),
        None => summarising(ctx).await?,
    };
    let instructions = instructions.map(str::to_owned);
    let action = CommandAction::EditSummary {
        echo: Box::new(echo),
        in_force,
        instructions,
    };
    Ok(Reply::says(output).later(action))
}

async fn show(ctx: &mut CommandContext<'_>) -> Result<Reply, Trouble> {
    let Some((at, data, Some(text))) = newest(ctx, Newest::Text).await? else {
        return Trouble::refused("no summary yet");
    };
    let place = name_of(ctx, at).await?;
    let range = range_end(ctx, &data).await?;
    Ok(Reply::says(format!(
        "Summary {place} (replaces everything up to {range}) · /compact --edit · /compact --undo\n\n{text}"
    )))
}

/// Returns the name of the last row that a summary replaces.
async fn range_end(ctx: &CommandContext<'_>, data: &SummaryData) -> Result<String, EngineError> {
    match data.to {
        Some(to) => Ok(name_of(ctx, to).await?),
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
    ctx: &mut CommandContext<'_>,
    which: Newest,
) -> Result<Option<(RowRef, SummaryData, Option<String>)>, EngineError> {
    let (engine, agent) = ctx.reading();
    loop {
        for (at, _, _) in agent.state.summaries().into_iter().rev() {
            let Some(row) = history::row_at(engine.reader(), at).await? else {
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
        if agent.state.path().is_complete() {
            return Ok(None);
        }
        history::extend(engine.reader(), agent.state.path_mut()).await?;
    }
}

/// Takes back the newest context row.
pub(super) async fn undo(ctx: &mut CommandContext<'_>, which: Newest) -> Result<Reply, Trouble> {
    let Some((at, stored, text)) = newest(ctx, which).await? else {
        return Trouble::refused(match which {
            Newest::Text => "no summary yet",
            Newest::Any | Newest::Replacing => "no cut or summary to undo",
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
    let place = name_of(ctx, at).await?;
    let effect = if let Some(earlier) = earlier(ctx, at, &stored).await? {
        format!("summary {earlier} is used again")
    } else {
        let range = range_end(ctx, &stored).await?;
        format!("messages up to {range} are sent again, as far as they fit")
    };
    let output = format!("{what} {place} undone: {effect}");
    Ok(Reply::does(Event::Summary { text: None, data }, output))
}

/// Returns the name of the summary that the row `at` edited.
async fn earlier(
    ctx: &CommandContext<'_>,
    at: RowRef,
    data: &SummaryData,
) -> Result<Option<String>, EngineError> {
    let summaries = ctx.agent().state.summaries().into_iter().rev();
    let mut older = summaries.skip_while(|(row, ..)| *row != at).skip(1);
    let range = data.from.zip(data.to);
    let same = older.find(|(_, from, to)| range == Some((*from, *to)));
    match same {
        Some((row, ..)) if data.elide.is_none() => Ok(Some(name_of(ctx, row).await?)),
        _ => Ok(None),
    }
}
