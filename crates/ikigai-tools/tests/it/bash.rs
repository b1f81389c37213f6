//! `bash` as the engine calls it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ikigai_tools::builtin::bash::Bash;
use ikigai_tools::{
    CallContext, CallEnding, CallInputs, Confinement, Output, Place, ReadFile, Run, Tool, sandbox,
};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::support::unique;

fn place(workdir: impl Into<PathBuf>) -> Place {
    Place {
        workdir: workdir.into(),
        hidden: Arc::from([]),
    }
}

async fn call(arguments: &serde_json::Value, stop_at: Option<&'static str>) -> Output {
    let stop = CancellationToken::new();
    let stopper = stop.clone();
    let context = CallContext {
        place: place("/"),
        stop,
        inputs: CallInputs::default(),
        progress: Arc::new(move |line| {
            if Some(line) == stop_at {
                stopper.cancel();
            }
        }),
        output: Arc::new(|_| {}),
        cookie: unique("bash"),
        confinement: Confinement::None,
        temporary: None,
    };
    call_in(arguments, context).await
}

async fn call_in(arguments: &serde_json::Value, context: CallContext) -> Output {
    let prepared = Bash::default()
        .prepare(&arguments.to_string(), &context.place)
        .unwrap();
    match prepared.run {
        Run::Async(run) => run(context).await,
        Run::Blocking(_) => panic!("bash does not block"),
    }
}

fn told(output: &Output) -> (String, &str, bool, CallEnding) {
    let body = std::str::from_utf8(&output.body).unwrap();
    let (shown, success) = (output.shown.as_str(), output.success);
    (untimed(body), shown, success, output.ending)
}

/// Replaces the duration in the last line by `T`.
fn untimed(body: &str) -> String {
    let Some(rest) = body.strip_suffix(" s]\n") else {
        return body.to_owned();
    };
    let number = rest.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    format!("{number}T]\n")
}

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

/// Returns a context with an own directory for temporary files, in the sandbox.
fn sandboxed(workdir: &Path) -> CallContext {
    CallContext {
        place: place(workdir),
        stop: CancellationToken::new(),
        inputs: CallInputs::default(),
        progress: Arc::new(|_| {}),
        output: Arc::new(|_| {}),
        cookie: unique("bash"),
        confinement: sandbox::usual(workdir, false, Arc::from([])),
        temporary: Some(Arc::default()),
    }
}

#[tokio::test]
async fn ignored_fields_are_named_once_in_the_result() {
    let arguments = serde_json::json!({"cmd": "printf one", "tty": true, "login": true});

    let output = call(&arguments, None).await;

    let body = std::str::from_utf8(&output.body).unwrap();
    let (result, remark) = body.rsplit_once("[ignored").unwrap();
    let body = format!("{}[ignored{remark}", untimed(result));
    assert_eq!(
        body,
        "one\n[exit 0, T]\n[ignored unknown fields `login`, `tty`]\n"
    );
}

#[tokio::test]
async fn the_result_says_what_came_and_how_it_ended() {
    let cases = [
        ("echo one", "one\n[exit 0, T]\n", "one", true),
        ("printf one", "one\n[exit 0, T]\n", "one", true),
        ("seq 3", "1\n2\n3\n[exit 0, T]\n", "exit 0 · 3 lines", true),
        ("true", "[exit 0, T]\n", "exit 0", true),
        ("exit 3", "[exit 3, T]\n", "exit 3", false),
        (
            "echo no >&2; exit 1",
            "no\n[exit 1, T]\n",
            "exit 1 · 1 line",
            false,
        ),
        (
            "printf no; exit 1",
            "no\n[exit 1, T]\n",
            "exit 1 · 1 line",
            false,
        ),
        (
            "kill -9 $$",
            "[killed by signal 9, T]\n",
            "killed by signal 9",
            false,
        ),
        (
            "sleep 1000 & echo out",
            "out\n[1 process left in the background was ended]\n[exit 0, T]\n",
            "exit 0 · 1 line",
            true,
        ),
        (
            "-x",
            "bash: line 1: -x: command not found\n[exit 127, T]\n",
            "exit 127 · 1 line",
            false,
        ),
    ];

    for (command, body, shown, success) in cases {
        let output = call(&serde_json::json!({"command": command}), None).await;
        assert_eq!(
            told(&output),
            (body.to_owned(), shown, success, CallEnding::Ran),
            "{command}"
        );
    }
}

