//! Commands on the path: `/mark`, `/rewind`, `/undo`, `/redo`, `/clear`.

use ikigai_core::data::{self, RewindData, SystemOrigin, Via};
use ikigai_core::{ControlQuery, Event, Kind, Row, RowRef, Seq, Span, StoredKind};
use ikigai_store::{Agent, StoreError, history};

use super::actions::{CommandAction, FileRewind};
use super::reply::Then;
use super::rows::{name_of, quote_beginning, row_of, typed_in};
use super::{
    Command, CommandOption, Completes, During, Group, Reply, SlashCommand, Takes, Trouble, Typed,
};
use crate::EngineReader;
use crate::engine::file_choice_of;
use crate::file_history::FileRestore;
use crate::frontend::Next;
use crate::limits::FileChoice;
use crate::rewind_effects::leave_for;
use crate::turn::CommandContext;

/// Control rows read per query.
const PAGE_ROWS: usize = 64;

/// Options that choose whether files go back, too.
const FILE_OPTIONS: &[CommandOption] = &[
    CommandOption::Flag("--files"),
    CommandOption::Flag("--conversation"),
    CommandOption::Flag("--overwrite"),
];

const FILE_EXAMPLES: &[(&str, &str)] = &[
    ("/undo", "if files would change, list them first"),
    ("/undo --files", "restore files, too"),
    ("/undo --conversation", "leave files as they are"),
    (
        "/undo --overwrite",
        "also restore files that you or other programs changed since",
    ),
];

/// Way to an earlier or later row, with its description.
struct Journey<'a> {
    target: RowRef,
    via: Via,
    /// First words of the output.
    line: String,
    /// Text that returns to the input.
    input: Option<String>,
    /// The command as typed, to repeat it with a choice.
    command: (&'static str, &'a Typed),
}

pub(super) const MARK: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[label]",
        help: "set a mark to return to with /rewind",
        examples: &[
            ("/mark", "/rewind returns to the newest mark"),
            ("/mark before the rewrite", "with a label"),
        ],
        takes: Takes::WordsThenText(0),
        completes: &[Completes::Nothing],
        reports: Some(ikigai_core::Kind::Mark),
        ..Command::new("mark", Group::Time)
    },
    handler: |_, typed| Box::pin(async move { mark(typed) }),
};

pub(super) const REWIND: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[label | #id] [--files | --conversation]",
        help: "go back to a mark (default: the newest), or to before a message",
        examples: &[
            ("/rewind", "to the newest mark"),
            (
                "/rewind before the rewrite",
                "to the newest mark with that label",
            ),
            (
                "/rewind #41",
                "to before your message #41 (text returns to the input)",
            ),
            ("/rewind #root.7", "to an event inherited from root"),
            ("/rewind #41 --files", "and restore files as they were then"),
        ],
        takes: Takes::WordsThenText(0),
        options: FILE_OPTIONS,
        completes: &[Completes::Marks],
        during: During::Interrupts,
        reports: Some(ikigai_core::Kind::Rewind),
        ..Command::new("rewind", Group::Time)
    },
    handler: |ctx, typed| Box::pin(rewind(ctx, typed)),
};

pub(super) const UNDO: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[--files | --conversation]",
        help: "take back your last message (text returns to the input)",
        examples: FILE_EXAMPLES,
        options: FILE_OPTIONS,
        during: During::Interrupts,
        reports: Some(ikigai_core::Kind::Rewind),
        ..Command::new("undo", Group::Talk)
    },
    handler: |ctx, typed| Box::pin(undo(ctx, typed)),
};

pub(super) const REDO: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[--files | --conversation]",
        help: "redo what /undo, /rewind or /retry took back",
        options: FILE_OPTIONS,
        during: During::Interrupts,
        reports: Some(ikigai_core::Kind::Rewind),
        ..Command::new("redo", Group::Talk)
    },
    handler: |ctx, typed| Box::pin(redo(ctx, typed)),
};

pub(super) const CLEAR: SlashCommand = SlashCommand {
    command: Command {
        help: "start with an empty context; settings and pinned files stay",
        during: During::Interrupts,
        reports: Some(ikigai_core::Kind::Clear),
        ..Command::new("clear", Group::Time)
    },
    handler: |ctx, _| Box::pin(async move { Ok(clear(ctx)) }),
};

fn mark(typed: &Typed) -> Result<Reply, Trouble> {
    let label = typed.text.as_deref();
    if label.is_some_and(|label| label.starts_with('#')) {
        return Trouble::refused("a label cannot begin with #");
    }
    let output = match label {
        Some(label) => format!("⚑ {label} · /rewind {label} to return"),
        None => "⚑ marked · /rewind to return".to_owned(),
    };
    Ok(Reply::does(Event::mark(label), output))
}

