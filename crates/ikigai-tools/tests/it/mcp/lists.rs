//! Lists of tools: cached, changed, bounded and cleaned.

use ikigai_tools::mcp::{McpDefinition, McpStatusPhase};

use super::{Machine, SERVER, call, names, status};

#[tokio::test]
async fn known_tools_are_offered_before_the_server_runs() {
    let machine = Machine::new("text x");
    let workdir = machine.workdir();
    machine
        .servers(&machine.definition())
        .settle(&workdir)
        .await;

    let servers = machine.servers(&machine.definition());

    assert_eq!(names(&servers, &workdir).await, ["mcp__test__echo"]);
    let status = status(&servers, &workdir).await;
    assert_eq!(status.phase, McpStatusPhase::Idle);
    assert_eq!(machine.starts(), 1);
    // A call starts it.
    assert_eq!(call(&servers, &workdir, r#"{"say": "x"}"#).await.shown, "x");
}

#[tokio::test]
async fn another_definition_has_other_tools() {
    let machine = Machine::new("text x");
    let workdir = machine.workdir();
    machine
        .servers(&machine.definition())
        .settle(&workdir)
        .await;

    let servers = machine.servers(&McpDefinition {
        args: vec!["other".to_owned()],
        ..machine.definition()
    });

    assert_eq!(names(&servers, &workdir).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_changed_list_is_read_again() {
    let machine = Machine::new(
        r#"TOOLS=${TOOLS/echo/other}; printf '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'; text changed"#,
    );
    let servers = machine.servers(&machine.definition());
    let workdir = machine.workdir();
    servers.settle(&workdir).await;

    call(&servers, &workdir, r#"{"say": "x"}"#).await;

    tokio::time::timeout(crate::support::PATIENCE, async {
        while names(&servers, &workdir).await != ["mcp__test__other"] {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn unusable_tools_are_left_out_with_a_reason() {
    let big = format!(
        r#"{{"name":"big","inputSchema":{{"type":"object","description":"{}"}}}}"#,
        "x".repeat(40_000)
    );
    let tools = [
        r#"{"name":"a b","inputSchema":{"type":"object"}}"#,
        r#"{"name":"a_b","inputSchema":{"type":"object"}}"#,
        &big,
        r#"{"name":"list","inputSchema":{"type":"array"}}"#,
        r#"{"name":"off","inputSchema":{"type":"object"}}"#,
    ];
    let list = format!("TOOLS='{{\"tools\":[{}]}}'", tools.join(","));
    let script = SERVER.replace("CALL", "text x");
    let script: Vec<&str> = script
        .lines()
        .map(|line| {
            if line.starts_with("TOOLS=") {
                list.as_str()
            } else {
                line
            }
        })
        .collect();
    let machine = Machine::of_script(&script.join("\n"));
    let servers = machine.servers(&McpDefinition {
        disabled_tools: vec!["off".to_owned()],
        ..machine.definition()
    });
    let workdir = machine.workdir();

    servers.settle(&workdir).await;

    let status = status(&servers, &workdir).await;
    assert_eq!(status.tools, ["mcp__test__a_b"]);
    let refused: Vec<_> = status
        .refused
        .iter()
        .map(|(name, reason)| (name.as_str(), reason.as_str()))
        .collect();
    assert_eq!(
        refused,
        [
            ("a_b", "another tool has its name"),
            ("big", "its schema is larger than 32 KB"),
            ("list", "its arguments are not an object"),
        ]
    );
}

#[tokio::test]
async fn a_server_that_ends_at_an_unknown_method_is_asked_in_the_older_way() {
    let script = SERVER
        .replace("CALL", "text x")
        .replace("refuse -32601 'Method not found'", "exit 1");
    let machine = Machine::of_script(&script);
    let servers = machine.servers(&machine.definition());
    let workdir = machine.workdir();

    servers.settle(&workdir).await;

    assert_eq!(names(&servers, &workdir).await, ["mcp__test__echo"]);
    assert_eq!(machine.starts(), 2);
}
