//! Git worktrees of child agents.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use ikigai_tools::process::ChildEnvironment;
use ikigai_tools::worktree::{Git, PatchOutcome, Worktree};

use crate::support::{PATIENCE, unique, with_argument};

/// Repository with one commit, and a directory for worktrees.
struct Project {
    directory: tempfile::TempDir,
}

impl Project {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let project = Self { directory };
        fs::create_dir(project.root()).unwrap();
        project.git(&["init", "-q", "-b", "main", "."]);
        project.git(&["config", "user.name", "n"]);
        project.git(&["config", "user.email", "e"]);
        fs::write(project.root().join("a.txt"), "one\ntwo\nthree\n").unwrap();
        fs::write(project.root().join(".gitignore"), "built\n").unwrap();
        project.git(&["add", "."]);
        project.git(&["commit", "-qm", "first"]);
        project
    }

    fn root(&self) -> PathBuf {
        let directory = self.directory.path().canonicalize().unwrap();
        directory.join("project")
    }

    fn git(&self, arguments: &[&str]) -> String {
        git_in(&self.root(), arguments)
    }

    async fn worktree(&self) -> Worktree {
        let found = git().find(&self.root()).await.unwrap();
        Worktree {
            path: self.root().with_file_name("worktrees").join("one-abc"),
            repository: found.repository,
            base: found.commit,
            checkout: found.root,
        }
    }
}

fn git_in(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn git() -> Git {
    Git {
        environment: ChildEnvironment::default(),
        hidden: Some(Arc::default()),
    }
}

/// Only a directory in a checkout with a commit can get worktrees.
#[tokio::test]
async fn a_checkout_with_a_commit_is_found() {
    let project = Project::new();
    let below = project.root().join("src");
    fs::create_dir(&below).unwrap();
    fs::write(project.root().join("a.txt"), "changed\n").unwrap();

    let found = git().find(&below).await.unwrap();

    assert_eq!(found.root, project.root());
    assert_eq!(found.repository, project.root().join(".git"));
    assert_eq!(found.commit, project.git(&["rev-parse", "HEAD"]).trim());
    assert_eq!(found.uncommitted, 1);
    assert_eq!(found.prefix, Path::new("src/"));
    let outside = project.directory.path();
    let refused = git().find(outside).await.unwrap_err();
    assert!(refused.ends_with(" is in no git checkout"), "{refused}");
    let empty = outside.join("empty");
    fs::create_dir(&empty).unwrap();
    git_in(&empty, &["init", "-q", "."]);
    let refused = git().find(&empty).await.unwrap_err();
    assert_eq!(refused, "the repository has no commit yet");
}

/// Runs of git beside each other do not end each other's processes.
#[tokio::test]
async fn parallel_runs_of_git_are_independent() {
    let project = Project::new();
    let root = project.root();
    let mut runs = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let root = root.clone();
        runs.spawn(async move { git().find(&root).await });
    }

    for found in runs.join_all().await {
        assert_eq!(found.unwrap().root, root);
    }
}

