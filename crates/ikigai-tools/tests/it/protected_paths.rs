//! Sandboxed commands cannot change hooks and settings of repositories.
//!
//! Ordinary work with git still succeeds.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ikigai_tools::Confinement;
use ikigai_tools::process::{Cause, run};
use ikigai_tools::protected_paths::program_settings;
use ikigai_tools::sandbox::usual;
use tokio_util::sync::CancellationToken;

use crate::support::{Line, ORDINARY_USER, run_again, text};

/// Makes a repository with a hook, settings, a submodule and a nested repository.
const SETUP: &str = r#"
    export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=protocol.file.allow GIT_CONFIG_VALUE_0=always
    make() {
        git init -q "$1"
        git -C "$1" config user.name n
        git -C "$1" config user.email e
        echo first >"$1/file"
        git -C "$1" add .
        git -C "$1" commit -qm first
    }
    make library
    make outside
    printf '#!/bin/sh\nexit 0\n' >outside/.git/hooks/pre-push
    chmod +x outside/.git/hooks/pre-push
    make project
    cd project
    git submodule --quiet add ../library lib
    git commit -qm submodule
    mkdir -p .git/hooks .vscode .claude
    printf '#!/bin/sh\nexit 0\n' >.git/hooks/existing
    chmod +x .git/hooks/existing
    git config alias.mine status
    echo '{}' >.vscode/settings.json
    echo '{}' >.claude/settings.json
    mkdir -p part/.vscode
    echo '{}' >part/.vscode/settings.json
    make nested
    printf '#!/bin/sh\nexit 0\n' >nested/.git/hooks/existing
    chmod +x nested/.git/hooks/existing
"#;

struct Site {
    _directory: tempfile::TempDir,
    project: PathBuf,
    outside: PathBuf,
}

impl Site {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let ended = Line::new(&format!("set -e\n{SETUP}"))
            .within(&base)
            .run()
            .await;
        assert!(is_success(ended.cause), "{}", text(&ended.output));
        Self {
            _directory: directory,
            project: base.join("project"),
            outside: base.join("outside"),
        }
    }

    /// Runs a script in the sandbox; returns its output, the remark, and whether it succeeded.
    async fn bash(&self, script: &str) -> (String, Option<String>, bool) {
        let usual = usual(&self.project, false, [].into());
        self.bash_in(script, usual).await
    }

    async fn bash_in(
        &self,
        script: &str,
        confinement: Confinement,
    ) -> (String, Option<String>, bool) {
        let mut line = Line::new(script).within(&self.project);
        line.job.confinement = confinement;
        let Some(parent) = self.project.parent() else {
            panic!("a project has a parent");
        };
        line.job
            .variables
            .push(("OUTSIDE".into(), self.outside.clone().into()));
        line.job.variables.push(("HOME".into(), parent.into()));
        let ended = line.run().await;
        let output = text(&ended.output).to_owned();
        (output, ended.warning, is_success(ended.cause))
    }

    /// Returns all protected files below the project and outside, and pointers to elsewhere.
    fn protected(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        collect(&self.project, false, &mut found);
        collect(&self.outside, false, &mut found);
        found
    }
}

/// Returns the directory of the reverted files' copies, as a remark names it.
fn copies(remark: &str) -> Option<&str> {
    let (_, copies) = remark.split_once("copies are in ")?;
    Some(copies.split_once(". Only")?.0)
}

fn remove_copies(remark: Option<&str>) {
    if let Some(copies) = remark.and_then(copies) {
        fs::remove_dir_all(copies).unwrap();
    }
}

fn is_success(cause: Cause) -> bool {
    matches!(cause, Cause::Exited(status) if status.success())
}