async fn rewind(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let command = ("rewind", typed);
    match typed.text.as_deref() {
        Some(id) if id.starts_with('#') => {
            let (engine, agent) = ctx.reading();
            let row = row_of(engine, agent, id).await?;
            if row.kind.read_as() == Some(Kind::User) {
                return back_before(ctx, &row, Via::Rewind, None, command).await;
            }
            let to = name_of(ctx, row.at).await?;
            let journey = Journey {
                target: row.at,
                via: Via::Rewind,
                line: format!("↶ rewound to {to}"),
                input: None,
                command,
            };
            go(ctx, journey).await
        }
        label => {
            let (engine, agent) = ctx.reading();
            let Some(mark) = find_mark(engine, agent, label).await? else {
                return Trouble::refused(match label {
                    Some(label) => format!("no mark \"{label}\" · /rewind #ID goes to an event"),
                    None => "no mark yet · /mark sets one, /rewind #ID goes to an event".into(),
                });
            };
            let name = name_of(ctx, mark).await?;
            let label = label.map(|label| format!("{label} ")).unwrap_or_default();
            let journey = Journey {
                target: mark,
                via: Via::Rewind,
                line: format!("↶ rewound to ⚑ {label}{name}"),
                input: None,
                command,
            };
            go(ctx, journey).await
        }
    }
}

/// Returns the newest mark on the path, or the newest with a label.
pub(super) async fn find_mark(
    engine: &EngineReader,
    agent: &mut Agent,
    label: Option<&str>,
) -> Result<Option<RowRef>, StoreError> {
    loop {
        if let Some(mark) = agent.state.mark(label) {
            return Ok(Some(mark));
        }
        if agent.state.path().is_complete() {
            return Ok(None);
        }
        history::extend(engine.reader(), agent.state.path_mut()).await?;
    }
}

async fn undo(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let command = ("undo", typed);
    if let Some(start) = ctx.last_start().await? {
        let row = history::row_at(ctx.engine().reader(), start).await?;
        let Some(row) = row else {
            return Trouble::refused("the last message is not in the log");
        };
        // Return all messages that started the turn, not only the first one.
        let opening = ctx.opening(start);
        let said: Vec<_> = opening.iter().filter_map(|row| typed_in(row)).collect();
        let said = Some(said.join("\n")).filter(|_| !said.is_empty());
        return back_before(ctx, &row, Via::Undo, said, command).await;
    }
    // There is no message since the clear, so undo the clear itself.
    let root = ctx.agent().state.path().root();
    let own = root.filter(|root| root.agent == ctx.id());
    let row = match own {
        Some(root) => history::row_at(ctx.engine().reader(), root).await?,
        None => None,
    };
    match row {
        Some(row) if row.kind == StoredKind::Known(Kind::Clear) && row.at.seq > Seq(1) => {
            let journey = Journey {
                target: RowRef::new(row.at.agent, row.at.seq.before()),
                via: Via::Undo,
                line: "↶ undid /clear".to_owned(),
                input: None,
                command,
            };
            // A clear changes no file.
            go_without_files(ctx, &journey).await
        }
        _ => Trouble::refused("nothing to undo"),
    }
}