/// The changes of a worktree are those since its commit: committed, uncommitted and new files, but
/// no ignored ones. Reading them leaves no trace.
#[tokio::test]
async fn all_changes_of_a_worktree_are_applied() {
    let project = Project::new();
    let worktree = project.worktree().await;
    git().create(&worktree).await.unwrap();
    assert_eq!(git().compare(&worktree).await.unwrap().files, []);
    fs::write(worktree.path.join("a.txt"), "one\n2\nthree\n").unwrap();
    git_in(&worktree.path, &["commit", "-qam", "second"]);
    fs::write(worktree.path.join("new.bin"), [0, 1, 2]).unwrap();
    fs::write(worktree.path.join("built"), "ignored\n").unwrap();
    let before = git_in(&worktree.path, &["status", "--porcelain"]);

    let changes = git().compare(&worktree).await.unwrap();

    let files = [
        ("a.txt".to_owned(), Some((1, 1))),
        ("new.bin".to_owned(), None),
    ];
    assert_eq!(changes.files, files);
    assert_eq!(git_in(&worktree.path, &["status", "--porcelain"]), before);
    // A change of the parent at another place is no conflict.
    fs::write(project.root().join("mine.txt"), "mine\n").unwrap();
    let applied = git().apply(&worktree, &changes.tree).await;
    assert_eq!(applied, Ok(PatchOutcome::Now));
    let text = |name: &str| fs::read(project.root().join(name)).unwrap();
    assert_eq!(text("a.txt"), b"one\n2\nthree\n");
    assert_eq!(text("new.bin"), [0, 1, 2]);
    assert!(!project.root().join("built").exists());
    assert_eq!(project.git(&["log", "--format=%s"]), "first\n");

    // A merged change is no change any more; only later ones are.
    assert_eq!(git().compare(&worktree).await.unwrap().files, []);
    fs::write(project.root().join("a.txt"), "one\n2\n3\n").unwrap();
    fs::write(worktree.path.join("later.txt"), "later\n").unwrap();
    let changes = git().compare(&worktree).await.unwrap();
    assert_eq!(changes.files, [("later.txt".to_owned(), Some((1, 0)))]);
    let applied = git().apply(&worktree, &changes.tree).await;
    assert_eq!(applied, Ok(PatchOutcome::Now));

    // The process died before it noted that the changes were merged.
    let mark = "worktrees/one-abc/refs/worktree/merged";
    fs::remove_file(worktree.repository.join(mark)).unwrap();
    fs::write(project.root().join("a.txt"), "one\n2\nthree\n").unwrap();
    let again = git().apply(&worktree, &changes.tree).await;
    assert_eq!(again, Ok(PatchOutcome::Before));
    assert_eq!(git().compare(&worktree).await.unwrap().files, []);
}

/// A conflict changes nothing and names the files.
#[tokio::test]
async fn a_conflict_changes_nothing() {
    let project = Project::new();
    let worktree = project.worktree().await;
    git().create(&worktree).await.unwrap();
    fs::write(worktree.path.join("a.txt"), "one\ntwo\n3\n").unwrap();
    fs::write(worktree.path.join("b.txt"), "theirs\n").unwrap();
    fs::write(worktree.path.join("c.txt"), "theirs\n").unwrap();
    let changes = git().compare(&worktree).await.unwrap();
    fs::write(project.root().join("a.txt"), "one\ntwo\ndrei\n").unwrap();
    fs::write(project.root().join("b.txt"), "mine\n").unwrap();

    let applied = git().apply(&worktree, &changes.tree).await;

    let files = ["a.txt", "b.txt"].map(str::to_owned);
    assert_eq!(applied, Ok(PatchOutcome::Conflict(files.to_vec())));
    let text = |name: &str| fs::read_to_string(project.root().join(name)).unwrap();
    assert_eq!(text("a.txt"), "one\ntwo\ndrei\n");
    assert_eq!(text("b.txt"), "mine\n");
    assert!(!project.root().join("c.txt").exists());
    fs::write(worktree.path.join("c.txt"), "later\n").unwrap();
    let applied = git().apply(&worktree, &changes.tree).await;
    assert_eq!(applied, Ok(PatchOutcome::Outdated));
}

