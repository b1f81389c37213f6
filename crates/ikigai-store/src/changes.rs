//! Contents of notifications: the agents that commits changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use ikigai_core::{AgentId, Seq};

use crate::batch::{
    AgentEffect, Batch, Committed, DraftEffect, Effect, LeaseEffect, MailEffect, RequestEffect,
};

/// Limit of an encoded notification; PostgreSQL refuses 8,000 bytes.
const MOST_BYTES: usize = 7_000;

/// Agents and marks that some commits changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogChanges {
    /// Agents with new rows or another record, each with its newest row among these commits; 0 if none.
    pub agents: BTreeMap<AgentId, Seq>,
    /// Agents with another draft.
    pub drafts: BTreeSet<AgentId>,
    /// Agents with new mail.
    pub mail: BTreeSet<AgentId>,
    /// Marks of readers have changed.
    pub are_marks_changed: bool,
    /// Anything else may have changed too.
    pub is_partial: bool,
    /// Number of stored rows and mails.
    pub stored: u64,
}

impl LogChanges {
    /// Returns changes of which nothing is known.
    pub(crate) fn unknown() -> Self {
        Self {
            is_partial: true,
            ..Self::default()
        }
    }

    /// Returns the changes of a committed batch.
    pub(crate) fn of_commit(batch: &Batch, committed: &Committed) -> Self {
        let rows = &committed.rows;
        let mut changes = Self {
            stored: rows.len() as u64,
            ..Self::default()
        };
        for row in rows {
            changes.add_agent(row.agent, row.seq);
        }
        for effect in &batch.with {
            changes.add_effect(effect);
        }
        changes
    }

    fn add_effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Agent(effect) => {
                let agent = match effect {
                    AgentEffect::Create { agent, .. } => agent.id,
                    AgentEffect::SetName { agent, .. }
                    | AgentEffect::SetOrigin { agent, .. }
                    | AgentEffect::SetStatus { agent, .. } => *agent,
                };
                self.add_agent(agent, Seq(0));
            }
            Effect::Lease(LeaseEffect::Take { agent } | LeaseEffect::Give { agent, .. }) => {
                self.add_agent(*agent, Seq(0));
            }
            Effect::Draft(DraftEffect::Append { agent, .. } | DraftEffect::Drop { agent, .. }) => {
                self.drafts.insert(*agent);
            }
            Effect::Mail(MailEffect::Send { to, .. } | MailEffect::Notify { to, .. }) => {
                self.mail.insert(*to);
                self.stored += 1;
            }
            // Its holder looks for it as for mail.
            Effect::Request(RequestEffect::Send(request)) => {
                self.mail.insert(request.agent);
            }
            Effect::MoveSession(_) => self.is_partial = true,
            Effect::MarkSeen { .. } => self.are_marks_changed = true,
            // A row shows delivered mail, and the others concern only their owner.
            Effect::Mail(
                MailEffect::Consume { .. }
                | MailEffect::Withdraw { .. }
                | MailEffect::Bounce { .. },
            )
            | Effect::Request(
                RequestEffect::Take { .. }
                | RequestEffect::Answer { .. }
                | RequestEffect::Expire { .. },
            )
            | Effect::MakeSession(_)
            | Effect::Run(_)
            | Effect::Job(_)
            | Effect::Budget(_)
            | Effect::PutBlobPart { .. }
            | Effect::PutSnapshot(_) => {}
        }
    }

    fn add_agent(&mut self, agent: AgentId, seq: Seq) {
        let newest = self.agents.entry(agent).or_insert(seq);
        *newest = seq.max(*newest);
    }

    /// Adds later changes.
    pub fn add(&mut self, later: &Self) {
        for (agent, seq) in &later.agents {
            self.add_agent(*agent, *seq);
        }
        self.drafts.extend(&later.drafts);
        self.mail.extend(&later.mail);
        self.are_marks_changed |= later.are_marks_changed;
        self.is_partial |= later.is_partial;
        self.stored += later.stored;
    }

    /// Reports whether rows, record, draft or mail of an agent may have changed.
    pub fn may_concern(&self, agent: AgentId) -> bool {
        self.is_partial
            || self.agents.contains_key(&agent)
            || self.drafts.contains(&agent)
            || self.mail.contains(&agent)
    }

    /// Encodes the changes for a notification; too many become unknown ones.
    pub(crate) fn encode(&self) -> String {
        let mut text = format!("n{}", self.stored);
        for (agent, seq) in &self.agents {
            let _ = write!(text, " r{agent}:{}", seq.0);
        }
        self.drafts.iter().for_each(|agent| {
            let _ = write!(text, " d{agent}");
        });
        self.mail.iter().for_each(|agent| {
            let _ = write!(text, " m{agent}");
        });
        if self.are_marks_changed {
            text.push_str(" s");
        }
        if self.is_partial || text.len() > MOST_BYTES {
            return format!("n{} *", self.stored);
        }
        text
    }

    /// Decodes a notification. Whatever cannot be read makes the changes partial.
    pub(crate) fn decode(text: &str) -> Self {
        let mut changes = Self::default();
        let mut words = text.split_ascii_whitespace().peekable();
        changes.is_partial = words.peek().is_none();
        for word in words {
            if changes.add_word(word).is_none() {
                changes.is_partial = true;
            }
        }
        changes
    }

    fn add_word(&mut self, word: &str) -> Option<()> {
        let kind = word.get(..1)?;
        let rest = word.get(1..)?;
        match kind {
            "n" => self.stored = self.stored.saturating_add(rest.parse().ok()?),
            "r" => {
                let (agent, seq) = rest.split_once(':')?;
                self.add_agent(agent.parse().ok()?, Seq(seq.parse().ok()?));
            }
            "d" => {
                self.drafts.insert(rest.parse().ok()?);
            }
            "m" => {
                self.mail.insert(rest.parse().ok()?);
            }
            "s" if rest.is_empty() => self.are_marks_changed = true,
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
