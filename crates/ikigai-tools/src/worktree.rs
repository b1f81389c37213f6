//! Git worktrees of child agents: created, compared, merged and removed.
//!
//! Git runs in the sandbox, with hooks, filters, file system monitors and external diffs off. It
//! gets the repository by name, so that nothing in a worktree can lead it to another one.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::Confinement;
use crate::files::sha256_hex;
use crate::process::{
    Cause, ChildEnvironment, Ended, Errors, Job, end_cookie, own_cookie, restrict_git, run, shell,
};

/// Time limit of one step; a checkout of a large repository takes long.
const DEADLINE: Duration = Duration::from_mins(10);

/// Most bytes of output that are read.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// Exit status of a step whose worktree changed since it was compared.
const CHANGED: i32 = 4;

/// Exit status of a step that found the changes applied.
const APPLIED: i32 = 5;

/// Exit status of a step that met a conflict.
const CONFLICT: i32 = 6;

/// Exit status of a repository without a commit.
const NO_COMMIT: i32 = 7;

/// Name of the file in which git marks a worktree that it is still creating.
const LOCKED: &str = "locked";

/// Start of every step. Variables of a surrounding git command would lead git elsewhere.
const START: &str = "set -e
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR GIT_PREFIX GIT_NAMESPACE
export LC_ALL=C
";

const FIND: &str = r#"
root=$(git rev-parse --show-toplevel)
git=$(cd -- "$(git rev-parse --git-common-dir)" && pwd -P)
commit=$(git rev-parse --verify --quiet 'HEAD^{commit}') || exit 7
changes=$(git status --porcelain --ignore-submodules=all | wc -l)
printf '%s\0%s\0%s\0%s\0%s' "$root" "$git" "$commit" "$changes" "$(git rev-parse --show-prefix)"
"#;

/// Creates a worktree, or repairs one whose creation was interrupted or whose files are gone.
const CREATE: &str = r#"
export GIT_DIR=$1
admin=$1/worktrees/${2##*/}
at=$3
if [ -f "$admin/locked" ]; then
    rm -rf -- "$2" "$admin"
elif [ -d "$admin" ] && [ ! -f "$admin/HEAD" ]; then
    rm -rf -- "$admin"
elif [ -f "$admin/HEAD" ]; then
    if [ -d "$2" ]; then
        printf 'gitdir: %s\n' "$admin" >"$2/.git"
        exit 0
    fi
    head=$(git --git-dir="$admin" rev-parse --verify --quiet 'HEAD^{commit}') && at=$head
fi
mkdir -p -- "${2%/*}"
git worktree add --force --detach -- "$2" "$at"
"#;

/// Reads the tree of a worktree into a separate index; the last merged tree is the base. A reference
/// of the worktree names it, which goes with the worktree.
const SNAPSHOT: &str = r#"
own=$(mktemp -d)
trap 'rm -rf -- "$own"' EXIT
mark=worktrees/${2##*/}/refs/worktree/merged
take() {
    export GIT_DIR=$1 GIT_WORK_TREE=$2 GIT_INDEX_FILE=$own/index
    cd -- "$2"
    base=$(git rev-parse --verify --quiet "$mark^{tree}") || base=$3
    git read-tree "$base"
    git add --all
    tree=$(git write-tree)
}
"#;

/// Compares without a trace: new objects are in a directory that is removed.
const COMPARE: &str = r#"
mkdir "$own/objects"
export GIT_OBJECT_DIRECTORY=$own/objects GIT_ALTERNATE_OBJECT_DIRECTORIES="\"$1/objects\""
take "$1" "$2" "$3"
printf '%s\0' "$tree"
git diff --cached --numstat -z --no-renames "$base"
"#;

/// Applies, and marks the tree as merged. The next comparison begins there.
const APPLY: &str = r#"
take "$1" "$2" "$3"
[ "$tree" = "$5" ] || exit 4
git diff --cached --binary --full-index --no-renames --no-color --unified=3 --no-relative \
    --src-prefix=a/ --dst-prefix=b/ "$base" >"$own/patch"
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
cd -- "$4"
status=0
if [ ! -s "$own/patch" ]; then
    :
elif git apply --check --whitespace=nowarn "$own/patch" 2>"$own/conflicts"; then
    git apply --whitespace=nowarn "$own/patch"
elif git apply --check --reverse --whitespace=nowarn "$own/patch" 2>/dev/null; then
    status=5
else
    cat "$own/conflicts"
    exit 6
fi
git --git-dir="$1" update-ref "$mark" "$tree"
exit $status
"#;

/// Removes a worktree. Commits that no reference holds get one.
const REMOVE: &str = r#"
export GIT_DIR=$1
name=${2##*/}
admin=$1/worktrees/$name
if head=$(git --git-dir="$admin" rev-parse --verify --quiet 'HEAD^{commit}'); then
    if [ -z "$(git for-each-ref --count=1 --contains="$head" \
        refs/heads refs/tags refs/remotes refs/ikigai/kept)" ]; then
        git update-ref "refs/ikigai/kept/$name" "$head"
    fi
fi
rm -rf -- "$2" "$admin"
"#;

/// Commit from which a worktree can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitCheckout {
    /// Top directory of the checkout.
    pub root: PathBuf,
    /// Git directory that all worktrees of the repository share.
    pub repository: PathBuf,
    /// Commit that is checked out.
    pub commit: String,
    /// Number of files with changes that are not committed.
    pub uncommitted: usize,
    /// Path of the directory below the top directory.
    pub prefix: PathBuf,
}

/// Worktree of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worktree {
    /// Its directory.
    pub path: PathBuf,
    /// Git directory that all worktrees of the repository share.
    pub repository: PathBuf,
    /// Commit from which it was made.
    pub base: String,
    /// Top directory of the checkout that gets its changes.
    pub checkout: PathBuf,
}

/// Directories that commands in a worktree may write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeReach {
    /// Its files.
    pub files: PathBuf,
    /// For git: its state, and objects, references and their logs of the repository.
    pub git: Vec<PathBuf>,
}

