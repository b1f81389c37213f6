//! MCP servers of the configuration and of a trusted project, as commands show them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::support::TestUser;

/// Server with one tool that prints its variable `API_TOKEN` to standard error.
const SERVER: &str = r#"#!/bin/bash
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
echo "token is $API_TOKEN" >&2
[ "$1" = fail ] && exit 3
while IFS= read -r line; do
  id=$(sed -n 's/.*"id":\([0-9]*\).*/\1/p' <<< "$line")
  case $line in
    *'"method":"initialize"'*) reply '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}' ;;
    *'"method":"tools/list"'*) reply '{"tools":[{"name":"one","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  esac
done
"#;

fn server_of(user: &TestUser) -> PathBuf {
    let path = user.home().join("project").join("server");
    fs::write(&path, SERVER).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn servers_are_added_listed_and_removed() {
    let user = TestUser::new();
    let server = server_of(&user);
    let server = server.to_str().unwrap();
    let token = "API_TOKEN=secret-0123456789";

    let added = user.ikigai(&["mcp", "add", "good", server]);
    assert_eq!(added.code, Some(0), "{}", added.err);
    let listed = user.ikigai(&["mcp", "list"]);
    assert_eq!(listed.code, Some(0), "{} {}", listed.out, listed.err);
    assert!(
        listed.out.contains("● good  connected · 1 tool\n"),
        "{}",
        listed.out
    );

    user.ikigai(&["mcp", "add", "--env", token, "bad", server, "fail"]);
    let listed = user.ikigai(&["mcp", "list"]);
    assert_eq!(listed.code, Some(1));
    let failed = "✗ bad  failed: it ended with exit 3: token is [blanked]\n";
    assert!(listed.out.contains(failed), "{}", listed.out);
    assert!(
        listed.out.contains("  | token is [blanked]\n"),
        "{}",
        listed.out
    );
    assert!(listed.out.contains("● good"), "{}", listed.out);
    let shown = user.ikigai(&["config"]);
    assert!(!shown.out.contains("secret-0123456789"), "{}", shown.out);
    let doctor = user.ikigai(&["doctor"]);
    let good = "ok       MCP server good: connected · 1 tool\n";
    assert!(doctor.out.contains(good), "{}", doctor.out);
    let bad = "warning  MCP server bad: failed: it ended with exit 3: token is [blanked]\n";
    assert!(doctor.out.contains(bad), "{}", doctor.out);
    let command = user.ikigai(&["run", "/mcp"]);
    assert!(command.out.contains("good"), "{}", command.out);

    assert_eq!(user.ikigai(&["mcp", "remove", "bad"]).code, Some(0));
    assert_eq!(user.ikigai(&["mcp", "remove", "bad"]).code, Some(1));
    assert_eq!(user.ikigai(&["mcp", "list"]).code, Some(0));
}

#[test]
fn servers_of_a_project_run_once_it_is_trusted() {
    let user = TestUser::new();
    let server = server_of(&user);
    let definition = serde_json::json!({"mcpServers": {"theirs": {"command": server}}});
    fs::write(
        user.home().join("project").join(".mcp.json"),
        definition.to_string(),
    )
    .unwrap();

    let before = user.ikigai(&["mcp", "list"]);
    let trusted = user.ikigai(&["trust", "--yes"]);
    let after = user.ikigai(&["mcp", "list"]);

    assert!(!before.out.contains("theirs"), "{}", before.out);
    assert_eq!(trusted.code, Some(0), "{}", trusted.err);
    assert!(
        after.out.contains("● theirs  connected · 1 tool\n"),
        "{}",
        after.out
    );
}
