//! Git worktrees of children: where they are, and what the setting in the log may open.

use std::path::{Path, PathBuf};

use ikigai_core::counts::counted;
use ikigai_core::settings::{Pin, WorktreeSetting};
use ikigai_core::spelling::spell_out;
use ikigai_core::{AgentId, Settings};
use ikigai_tools::worktree::{
    Git, GitCheckout, PatchOutcome, Worktree, WorktreeChanges, WorktreeReach,
};

use crate::tools::Safety;

/// Number of changed files named in a line before the rest is counted.
const MOST_NAMED: usize = 8;

/// Characters of an agent's id in the name of its worktree.
const ID_CHARS: usize = 8;

/// Characters of a commit's hash in texts.
const COMMIT_CHARS: usize = 10;

/// Worktree to make for a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreePlan {
    /// Directory with the worktrees of all agents.
    root: PathBuf,
    checkout: GitCheckout,
}

/// Changes in a worktree that a merge applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeMerge {
    pub(crate) worktree: Worktree,
    pub(crate) changes: WorktreeChanges,
}

impl WorktreeMerge {
    /// Returns the changed files with added and removed lines, on one line.
    pub(crate) fn describe(&self) -> String {
        let files = self.changes.files.iter();
        let mut named: Vec<_> = files
            .take(MOST_NAMED)
            .map(|(name, lines)| match lines {
                Some((added, removed)) => format!("{} +{added} −{removed}", spell_out(name)),
                None => spell_out(name),
            })
            .collect();
        let more = self.changes.files.len().saturating_sub(MOST_NAMED);
        if more > 0 {
            named.push(format!("{} more", counted(more, "file")));
        }
        named.join(", ")
    }
}

impl WorktreePlan {
    /// Returns the settings of a child that gets the worktree.
    pub(crate) fn settings(&self, child: AgentId, name: &str) -> Settings {
        let path = self.root.join(directory_name(child, name));
        let text = |path: &Path| path.to_str().map(str::to_owned);
        Settings {
            workdir: text(
                &path
                    .join(&self.checkout.prefix)
                    .components()
                    .collect::<PathBuf>(),
            ),
            worktree: Some(WorktreeSetting {
                agent: Some(child),
                path: text(&path),
                repository: text(&self.checkout.repository),
                checkout: text(&self.checkout.root),
                base: Some(self.checkout.commit.clone()),
            }),
            ..Settings::default()
        }
    }

    /// Returns pinned files at their places in the worktree.
    pub(crate) fn pins(&self, pins: &[Pin], setting: &WorktreeSetting) -> Vec<Pin> {
        let moved = |pin: &Pin| {
            let below = Path::new(pin.path.as_deref()?).strip_prefix(&self.checkout.root);
            let path = Path::new(setting.path.as_deref()?).join(below.ok()?);
            Some(Pin {
                path: Some(path.to_str()?.to_owned()),
                ..pin.clone()
            })
        };
        let moved = pins
            .iter()
            .map(|pin| moved(pin).unwrap_or_else(|| pin.clone()));
        moved.collect()
    }

    /// Describes what the child does not get, for the model that forks it.
    pub(crate) fn remark(&self) -> String {
        let commit = short_commit(&self.checkout.commit);
        let without = match self.checkout.uncommitted {
            0 => "",
            _ => ", without uncommitted changes",
        };
        format!("in a git worktree of commit {commit}{without}")
    }
}

/// Returns the name of a worktree's directory, which ends with the beginning of the agent's id.
fn directory_name(child: AgentId, name: &str) -> String {
    format!("{name}{}", id_suffix(child))
}

fn id_suffix(agent: AgentId) -> String {
    let id = agent.to_string();
    let start: String = id.chars().take(ID_CHARS).collect();
    format!("-{start}")
}

/// Returns the beginning of a commit's hash.
pub(crate) fn short_commit(commit: &str) -> &str {
    commit.get(..COMMIT_CHARS).unwrap_or(commit)
}

/// Returns the worktree that was made for an agent, not for one above it.
pub(crate) fn own_worktree(agent: AgentId, settings: &Settings) -> Option<&WorktreeSetting> {
    let setting = settings.worktree.as_ref();
    setting.filter(|setting| setting.agent == Some(agent))
}

/// Finds the checkout from which an agent's child gets a worktree. The error is for people and
/// models.
pub(crate) async fn plan(safety: &Safety, settings: &Settings) -> Result<WorktreePlan, String> {
    let Some(root) = &safety.worktrees else {
        return Err("there is no directory for worktrees".to_owned());
    };
    let workdir = PathBuf::from(settings.workdir.as_deref().unwrap_or("/"));
    let checkout = git(safety).find(&workdir).await?;
    // The setting in the log is text.
    for path in [root, &checkout.root, &checkout.repository] {
        if path.to_str().is_none() {
            return Err(format!("{} is not UTF-8", path.display()));
        }
    }
    let root = root.clone();
    Ok(WorktreePlan { root, checkout })
}