/// Changes in a worktree since its commit, committed or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorktreeChanges {
    /// Hash of all its files.
    pub tree: String,
    /// Changed files, with added and removed lines unless binary.
    pub files: Vec<(String, Option<(u64, u64)>)>,
}

/// Outcome of applying the changes of a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchOutcome {
    /// The files are changed.
    Now,
    /// The files had these changes already.
    Before,
    /// Nothing is changed, because of these files.
    Conflict(Vec<String>),
    /// Nothing is changed: the worktree changed since it was compared.
    Outdated,
}

/// Git as ikigai itself runs it.
#[derive(Clone, Debug)]
pub struct Git {
    /// Environment of its processes.
    pub environment: ChildEnvironment,
    /// Paths that it may not read; none without a sandbox.
    pub hidden: Option<Arc<[PathBuf]>>,
}

impl Worktree {
    /// Returns the directory in which git keeps the state of the worktree.
    fn admin(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default();
        self.repository.join("worktrees").join(name)
    }

    /// Returns the cookie of its creation. Only the process that holds its agent creates it.
    fn cookie(&self) -> String {
        format!(
            "worktree-{}",
            sha256_hex(self.admin().as_os_str().as_bytes())
        )
    }

    /// Returns true if the worktree is complete.
    pub async fn is_ready(&self) -> bool {
        let (link, admin) = (self.path.join(".git"), self.admin());
        let ready =
            move || link.is_file() && admin.join("HEAD").is_file() && !admin.join(LOCKED).exists();
        spawn_blocking(ready).await.unwrap_or(false)
    }

    /// Returns true if something of the worktree is left.
    pub async fn exists(&self) -> bool {
        let (path, admin) = (self.path.clone(), self.admin());
        let exists = move || path.exists() || admin.exists();
        spawn_blocking(exists).await.unwrap_or(true)
    }

    /// Returns what commands of its agent may write.
    ///
    /// None if the repository does not know the worktree, whatever the log says.
    pub async fn reach(&self) -> Option<WorktreeReach> {
        let worktree = self.clone();
        spawn_blocking(move || worktree.known_reach()).await.ok()?
    }

    fn known_reach(&self) -> Option<WorktreeReach> {
        let admin = self.admin();
        let link = read_link_file(&admin.join("gitdir"));
        let link = link.and_then(|link| fs::canonicalize(link).ok());
        if link.is_none() || link != fs::canonicalize(self.path.join(".git")).ok() {
            return None;
        }
        let shared = ["objects", "refs", "logs"].map(|name| self.repository.join(name));
        Some(WorktreeReach {
            files: self.path.clone(),
            git: [admin].into_iter().chain(shared).collect(),
        })
    }
}

