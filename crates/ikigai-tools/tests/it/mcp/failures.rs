//! Servers that fail: named errors, no waiting, and the next call works.

use ikigai_tools::mcp::{McpDefinition, McpStatusPhase};

use super::{Machine, SHORT, call, names, status};

#[tokio::test]
async fn a_server_that_dies_in_a_call_fails_it_at_once_and_runs_again() {
    let machine = Machine::new(
        r#"case $line in *die*) echo "out of luck" >&2; exit 3 ;; *) text alive ;; esac"#,
    );
    let servers = machine.servers(&machine.definition());
    let workdir = machine.workdir();
    servers.settle(&workdir).await;

    let died = call(&servers, &workdir, r#"{"say": "die"}"#).await;
    let next = call(&servers, &workdir, r#"{"say": "go"}"#).await;

    assert!(!died.success);
    assert_eq!(
        died.shown,
        "the MCP server `test` ended during the call, whose outcome is unknown: \
         it ended with exit 3: out of luck"
    );
    assert_eq!(next.shown, "alive");
    assert_eq!(machine.starts(), 2);
}

#[tokio::test]
async fn a_server_that_does_not_answer_a_call_times_out() {
    let machine = Machine::new(r"case $line in *hang*) ;; *) text alive ;; esac");
    let servers = machine.servers(&McpDefinition {
        tool_timeout: Some(SHORT.as_secs()),
        ..machine.definition()
    });
    let workdir = machine.workdir();
    servers.settle(&workdir).await;

    let hung = call(&servers, &workdir, r#"{"say": "hang"}"#).await;
    let next = call(&servers, &workdir, r#"{"say": "go"}"#).await;

    assert_eq!(
        hung.shown,
        "the MCP server `test` did not answer within 1 s; the call was cancelled"
    );
    assert_eq!(next.shown, "alive");
    assert_eq!(machine.starts(), 1);
}

#[tokio::test]
async fn a_server_that_floods_is_ended_and_runs_again() {
    let machine = Machine::new(
        r#"case $line in *flood*) yes '{"jsonrpc":"2.0","method":"notifications/x"}' ;; *) text alive ;; esac"#,
    );
    let servers = machine.servers(&machine.definition());
    let workdir = machine.workdir();
    servers.settle(&workdir).await;

    let flooded = call(&servers, &workdir, r#"{"say": "flood"}"#).await;
    let next = call(&servers, &workdir, r#"{"say": "go"}"#).await;

    assert!(
        flooded
            .shown
            .contains("more than 5000 messages in a second"),
        "{}",
        flooded.shown
    );
    assert_eq!(next.shown, "alive");
}

#[tokio::test]
async fn an_endless_message_ends_the_server() {
    let machine =
        Machine::new(r"case $line in *long*) printf '{'; cat /dev/zero ;; *) text alive ;; esac");
    let servers = machine.servers(&machine.definition());
    let workdir = machine.workdir();
    servers.settle(&workdir).await;

    let long = call(&servers, &workdir, r#"{"say": "long"}"#).await;
    let next = call(&servers, &workdir, r#"{"say": "go"}"#).await;

    assert!(
        long.shown.contains("a message of more than"),
        "{}",
        long.shown
    );
    assert_eq!(next.shown, "alive");
}

#[tokio::test]
async fn a_server_that_cannot_start_has_a_reason_and_no_tools() {
    let machine = Machine::of_script("#!/bin/bash\necho 'no database' >&2\nexit 1\n");
    let servers = machine.servers(&machine.definition());
    let workdir = machine.workdir();

    servers.settle(&workdir).await;

    assert_eq!(names(&servers, &workdir).await, Vec::<String>::new());
    let status = status(&servers, &workdir).await;
    let reason = "it ended with exit 1: no database".to_owned();
    assert_eq!(status.phase, McpStatusPhase::Failed(reason));
    assert!(status.errors.contains(&"no database".to_owned()));
}

#[tokio::test]
async fn a_missing_program_has_a_reason() {
    let machine = Machine::new("text x");
    let servers = machine.servers(&McpDefinition {
        command: Some("/no/such/program".to_owned()),
        ..machine.definition()
    });
    let workdir = machine.workdir();

    servers.settle(&workdir).await;

    let status = status(&servers, &workdir).await;
    let described = status.describe_phase();
    assert!(
        described.starts_with("failed: cannot start `/no/such/program`"),
        "{described}"
    );
}

#[tokio::test]
async fn a_server_that_never_answers_blocks_no_request() {
    let machine = Machine::of_script("#!/bin/bash\nexec sleep 1000\n");
    let servers = machine.servers(&McpDefinition {
        startup_timeout: Some(SHORT.as_secs()),
        ..machine.definition()
    });
    let workdir = machine.workdir();

    servers.settle(&workdir).await;
    // The request goes on; the start may still fail.
    servers.connect(&workdir).await;

    let status = status(&servers, &workdir).await;
    let reason = "it did not answer within 1 s".to_owned();
    assert_eq!(status.phase, McpStatusPhase::Failed(reason));
}

#[tokio::test]
async fn processes_of_a_server_end_with_ikigai() {
    let mark = crate::support::unique("server");
    let machine = Machine::new(&format!(
        "text x; (exec -a {mark} sleep 1000) & setsid bash -c 'exec -a {mark} sleep 1000' &"
    ));
    let servers = machine.servers(&machine.definition());
    let workdir = machine.workdir();
    servers.settle(&workdir).await;
    call(&servers, &workdir, r#"{"say": "x"}"#).await;
    // The second call is answered after the processes were started.
    call(&servers, &workdir, r#"{"say": "x"}"#).await;

    drop(servers);

    // The task that owns the processes is dropped at its next turn.
    tokio::time::timeout(crate::support::PATIENCE, async {
        while !crate::support::with_argument(&mark).is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}