/// Collects active hooks, files of settings directories, and settings of git that run programs.
fn collect(directory: &Path, is_guarded: bool, found: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let metadata = fs::symlink_metadata(&path).unwrap();
        let is_hook = directory.ends_with("hooks");
        let is_settings = [".vscode", ".claude", ".ikigai"].contains(&&*name);
        let is_common = name == "commondir" && !path.to_str().unwrap().contains("worktrees");
        let is_pointer = name == ".git" && metadata.is_file();
        if is_common || is_pointer {
            found.insert(path.clone(), fs::read_to_string(&path).unwrap());
        } else if metadata.is_symlink() {
            if is_hook || is_guarded || is_settings || name == ".git" {
                found.insert(path.clone(), "link".to_owned());
            }
        } else if metadata.is_dir() {
            collect(&path, is_guarded || is_settings, found);
        } else if name == "config" {
            let settings = program_settings(&fs::read_to_string(&path).unwrap());
            if !settings.is_empty() {
                found.insert(path, format!("{settings:?}"));
            }
        } else if is_guarded
            || (is_hook && !name.ends_with(".sample") && metadata.permissions().mode() & 0o111 != 0)
        {
            found.insert(path.clone(), fs::read_to_string(&path).unwrap());
        }
    }
}

/// Attack: leave a hook or a git setting that runs later.
#[tokio::test]
async fn nothing_that_runs_later_is_left_by_a_command() {
    let plant = "printf '#!/bin/sh\\ntouch evil\\n' >$hooks/pre-commit; chmod +x $hooks/pre-commit";
    let scripts = [
        format!("hooks=.git/hooks; {plant}"),
        format!("hooks=nested/.git/hooks; {plant}"),
        format!("hooks=.git/modules/lib/hooks; mkdir -p $hooks; {plant}"),
        format!("git init -q new; hooks=new/.git/hooks; mkdir -p $hooks; {plant}"),
        format!("git init -q --bare bare; hooks=bare/hooks; mkdir -p $hooks; {plant}"),
        format!("mv .git moved; mkdir -p .git; cp -r moved/* .git; hooks=.git/hooks; {plant}"),
        format!("mv .git evil; echo 'gitdir: evil' >.git; hooks=evil/hooks; {plant}"),
        format!("hooks=../evil/hooks; mkdir -p $hooks; {plant}; mv nested/.git moved; echo 'gitdir: ../../evil' >nested/.git; mkdir -p nested/.git/hooks"),
        format!("hooks=../evil/hooks; mkdir -p $hooks; {plant}; echo ../../evil >.git/commondir"),
        "echo evil >.git/hooks/existing".to_owned(),
        "echo evil >nested/.git/hooks/existing; rm .git/hooks/existing".to_owned(),
        "rm -rf nested/.git/hooks; ln -s ../../lib nested/.git/hooks".to_owned(),
        "ln -s /bin/true .git/hooks/pre-push; ln -s /bin/true nested/.git/hooks/pre-push".to_owned(),
        "chmod +x .git/hooks/*.sample; cp .git/hooks/existing .git/hooks/pre-push".to_owned(),
        "echo evil >.vscode/settings.json; echo evil >.vscode/tasks.json".to_owned(),
        "rm -rf .vscode; mkdir .vscode; echo evil >.vscode/tasks.json".to_owned(),
        "mv .vscode away; ln -s away .vscode".to_owned(),
        "rm -rf .claude; mkdir -p .claude/hooks; echo evil >.claude/hooks/x".to_owned(),
        "mkdir -p .ikigai/tools; echo evil >.ikigai/tools/x-tool".to_owned(),
        "mkdir -p nested/.vscode lib/.claude; echo evil >nested/.vscode/tasks.json; echo evil >lib/.claude/x".to_owned(),
        "mkdir -p part/.claude sub/deep/.ikigai/tools; echo evil >part/.claude/x; echo evil >sub/deep/.ikigai/tools/x-tool".to_owned(),
        "echo evil >part/.vscode/tasks.json; echo evil >part/.vscode/settings.json".to_owned(),
        "rm -rf part/.vscode; ln -s ../nested part/.vscode".to_owned(),
        "mkdir .ikigai; cd .ikigai; seq 5000 | xargs touch; echo evil >zzz; echo evil >aaa".to_owned(),
        "git config core.fsmonitor evil; git config user.name changed".to_owned(),
        "git config alias.mine '!evil'; git config alias.other '!evil'".to_owned(),
        "git config --unset alias.mine; git -C lib config core.sshCommand evil".to_owned(),
        "git -C nested config include.path /tmp/evil; printf '[core]hooksPath=/tmp' >>.git/config".to_owned(),
        "git config extensions.worktreeConfig true; git config --worktree core.pager evil".to_owned(),
        "mkdir bare; cd bare; mkdir objects refs; echo 'ref: refs/heads/x' >HEAD; printf '[core]\\nfsmonitor=evil\\n' >config".to_owned(),
    ];
    for script in scripts {
        let site = Site::new().await;
        let before = site.protected();

        let (output, remark, _) = site.bash(&script).await;

        remove_copies(remark.as_deref());
        let mut after = site.protected();
        // A moved directory is no repository any more.
        after.retain(|path, _| {
            !path.starts_with(site.project.join("moved"))
                && !path.starts_with(site.project.join("away"))
        });
        let mut before = before;
        if script.contains("mv nested/.git") {
            before.retain(|path, _| !path.starts_with(site.project.join("nested")));
        }
        if script.starts_with("mv .git evil") {
            // Its settings moved along and belong to the repository still.
            before.retain(|path, _| !path.starts_with(site.project.join(".git")));
            after.retain(|path, _| {
                !path.ends_with("hooks/existing")
                    && !path.ends_with("evil/config")
                    && *path != site.project.join(".git")
            });
            before.retain(|path, _| !path.ends_with("hooks/existing"));
        }
        assert_eq!(after, before, "{script}\n{output}\n{remark:?}");
    }
}

