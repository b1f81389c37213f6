//! Children that their parents have merged.

use std::collections::HashMap;

use ikigai_core::data::{self, UserData};
use ikigai_core::{AgentId, Kind, Micros, Row, Seq};

use super::merge::merged_into;
use crate::{EngineError, EngineReader};

/// Parent whose merges are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MergeParent {
    pub(super) agent: AgentId,
    /// Time of the oldest merge that counts.
    pub(super) since: Micros,
    /// Its newest row, if known.
    pub(super) head: Option<Seq>,
}

/// Returns the last merged row of each child of these parents.
///
/// One query for the parents that have grown since the last call, and none without such.
pub(super) async fn merged_children(
    engine: &EngineReader,
    parents: Vec<MergeParent>,
) -> Result<HashMap<AgentId, Seq>, EngineError> {
    let cache = &engine.hub().merges;
    let mut merged = HashMap::new();
    let mut unread = Vec::new();
    for parent in parents {
        match cache.at(parent.agent, parent.head, parent.since) {
            Some(known) => merged.extend(known),
            None => unread.push(parent),
        }
    }
    if unread.is_empty() {
        return Ok(merged);
    }
    let asked = unread.iter().map(|parent| (parent.agent, parent.since));
    let rows = engine.reader().merge_rows(asked.collect()).await?;
    for parent in unread {
        let own = rows.iter().filter(|row| row.at.agent == parent.agent);
        let found = match merges_in(own) {
            Some(found) => found,
            // A rewind or clear may have left a merge behind.
            None => merged_into(engine.reader(), parent.agent, parent.since).await?,
        };
        cache.keep(parent.agent, parent.head, parent.since, found.clone());
        merged.extend(found);
    }
    Ok(merged)
}

/// Reads the last merged row of each child from rows of a parent, newest first.
///
/// Returns none if a merge is older than a rewind or clear, and may thus be off the path.
fn merges_in<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<HashMap<AgentId, Seq>> {
    let mut merged = HashMap::new();
    let mut is_bent = false;
    for row in rows {
        if matches!(row.kind.read_as(), Some(Kind::Rewind | Kind::Clear)) {
            is_bent = true;
            continue;
        }
        let user: UserData = data::read(row.data.as_deref());
        let merge = user.merge.and_then(|merge| merge.agent.zip(merge.to));
        if let Some((child, to)) = merge {
            if is_bent {
                return None;
            }
            merged.entry(child).or_insert(to);
        }
    }
    Some(merged)
}
