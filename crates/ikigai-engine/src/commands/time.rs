//! Commands on the path: `/mark`, `/rewind`, `/undo`, `/redo`, `/clear`.

use ikigai_core::data::{self, RewindData, SystemOrigin, Via};
use ikigai_core::{ControlQuery, Event, Kind, Row, RowRef, Seq, Span, StoredKind};
use ikigai_store::{Agent, StoreError, history};

use super::reply::Then;
use super::rows::{name_of, quote_beginning, row_of, typed_in};
use super::{Command, Completes, During, Group, Reply, SlashCommand, Takes, Trouble, Typed};
use crate::EngineReader;
use crate::frontend::Next;
use crate::rewind_effects::leave_for;
use crate::turn::CommandContext;

/// Control rows read per query.
const PAGE_ROWS: usize = 64;

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
        arguments: "[label | #id]",
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
        ],
        takes: Takes::WordsThenText(0),
        completes: &[Completes::Marks],
        during: During::Interrupts,
        reports: Some(ikigai_core::Kind::Rewind),
        ..Command::new("rewind", Group::Time)
    },
    handler: |ctx, typed| Box::pin(rewind(ctx, typed)),
};

pub(super) const UNDO: SlashCommand = SlashCommand {
    command: Command {
        help: "take back your last message (text returns to the input)",
        during: During::Interrupts,
        reports: Some(ikigai_core::Kind::Rewind),
        ..Command::new("undo", Group::Talk)
    },
    handler: |ctx, _| Box::pin(undo(ctx)),
};

pub(super) const REDO: SlashCommand = SlashCommand {
    command: Command {
        help: "redo what /undo, /rewind or /retry took back",
        during: During::Interrupts,
        reports: Some(ikigai_core::Kind::Rewind),
        ..Command::new("redo", Group::Talk)
    },
    handler: |ctx, _| Box::pin(redo(ctx)),
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
    match typed.text.as_deref() {
        Some(id) if id.starts_with('#') => {
            let (engine, agent) = ctx.reading();
            let row = row_of(engine, agent, id).await?;
            if row.kind.read_as() == Some(Kind::User) {
                return back_before(ctx, &row, Via::Rewind).await;
            }
            let to = name_of(ctx, row.at).await?;
            go(ctx, row.at, Via::Rewind, &format!("↶ rewound to {to}")).await
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
            go(
                ctx,
                mark,
                Via::Rewind,
                &format!("↶ rewound to ⚑ {label}{name}"),
            )
            .await
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

async fn undo(ctx: &mut CommandContext<'_>) -> Result<Reply, Trouble> {
    if let Some(start) = ctx.last_start().await? {
        let row = history::row_at(ctx.engine().reader(), start).await?;
        let Some(row) = row else {
            return Trouble::refused("the last message is not in the log");
        };
        // Return all messages that started the turn, not only the first one.
        let opening = ctx.opening(start);
        let typed: Vec<_> = opening.iter().filter_map(|row| typed_in(row)).collect();
        let reply = back_before(ctx, &row, Via::Undo).await?;
        return Ok(match typed.as_slice() {
            [] => reply,
            typed => reply.then(Then::Front(Next::Input(typed.join("\n")))),
        });
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
            let before = RowRef::new(row.at.agent, row.at.seq.before());
            go(ctx, before, Via::Undo, "↶ undid /clear").await
        }
        _ => Trouble::refused("nothing to undo"),
    }
}

/// Rewinds to just before a message and returns its text.
async fn back_before(
    ctx: &mut CommandContext<'_>,
    message: &Row,
    via: Via,
) -> Result<Reply, Trouble> {
    let name = name_of(ctx, message.at).await?;
    if message.at.seq <= Seq(1) {
        return Trouble::refused(format!("nothing before {name}"));
    }
    let target = RowRef::new(message.at.agent, message.at.seq.before());
    let line = format!("↶ rewound to before {}", quote_beginning(message));
    let reply = go(ctx, target, via, &line).await?;
    Ok(match typed_in(message) {
        Some(text) => reply.then(Then::Front(Next::Input(text))),
        None => reply,
    })
}

async fn redo(ctx: &mut CommandContext<'_>) -> Result<Reply, Trouble> {
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
    go(ctx, from, Via::Redo, "↷ redone").await
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

/// Rewinds the path, and reports all effects in one line.
async fn go(
    ctx: &mut CommandContext<'_>,
    target: RowRef,
    via: Via,
    line: &str,
) -> Result<Reply, Trouble> {
    let (data, departure) = leave_for(ctx.engine().reader(), ctx.agent(), target, via).await?;
    let workdir = ctx.settings().workdir.as_deref();
    let changed = departure
        .changed(workdir)
        .map_or_else(String::new, |changed| {
            format!(". Files keep their changes: {changed}")
        });
    let way_back = match via {
        Via::Redo => "",
        _ => ". /redo to reverse",
    };
    let output = format!("{line}{}{changed}{way_back}", departure.turns());
    Ok(Reply::does(Event::Rewind(data), output))
}

fn clear(ctx: &CommandContext<'_>) -> Reply {
    let prompt = ctx.agent().state.system().unwrap_or_default();
    Reply {
        events: vec![Event::Clear, Event::system(prompt, SystemOrigin::Clear)],
        ..Reply::says("Cleared. Settings and pinned files kept. /undo to restore")
    }
}
