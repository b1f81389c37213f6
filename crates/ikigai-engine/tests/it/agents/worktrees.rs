//! Children in git worktrees of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use ikigai_core::Settings;
use ikigai_core::settings::{Approve, WorktreeSetting};
use ikigai_engine::{Outcome, Safety, Tools, UiEvent, Worker};
use ikigai_providers::AnswerBlock;
use ikigai_store::{Agent, Status};
use ikigai_tools::permission::Sandbox;
use ikigai_tools::{builtin, process};
use serde_json::json;
use tempfile::TempDir;

use super::support::{calls, see_out, typed, wait, work};
use crate::fakes::call;
use crate::support::{World, printed_in};

/// A world whose root works in a git repository with one commit, outside of `/tmp`.
struct Project {
    directory: Arc<TempDir>,
    world: World,
}

impl Project {
    fn new() -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = directory.path().join("worktrees");
        let world = World::with_platform().equipped(move |engine| {
            let safety = Safety {
                sandbox: Some(Arc::new(|| Sandbox::InForce)),
                worktrees: Some(root.clone()),
                ..Safety::default()
            };
            let tools = builtin::all(process::ChildEnvironment::default());
            let tools: Arc<dyn Tools> = Arc::new(tools);
            engine.with_tools(tools, safety)
        });
        let project = Self {
            directory: Arc::new(directory),
            world,
        };
        fs::create_dir_all(project.path("project/src")).unwrap();
        for arguments in [
            &["init", "-q", "-b", "main", "."][..],
            &["config", "user.name", "n"],
            &["config", "user.email", "e"],
        ] {
            git(&project.path("project"), arguments);
        }
        fs::write(project.path("project/a.txt"), "one\ntwo\nthree\n").unwrap();
        fs::write(project.path("project/src/b.txt"), "b\n").unwrap();
        git(&project.path("project"), &["add", "."]);
        git(&project.path("project"), &["commit", "-qm", "first"]);
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path("project").join(name)).unwrap()
    }

    /// Opens a root agent in a directory of the project.
    async fn root_in(&self, directory: &str) -> Worker {
        let here = self.path(directory);
        let here = here.to_str().unwrap();
        let mut worker = self.world.engine.create_root(here, here).await.unwrap();
        worker.approve_for_now(Approve::All).await.unwrap();
        worker
    }

    /// Returns the directories of all worktrees.
    fn worktrees(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("worktrees"));
        let entries = entries.into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// Creates a child with a worktree in which it writes a file, and waits for its report.
    async fn child_that_writes(&self, worker: &mut Worker, command: &str) -> PathBuf {
        self.world.provider.will_to("begin", calls([bash(command)]));
        self.world.provider.will_say_to("begin", "written");
        typed(worker, "/fork --worktree --fresh --name one begin").await;
        see_out(worker).await;
        let [path] = self.worktrees().try_into().unwrap();
        path
    }

    async fn settings_of(&self, name: &str) -> Settings {
        let id = self.world.named(name).await.id;
        let agent = Agent::restore(self.world.log(), id).await.unwrap();
        agent.state.settings().clone()
    }
}

