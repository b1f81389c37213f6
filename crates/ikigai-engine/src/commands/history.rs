//! `/history`: all rows of the agent. Also finds sent lines for the input.

use std::fmt::Write as _;

use ikigai_core::data::{self, CommandData};
use ikigai_core::render::render;
use ikigai_core::{AgentId, Kind, Micros, PageQuery, Row, Seq, Span};
use ikigai_store::Agent;

use super::rows::{name_of, typed_in};
use super::{Command, Group, Reply, Shows, SlashCommand, Takes, Trouble, Typed};
use crate::figures::shorten;
use crate::turn::CommandContext;
use crate::{EngineError, EngineReader, NameCache};

/// Default and maximum number of rows; the output is stored.
const SHOWN_ROWS: usize = 100;
const MOST_ROWS: usize = 1000;

/// Length of a row, in characters.
const ROW_CHARS: usize = 100;

/// Rows read per query.
const PAGE_ROWS: usize = 256;

/// Agents whose sent lines are recalled, and rows read of each; the newest.
const RECALLED_AGENTS: usize = 8;
const RECALLED_ROWS: usize = 512;

pub(super) const HISTORY: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[ROWS]",
        help: "show everything, including rewound parts (┊)",
        examples: &[("/history 20", "the last 20 events")],
        takes: Takes::Words,
        shows: Shows::Overlay,
        ..Command::new("history", Group::Time)
    },
    handler: |ctx, typed| Box::pin(history(ctx, typed)),
};

async fn history(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let rows = match typed.one("history")? {
        None => SHOWN_ROWS,
        Some(number) => match number.parse() {
            Ok(rows @ 1..=MOST_ROWS) => rows,
            _ => {
                return Trouble::refused(format!("{number} is not a number from 1 to {MOST_ROWS}"));
            }
        },
    };
    let (engine, agent) = ctx.reading();
    let mut held = newest(engine, agent.state.agent(), agent.state.head(), rows).await?;
    let missing = rows.saturating_sub(held.len());
    if let (Some(point), 1..) = (agent.state.inherits_from(), missing) {
        let mut inherited = Agent::restore_at(engine.reader(), point).await?;
        while inherited.view.entries().len() < missing
            && inherited.lengthen(engine.reader(), PAGE_ROWS).await?
        {}
        let older = inherited.view.entries().iter().rev().take(missing);
        held.extend(older.map(|entry| Row::clone(&entry.row)));
    }
    agent.know_all(engine.reader()).await?;
    let own = agent.state.agent();
    let mut called = NameCache::default();
    let mut text = String::new();
    for row in held.iter().rev() {
        let shown = called.plain_text(ctx.engine(), own, &render(row)).await?;
        let shown = shorten(&shown, ROW_CHARS);
        if shown.is_empty() {
            continue;
        }
        let folded = if ctx.agent().state.path().contains(row.at) {
            " "
        } else {
            "┊"
        };
        let name = name_of(ctx, row.at).await?;
        let _ = writeln!(text, "{folded} {name:<5} {shown}");
    }
    Ok(Reply::says(text.trim_end()))
}

/// Returns the newest rows of an agent, newest first.
async fn newest(
    engine: &EngineReader,
    agent: AgentId,
    head: Seq,
    limit: usize,
) -> Result<Vec<Row>, EngineError> {
    let query = PageQuery::newest(Span::new(agent, Seq(1), head), limit);
    Ok(engine.reader().page(query).await?)
}

impl EngineReader {
    /// Returns the lines that the user sent to the agents of a session, newest last: messages,
    /// commands and shell commands.
    pub async fn input_history(&self, own: AgentId) -> Result<Vec<String>, EngineError> {
        let session = self.reader().agent(own).await?.map(|agent| agent.session);
        let mut agents = self.reader().agents(session).await?;
        agents.sort_by_key(|agent| std::cmp::Reverse(agent.touched_at));
        let mut sent: Vec<(Micros, String)> = Vec::new();
        for agent in agents.into_iter().take(RECALLED_AGENTS) {
            let rows = newest(self, agent.id, agent.head, RECALLED_ROWS).await?;
            let lines = rows.iter().rev();
            sent.extend(lines.filter_map(|row| Some((row.created_at, line_of(row)?))));
        }
        sent.sort_by_key(|(at, _)| *at);
        Ok(sent.into_iter().map(|(_, line)| line).collect())
    }
}

/// Returns the line that the user typed for a row.
fn line_of(row: &Row) -> Option<String> {
    if row.kind.read_as() == Some(Kind::Command) {
        let command: CommandData = data::read(row.data.as_deref());
        // Late output repeats the line of its first row.
        return command.echo.filter(|_| command.of.is_none());
    }
    typed_in(row)
}