/// Creates the worktree in which an agent works, if it is missing. The error is for people and
/// models.
pub(crate) async fn ensure(safety: &Safety, settings: &Settings) -> Result<(), String> {
    let Some(setting) = in_use(settings) else {
        return Ok(());
    };
    let Some(worktree) = of_this_machine(safety, setting) else {
        let path = setting.path.as_deref().unwrap_or_default();
        return Err(format!(
            "the worktree {path} is not of this machine. /cd sets another directory"
        ));
    };
    let created = git(safety).create(&worktree).await;
    created.map_err(|reason| {
        format!(
            "cannot create the worktree {}: {reason}",
            worktree.path.display()
        )
    })
}

/// Returns what commands of an agent in a worktree may write.
pub(crate) async fn reach(safety: &Safety, settings: &Settings) -> Option<WorktreeReach> {
    let worktree = of_this_machine(safety, in_use(settings)?)?;
    worktree.reach().await
}

/// Returns the changes of a worktree that were not merged yet; none if there are none, or no
/// worktree.
pub(crate) async fn unmerged(
    safety: &Safety,
    setting: Option<&WorktreeSetting>,
) -> Result<Option<WorktreeMerge>, String> {
    let worktree = setting.and_then(|setting| of_this_machine(safety, setting));
    let Some(worktree) = worktree else {
        return Ok(None);
    };
    if !worktree.is_ready().await {
        let has_files = crate::file_system::metadata(&worktree.path).await.is_ok();
        return if has_files {
            Err("git does not know it, or did not finish to create it".to_owned())
        } else {
            Ok(None)
        };
    }
    let changes = git(safety).compare(&worktree).await?;
    let is_changed = !changes.files.is_empty();
    Ok(is_changed.then_some(WorktreeMerge { worktree, changes }))
}

/// Applies the changes of a worktree to its checkout. The error is for people.
pub(crate) async fn apply(safety: &Safety, merge: &WorktreeMerge) -> Result<(), String> {
    let WorktreeMerge { worktree, changes } = merge;
    match git(safety).apply(worktree, &changes.tree).await? {
        PatchOutcome::Now | PatchOutcome::Before => Ok(()),
        PatchOutcome::Conflict(files) => Err(format!(
            "conflict in {}: nothing was changed. Its files are in {}",
            files.join(", "),
            worktree.path.display()
        )),
        PatchOutcome::Outdated => Err("its files changed meanwhile; merge again".to_owned()),
    }
}

/// Removes a worktree.
pub(crate) async fn remove(safety: &Safety, setting: &WorktreeSetting) -> Result<(), String> {
    match of_this_machine(safety, setting) {
        Some(worktree) => git(safety).remove(&worktree).await,
        None => Ok(()),
    }
}

/// Finds the agents whose worktrees are left on this machine, by the names of the directories.
pub(crate) async fn left_by(
    safety: &Safety,
    agents: impl IntoIterator<Item = AgentId>,
) -> Vec<AgentId> {
    let Some(root) = &safety.worktrees else {
        return Vec::new();
    };
    let names = crate::file_system::names_in(root).await;
    let is_left = |agent: &AgentId| {
        let suffix = id_suffix(*agent);
        names.iter().any(|name| name.ends_with(&suffix))
    };
    agents.into_iter().filter(is_left).collect()
}

/// Returns the worktree of an agent that has not left it by `/cd`.
fn in_use(settings: &Settings) -> Option<&WorktreeSetting> {
    let setting = settings.worktree.as_ref()?;
    let path = Path::new(setting.path.as_deref()?);
    let workdir = Path::new(settings.workdir.as_deref()?);
    workdir.starts_with(path).then_some(setting)
}

/// Returns the worktree that a setting names, if it is directly in this user's directory. A log can
/// come from another machine, or name anything.
fn of_this_machine(safety: &Safety, setting: &WorktreeSetting) -> Option<Worktree> {
    let path = PathBuf::from(setting.path.as_deref()?);
    let is_here = path.parent() == Some(safety.worktrees.as_deref()?) && path.file_name().is_some();
    let base = setting.base.clone()?;
    let is_commit = base.bytes().all(|byte| byte.is_ascii_hexdigit());
    let repository = PathBuf::from(setting.repository.as_deref()?);
    let checkout = PathBuf::from(setting.checkout.as_deref()?);
    let is_absolute = repository.is_absolute() && checkout.is_absolute();
    (is_here && is_commit && is_absolute).then_some(Worktree {
        path,
        repository,
        base,
        checkout,
    })
}

fn git(safety: &Safety) -> Git {
    Git {
        environment: safety.shell.clone(),
        hidden: safety.sandbox.as_ref().map(|_| safety.hidden.clone()),
    }
}
