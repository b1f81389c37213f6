//! Effects of a path change: rows left behind and rows restored.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ikigai_core::counts::counted;
use ikigai_core::data::{
    self, FileKind, FileVersion, FilesData, RewindData, ToolResultData, Verdict, Via,
};
use ikigai_core::project::FileChanges;
use ikigai_core::view::Entry;
use ikigai_core::{Kind, RowRef};
use ikigai_store::{Agent, ReadLog, StoreError, history};
use ikigai_tools::{Place, paths};

use crate::tools::tool_facts;

/// Rows read per query, and extra rows that show where turns begin.
const PAGE_ROWS: usize = 256;
const MORE_ROWS: usize = 64;

/// Number of files named in a line before the rest is counted.
const MOST_NAMED: usize = 8;

/// Name of the tool for shell commands.
const SHELL_TOOL: &str = "bash";

/// Effects of a path change on the agent's memory.
#[derive(Debug, Default)]
pub(crate) struct Departure {
    /// Turns that are remembered no more.
    pub(super) folded: usize,
    /// Turns that are remembered again.
    pub(super) back: usize,
    /// Files changed in the left rows, with added and removed lines if known.
    files: BTreeMap<String, Option<(u64, u64)>>,
    /// Tools that ran in the rows left and may have changed more.
    tools: BTreeSet<String>,
}

#[derive(Default)]
struct Side {
    turns: usize,
    files: BTreeMap<String, Option<(u64, u64)>>,
    tools: BTreeSet<String>,
    /// Calls whose changes were recorded, and the files that they changed.
    recorded_calls: BTreeSet<RowRef>,
    recorded_files: BTreeSet<String>,
}

impl Departure {
    /// Computes the effects of going from row `from` to row `to`.
    pub(crate) async fn between(
        store: &dyn ReadLog,
        agent: &Agent,
        from: RowRef,
        to: RowRef,
    ) -> Result<Self, StoreError> {
        let state = &agent.state;
        let mut here = if from == RowRef::new(state.agent(), state.head()) {
            // A copy, so that the view that is sent does not grow; rows are shared.
            agent.clone()
        } else {
            Agent::restore_at(store, from).await?
        };
        while !here.state.path().contains(to) && !here.state.path().is_complete() {
            history::extend(store, here.state.path_mut()).await?;
        }
        if here.state.path().contains(to) {
            let left = Side::newer_than(store, &mut here, |row| row == to).await?;
            return Ok(Self {
                folded: left.turns,
                back: 0,
                files: left.files,
                tools: left.tools,
            });
        }
        let mut there = Agent::restore_at(store, to).await?;
        there.know_all(store).await?;
        let (old, new) = (here.state.path().clone(), there.state.path().clone());
        let left = Side::newer_than(store, &mut here, |row| new.contains(row)).await?;
        let back = Side::newer_than(store, &mut there, |row| old.contains(row)).await?;
        let mut files = left.files;
        files.retain(|path, _| !back.files.contains_key(path));
        Ok(Self {
            folded: left.turns,
            back: back.turns,
            files,
            tools: left.tools.difference(&back.tools).cloned().collect(),
        })
    }

    /// Computes the effects of an agent's newest rows, back to the first older one.
    /// Extends the view to them.
    pub(crate) async fn done_by(
        store: &dyn ReadLog,
        agent: &mut Agent,
        is_older: impl Fn(RowRef) -> bool,
    ) -> Result<Self, StoreError> {
        let side = Side::newer_than(store, agent, is_older).await?;
        Ok(Self {
            folded: side.turns,
            back: 0,
            files: side.files,
            tools: side.tools,
        })
    }

    /// Returns the files, with lines added and taken away, if known.
    pub(crate) fn into_files(self) -> Vec<(String, Option<(u64, u64)>)> {
        self.files.into_iter().collect()
    }

    /// Returns the files, for the row of the rewind.
    pub(crate) fn files(&self) -> Option<Vec<String>> {
        Some(self.files.keys().cloned().collect()).filter(|files: &Vec<_>| !files.is_empty())
    }

    /// Returns the number of turns restored and left: `: 3 turns hidden`.
    pub(super) fn turns(&self) -> String {
        let counts = [(self.back, "restored"), (self.folded, "hidden")];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<_> = counts
            .map(|(count, what)| format!("{} {what}", counted(*count, "turn")))
            .collect();
        match parts.as_slice() {
            [] => String::new(),
            parts => format!(": {}", parts.join(", ")),
        }
    }

