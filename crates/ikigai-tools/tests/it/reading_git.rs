//! Git in lines that only read: programs that a repository names do not run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use ikigai_tools::builtin::bash::Bash;
use ikigai_tools::sandbox::{reading, usual};
use ikigai_tools::{CallContext, CallInputs, Confinement, Place, Run, Tool};
use tokio_util::sync::CancellationToken;

use crate::support::{text, unique};

/// Returns a repository whose configuration runs a program at every occasion.
fn hostile_repository() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    git(path, &["init", "-q", "."]);
    for (key, value) in [("user.name", "n"), ("user.email", "e")] {
        git(path, &["config", key, value]);
    }
    fs::write(path.join(".gitattributes"), "*.txt diff=one filter=two\n").unwrap();
    fs::write(path.join("a.txt"), "first\n").unwrap();
    fs::write(path.join("b"), "first\n").unwrap();
    git(path, &["add", "."]);
    git(path, &["commit", "-qm", "message"]);
    fs::write(path.join("b"), "stashed\n").unwrap();
    git(path, &["stash", "-q"]);
    fs::write(path.join("a.txt"), "second\n").unwrap();
    fs::write(path.join("b"), "second\n").unwrap();
    let hook = path.join(".git/hooks/post-index-change");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\necho RAN hook >&2\n").unwrap();
    fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
    for (key, value) in [
        ("core.fsmonitor", "echo RAN fsmonitor >&2; false"),
        ("core.pager", "echo RAN pager >&2; cat"),
        ("core.sshCommand", "echo RAN ssh >&2; false"),
        ("diff.external", "echo RAN external >&2; true"),
        ("diff.one.textconv", "echo RAN textconv >&2; cat"),
        ("diff.one.command", "echo RAN command >&2; true"),
        ("filter.two.clean", "echo RAN clean >&2; cat"),
        ("filter.two.smudge", "echo RAN smudge >&2; cat"),
        ("filter.two.required", "true"),
        ("log.showSignature", "true"),
        ("gpg.program", "false"),
    ] {
        git(path, &["config", key, value]);
    }
    directory
}

fn git(directory: &Path, arguments: &[&str]) {
    let status = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .status();
    assert!(status.unwrap().success(), "git {arguments:?}");
}

async fn bash(command: &str, workdir: &Path, confinement: Confinement) -> String {
    let place = Place {
        workdir: workdir.to_path_buf(),
        hidden: Arc::from([]),
    };
    let arguments = serde_json::json!({ "command": command }).to_string();
    let prepared = Bash::default().prepare(&arguments, &place).unwrap();
    let context = CallContext {
        place,
        stop: CancellationToken::new(),
        inputs: CallInputs::default(),
        progress: Arc::new(|_| {}),
        output: Arc::new(|_| {}),
        cookie: unique("reading-git"),
        confinement,
        temporary: None,
    };
    let Run::Async(run) = prepared.run else {
        panic!("bash does not block");
    };
    text(&run(context).await.body).to_owned()
}

/// Attack: programs of a repository's config in read-only `git` commands.
#[tokio::test]
async fn a_reading_line_of_git_runs_no_program_of_the_repository() {
    let repository = hostile_repository();
    let path = repository.path();
    let table = [
        ("git status --short", " M a.txt\n M b\n"),
        ("git -C . status --short", " M a.txt\n M b\n"),
        ("git diff --stat", "2 files changed"),
        ("git diff a.txt", "+second"),
        ("git diff -- b", "+second"),
        ("cd .git/.. && git diff", "+second"),
        ("git --no-pager diff HEAD", "+second"),
        ("git log -p -1 --format=%s", "+first"),
        ("git show HEAD", "+first"),
        ("git show HEAD:a.txt", "first\n"),
        ("git blame a.txt", "second"),
        ("git stash list -p", "+stashed"),
        ("git stash show -p", "+stashed"),
        ("git reflog -p -1", "stash"),
        ("git ls-files | cat", ".gitattributes\na.txt\nb\n"),
        ("git diff | grep -c second", "2\n"),
        ("git", "usage: git"),
        ("git -C", "o directory given"),
    ];
    for (command, expected) in table {
        let output = bash(command, path, reading(Arc::from([]))).await;
        assert!(!output.contains("RAN"), "{command}:\n{output}");
        assert!(
            output.contains(expected) || command == "git reflog -p -1",
            "{command}:\n{output}"
        );
    }
}

#[tokio::test]
async fn an_approved_line_of_git_runs_what_the_repository_configures() {
    let repository = hostile_repository();
    let path = repository.path().canonicalize().unwrap();

    let output = bash("git diff b", &path, usual(&path, false, Arc::from([]))).await;

    assert!(output.contains("RAN external"), "{output}");
}

#[tokio::test]
async fn a_line_sees_nothing_else_of_it() {
    let repository = hostile_repository();

    let output = bash(
        "command -v ls; git status --short >/dev/null; echo $?",
        repository.path(),
        reading(Arc::from([])),
    )
    .await;

    assert!(output.contains("ls\n0\n[exit 0, "), "{output}");
}

/// Attack: programs of a repository's config in `git` commands next to one that may write.
///
/// Programs that this command starts get git as it is.
#[tokio::test]
async fn git_that_only_reads_next_to_another_command_runs_no_program_of_the_repository() {
    let repository = hostile_repository();
    let path = repository.path();
    let confinement = || usual(path, false, Arc::from([]));
    let table = [
        ("touch new; git status --short", "?? new"),
        ("touch new && git -C . diff a.txt", "+second"),
        ("touch new && git log -p -1 | cat", "+first"),
        (
            "touch new; git show HEAD:a.txt; type -t bash",
            "first\nfile\n",
        ),
    ];

    for (command, expected) in table {
        let output = bash(command, path, confinement()).await;
        assert!(!output.contains("RAN"), "{command}:\n{output}");
        assert!(output.contains(expected), "{command}:\n{output}");
    }
    fs::write(
        path.join("script"),
        "git config core.pager; git status; env",
    )
    .unwrap();
    let output = bash("bash script; git status --short", path, confinement()).await;
    assert!(output.contains("echo RAN pager >&2; cat\n"), "{output}");
    assert!(output.contains("RAN fsmonitor"), "{output}");
    assert!(!output.contains("GIT_OPTIONAL_LOCKS"), "{output}");
    // A line that also writes with git gets all of it.
    let output = bash("git status --short; git add -A", path, confinement()).await;
    assert!(output.contains("RAN"), "{output}");
}
