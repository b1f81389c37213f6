//! `bash` as the engine calls it.

use std::path::PathBuf;
use std::sync::Arc;

use ikigai_tools::builtin::bash::Bash;
use ikigai_tools::{CallContext, CallEnding, Confinement, Given, Output, Place, Run, Tool};
use tokio_util::sync::CancellationToken;

use crate::support::unique;

fn place(workdir: impl Into<PathBuf>) -> Place {
    Place {
        workdir: workdir.into(),
        hidden: Arc::from([]),
    }
}

async fn call(arguments: &serde_json::Value, stop_at: Option<&'static str>) -> Output {
    let place = place("/");
    let prepared = Bash::default()
        .prepare(&arguments.to_string(), &place)
        .unwrap();
    let stop = CancellationToken::new();
    let stopper = stop.clone();
    let context = CallContext {
        place,
        stop,
        given: Given::default(),
        progress: Arc::new(move |line| {
            if Some(line) == stop_at {
                stopper.cancel();
            }
        }),
        output: Arc::new(|_| {}),
        cookie: unique("bash"),
        confinement: Confinement::None,
    };
    match prepared.run {
        Run::Async(run) => run(context).await,
        Run::Blocking(_) => panic!("bash does not block"),
    }
}

fn told(output: &Output) -> (&str, &str, bool, CallEnding) {
    let body = std::str::from_utf8(&output.body).unwrap();
    (body, &output.shown, output.success, output.ending)
}

#[tokio::test]
async fn ignored_fields_are_named_once_in_the_result() {
    let arguments = serde_json::json!({"cmd": "printf one", "tty": true, "login": true});

    let output = call(&arguments, None).await;

    let body = std::str::from_utf8(&output.body).unwrap();
    assert_eq!(body, "one\n[ignored unknown fields `login`, `tty`]\n");
}

#[tokio::test]
async fn the_result_says_what_came_and_how_it_ended() {
    let cases = [
        ("echo one", "one\n", "one", true),
        ("printf one", "one", "one", true),
        ("seq 3", "1\n2\n3\n", "exit 0 · 3 lines", true),
        ("true", "", "exit 0", true),
        ("exit 3", "exit 3", "exit 3", false),
        (
            "echo no >&2; exit 1",
            "no\nexit 1",
            "exit 1 · 1 line",
            false,
        ),
        ("printf no; exit 1", "no\nexit 1", "exit 1 · 1 line", false),
        (
            "kill -9 $$",
            "killed by signal 9",
            "killed by signal 9",
            false,
        ),
        (
            "sleep 1000 & echo out",
            "out\n1 process left in the background was ended",
            "exit 0 · 1 line",
            true,
        ),
        (
            "-x",
            "bash: line 1: -x: command not found\nexit 127",
            "exit 127 · 1 line",
            false,
        ),
    ];

    for (command, body, shown, success) in cases {
        let output = call(&serde_json::json!({"command": command}), None).await;
        assert_eq!(
            told(&output),
            (body, shown, success, CallEnding::Ran),
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
            "one\ntwo\nstopped",
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
            "one\nstopped after 1 s",
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

    assert_eq!(told(&there).0, "/usr\n");
    assert_eq!(
        told(&nowhere),
        (
            "`/no` is not a directory",
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

    assert_eq!(told(&output).0, "1\nTERM=dumb\n0\nexit 1");
}