/// Reads git's file with the path of a worktree.
fn read_link_file(path: &Path) -> Option<String> {
    let metadata = fs::symlink_metadata(path).ok()?;
    // A path is short; anything else is not git's.
    if !metadata.is_file() || metadata.len() > 64 * 1024 {
        return None;
    }
    Some(fs::read_to_string(path).ok()?.trim_end().to_owned())
}

impl Git {
    /// Finds the checkout that contains a directory. The error is for people and models.
    pub async fn find(&self, directory: &Path) -> Result<GitCheckout, String> {
        let ended = self.run(&[FIND], &[], directory, Vec::new()).await?;
        match exit_of(&ended) {
            Some(0) => {}
            Some(NO_COMMIT) => return Err("the repository has no commit yet".to_owned()),
            _ => return Err(format!("{} is in no git checkout", directory.display())),
        }
        let text = String::from_utf8_lossy(&ended.output);
        let mut parts = text.split('\0');
        let mut next = || parts.next().unwrap_or_default().to_owned();
        Ok(GitCheckout {
            root: next().into(),
            repository: next().into(),
            commit: next(),
            uncommitted: next().trim().parse().unwrap_or(0),
            prefix: next().into(),
        })
    }

    /// Creates a worktree unless it is complete; repairs one whose creation was interrupted.
    pub async fn create(&self, worktree: &Worktree) -> Result<(), String> {
        if worktree.is_ready().await {
            return Ok(());
        }
        let parent = worktree.path.parent().unwrap_or(&worktree.path).to_owned();
        let states = worktree.repository.join("worktrees");
        let write = vec![parent, states];
        make_directories(&worktree.repository, write.clone())
            .await
            .map_err(|error| format!("cannot create {}: {error}", worktree.path.display()))?;
        let arguments = [&worktree.repository, &worktree.path].map(|path| path.clone().into());
        let arguments = [&arguments[..], &[worktree.base.clone().into()]].concat();
        let directory = worktree.repository.clone();
        // The git of an ikigai that was killed may still be at it.
        let cookie = worktree.cookie();
        let former = cookie.clone();
        let _ = spawn_blocking(move || end_cookie(&former)).await;
        let run = self.run_as(cookie, &[CREATE], &arguments, &directory, write);
        let ended = run.await?;
        match exit_of(&ended) {
            Some(0) => Ok(()),
            _ => Err(reason_of(&ended)),
        }
    }

    /// Compares a worktree with what was last merged of it, at first with its commit.
    pub async fn compare(&self, worktree: &Worktree) -> Result<WorktreeChanges, String> {
        let write = vec![std::env::temp_dir()];
        let arguments = worktree.arguments();
        let scripts = [SNAPSHOT, COMPARE];
        let ended = self.run(&scripts, &arguments, &worktree.path, write);
        let ended = ended.await?;
        if exit_of(&ended) != Some(0) {
            return Err(reason_of(&ended));
        }
        let text = String::from_utf8_lossy(&ended.output);
        let (tree, files) = text.split_once('\0').unwrap_or_default();
        Ok(WorktreeChanges {
            tree: tree.to_owned(),
            files: files.split_terminator('\0').map(file_of).collect(),
        })
    }

    /// Applies the changes of a worktree to the checkout from which it was made, without a commit.
    /// All or none are applied.
    pub async fn apply(&self, worktree: &Worktree, tree: &str) -> Result<PatchOutcome, String> {
        let shared = ["objects", "refs", "logs", "worktrees"];
        let shared = shared.map(|name| worktree.repository.join(name));
        let own = [std::env::temp_dir(), worktree.checkout.clone()];
        let write = [&own[..], &shared].concat();
        let mut arguments = worktree.arguments();
        arguments.push(worktree.checkout.clone().into());
        arguments.push(tree.into());
        let scripts = [SNAPSHOT, APPLY];
        let ended = self.run(&scripts, &arguments, &worktree.path, write);
        let ended = ended.await?;
        match exit_of(&ended) {
            Some(0) => Ok(PatchOutcome::Now),
            Some(APPLIED) => Ok(PatchOutcome::Before),
            Some(CHANGED) => Ok(PatchOutcome::Outdated),
            Some(CONFLICT) => Ok(PatchOutcome::Conflict(conflicts_in(&ended.output))),
            _ => Err(reason_of(&ended)),
        }
    }

