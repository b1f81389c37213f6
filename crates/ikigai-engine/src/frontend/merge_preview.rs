//! Preview of a merge, which a person may change before it is stored.

use std::fmt::Write as _;

use ikigai_core::data::{Amounts, Merge, UserData, UserOrigin};
use ikigai_core::{Event, Seq};
use ikigai_store::AgentRecord;

use crate::figures;

/// What merging a child would bring, to be looked at and changed before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergePreview {
    /// The child.
    pub child: AgentRecord,
    /// The first of its rows that is merged, and the last.
    pub from: Seq,
    /// See `from`.
    pub to: Seq,
    /// What it says.
    pub text: String,
    /// The files that it changed, with lines added and taken away, if known.
    pub files: Vec<(String, Option<(u64, u64)>)>,
    /// The same for a person, with the tools that may have changed more.
    pub changed: Option<String>,
    /// What the child used up in its whole life.
    pub spent: Amounts,
}

impl MergePreview {
    /// How the merge is shown: `⇐ fix-lexer #3–#41`.
    pub fn title(&self) -> String {
        format!("⇐ {} #{}–#{}", self.child.name, self.from, self.to)
    }

    /// What was changed, and what it cost.
    pub fn facts(&self) -> String {
        let mut facts: Vec<_> = self.changed.iter().cloned().collect();
        if self.spent != Amounts::default() {
            facts.push(figures::amounts(&self.spent));
        }
        facts.join(" · ")
    }

    /// Title and facts.
    pub fn line(&self) -> String {
        match self.facts().as_str() {
            "" => self.title(),
            facts => format!("{} · {facts}", self.title()),
        }
    }

    /// The row that brings `text` to the parent; it starts no turn.
    pub(crate) fn event(&self, text: &str) -> Event {
        let data = UserData {
            origin: Some(UserOrigin::Typed),
            typed: Some(self.title()),
            merge: Some(Merge {
                agent: Some(self.child.id),
                from: Some(self.from),
                to: Some(self.to),
            }),
            ..UserData::default()
        };
        let mut text = format!("Result of the child agent {}:\n{text}", self.child.name);
        if let Some(changed) = &self.changed {
            let _ = write!(text, "\n\nIt changed: {changed}");
        }
        Event::User { text, data }
    }
}