/// A worktree whose creation was interrupted, or that lost its files, is repaired.
#[tokio::test]
async fn an_interrupted_worktree_is_repaired() {
    let project = Project::new();
    let worktree = project.worktree().await;
    git().create(&worktree).await.unwrap();
    assert!(worktree.is_ready().await);
    let admin = worktree.repository.join("worktrees/one-abc");

    // Git was killed in the middle of a checkout.
    fs::write(admin.join("locked"), "initializing").unwrap();
    fs::remove_file(worktree.path.join("a.txt")).unwrap();
    assert!(!worktree.is_ready().await);
    git().create(&worktree).await.unwrap();
    assert!(worktree.is_ready().await);
    assert!(worktree.path.join("a.txt").exists());

    // Git was killed just after its first step.
    git().remove(&worktree).await.unwrap();
    fs::create_dir(&admin).unwrap();
    git().create(&worktree).await.unwrap();
    assert!(worktree.is_ready().await && worktree.reach().await.is_some());

    // The files are gone; what was committed is not.
    fs::write(worktree.path.join("a.txt"), "second\n").unwrap();
    git_in(&worktree.path, &["commit", "-qam", "second"]);
    fs::remove_dir_all(&worktree.path).unwrap();
    git().create(&worktree).await.unwrap();
    let text = fs::read_to_string(worktree.path.join("a.txt")).unwrap();
    assert_eq!(text, "second\n");

    // The file that names the repository is gone; other files stay.
    fs::write(worktree.path.join("b.txt"), "mine\n").unwrap();
    fs::remove_file(worktree.path.join(".git")).unwrap();
    git().create(&worktree).await.unwrap();
    assert_eq!(
        git_in(&worktree.path, &["status", "--porcelain"]),
        "?? b.txt\n"
    );
}

/// A removed worktree leaves nothing but a reference to commits that no other one holds.
#[tokio::test]
async fn a_removed_worktree_keeps_its_commits() {
    let project = Project::new();
    let worktree = project.worktree().await;
    git().create(&worktree).await.unwrap();
    fs::write(worktree.path.join("new.txt"), "new\n").unwrap();
    let changes = git().compare(&worktree).await.unwrap();
    git().apply(&worktree, &changes.tree).await.unwrap();
    git().remove(&worktree).await.unwrap();
    assert!(!worktree.exists().await);
    assert_eq!(project.git(&["for-each-ref", "refs/ikigai"]), "");

    git().create(&worktree).await.unwrap();
    fs::write(worktree.path.join("a.txt"), "second\n").unwrap();
    git_in(&worktree.path, &["commit", "-qam", "second"]);
    git().remove(&worktree).await.unwrap();

    assert!(!worktree.exists().await);
    let kept = project.git(&["log", "-1", "--format=%s", "refs/ikigai/kept/one-abc"]);
    assert_eq!(kept, "second\n");
    assert_eq!(project.git(&["worktree", "list"]).lines().count(), 1);
}

/// Programs that a repository or a worktree names do not run.
#[tokio::test]
async fn no_program_of_the_repository_runs() {
    let project = Project::new();
    let ran = project.directory.path().join("ran");
    let touch = format!("touch {}; cat", ran.display());
    fs::write(
        project.root().join(".gitattributes"),
        "*.txt filter=two diff=one\n",
    )
    .unwrap();
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "attributes"]);
    for (key, value) in [
        ("filter.two.clean", touch.as_str()),
        ("filter.two.smudge", &touch),
        ("filter.two.required", "true"),
        ("core.fsmonitor", &touch),
        ("diff.external", &touch),
        ("diff.one.textconv", &touch),
    ] {
        project.git(&["config", key, value]);
    }
    let hooks = project.root().join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in ["post-checkout", "post-index-change"] {
        fs::write(hooks.join(hook), format!("#!/bin/sh\n{touch}\n")).unwrap();
        fs::set_permissions(hooks.join(hook), PermissionsExt::from_mode(0o755)).unwrap();
    }
    // The sandbox alone does not keep programs from writing there.
    let without_sandbox = Git {
        hidden: None,
        ..git()
    };

    let worktree = project.worktree().await;
    without_sandbox.create(&worktree).await.unwrap();
    fs::write(worktree.path.join("a.txt"), "second\n").unwrap();
    let changes = without_sandbox.compare(&worktree).await.unwrap();
    let applied = without_sandbox.apply(&worktree, &changes.tree).await;
    assert_eq!(applied, Ok(PatchOutcome::Now));
    without_sandbox.remove(&worktree).await.unwrap();

    assert!(!ran.exists());
}