#[tokio::test]
async fn a_call_that_is_stopped_keeps_what_came() {
    let output = call(
        &serde_json::json!({"command": "echo one; echo two; exec sleep 1000"}),
        Some("two"),
    )
    .await;

    assert_eq!(
        told(&output),
        (
            "one\ntwo\n[stopped after T]\n".to_owned(),
            "stopped · 2 lines",
            false,
            CallEnding::Stopped
        )
    );
}

#[tokio::test]
async fn a_call_that_takes_too_long_says_so() {
    let output = call(
        &serde_json::json!({"command": "echo one; exec sleep 1000", "timeout": 1}),
        None,
    )
    .await;

    assert_eq!(
        told(&output),
        (
            "one\n[stopped after 1 s; `timeout` sets another limit, up to T]\n".to_owned(),
            "stopped after 1 s · 1 line",
            false,
            CallEnding::Stopped
        )
    );
}

#[tokio::test]
async fn a_call_starts_where_it_is_told() {
    let there = call(
        &serde_json::json!({"command": "pwd", "workdir": "usr/../usr"}),
        None,
    )
    .await;
    let nowhere = call(
        &serde_json::json!({"command": "pwd", "workdir": "/no"}),
        None,
    )
    .await;

    assert_eq!(told(&there).0, "/usr\n[exit 0, T]\n");
    assert_eq!(
        told(&nowhere),
        (
            "`/no` is not a directory".to_owned(),
            "`/no` is not a directory",
            false,
            CallEnding::Ran
        )
    );
}

#[tokio::test]
async fn a_child_finds_its_cookie_and_no_key() {
    let output = call(
        &serde_json::json!({"command": "env | grep -c '^IKIGAI_RUN=bash-'; env | grep -E '^TERM='; env | grep -ci 'api_key'"}),
        None,
    )
    .await;

    assert_eq!(told(&output).0, "1\nTERM=dumb\n0\n[exit 1, T]\n");
}

#[tokio::test]
async fn no_command_waits_for_an_editor_or_a_pager() {
    let line = "echo $EDITOR $VISUAL $GIT_EDITOR $PAGER $GIT_PAGER $TERM $AGENT";

    let output = call(&serde_json::json!({"command": line}), None).await;

    assert_eq!(
        told(&output).0,
        "true true true cat cat dumb ikigai\n[exit 0, T]\n"
    );
}

#[tokio::test]
async fn temporary_files_go_to_a_private_directory_that_is_removed() {
    let work = tempfile::tempdir().unwrap();
    let context = sandboxed(work.path());
    let temporary = context.temporary.clone().unwrap();
    let command = serde_json::json!({"command": "mktemp -p \"$TMPDIR\" a.XXXX > /dev/null; echo \"$TMPDIR\""});

    let first = call_in(&command, context.clone()).await;
    let second = call_in(&command, context).await;

    let path = temporary.path().unwrap().to_path_buf();
    let name = path.display();
    assert_eq!(told(&first).0, format!("{name}\n[exit 0, T]\n"));
    assert_eq!(told(&second).0, format!("{name}\n[exit 0, T]\n"));
    assert_eq!(fs::read_dir(&path).unwrap().count(), 2);
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o700
    );

    drop(temporary);

    assert!(!path.exists());
}

#[tokio::test]
async fn a_failure_in_the_sandbox_is_explained() {
    let work = tempfile::tempdir().unwrap();
    let command = serde_json::json!({"command": "touch /usr/ikigai-test-file"});

    let output = call_in(&command, sandboxed(work.path())).await;

    let body = told(&output).0;
    assert!(
        body.contains("[probably the sandbox: commands can write only in "),
        "{body}"
    );
    assert!(!output.success);
}

#[tokio::test]
async fn changed_files_that_the_model_had_read_are_named() {
    let work = tempfile::tempdir().unwrap();
    let workdir = work.path().canonicalize().unwrap();
    let read = |name: &str| {
        fs::write(workdir.join(name), "old").unwrap();
        ReadFile {
            path: workdir.join(name),
            hash: hex(&Sha256::digest("old")),
        }
    };
    let names = ["changed", "same", "mode", "gone", "restored"];
    let mut context = sandboxed(&workdir);
    context.temporary = None;
    context.inputs.read_files = names.map(read).to_vec();
    let line = "echo new > changed; chmod +x mode; rm gone; echo new > restored; \
                printf old > restored; echo new > never-read";

    let output = call_in(&serde_json::json!({"command": line}), context).await;

    assert_eq!(
        told(&output).0,
        "[this changed files that you had read: `changed`, `gone`; read them again]\n[exit 0, T]\n"
    );
}