    /// Returns the changed files that stay changed, with line counts, and tools with unknown
    /// changes.
    pub(crate) fn changed(&self, workdir: Option<&str>) -> Option<String> {
        let place = Place {
            workdir: PathBuf::from(workdir.unwrap_or("/")),
            hidden: [].into(),
        };
        let mut named: Vec<_> = self
            .files
            .iter()
            .take(MOST_NAMED)
            .map(|(path, lines)| {
                let name = paths::display_path(&place, Path::new(path));
                match lines {
                    Some((more, less)) => format!("{name} +{more} −{less}"),
                    None => name,
                }
            })
            .collect();
        if let more @ 1.. = self.files.len().saturating_sub(MOST_NAMED) {
            named.push(format!("{more} more"));
        }
        let tools = self.tools.iter().map(|name| match name.as_str() {
            SHELL_TOOL => "shell commands",
            name => name,
        });
        let tools = tools.collect::<Vec<_>>().join(" and ");
        match (named.is_empty(), tools.is_empty()) {
            (true, true) => None,
            (true, false) => Some(format!("unknown files (changed by {tools})")),
            (false, true) => Some(named.join(", ")),
            (false, false) => Some(format!(
                "{} (plus changes made by {tools})",
                named.join(", ")
            )),
        }
    }
}

impl Side {
    /// Collects the effects of a path's newest rows, back to the first common one.
    async fn newer_than(
        store: &dyn ReadLog,
        agent: &mut Agent,
        is_common: impl Fn(RowRef) -> bool,
    ) -> Result<Self, StoreError> {
        let mut looked = 0;
        let common = loop {
            let entries = agent.view.entries();
            let found = entries
                .iter()
                .rev()
                .skip(looked)
                .position(|entry| is_common(entry.at()));
            if let Some(found) = found {
                break looked + found;
            }
            looked = entries.len();
            if !agent.lengthen(store, PAGE_ROWS).await? {
                break looked;
            }
        };
        agent.lengthen(store, MORE_ROWS).await?;
        let newer = agent.view.entries().iter().rev().take(common);
        let starts = agent.view.turn_starts(agent.state.path());
        let mut side = Self::default();
        for entry in newer {
            side.turns += usize::from(starts.contains(&entry.at()));
            side.add(entry);
        }
        for path in std::mem::take(&mut side.recorded_files) {
            side.files.entry(path).or_insert(None);
        }
        Ok(side)
    }

    fn add(&mut self, entry: &Entry) {
        let data = entry.row.data.as_deref();
        match entry.kind() {
            Some(Kind::ToolResult) => self.add_result(data::read(data)),
            Some(Kind::Files) => self.add_files(data::read(data)),
            // Files that this rewind left changed are still changed.
            Some(Kind::Rewind) => {
                let files = data::read::<RewindData>(data).files.unwrap_or_default();
                for path in files {
                    self.files.entry(path).or_insert(None);
                }
            }
            Some(
                Kind::System
                | Kind::User
                | Kind::Assistant
                | Kind::ToolCall
                | Kind::Clear
                | Kind::Mark
                | Kind::Fork
                | Kind::Command
                | Kind::AgentKilled
                | Kind::Usage
                | Kind::Interrupted
                | Kind::Error
                | Kind::Summary
                | Kind::Process,
            )
            | None => {}
        }
    }

    /// Adds recorded changes; their row is newer than that of the result.
    fn add_files(&mut self, changes: FilesData) {
        let is_whole = changes.missed.is_none() && changes.blob.is_none();
        self.recorded_calls
            .extend(changes.call.filter(|_| is_whole));
        for entry in changes.entries.unwrap_or_default() {
            let kind = |version: &Option<FileVersion>| version.as_ref().and_then(FileVersion::kind);
            let directory = Some(FileKind::Directory);
            if kind(&entry.before) != directory && kind(&entry.after) != directory {
                self.recorded_files.extend(entry.path);
            }
        }
    }

    fn add_result(&mut self, result: ToolResultData) {
        let name = result.name.unwrap_or_default();
        let is_recorded = result
            .call
            .is_some_and(|call| self.recorded_calls.contains(&call));
        if result.verdict != Some(Verdict::Refused)
            && !is_recorded
            && tool_facts(&name).changes == FileChanges::Unknown
        {
            self.tools.insert(name);
        }
        let files = result.files.unwrap_or_default();
        let wrote = files.into_iter().filter(|file| file.wrote == Some(true));
        for file in wrote {
            let Some(path) = file.path else {
                continue;
            };
            let lines = file.added.zip(file.removed);
            let known = self.files.entry(path).or_insert(Some((0, 0)));
            *known = known.zip(lines).map(|(known, lines)| {
                (
                    known.0.saturating_add(lines.0),
                    known.1.saturating_add(lines.1),
                )
            });
        }
    }
}

/// Builds the row that rewinds to `target`, with the effects of that.
pub(crate) async fn leave_for(
    store: &dyn ReadLog,
    agent: &Agent,
    target: RowRef,
    via: Via,
) -> Result<(RewindData, Departure), StoreError> {
    let from = RowRef::new(agent.state.agent(), agent.state.head());
    let departure = Departure::between(store, agent, from, target).await?;
    let data = RewindData {
        target: Some(target),
        from: Some(from),
        via: Some(via),
        files: departure.files(),
        restored: None,
        turns: u64::try_from(departure.folded).ok(),
    };
    Ok((data, departure))
}