    /// Removes a worktree with everything in it.
    pub async fn remove(&self, worktree: &Worktree) -> Result<(), String> {
        let parent = worktree.path.parent().unwrap_or(&worktree.path).to_owned();
        let shared = ["worktrees", "refs", "logs"].map(|name| worktree.repository.join(name));
        let write = [&[parent][..], &shared].concat();
        let directory = worktree.repository.clone();
        let arguments = worktree.arguments();
        let ended = self.run(&[REMOVE], &arguments, &directory, write).await?;
        match exit_of(&ended) {
            Some(0) => Ok(()),
            _ => Err(reason_of(&ended)),
        }
    }

    /// Runs a script that may write these paths.
    async fn run(
        &self,
        scripts: &[&str],
        arguments: &[OsString],
        directory: &Path,
        write: Vec<PathBuf>,
    ) -> Result<Ended, String> {
        let cookie = own_cookie("git");
        self.run_as(cookie, scripts, arguments, directory, write)
            .await
    }

    /// Runs a script with this cookie.
    async fn run_as(
        &self,
        cookie: String,
        scripts: &[&str],
        arguments: &[OsString],
        directory: &Path,
        write: Vec<PathBuf>,
    ) -> Result<Ended, String> {
        if shell() != "bash" {
            return Err("worktrees need bash".to_owned());
        }
        let mut variables = self.environment.variables();
        restrict_git(&mut variables);
        let script: String = [START].iter().chain(scripts).copied().collect();
        let line = ["-c".into(), "--".into(), script.into(), "git".into()];
        let job = Job {
            program: shell().into(),
            arguments: line.into_iter().chain(arguments.iter().cloned()).collect(),
            workdir: directory.to_owned(),
            variables,
            input: None,
            errors: Errors::Apart,
            most_bytes: MOST_BYTES,
            deadline: DEADLINE,
            cookie,
            confinement: self.confinement(write),
            recording: None,
        };
        let stop = CancellationToken::new();
        let ended = run(job, &stop, Arc::new(|_: &str| {})).await;
        ended.map_err(|error| error.to_string())
    }

    /// Hooks and settings need no guard: git runs none, and writes only what the steps name.
    fn confinement(&self, write: Vec<PathBuf>) -> Confinement {
        match &self.hidden {
            None => Confinement::None,
            Some(hidden) => Confinement::Sandbox {
                write,
                network: false,
                hosts: Arc::default(),
                loopback: Arc::default(),
                hidden: hidden.clone(),
                guarded: Vec::new(),
            },
        }
    }
}

impl Worktree {
    fn arguments(&self) -> Vec<OsString> {
        let paths = [&self.repository, &self.path].map(|path| path.clone().into());
        [&paths[..], &[self.base.clone().into()]].concat()
    }
}

/// Creates the directories that a sandbox must find to grant them.
async fn make_directories(repository: &Path, directories: Vec<PathBuf>) -> io::Result<()> {
    let repository = repository.to_owned();
    let make = move || {
        // Without a repository nothing is created.
        fs::metadata(&repository)?;
        directories.iter().try_for_each(fs::create_dir_all)
    };
    spawn_blocking(make).await?
}

fn exit_of(ended: &Ended) -> Option<i32> {
    match ended.cause {
        Cause::Exited(status) => status.code(),
        Cause::Stopped | Cause::Deadline => None,
    }
}

/// Returns what git says about a failure.
fn reason_of(ended: &Ended) -> String {
    if matches!(ended.cause, Cause::Deadline) {
        return format!("git did not finish within {} s", DEADLINE.as_secs());
    }
    let text = String::from_utf8_lossy(&ended.errors);
    let line = text.lines().rfind(|line| !line.trim().is_empty());
    let line = line.unwrap_or("git failed");
    line.strip_prefix("fatal: ").unwrap_or(line).to_owned()
}

/// Parses a line of `git diff --numstat`.
fn file_of(line: &str) -> (String, Option<(u64, u64)>) {
    let mut parts = line.splitn(3, '\t');
    let mut number = || parts.next().and_then(|part| part.parse().ok());
    let (added, removed) = (number(), number());
    let name = parts.next().unwrap_or(line).to_owned();
    (name, added.zip(removed))
}

/// Returns the files of the conflicts that `git apply` lists.
fn conflicts_in(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let mut files: Vec<String> = Vec::new();
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("error: ") else {
            continue;
        };
        if rest.starts_with("patch failed: ") {
            continue;
        }
        let file = rest.rsplit_once(": ").map_or(rest, |(file, _)| file);
        if !files.iter().any(|known| known == file) {
            files.push(file.to_owned());
        }
    }
    files
}

#[cfg(test)]
mod tests;
