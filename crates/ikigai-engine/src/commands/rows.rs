//! Names of rows: `#12` is the agent's own, `#name.12` an ancestor's.

use ikigai_core::data::{self, UserData, UserOrigin};
use ikigai_core::{Kind, Row, RowRef, Seq};
use ikigai_store::{Agent, StoreError, history};

use super::Trouble;
use crate::figures::shorten;
use crate::turn::CommandContext;
use crate::{EngineReader, NameCache};

/// Minimum length of an id prefix.
const SHORTEST_PREFIX: usize = 4;

/// Length of a quoted message, in characters.
const QUOTED_CHARS: usize = 40;

/// Returns the row of a typed name; it must be reachable for the agent.
pub(super) async fn row_of(
    engine: &EngineReader,
    reader: &mut Agent,
    typed: &str,
) -> Result<Row, Trouble> {
    let no_row = || {
        Trouble::Refused(format!(
            "invalid event {typed}: use #12, or #name.12 of an ancestor"
        ))
    };
    let name = typed.strip_prefix('#').ok_or_else(no_row)?;
    let (agent, number) = match name.rsplit_once('.') {
        Some((agent, number)) => (Some(agent), number),
        None => (None, name),
    };
    let seq = number.parse().map(Seq).map_err(|_| no_row())?;
    let own = reader.state.agent();
    let agents = match agent {
        None => vec![own],
        Some(name) => {
            let long_enough = name.len() >= SHORTEST_PREFIX;
            let mut agents = engine.reader().agents(None).await?;
            agents.retain(|agent| {
                agent.name == name || long_enough && agent.id.to_string().starts_with(name)
            });
            agents.into_iter().map(|agent| agent.id).collect()
        }
    };
    for agent in agents {
        let row = RowRef::new(agent, seq);
        if holds(engine, reader, row).await?
            && let Some(row) = history::row_at(engine.reader(), row).await?
        {
            return Ok(row);
        }
    }
    Trouble::refused(format!(
        "no event {typed} in this agent · /history lists them"
    ))
}

async fn holds(engine: &EngineReader, agent: &mut Agent, row: RowRef) -> Result<bool, StoreError> {
    loop {
        match agent.state.holds(row) {
            Some(held) => return Ok(held),
            None => history::extend(engine.reader(), agent.state.inherited_mut()).await?,
        }
    }
}

/// Returns the name of a row, as shown and typed.
pub(super) async fn name_of(ctx: &CommandContext<'_>, row: RowRef) -> Result<String, StoreError> {
    let mut names = NameCache::default();
    names.row(ctx.engine(), ctx.id(), row).await
}

/// Returns the text that the user typed for a `user` row, if any.
pub(crate) fn typed_in(row: &Row) -> Option<String> {
    if row.kind.read_as() != Some(Kind::User) {
        return None;
    }
    let user: UserData = data::read(row.data.as_deref());
    if let Some(shell) = user.shell {
        return shell.command.map(|command| format!("!{command}"));
    }
    let is_typed = matches!(user.origin, None | Some(UserOrigin::Typed)) && user.merge.is_none();
    let text = user.typed.or_else(|| row.content.clone());
    text.filter(|_| is_typed)
}

/// Returns the beginning of a `user` row's text, in quotes, on one line.
pub(super) fn quote_beginning(row: &Row) -> String {
    let user: UserData = data::read(row.data.as_deref());
    let shell = user.shell.and_then(|shell| shell.command);
    let text = shell.map(|command| format!("!{command}")).or(user.typed);
    let text = text.or_else(|| row.content.clone()).unwrap_or_default();
    format!("\"{}\"", shorten(&text, QUOTED_CHARS))
}