/// A later command could make a hook executable through a link outside of the mounted directory.
///
/// Attack: a hook with a hard link elsewhere.
#[tokio::test]
async fn a_hook_with_a_link_elsewhere_is_taken_back() {
    let site = Site::new().await;
    fs::remove_dir_all(site.project.join(".git/hooks")).unwrap();
    let before = site.protected();

    let plant = "mkdir .git/hooks; echo evil >script; ln script .git/hooks/pre-commit";
    let (_, remark, _) = site.bash(plant).await;
    let (_, later, _) = site.bash("chmod +x script").await;

    remove_copies(remark.as_deref());
    remove_copies(later.as_deref());
    assert_eq!(site.protected(), before, "{remark:?}");
    assert!(remark.unwrap().contains(".git/hooks/pre-commit"));
}

#[tokio::test]
async fn other_changes_of_the_same_command_stay() {
    let site = Site::new().await;

    let (output, remark, _) = site
        .bash("git config user.name changed; git config alias.evil '!x'; echo new >file; mkdir .ikigai; echo x >.ikigai/config.toml; git config user.name")
        .await;

    assert_eq!(output, "changed\n");
    let remark = remark.unwrap();
    assert!(remark.contains(".git/config (alias.evil)"), "{remark}");
    assert!(remark.contains(".ikigai/config.toml"), "{remark}");
    assert!(!site.project.join(".ikigai").exists());
    assert_eq!(
        fs::read_to_string(site.project.join("file")).unwrap(),
        "new\n"
    );
    let config = fs::read_to_string(site.project.join(".git/config")).unwrap();
    assert!(
        config.contains("changed") && !config.contains("evil"),
        "{config}"
    );
    // Nothing is lost: copies of the reverted files exist.
    let kept = fs::read_dir(copies(&remark).unwrap()).unwrap();
    assert_eq!(kept.count(), 2);
    remove_copies(Some(&remark));
}

#[tokio::test]
async fn ordinary_work_with_git_goes_on() {
    let site = Site::new().await;
    let script = r#"
        set -e
        export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=protocol.file.allow GIT_CONFIG_VALUE_0=always
        git config user.name other
        echo second >file && git commit -qam second
        git checkout -q -b topic HEAD~1
        echo topic >topic && git add topic && git commit -qm topic
        git rebase -q master 2>/dev/null || git rebase -q main
        echo dirty >file && git stash -q && git stash pop -q && git checkout -q file
        git worktree add -q tree -b tree
        mkdir tree/.vscode && git -C tree status --short >/dev/null
        git worktree remove --force tree
        git submodule --quiet add "$OUTSIDE" lib2
        git commit -qm lib2
        git submodule --quiet update --init
        git submodule --quiet deinit -f lib2
        git rm -q lib2 && git commit -qm removed
        git remote add origin "$OUTSIDE" && git fetch -q origin
        git gc -q
        git tag v1 && git merge -q --no-edit tree
        git init -q fresh && git -C fresh status --short
        git clone -q "$OUTSIDE" copy
        rm -rf copy fresh nested
        git fsck --no-progress
        git log --oneline | wc -l
    "#;

    let (output, remark, succeeded) = site.bash(script).await;

    assert!(succeeded, "{output}");
    assert_eq!(remark, None, "{output}");
}

