//! `AgentState`: the fold of an agent's control rows. It holds no rows.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::data::{self, CommandData, ForkData, ForkRole};
use crate::event::Row;
use crate::grants::Grants;
use crate::ids::{AgentId, RowRef, Seq};
use crate::kind::{Kind, StoredKind};
use crate::load::LoadError;
use crate::path::{Bend, Note, Path, bend_of, fork_point_of, note_of};
use crate::settings::{Pin, Settings};

/// Everything about an agent except its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentState {
    agent: AgentId,
    head: Seq,
    path: Path,
    /// Path of the fork point, which validates rewinds into inherited rows.
    inherited: Path,
    own: Own,
    system_text: Option<Arc<str>>,
}

/// Fold of the agent's own rows, on its path or not; the content of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Own {
    settings: Settings,
    /// The row whose text is the system prompt.
    system: Option<RowRef>,
    /// First row of a child; of its settings it has only the name.
    fork: Option<Box<ForkData>>,
    /// The tagged rows behind mode and rules.
    grants: Grants,
    /// Pins in the prefix of requests, if they differ from those of the settings: a change waits
    /// for the next context row, so that the provider's cache keeps the prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prefix_pins: Option<Vec<Pin>>,
}

/// Stored form of a snapshot.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Folded<O, T> {
    form: u32,
    own: O,
    /// The system prompt, unless it is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    system_text: Option<T>,
}

/// Largest system prompt in a snapshot.
///
/// A longer one is read from its row, so that snapshots are no larger than the control rows between
/// them.
const LONGEST_KEPT_PROMPT_BYTES: usize = 4 * 1024;

/// Version of snapshots; raise it with every change of [`Folded`] and [`Own`], settings included.
///
/// A program that does not know a setting leaves it out of its snapshots, so one that does must
/// fold the rows again.
const SNAPSHOT_FORM: u32 = 5;

/// A parsed snapshot, so that it is parsed once.
#[derive(Clone, Debug)]
pub struct ReadSnapshot(Folded<Own, String>);

impl ReadSnapshot {
    /// Parses a snapshot; an unreadable one counts as absent.
    pub fn read(folded: &str) -> Option<Self> {
        let folded: Folded<Own, String> = serde_json::from_str(folded).ok()?;
        (folded.form == SNAPSHOT_FORM).then_some(Self(folded))
    }
}

/// Outcome of applying a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Change of the path.
    pub change: Change,
    /// True if path, notes or settings were computed from the row.
    pub control: bool,
    /// Problem of the row, if it violates the promise of its kind.
    pub warning: Option<LoadError>,
}

/// Change of the path before a row was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// No change.
    Appended,
    /// The path was emptied.
    Cleared,
    /// The row follows this earlier one.
    WentBack(RowRef),
}

/// Error of applying a row. The state is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ApplyError {
    /// The row is not the next one of this agent.
    #[error("row {got} cannot follow row {head} of agent {agent}")]
    OutOfOrder {
        agent: AgentId,
        head: Seq,
        got: RowRef,
    },
    /// More of the inherited path must be resolved first: see [`AgentState::inherited_mut`].
    #[error("the inherited history is not known far enough")]
    NeedsOlder,
}

impl AgentState {
    /// Makes an agent that has no rows.
    pub fn new(agent: AgentId) -> Self {
        Self {
            agent,
            head: Seq(0),
            path: Path::default(),
            inherited: Path::default(),
            own: Own::default(),
            system_text: None,
        }
    }

    /// Restores the agent at row `head` from a snapshot and later control rows, oldest first.
    ///
    /// The snapshot is of an earlier row and may be absent. The path is resolved as far as these
    /// rows reach, and later on demand.
    pub fn restored(
        agent: AgentId,
        head: Seq,
        snapshot: Option<ReadSnapshot>,
        control_since: &[Row],
    ) -> Self {
        let mut state = Self::new(agent);
        state.head = head;
        let newest = RowRef::new(agent, head);
        state.path = Path::known(newest, control_since.iter().rev(), snapshot.is_none());
        if let Some(ReadSnapshot(snapshot)) = snapshot {
            state.own = snapshot.own;
            state.system_text = snapshot.system_text.map(Arc::from);
        }
        for row in control_since {
            state.fold_own(row);
        }
        state.inherited = Path::inherited_by(agent, state.own.fork.as_deref());
        state
    }

