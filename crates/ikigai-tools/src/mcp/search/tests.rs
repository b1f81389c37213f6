use super::*;

fn spec(name: &str, description: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({"type": "object"}),
        facts: ToolFacts::default(),
    }
}

#[test]
fn a_call_by_name_is_taken_apart() {
    let cases = [
        (
            r#"{"tool": "mcp__a__b", "arguments": {"x": 1}}"#,
            Some(("mcp__a__b", r#"{"x":1}"#)),
        ),
        (
            r#"{"tool": "mcp__a__b", "arguments": "{\"x\": 1}"}"#,
            Some(("mcp__a__b", r#"{"x": 1}"#)),
        ),
        (r#"{"tool": "mcp__a__b"}"#, Some(("mcp__a__b", "{}"))),
        // It is no way around the rules of other tools.
        (r#"{"tool": "bash", "arguments": {"command": "x"}}"#, None),
        (r#"{"tool": "mcp_call", "arguments": {}}"#, None),
        ("", None),
    ];

    for (arguments, expected) in cases {
        let expected = expected.map(|(tool, given)| (tool.to_owned(), given.to_owned()));
        assert_eq!(called_by_name(CALL, arguments), expected, "{arguments}");
    }
    assert_eq!(called_by_name("bash", r#"{"tool": "mcp__a__b"}"#), None);
}

#[test]
fn a_search_prefers_names_and_returns_schemas() {
    let specs = vec![
        spec("mcp__a__log", "shows a list"),
        spec("mcp__a__list", "shows it"),
        spec("mcp__a__other", "does nothing"),
    ];

    let output = found(specs.clone(), "LIST");

    let body = String::from_utf8(output.body).unwrap();
    let lines: Vec<Value> = body
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["name"], "mcp__a__list");
    assert_eq!(lines[0]["parameters"], json!({"type": "object"}));
    assert_eq!(lines[1]["name"], "mcp__a__log");
    assert_eq!(lines.len(), 2);
    assert_eq!(output.shown, "2 tools");
    let all = found(specs, " ");
    assert_eq!(all.body, b"mcp__a__log\nmcp__a__list\nmcp__a__other");
}