fn bash(command: &str) -> AnswerBlock {
    call("bash", &json!({ "command": command }))
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the outputs of the commands in these events.
fn printed(told: &[UiEvent]) -> String {
    let outputs = told.iter().filter_map(|update| match update {
        UiEvent::Stored(row) if row.kind.name() == "command" => printed_in(row),
        _ => None,
    });
    outputs.collect::<Vec<_>>().join("\n")
}

/// A child of a model works in a worktree: it commits there, cannot write its parent's tree, and
/// knows it. A merge applies everything without a commit.
#[tokio::test]
async fn a_child_in_a_worktree_is_merged() {
    let project = Project::new();
    let world = &project.world;
    let mut worker = project.root_in("project/src").await;
    let root = worker.agent().state.agent();
    fs::write(project.path("project/src/mine.txt"), "mine\n").unwrap();
    let arguments = json!({ "name": "one", "prompt": "begin", "worktree": true });
    world
        .provider
        .will_to("go", calls([call("fork", &arguments)]));
    world.provider.will_to("go", calls([wait(60, &["one"])]));
    world.provider.will_say_to("go", "thank you");
    let forbidden = project.path("project/src/theirs.txt");
    let commands = [
        "pwd; echo 2 >b.txt; git commit -qam second && git log --format=%s | head -1".to_owned(),
        format!("echo 3 >../new.txt; echo 4 >{}", forbidden.display()),
    ];
    let [first, second] = commands.each_ref().map(|command| bash(command));
    world.provider.will_to("begin", calls([first]));
    world.provider.will_to("begin", calls([second]));
    world.provider.will_say_to("begin", "done");

    assert_eq!(work(&mut worker, "go").await, Outcome::Completed);

    let forked = &world.outputs(root).await[0];
    let said = "without uncommitted changes; it knows only its prompt";
    assert!(
        forked.contains(") in a git worktree of commit "),
        "{forked}"
    );
    assert!(forked.contains(said), "{forked}");
    let one = world.id_of("one").await;
    let [path] = project.worktrees().try_into().unwrap();
    let outputs = world.outputs(one).await;
    let start = format!("{}\n", path.join("src").display());
    assert!(outputs[0].starts_with(&start), "{outputs:?}");
    assert!(outputs[0].contains("\nsecond\n"), "{outputs:?}");
    assert!(!forbidden.exists(), "{outputs:?}");
    let prompt = &world.texts(one, "user").await[0];
    assert!(
        prompt.contains("You work in a git worktree of your own, made from commit "),
        "{prompt}"
    );
    let advice = "where your prompt names a path there, use the same path below your worktree";
    assert!(prompt.contains(advice), "{prompt}");
    assert!(
        prompt.contains("git status at the start:\nclean\n"),
        "{prompt}"
    );
    assert_eq!(project.text("src/b.txt"), "b\n");

    let merged = printed(&typed(&mut worker, "/merge one").await);

    assert!(
        merged.contains("new.txt +1 −0, src/b.txt +1 −1"),
        "{merged}"
    );
    assert_eq!(project.text("src/b.txt"), "2\n");
    assert_eq!(project.text("new.txt"), "3\n");
    assert_eq!(
        git(&project.path("project"), &["log", "--format=%s"]),
        "first\n"
    );
    let row = world.texts(root, "user").await.pop().unwrap();
    let start = "Result of the child agent one:\ndone\n\nIts changes are applied in ";
    assert!(row.starts_with(start), "{row}");
}

/// A merge with a conflict changes nothing, names the files, and can be repeated.
#[tokio::test]
async fn a_merge_with_a_conflict_changes_nothing() {
    let project = Project::new();
    let mut worker = project.root_in("project").await;
    let root = worker.agent().state.agent();
    let path = project
        .child_that_writes(&mut worker, "echo 1 >a.txt; echo 2 >new.txt")
        .await;
    fs::write(project.path("project/a.txt"), "mine\n").unwrap();

    let refused = printed(&typed(&mut worker, "/merge one").await);

    let expected = format!(
        "⚠ one is not merged: conflict in a.txt: nothing was changed. Its files are in {}",
        path.display()
    );
    assert_eq!(refused, expected);
    assert_eq!(project.text("a.txt"), "mine\n");
    assert!(!project.path("project/new.txt").exists());
    assert_eq!(project.world.texts(root, "user").await.len(), 0);
    git(&project.path("project"), &["checkout", "-q", "a.txt"]);
    typed(&mut worker, "/merge one").await;
    assert_eq!(project.text("a.txt"), "1\n");
    assert_eq!(project.world.texts(root, "user").await.len(), 1);
}

/// Outside of git no agent is created, neither by a model nor by a user.
#[tokio::test]
async fn without_a_repository_a_worktree_is_refused() {
    let project = Project::new();
    let world = &project.world;
    fs::create_dir(project.path("empty")).unwrap();
    git(&project.path("empty"), &["init", "-q", "."]);
    let mut worker = project.root_in("empty").await;
    let root = worker.agent().state.agent();
    let arguments = json!({ "prompt": "begin", "worktree": true });
    world
        .provider
        .will_to("go", calls([call("fork", &arguments)]));
    world.provider.will_say_to("go", "well");

    assert_eq!(work(&mut worker, "go").await, Outcome::Completed);
    let typed = printed(&typed(&mut worker, "/fork --worktree begin").await);

    assert_eq!(
        world.outputs(root).await,
        [
            "no worktree: the repository has no commit yet. Without `worktree` the child shares your directory"
        ]
    );
    assert_eq!(typed, "⚠ the repository has no commit yet");
    assert_eq!(world.census().await.len(), 1);
    assert_eq!(project.worktrees(), Vec::<PathBuf>::new());
}

/// If the process dies between the rows of a fork and git, the next turn creates the worktree.
#[tokio::test]
async fn a_missing_worktree_is_created_with_the_next_turn() {
    let project = Project::new();
    let mut worker = project.root_in("project").await;
    typed(&mut worker, "/fork --worktree --name one").await;
    let [path] = project.worktrees().try_into().unwrap();
    // A child without a prompt can be used at once.
    assert!(path.join("a.txt").exists());
    fs::remove_dir_all(&path).unwrap();
    fs::remove_dir_all(project.path("project/.git/worktrees")).unwrap();
    let world = project.world.restarted();
    let one = world.named("one").await;
    let mut child = world.engine.open(&one).await.unwrap();
    world.provider.will_say("here");

    assert_eq!(work(&mut child, "begin").await, Outcome::Completed);

    assert!(path.join("a.txt").exists());
}

/// A worktree that cannot be created fails the child's turn, and its parent learns why.
#[tokio::test]
async fn a_worktree_that_cannot_be_created_fails_the_turn() {
    let project = Project::new();
    let mut worker = project.root_in("project").await;
    typed(&mut worker, "/fork --worktree --name one").await;
    let [path] = project.worktrees().try_into().unwrap();
    fs::remove_dir_all(&path).unwrap();
    fs::write(&path, "in the way").unwrap();
    let one = project.world.named("one").await;
    let mut child = project.world.engine.open(&one).await.unwrap();

    let outcome = work(&mut child, "begin").await;

    let Outcome::Failed(reason) = outcome else {
        panic!("{outcome:?}");
    };
    let start = format!("cannot create the worktree {}: ", path.display());
    assert!(reason.starts_with(&start), "{reason}");
    assert_eq!(project.world.texts(one.id, "error").await, [reason]);
    assert_eq!(project.world.provider.requests().len(), 0);
}

/// A log from elsewhere names directories of another machine: nothing is created there.
#[tokio::test]
async fn a_worktree_of_another_machine_is_not_created() {
    let project = Project::new();
    let elsewhere = project.path("elsewhere/one-abc");
    let worker = project.root_in("project").await;
    let text = |path: PathBuf| Some(path.to_str().unwrap().to_owned());
    let setting = WorktreeSetting {
        agent: Some(worker.agent().state.agent()),
        path: text(elsewhere.clone()),
        repository: text(project.path("project/.git")),
        checkout: text(project.path("project")),
        base: Some(
            git(&project.path("project"), &["rev-parse", "HEAD"])
                .trim()
                .to_owned(),
        ),
    };
    let settings = Settings {
        workdir: text(elsewhere.clone()),
        worktree: Some(setting),
        ..Settings::default()
    };
    worker.release().await.unwrap();
    let mut worker = project.world.root_with(&settings).await;

    let outcome = work(&mut worker, "begin").await;

    let reason = format!(
        "the worktree {} is not of this machine. /cd sets another directory",
        elsewhere.display()
    );
    assert_eq!(outcome, Outcome::Failed(reason));
    assert!(!elsewhere.exists());
}

/// `/reap` removes a worktree without changes or with merged ones, and keeps and names any other.
#[tokio::test]
async fn reap_keeps_a_worktree_with_changes() {
    let project = Project::new();
    let world = &project.world;
    let mut worker = project.root_in("project").await;
    let path = project
        .child_that_writes(&mut worker, "echo 1 >new.txt")
        .await;
    typed(&mut worker, "/kill one").await;

    let kept = printed(&typed(&mut worker, "/reap one").await);

    let line = format!(
        "Worktree kept, not merged: {} (new.txt +1 −0) · /merge one or /reap one --discard",
        path.display()
    );
    assert!(kept.ends_with(&line), "{kept}");
    assert_eq!(world.named("one").await.status, Status::Reaped);
    assert!(path.join("new.txt").exists());
    let again = printed(&typed(&mut worker, "/reap").await);
    assert_eq!(again, format!("⚠ {line}"));

    typed(&mut worker, "/merge one").await;
    assert_eq!(project.text("new.txt"), "1\n");
    // Work on the merged files does not undo the merge.
    fs::write(project.path("project/new.txt"), "2\n").unwrap();
    let removed = printed(&typed(&mut worker, "/reap one").await);

    assert_eq!(removed, "Worktree removed: one");
    assert_eq!(project.worktrees(), Vec::<PathBuf>::new());
    let none = printed(&typed(&mut worker, "/reap one").await);
    assert_eq!(none, "⚠ one is reaped, not ended");
}

/// Changes are discarded only for a named agent.
#[tokio::test]
async fn reap_discards_changes_of_a_named_agent() {
    let project = Project::new();
    let mut worker = project.root_in("project").await;
    let path = project
        .child_that_writes(&mut worker, "echo 1 >new.txt")
        .await;
    let alive = printed(&typed(&mut worker, "/reap one --discard").await);
    assert_eq!(alive, "⚠ one is running, not ended");
    typed(&mut worker, "/kill one").await;
    let unnamed = printed(&typed(&mut worker, "/reap --discard").await);
    assert_eq!(unnamed, "⚠ name the agent whose worktree is discarded");
    assert!(path.exists());

    let removed = printed(&typed(&mut worker, "/reap one --discard").await);

    assert!(removed.ends_with("Worktree removed: one"), "{removed}");
    assert!(!path.exists());
    assert!(project.settings_of("one").await.worktree.is_some());
}