    /// Returns the content of a snapshot of this state.
    pub fn to_snapshot(&self) -> String {
        let short = |text: &&str| text.len() <= LONGEST_KEPT_PROMPT_BYTES;
        data::write(&Folded {
            form: SNAPSHOT_FORM,
            own: &self.own,
            system_text: self.system().filter(short),
        })
    }

    /// Applies the next row of the agent: the only way to change a live state.
    pub fn apply(&mut self, row: &Row) -> Result<Applied, ApplyError> {
        if row.at != RowRef::new(self.agent, self.head.next()) {
            return Err(ApplyError::OutOfOrder {
                agent: self.agent,
                head: self.head,
                got: row.at,
            });
        }
        let change = self.bend(row)?;
        self.path.append(row);
        self.head = row.at.seq;
        let set = self.fold_own(row);
        if row.at.seq == Seq(1) {
            self.inherited = Path::inherited_by(self.agent, self.own.fork.as_deref());
        }
        let is_rewind = row.kind == StoredKind::Known(Kind::Rewind);
        Ok(Applied {
            change,
            control: set || note_of(row).is_some() || change != Change::Appended,
            warning: (is_rewind && change == Change::Appended).then_some(LoadError::RewindTarget),
        })
    }

    fn bend(&mut self, row: &Row) -> Result<Change, ApplyError> {
        match bend_of(row) {
            None => Ok(Change::Appended),
            Some(Bend::Root) => {
                self.path.clear();
                Ok(Change::Cleared)
            }
            Some(Bend::To(target)) => {
                self.path.go_back_to(target);
                Ok(Change::WentBack(target))
            }
            Some(Bend::IfHeld(target)) => self.bend_into_inherited(target),
        }
    }

    fn bend_into_inherited(&mut self, target: RowRef) -> Result<Change, ApplyError> {
        if !self.path.contains(target) {
            if !self.inherited.contains(target) {
                return if self.inherited.is_complete() {
                    Ok(Change::Appended)
                } else {
                    Err(ApplyError::NeedsOlder)
                };
            }
            self.path = self.inherited.clone();
        }
        self.path.go_back_to(target);
        Ok(Change::WentBack(target))
    }

    /// Folds settings from an own row, on the path or not; returns true if it set any.
    fn fold_own(&mut self, row: &Row) -> bool {
        let data = row.data.as_deref();
        match row.kind.known() {
            Some(Kind::System) => {
                let Some(text) = &row.content else {
                    return false;
                };
                self.own.system = Some(row.at);
                self.system_text = Some(text.as_str().into());
                true
            }
            Some(Kind::Command) => {
                let CommandData {
                    set, grant, later, ..
                } = data::read(data);
                let Some(set) = set else {
                    return false;
                };
                let own = &mut self.own;
                if set.contains_key("pins") {
                    let before = own.settings.pins.clone().unwrap_or_default();
                    let prefix = own.prefix_pins.take().unwrap_or(before);
                    own.prefix_pins = (later == Some(true)).then_some(prefix);
                }
                own.grants.merge(&mut own.settings, &set, row.at.seq, grant);
                true
            }
            Some(Kind::Fork) if row.at.seq == Seq(1) => {
                let mut fork: ForkData = data::read(data);
                if fork.role != Some(ForkRole::Child) {
                    return false;
                }
                self.own.settings = fork.settings.take().unwrap_or_default();
                self.own.grants = Grants::of_fork(&self.own.settings, fork.grant.take());
                let name = self.own.settings.name.clone();
                fork.settings = Some(Settings {
                    name,
                    ..Settings::default()
                });
                self.own.prefix_pins = fork.prefix_pins.take();
                self.own.system = fork.system;
                self.own.fork = Some(Box::new(fork));
                true
            }
            Some(Kind::Clear | Kind::Rewind | Kind::Summary) => {
                // Requests change here anyway, so the prefix takes the pins of the settings.
                self.own.prefix_pins = None;
                false
            }
            Some(
                Kind::User
                | Kind::Assistant
                | Kind::ToolCall
                | Kind::ToolResult
                | Kind::Mark
                | Kind::Fork
                | Kind::AgentKilled
                | Kind::Usage
                | Kind::Interrupted
                | Kind::Error
                | Kind::Process
                | Kind::Files,
            )
            | None => false,
        }
    }

    /// Returns the agent.
    pub fn agent(&self) -> AgentId {
        self.agent
    }

    /// Returns the newest row; 0 if there is none.
    pub fn head(&self) -> Seq {
        self.head
    }

    /// Returns the agent's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path, to resolve more of it.
    pub fn path_mut(&mut self) -> &mut Path {
        &mut self.path
    }

