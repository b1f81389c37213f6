use serde_json::json;

use super::AgentTool;

#[test]
fn calls_of_other_programs_are_not_refused_for_their_shape() {
    let table = [
        (
            "claude-code Task",
            AgentTool::Fork,
            json!({"description": "Find it", "prompt": "look", "subagent_type": "Explore"}),
            r#"kind="explore" prompt="look""#,
            None,
        ),
        (
            "claude-code Task",
            AgentTool::Fork,
            json!({"description": "Find it", "prompt": "look", "subagent_type": "general-purpose"}),
            r#"prompt="look""#,
            None,
        ),
        (
            "codex spawn_agent",
            AgentTool::Fork,
            json!({"message": "look", "context": "Inherit"}),
            r#"context="inherit" prompt="look""#,
            None,
        ),
        (
            "codex send_input",
            AgentTool::Send,
            json!({"id": "fix", "message": "go on", "interrupt": false}),
            r#"message="go on" to="fix""#,
            Some("ignored unknown field `interrupt`"),
        ),
        (
            "codex wait",
            AgentTool::Wait,
            json!({"ids": ["a", "b"], "timeout_ms": 30_000}),
            r#"agents=["a","b"] timeout=30"#,
            None,
        ),
        (
            "other wait",
            AgentTool::Wait,
            json!({"agents": "a", "timeout": "60"}),
            r#"agents=["a"] timeout=60"#,
            None,
        ),
        (
            "other wait",
            AgentTool::Wait,
            json!({"agents": "[\"a\", 2]"}),
            r#"agents=["a","2"]"#,
            None,
        ),
        (
            "codex close_agent",
            AgentTool::Kill,
            json!({"id": "fix"}),
            r#"agent="fix""#,
            None,
        ),
        (
            "recall by number",
            AgentTool::Recall,
            json!({"row": 12, "page": "2"}),
            r#"page=2 row="12""#,
            None,
        ),
        (
            "recall by pattern",
            AgentTool::Recall,
            json!({"pattern": "lexer", "limit": "5"}),
            r#"limit=5 query="lexer""#,
            None,
        ),
    ];

    for (program, tool, arguments, shown, remark) in table {
        let resolved = tool.resolve(&arguments.to_string());
        let expected = (shown.to_owned(), remark.map(str::to_owned));
        assert_eq!(resolved, Some(expected), "{program}: {arguments}");
    }
}