/// Rewinds to just before a message and returns its text, or that of all opening messages.
async fn back_before(
    ctx: &mut CommandContext<'_>,
    message: &Row,
    via: Via,
    said: Option<String>,
    command: (&'static str, &Typed),
) -> Result<Reply, Trouble> {
    let name = name_of(ctx, message.at).await?;
    if message.at.seq <= Seq(1) {
        return Trouble::refused(format!("nothing before {name}"));
    }
    let journey = Journey {
        target: RowRef::new(message.at.agent, message.at.seq.before()),
        via,
        line: format!("↶ rewound to before {}", quote_beginning(message)),
        input: said.or_else(|| typed_in(message)),
        command,
    };
    go(ctx, journey).await
}

async fn redo(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let Some((rewind, from)) = newest_left(ctx).await? else {
        return Trouble::refused("nothing to redo");
    };
    // A redo would leave the newer turn, which the user did not request.
    let last = ctx.last_start().await?;
    let is_newer = |start: RowRef| start.agent == rewind.agent && start.seq > rewind.seq;
    if last.is_some_and(is_newer) {
        let name = name_of(ctx, from).await?;
        return Trouble::refused(format!(
            "nothing to redo: you sent a message since · /rewind {name} returns to the old turn"
        ));
    }
    let journey = Journey {
        target: from,
        via: Via::Redo,
        line: "↷ redone".to_owned(),
        input: None,
        command: ("redo", typed),
    };
    go(ctx, journey).await
}

/// Finds the newest rewind that is not a redo, and the row that it left.
async fn newest_left(ctx: &mut CommandContext<'_>) -> Result<Option<(RowRef, RowRef)>, StoreError> {
    let (engine, agent) = ctx.reading();
    let mut looked = 0;
    loop {
        let spans: Vec<_> = agent.state.path().spans().rev().skip(looked).collect();
        looked += spans.len();
        for span in spans {
            if let Some(left) = left_in(engine.reader(), span).await? {
                return Ok(Some(left));
            }
        }
        if agent.state.path().is_complete() {
            return Ok(None);
        }
        history::extend(engine.reader(), agent.state.path_mut()).await?;
        // The oldest known span may have grown at its older end.
        looked = looked.saturating_sub(1);
    }
}

async fn left_in(
    store: &dyn ikigai_store::ReadLog,
    mut span: Span,
) -> Result<Option<(RowRef, RowRef)>, StoreError> {
    while !span.is_empty() {
        let limit = PAGE_ROWS;
        let rows = store.control(ControlQuery { span, limit }).await?;
        let rewinds = rows
            .iter()
            .filter(|row| row.kind == StoredKind::Known(Kind::Rewind));
        let mut left = rewinds.filter_map(|row| {
            let rewind: RewindData = data::read(row.data.as_deref());
            let from = rewind.from.filter(|_| rewind.via != Some(Via::Redo))?;
            Some((row.at, from))
        });
        if let Some(left) = left.next() {
            return Ok(Some(left));
        }
        match rows.last() {
            Some(oldest) if rows.len() == limit => span.to = oldest.at.seq.before(),
            _ => break,
        }
    }
    Ok(None)
}

/// Rewinds the path, and perhaps files; asks first if files would change and nothing was chosen.
async fn go(ctx: &mut CommandContext<'_>, journey: Journey<'_>) -> Result<Reply, Trouble> {
    let (name, typed) = journey.command;
    let choice = if typed.flag("--overwrite") {
        FileChoice::Overwrite
    } else if typed.flag("--files") {
        FileChoice::Files
    } else if typed.flag("--conversation") {
        FileChoice::Conversation
    } else {
        file_choice_of(ctx.engine())
    };
    if choice == FileChoice::Conversation {
        return go_without_files(ctx, &journey).await;
    }
    let place = ctx.place();
    let plan = FileRestore::plan(ctx.engine(), (ctx.id(), journey.target), &place).await?;
    if plan.is_empty() {
        return go_without_files(ctx, &journey).await;
    }
    if choice == FileChoice::Ask {
        let again = [&format!("/{name}"), &typed.rest];
        let again = again.map(|part| part.trim()).join(" ");
        let again = again.trim_end();
        let output = format!(
            "{}\n{again} --files restores files, {again} --conversation leaves them as they are",
            plan.preview()
        );
        let next = Then::Front(Next::Input(format!("{again} --files")));
        return Ok(Reply::says(output).then(next));
    }
    let store = ctx.engine().reader();
    let (data, departure) = leave_for(store, ctx.agent(), journey.target, journey.via).await?;
    Ok(Reply::of(CommandAction::RewindFiles(Box::new(
        FileRewind {
            data,
            plan,
            overwrites: choice == FileChoice::Overwrite,
            line: format!("{}{}", journey.line, departure.turns()),
            way_back: way_back(journey.via),
            input: journey.input,
        },
    ))))
}

fn way_back(via: Via) -> &'static str {
    match via {
        Via::Redo => "",
        _ => ". /redo to reverse",
    }
}

/// Rewinds the path alone, and reports all effects in one line.
async fn go_without_files(
    ctx: &mut CommandContext<'_>,
    journey: &Journey<'_>,
) -> Result<Reply, Trouble> {
    let Journey { target, via, .. } = *journey;
    let (data, departure) = leave_for(ctx.engine().reader(), ctx.agent(), target, via).await?;
    let workdir = ctx.settings().workdir.as_deref();
    let changed = departure
        .changed(workdir)
        .map_or_else(String::new, |changed| {
            format!(". Files keep their changes: {changed}")
        });
    let (line, turns, way_back) = (&journey.line, departure.turns(), way_back(via));
    let output = format!("{line}{turns}{changed}{way_back}");
    let reply = Reply::does(Event::Rewind(data), output);
    Ok(match &journey.input {
        Some(text) => reply.then(Then::Front(Next::Input(text.clone()))),
        None => reply,
    })
}

fn clear(ctx: &CommandContext<'_>) -> Reply {
    let prompt = ctx.agent().state.system().unwrap_or_default();
    Reply {
        events: vec![Event::Clear, Event::system(prompt, SystemOrigin::Clear)],
        ..Reply::says("Cleared. Settings and pinned files kept. /undo to restore")
    }
}