    /// Returns the inherited path, to resolve more of it for the validation of rewinds.
    pub fn inherited_mut(&mut self) -> &mut Path {
        &mut self.inherited
    }

    /// Returns the current settings.
    pub fn settings(&self) -> &Settings {
        &self.own.settings
    }

    /// Returns the pins whose texts follow the system prompt.
    ///
    /// Until the next context row these can be older than the pins of the settings.
    pub fn prefix_pins(&self) -> &[Pin] {
        let pins = self.own.prefix_pins.as_ref();
        pins.or(self.own.settings.pins.as_ref())
            .map_or(&[], Vec::as_slice)
    }

    /// Returns the prefix's pins for an inheriting child, if they differ from the settings'.
    pub(crate) fn waiting_prefix_pins(&self) -> Option<&[Pin]> {
        self.own.prefix_pins.as_deref()
    }

    /// Returns the tagged rows behind mode and rules of the settings.
    pub fn grants(&self) -> &Grants {
        &self.own.grants
    }

    /// Returns the fork data of a child; of the settings it has only the name.
    pub fn fork(&self) -> Option<&ForkData> {
        self.own.fork.as_deref()
    }

    /// Returns the last inherited row.
    pub fn inherits_from(&self) -> Option<RowRef> {
        let fork = self.own.fork.as_deref()?;
        fork_point_of(self.agent, fork)
    }

    /// Returns the row whose text is the system prompt.
    pub fn system_row(&self) -> Option<RowRef> {
        self.own.system
    }

    /// Returns the system prompt; none if absent or while [`AgentState::wants_system`] asks.
    pub fn system(&self) -> Option<&str> {
        self.system_text.as_deref()
    }

    /// Returns the row to read for the system prompt, if its text is unknown.
    pub fn wants_system(&self) -> Option<RowRef> {
        self.own.system.filter(|_| self.system_text.is_none())
    }

    /// Sets the text of the row that [`AgentState::wants_system`] asked for.
    pub fn supply_system(&mut self, text: Option<&str>) {
        self.system_text = Some(text.unwrap_or_default().into());
    }

    /// Returns true if the agent holds a row.
    ///
    /// None if more of the inherited path must be resolved first.
    pub fn holds(&self, row: RowRef) -> Option<bool> {
        if row.agent == self.agent {
            Some((Seq(1)..=self.head).contains(&row.seq))
        } else if self.path.contains(row) || self.inherited.contains(row) {
            Some(true)
        } else {
            self.inherited.is_complete().then_some(false)
        }
    }

    /// Reports a stored rewind that names no row which its agent held.
    ///
    /// `row` is an own row, or one on the path. The whole path must be resolved.
    pub fn rewind_problem(&self, row: &Row) -> Option<LoadError> {
        if row.kind != StoredKind::Known(Kind::Rewind) {
            return None;
        }
        let is_held = match bend_of(row) {
            Some(Bend::To(_)) => true,
            Some(Bend::IfHeld(target)) => {
                let is_inherited = row.at.agent == self.agent && self.inherited.contains(target);
                is_inherited || self.path.contains(target)
            }
            Some(Bend::Root) | None => false,
        };
        (!is_held).then_some(LoadError::RewindTarget)
    }

    /// Returns the marks on the resolved path with their labels, oldest first.
    pub fn marks(&self) -> impl DoubleEndedIterator<Item = (RowRef, Option<&str>)> + '_ {
        self.path.notes().filter_map(|(row, note)| match note {
            Note::Mark(label) => Some((row, label.as_deref())),
            Note::Summary { .. } | Note::Undo(_) | Note::Omit(_) => None,
        })
    }

    /// Returns the newest mark on the resolved path, or the newest with a label.
    ///
    /// If there is none, an older part of the path may have one.
    pub fn mark(&self, label: Option<&str>) -> Option<RowRef> {
        let mut marks = self.marks().rev();
        let found = marks.find(|(_, found)| label.is_none() || *found == label);
        found.map(|(row, _)| row)
    }

    /// Returns the summaries in force on the resolved path, with their ranges, oldest first.
    pub fn summaries(&self) -> Vec<(RowRef, RowRef, RowRef)> {
        let mut found = Vec::new();
        for (row, note) in self.path.notes() {
            match note {
                Note::Summary { from, to } => found.push((row, *from, *to)),
                Note::Undo(undone) => found.retain(|(summary, ..)| summary != undone),
                Note::Mark(_) | Note::Omit(_) => {}
            }
        }
        found
    }
}
