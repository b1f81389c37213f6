//! Messages of earlier runs, read from the log.

use ikigai_core::data::{self, CommandData, UserData, UserOrigin};
use ikigai_core::{AgentId, Kind, Micros, PageQuery, Row, Seq, Span};
use ikigai_engine::{AgentRecord, Engine, StoreError};

/// Most agents read, the newest first.
const MOST_AGENTS: usize = 8;

/// Most rows read of each.
const MOST_ROWS: usize = 512;

/// Returns the messages to the agents of one session, the newest last.
pub(super) async fn sent_before(engine: &Engine, own: AgentId) -> Result<Vec<String>, StoreError> {
    let session = engine.reader().agent(own).await?.map(|agent| agent.session);
    let mut agents = engine.reader().agents(session).await?;
    agents.sort_by_key(|agent| std::cmp::Reverse(agent.touched_at));
    let mut sent: Vec<(Micros, String)> = Vec::new();
    for AgentRecord { id, head, .. } in agents.into_iter().take(MOST_AGENTS) {
        let query = PageQuery::newest(Span::new(id, Seq(1), head), MOST_ROWS);
        let rows = engine.reader().page(query).await?;
        sent.extend(
            rows.iter()
                .filter_map(|row| Some((row.created_at, typed_text(row)?))),
        );
    }
    sent.sort_by_key(|(at, _)| *at);
    Ok(sent.into_iter().map(|(_, text)| text).collect())
}

/// Returns the line that the user typed for this row.
fn typed_text(row: &Row) -> Option<String> {
    let data = row.data.as_deref();
    match row.kind.read_as()? {
        Kind::User => {
            let user: UserData = data::read(data);
            let command = user.shell.and_then(|shell| shell.command);
            match (command, user.origin) {
                (Some(command), _) => Some(format!("!{command}")),
                (None, Some(UserOrigin::Typed)) if user.merge.is_none() => {
                    user.typed.or_else(|| row.content.clone())
                }
                _ => None,
            }
        }
        Kind::Command => data::read::<CommandData>(data).echo,
        Kind::System
        | Kind::Assistant
        | Kind::ToolCall
        | Kind::ToolResult
        | Kind::Clear
        | Kind::Mark
        | Kind::Rewind
        | Kind::Fork
        | Kind::AgentKilled
        | Kind::Usage
        | Kind::Interrupted
        | Kind::Error
        | Kind::Summary
        | Kind::Process => None,
    }
}
