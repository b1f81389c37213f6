//! Preview of a merge, which a person may change before it is stored.

use std::fmt::Write as _;

use ikigai_core::data::{Amounts, Merge, UserData, UserOrigin};
use ikigai_core::{Event, RowRef, Seq};
use ikigai_store::AgentRecord;

use crate::figures;
use crate::worktrees::WorktreeMerge;

/// Merge of a child as text that a user can edit first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergePreview {
    /// The child.
    pub child: AgentRecord,
    /// First row that is merged.
    pub from: Seq,
    /// Last row that is merged.
    pub to: Seq,
    /// Text of the merge.
    pub text: String,
    /// Changed files, with added and removed lines if known.
    pub files: Vec<(String, Option<(u64, u64)>)>,
    /// Changed files as one text, with tools that may have changed more.
    pub changed: Option<String>,
    /// Tokens and cost of the child's whole life.
    pub spent: Amounts,
    /// Changes in its worktree, which the merge applies.
    pub worktree: Option<WorktreeMerge>,
}

impl MergePreview {
    /// Returns the title of the merge: `⇐ merged fix-lexer #3–#41`.
    pub fn title(&self) -> String {
        format!("⇐ merged {}", self.range())
    }

    /// Returns the child and its merged rows: `fix-lexer #3–#41`.
    pub fn range(&self) -> String {
        format!("{} #{}–#{}", self.child.name, self.from, self.to)
    }

    /// Returns the changed files and cost in one line.
    pub fn facts(&self) -> String {
        let mut facts: Vec<_> = self.changed.iter().cloned().collect();
        if self.spent != Amounts::default() {
            facts.push(figures::amounts(&self.spent));
        }
        facts.join(" · ")
    }

    /// Returns the title and facts.
    pub fn line(&self) -> String {
        match self.facts().as_str() {
            "" => self.title(),
            facts => format!("{} · {facts}", self.title()),
        }
    }

    /// Returns the newest merged row.
    pub(crate) fn newest(&self) -> RowRef {
        RowRef::new(self.child.id, self.to)
    }

    /// Builds the parent's row with `text`; it starts no turn.
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
        match (&self.worktree, &self.changed) {
            (Some(merge), _) => {
                let checkout = merge.worktree.checkout.display();
                let changed = merge.describe();
                let _ = write!(text, "\n\nIts changes are applied in {checkout}: {changed}");
            }
            (None, Some(changed)) => {
                let _ = write!(text, "\n\nIt changed: {changed}");
            }
            (None, None) => {}
        }
        Event::User { text, data }
    }
}