/// Commands get the repository's paths only for a worktree that the repository knows.
#[tokio::test]
async fn only_a_known_worktree_opens_its_repository() {
    let project = Project::new();
    let worktree = project.worktree().await;
    assert_eq!(worktree.reach().await, None);
    git().create(&worktree).await.unwrap();

    let reach = worktree.reach().await.unwrap();

    let git_directory = project.root().join(".git");
    let expected = ["worktrees/one-abc", "objects", "refs", "logs"];
    assert_eq!(reach.files, worktree.path);
    assert_eq!(reach.git, expected.map(|name| git_directory.join(name)));
    let other = Project::new();
    let stranger = Worktree {
        repository: other.root().join(".git"),
        ..worktree
    };
    assert_eq!(stranger.reach().await, None);
}

/// Creates the worktree of a project until it is killed. Only another test starts it.
#[tokio::test]
#[ignore = "a process that another test kills"]
async fn creator_process() {
    let root = PathBuf::from(std::env::var("PROJECT").unwrap());
    let found = git().find(&root).await.unwrap();
    let worktree = Worktree {
        path: root.with_file_name("worktrees").join("one-abc"),
        repository: found.repository,
        base: found.commit,
        checkout: found.root,
    };
    let _ = git().create(&worktree).await;
}

/// `kill -9` in the middle of `git worktree add`: git itself goes on. The next process ends it, and
/// the worktree is whole.
#[tokio::test]
async fn a_worktree_is_whole_after_a_kill_in_the_middle_of_its_creation() {
    let project = Project::new();
    let root = project.root();
    let worktrees = root.with_file_name("worktrees");
    fs::create_dir(&worktrees).unwrap();
    fs::write(root.join(".gitattributes"), "*.slow filter=slow\n").unwrap();
    fs::write(root.join("z.slow"), "whole\n").unwrap();
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "slow"]);
    // A git that runs filters, one of which stops it in the middle.
    let (reached, mark) = (worktrees.join("reached"), unique("smudge"));
    let line = format!("touch {}; sleep 1000; :", reached.display());
    project.git(&[
        "config",
        "filter.slow.smudge",
        &format!("sh -c '{line}' {mark}"),
    ]);
    let programs = project.directory.path().join("bin");
    fs::create_dir(&programs).unwrap();
    let path = std::env::var("PATH").unwrap();
    let git_program = std::env::split_paths(&path).map(|one| one.join("git"));
    let git_program = git_program.into_iter().find(|one| one.is_file()).unwrap();
    let wrapper = format!(
        "#!/bin/sh\nexec env -u GIT_CONFIG_COUNT {} \"$@\"\n",
        git_program.display()
    );
    fs::write(programs.join("git"), wrapper).unwrap();
    fs::set_permissions(programs.join("git"), PermissionsExt::from_mode(0o755)).unwrap();
    let mut creator = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "worktrees::creator_process", "--ignored"])
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("PROJECT", &root)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let deadline = std::time::Instant::now() + PATIENCE;
    while !reached.exists() {
        assert!(std::time::Instant::now() < deadline, "git was not stopped");
        std::thread::yield_now();
    }
    creator.kill().unwrap();
    creator.wait().unwrap();
    assert!(!with_argument(&mark).is_empty(), "git goes on");
    project.git(&["config", "--unset", "filter.slow.smudge"]);
    let worktree = project.worktree().await;
    assert!(!worktree.is_ready().await);

    git().create(&worktree).await.unwrap();

    assert!(worktree.is_ready().await && worktree.reach().await.is_some());
    assert_eq!(with_argument(&mark), Vec::<String>::new());
    let text = fs::read_to_string(worktree.path.join("z.slow")).unwrap();
    assert_eq!(text, "whole\n");
    assert_eq!(git_in(&worktree.path, &["status", "--porcelain"]), "");
    assert_eq!(project.git(&["worktree", "list"]).lines().count(), 2);
}
