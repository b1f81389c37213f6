//! Grants: rows that widen what an agent may do without asking.
//!
//! The fold records the rows that set mode and rules, and their tags. It cannot judge a tag: the
//! key belongs to a user on a machine. The permission decision judges it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::Seq;
use crate::settings::{Approve, Rule, Settings};

/// A row that set mode or rules and carries a tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantRow {
    /// Position of the row in its agent's log.
    pub seq: Seq,
    /// Values that the tag covers.
    pub scope: GrantScope,
    /// The tag as stored.
    pub tag: String,
}

/// Mode and rules that a row sets; absent if it sets no such value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantScope {
    /// The mode.
    pub approve: Option<Approve>,
    /// All *always* rules.
    pub rules: Option<Vec<Rule>>,
}

/// The tagged rows behind an agent's current mode and rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    /// The row behind the mode; none if an untagged row widened it since.
    pub mode: Option<Box<GrantRow>>,
    /// The row behind the rules; none if an untagged row added one since.
    pub rules: Option<Box<GrantRow>>,
}

impl GrantRow {
    /// Makes a boxed row: states are many and grants few.
    fn boxed(seq: Seq, scope: GrantScope, tag: String) -> Box<Self> {
        Box::new(Self { seq, scope, tag })
    }
}

impl GrantScope {
    /// Returns the part of a `set` that a tag covers.
    pub fn of_set(set: &Map<String, Value>) -> Self {
        let mut settings = Settings::default();
        settings.merge(set);
        Self::of_settings(&settings)
    }

    /// Returns mode and rules of settings.
    pub fn of_settings(settings: &Settings) -> Self {
        Self {
            approve: settings.approve,
            rules: settings.rules.clone(),
        }
    }

    /// Returns true if the scope allows more than the mode `ask` without rules.
    pub fn is_wide(&self) -> bool {
        let widens = |mode: Approve| mode.width() > Approve::Ask.width();
        self.approve.is_some_and(widens)
            || self.rules.as_ref().is_some_and(|rules| !rules.is_empty())
    }
}

impl Grants {
    /// Returns the grants of a child's first row, which records all its settings.
    pub(crate) fn of_fork(settings: &Settings, tag: Option<String>) -> Self {
        let scope = GrantScope::of_settings(settings);
        let row = tag.map(|tag| GrantRow::boxed(Seq(1), scope, tag));
        Self {
            mode: row.clone(),
            rules: row,
        }
    }

    /// Merges a row's `set` into the settings, and records its tag.
    ///
    /// Rows without a tag may narrow what a tagged row granted; they end a grant that they widen.
    pub(crate) fn merge(
        &mut self,
        settings: &mut Settings,
        set: &Map<String, Value>,
        seq: Seq,
        tag: Option<String>,
    ) {
        let (sets_mode, sets_rules) = (set.contains_key("approve"), set.contains_key("rules"));
        if !sets_mode && !sets_rules {
            settings.merge(set);
            return;
        }
        let before = GrantScope::of_settings(settings);
        settings.merge(set);
        let row = tag.map(|tag| GrantRow::boxed(seq, GrantScope::of_set(set), tag));
        if sets_mode && (row.is_some() || width_of(settings.approve) > width_of(before.approve)) {
            self.mode.clone_from(&row);
        }
        let had = before.rules.unwrap_or_default();
        let adds = |rule: &Rule| !had.contains(rule);
        if sets_rules && (row.is_some() || settings.rules.iter().flatten().any(adds)) {
            self.rules = row;
        }
    }
}

fn width_of(mode: Option<Approve>) -> u8 {
    mode.unwrap_or(Approve::Ask).width()
}
