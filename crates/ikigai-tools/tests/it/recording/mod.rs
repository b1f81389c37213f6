//! Recording of what commands change: undone and redone exactly.

mod programs;
mod random_scripts;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use ikigai_core::data::{FileChange, MissedChange};
use ikigai_tools::file_history::{
    LinkPlan, PathStanding, RecordedChanges, RecordingPlan, RestoreStep, collect, content_hash,
    in_order, remove_left, restore, set_times, standing,
};
use ikigai_tools::sandbox;
use tempfile::TempDir;

use crate::support::Line;

/// Directory in which commands run, with their recordings beside it.
pub(super) struct Workplace {
    root: TempDir,
    count: usize,
    contents: HashMap<String, Vec<u8>>,
}

/// Changes of one command.
pub(super) struct Recorded {
    pub(super) entries: Vec<FileChange>,
    pub(super) missed: Vec<MissedChange>,
    pub(super) output: String,
}

impl Workplace {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("work")).unwrap();
        Self {
            root,
            count: 0,
            contents: HashMap::new(),
        }
    }

    pub(super) fn path(&self) -> std::path::PathBuf {
        self.root.path().join("work").canonicalize().unwrap()
    }

    /// Runs a command line without a recording.
    pub(super) async fn prepare(&self, script: &str) {
        let ended = Line::new(script).within(&self.path()).run().await;
        assert_eq!(String::from_utf8_lossy(&ended.output), "", "{script}");
    }

    /// Runs a command line, and returns what it changed.
    pub(super) async fn run(&mut self, script: &str) -> Recorded {
        self.count += 1;
        let directory = self.root.path().join(format!("recording-{}", self.count));
        let mut line = Line::new(script).within(&self.path());
        line.job.confinement = sandbox::usual(&self.path(), false, Arc::default());
        line.job.recording = Some(RecordingPlan {
            directory: directory.clone(),
            roots: vec![self.path()],
        });
        let ended = line.run().await;
        let changes = collect(&directory).unwrap();
        self.keep(changes, &ended.output)
    }

    /// Loads all contents, as a log would.
    pub(super) fn keep(&mut self, changes: RecordedChanges, output: &[u8]) -> Recorded {
        for content in changes.contents {
            let content = content.load().unwrap();
            self.contents.insert(content_hash(&content), content);
        }
        Recorded {
            entries: changes.entries,
            missed: changes.missed,
            output: String::from_utf8_lossy(output).into_owned(),
        }
    }

    /// Takes changes back.
    pub(super) fn undo(&self, recorded: &Recorded) {
        self.carry_out(recorded, |change| RestoreStep {
            path: change.path.clone().unwrap().into(),
            expected: change.after.clone().unwrap(),
            target: change.before.clone().unwrap(),
            is_ignored: false,
            links: LinkPlan::default(),
        });
    }

    /// Makes changes again.
    pub(super) fn redo(&self, recorded: &Recorded) {
        self.carry_out(recorded, |change| RestoreStep {
            path: change.path.clone().unwrap().into(),
            expected: change.before.clone().unwrap(),
            target: change.after.clone().unwrap(),
            is_ignored: false,
            links: LinkPlan::default(),
        });
    }

    fn carry_out(&self, recorded: &Recorded, step_of: impl Fn(&FileChange) -> RestoreStep) {
        let ignored: Vec<_> = recorded
            .missed
            .iter()
            .filter(|missed| missed.why.as_deref() == Some("ignored"))
            .filter_map(|missed| Some(missed.path.as_deref()?.trim_end_matches('/')))
            .collect();
        let steps = recorded.entries.iter().map(|change| {
            let step = step_of(change);
            let is_ignored = ignored.iter().any(|dir| step.path.starts_with(dir));
            RestoreStep { is_ignored, ..step }
        });
        let steps = in_order(steps.collect());
        for step in steps.iter().rev() {
            let found = standing(step);
            assert!(
                matches!(found, PathStanding::AsExpected | PathStanding::AsWanted),
                "{step:?} {found:?}"
            );
            remove_left(step).unwrap();
        }
        for step in &steps {
            let content = step.target.hash.as_ref();
            let content = content.map(|hash| self.contents[hash].as_slice());
            restore(step, content).unwrap_or_else(|reason| panic!("{step:?}: {reason}"));
        }
        for step in steps.iter().rev() {
            let _ = set_times(step);
        }
    }

    /// Returns everything that is restored about the tree; objects of git only grow.
    pub(super) fn tree(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        let mut names: HashMap<(u64, u64), Vec<String>> = HashMap::new();
        let root = self.path();
        let mut left = vec![root.clone()];
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
                if name.ends_with(".git/objects") {
                    continue;
                }
                found.insert(name.to_owned(), describe(&path));
                let metadata = fs::symlink_metadata(&path).unwrap();
                if metadata.is_file() && metadata.nlink() > 1 {
                    let id = (metadata.dev(), metadata.ino());
                    names.entry(id).or_default().push(name.to_owned());
                }
                if metadata.is_dir() {
                    left.push(path);
                }
            }
        }
        for mut group in names.into_values() {
            group.sort();
            for name in &group {
                let text = found.get_mut(name).unwrap();
                *text = format!("{text} = {group:?}");
            }
        }
        found
    }
}

/// Kind, mode, time and content of a path.
fn describe(path: &Path) -> String {
    let metadata = fs::symlink_metadata(path).unwrap();
    let kind = metadata.file_type();
    let what = if kind.is_symlink() {
        format!("-> {}", fs::read_link(path).unwrap().display())
    } else if kind.is_file() {
        content_hash(&fs::read(path).unwrap())
    } else if kind.is_dir() {
        "directory".to_owned()
    } else if kind.is_fifo() {
        "fifo".to_owned()
    } else {
        "other".to_owned()
    };
    let (mode, time) = (
        metadata.mode() & 0o7777,
        (metadata.mtime(), metadata.mtime_nsec()),
    );
    format!("{mode:o} {time:?} {what}")
}

/// Returns the differences between two trees, for messages.
pub(super) fn differences(
    one: &BTreeMap<String, String>,
    other: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut all: Vec<_> = one.keys().chain(other.keys()).collect();
    all.sort();
    all.dedup();
    let differing = all
        .into_iter()
        .filter(|name| one.get(*name) != other.get(*name));
    differing
        .map(|name| format!("{name:?}: {:?} / {:?}", one.get(name), other.get(name)))
        .collect()
}

/// Runs a command, undoes and redoes it, and compares the tree each time.
pub(super) async fn there_and_back(place: &mut Workplace, script: &str) -> Recorded {
    let before = place.tree();
    let recorded = place.run(script).await;
    let after = place.tree();
    let context = format!(
        "{script}\n{}\nmissed: {:?}",
        recorded.output, recorded.missed
    );
    place.undo(&recorded);
    let undone = differences(&before, &place.tree());
    assert_eq!(undone, Vec::<String>::new(), "undo of {context}");
    place.redo(&recorded);
    let redone = differences(&after, &place.tree());
    assert_eq!(redone, Vec::<String>::new(), "redo of {context}");
    place.undo(&recorded);
    assert_eq!(differences(&before, &place.tree()), Vec::<String>::new());
    recorded
}
