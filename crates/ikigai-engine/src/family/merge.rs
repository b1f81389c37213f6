//! Merging a child's work into its parent: preview, and the row that records it.

use std::collections::HashMap;

use ikigai_core::data::{self, UserData};
use ikigai_core::view::Entry;
use ikigai_core::{AgentId, Kind, Micros, RowRef, Seq};
use ikigai_store::{Agent, AgentRecord, ReadLog};

use crate::frontend::MergePreview;
use crate::ledger::Tally;
use crate::rewind_effects::Departure;
use crate::{EngineError, EngineReader, worktrees};

/// Rows read per query.
const PAGE_ROWS: usize = 256;

/// Rows of a parent's path searched for merges; older merges do not count.
const MOST_ROWS: usize = 4096;

/// Size limit of a summary; older turns are omitted.
const MOST_SUMMARY_BYTES: usize = 16 * 1024;

/// Part of a child that is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeOf {
    /// Its last answer.
    LastAnswer,
    /// Messages and answers of the child's turns.
    Turns,
}

impl EngineReader {
    /// Computes a merge of an agent into its parent; none if there is nothing new.
    /// Stores nothing and sends no request.
    pub async fn merge_preview(
        &self,
        child: &AgentRecord,
        what: MergeOf,
    ) -> Result<Option<MergePreview>, EngineError> {
        let merged = match child.parent {
            Some(parent) => merged_into(self.reader(), parent, child.created_at).await?,
            None => HashMap::new(),
        };
        let after = merged.get(&child.id).copied().unwrap_or(Seq(0));
        let mut agent = Agent::restore(self.reader(), child.id).await?;
        let newest = RowRef::new(child.id, agent.state.head());
        let is_older = |row: RowRef| row.agent != child.id || row.seq <= after;
        let done = Departure::done_by(self.reader(), &mut agent, is_older).await?;
        let entries = agent.view.entries().iter();
        let own: Vec<_> = entries.filter(|entry| !is_older(entry.at())).collect();
        let text = match what {
            MergeOf::LastAnswer => own.iter().rev().find_map(|entry| answer_in(entry)),
            MergeOf::Turns => summary_of(&own),
        };
        let Some(text) = text else {
            return Ok(None);
        };
        let setting = worktrees::own_worktree(child.id, agent.state.settings());
        let worktree = worktrees::unmerged(self.safety(), setting).await;
        let worktree = worktree.map_err(|reason| unreadable(child, &reason))?;
        let first = own.iter().find(|entry| entry.kind() == Some(Kind::User));
        let first = first.or(own.first()).map_or(Seq(1), |entry| entry.at().seq);
        Ok(Some(MergePreview {
            from: first,
            to: newest.seq,
            text,
            changed: match &worktree {
                Some(merge) => Some(merge.describe()),
                None => done.changed(agent.state.settings().workdir.as_deref()),
            },
            files: match &worktree {
                Some(merge) => merge.changes.files.clone(),
                None => done.into_files(),
            },
            worktree,
            spent: Tally::read(self.reader(), newest).await?.spent,
            child: child.clone(),
        }))
    }
}

/// Builds the error of a merge whose worktree cannot be compared.
fn unreadable(child: &AgentRecord, reason: &str) -> EngineError {
    EngineError::Refused(format!("the worktree of {}: {reason}", child.name))
}

/// Applies the changes in the worktree of a merged child. The error is for people.
pub(crate) async fn apply_changes(
    engine: &EngineReader,
    preview: &MergePreview,
) -> Result<(), String> {
    let Some(merge) = &preview.worktree else {
        return Ok(());
    };
    let applied = worktrees::apply(engine.safety(), merge).await;
    applied.map_err(|reason| format!("{} is not merged: {reason}", preview.child.name))
}

/// Returns the last merged row of each child, from the agent's path since `since`.
pub(crate) async fn merged_into(
    store: &dyn ReadLog,
    parent: AgentId,
    since: Micros,
) -> Result<HashMap<AgentId, Seq>, EngineError> {
    let mut agent = Agent::restore(store, parent).await?;
    loop {
        let entries = agent.view.entries();
        let is_old = |entry: &Entry| entry.row.created_at < since;
        let reached = entries.front().is_some_and(is_old) || entries.len() >= MOST_ROWS;
        if reached || !agent.lengthen(store, PAGE_ROWS).await? {
            break;
        }
    }
    let mut merged = HashMap::new();
    for entry in agent.view.entries() {
        if entry.kind() != Some(Kind::User) {
            continue;
        }
        let user: UserData = data::read(entry.row.data.as_deref());
        if let Some(merge) = user.merge
            && let (Some(child), Some(to)) = (merge.agent, merge.to)
        {
            merged.insert(child, to);
        }
    }
    Ok(merged)
}

fn answer_in(entry: &Entry) -> Option<String> {
    said_in(entry).filter(|_| entry.kind() == Some(Kind::Assistant))
}

/// Returns the text of a row, if it is a message.
fn said_in(entry: &Entry) -> Option<String> {
    let is_said = matches!(entry.kind(), Some(Kind::User | Kind::Assistant));
    let text = entry.row.content.clone().filter(|_| is_said)?;
    Some(text).filter(|text| !text.trim().is_empty())
}

/// Joins messages and answers, the newest if long; none without an answer.
fn summary_of(own: &[&Entry]) -> Option<String> {
    own.iter().find_map(|entry| answer_in(entry))?;
    let mut kept = Vec::new();
    let mut bytes = 0;
    let mut left = 0;
    for entry in own.iter().rev() {
        let Some(text) = said_in(entry) else { continue };
        let is_asked = entry.kind() == Some(Kind::User);
        let sign = if is_asked { '❯' } else { '●' };
        let line = format!("{sign} {}", text.trim());
        bytes += line.len();
        // Keep the newest one at any length; it is an answer.
        if left > 0 || bytes > MOST_SUMMARY_BYTES && !kept.is_empty() {
            left += 1;
        } else {
            kept.push(line);
        }
    }
    if left > 0 {
        kept.push(format!("[{left} earlier messages are in its own log]"));
    }
    kept.reverse();
    Some(kept.join("\n\n"))
}