#[tokio::test]
async fn a_repository_that_cannot_be_written_is_never_touched() {
    let site = Site::new().await;
    let hook = site.outside.join(".git/hooks/pre-push");
    let before = fs::read_to_string(&hook).unwrap();

    let (_, remark, _) = site.bash("mv .git moved; ln -s $OUTSIDE/.git .git; mv nested/.git nested/moved; ln -s $OUTSIDE/.git nested/.git; rm -rf .vscode; ln -s $OUTSIDE .vscode")
        .await;
    remove_copies(remark.as_deref());

    assert_eq!(fs::read_to_string(&hook).unwrap(), before);
    assert_eq!(
        fs::read_to_string(site.outside.join("file")).unwrap(),
        "first\n"
    );
    assert!(!site.outside.join("settings.json").exists());
}

#[tokio::test]
async fn changes_of_the_user_during_a_command_stay_where_mounts_protect() {
    if std::env::var_os("IKIGAI_TEST_NO_USERNS").is_some() {
        return;
    }
    let site = Site::new().await;
    let mut line = Line::new("echo ready; until [ -e go ]; do sleep 0.01; done; touch .vscode/x")
        .within(&site.project);
    line.job.confinement = usual(&site.project, false, [].into());
    let project = site.project.clone();
    let progress = Arc::new(move |line: &str| {
        if line == "ready" {
            fs::write(project.join(".vscode/settings.json"), "mine").unwrap();
            fs::write(project.join("go"), "").unwrap();
        }
    });

    let ended = run(line.job, &CancellationToken::new(), progress)
        .await
        .unwrap();

    assert!(text(&ended.output).contains("Read-only file system"));
    assert_eq!(ended.warning, None);
    let settings = fs::read_to_string(site.project.join(".vscode/settings.json")).unwrap();
    assert_eq!(settings, "mine");
}

/// `[sandbox] writable` opens a directory, but not its hooks and settings.
///
/// Attack: hooks in directories that the user opened.
#[tokio::test]
async fn directories_that_the_user_opened_are_protected_too() {
    let site = Site::new().await;
    let before = site.protected();
    let opened = usual(&site.project, false, [].into());
    let opened = opened.with_writable(std::slice::from_ref(&site.outside));
    let script = "cd \"$OUTSIDE\"; echo evil >.git/hooks/pre-push; \
        printf '#!/bin/sh\\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; \
        mkdir -p .ikigai/tools .vscode; echo evil >.ikigai/tools/x-tool; echo evil >.vscode/x; \
        git config core.fsmonitor evil; git config user.name changed; echo work >file; \
        cd \"$OLDPWD\"; echo evil >nested/.git/hooks/existing";

    let (output, remark, _) = site.bash_in(script, opened).await;

    remove_copies(remark.as_deref());
    assert_eq!(site.protected(), before, "{output}\n{remark:?}");
    let read = |name: &str| fs::read_to_string(site.outside.join(name)).unwrap();
    assert_eq!(read("file"), "work\n");
    assert!(read(".git/config").contains("name = changed"));
}

const ALL: &[&str] = &[
    "protected_paths::nothing_that_runs_later_is_left_by_a_command",
    "protected_paths::other_changes_of_the_same_command_stay",
    "protected_paths::ordinary_work_with_git_goes_on",
    "protected_paths::a_repository_that_cannot_be_written_is_never_touched",
    "protected_paths::changes_of_the_user_during_a_command_stay_where_mounts_protect",
    "protected_paths::a_hook_with_a_link_elsewhere_is_taken_back",
    "protected_paths::directories_that_the_user_opened_are_protected_too",
];

#[test]
fn all_of_it_holds_without_namespaces() {
    run_again(ALL, &[], &[("IKIGAI_TEST_NO_USERNS", "1")]);
}

#[test]
fn all_of_it_holds_for_an_ordinary_user() {
    run_again(ALL, ORDINARY_USER, &[]);
}
