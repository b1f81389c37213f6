use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{read, schema_of, shown};

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Example {
    /// What to look for.
    pattern: String,
    /// How many.
    #[serde(default)]
    count: Option<u64>,
    /// Which way.
    #[serde(default)]
    mode: Option<Mode>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Up,
    Down,
}

#[test]
fn schemas_have_only_plain_words() {
    assert_eq!(
        schema_of::<Example>(),
        json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "What to look for."},
                "count": {"type": "integer", "minimum": 0, "description": "How many."},
                "mode": {"type": "string", "enum": ["up", "down"], "description": "Which way."},
            },
            "required": ["pattern"],
            "additionalProperties": false,
        })
    );
}

#[test]
fn arguments_that_do_not_fit_say_what_is_wanted() {
    let long = format!(r#"{{"pattern": "a", "{}": 1}}"#, "x".repeat(10_000));
    let table = [
        ("", "missing field `pattern`"),
        ("{}", "missing field `pattern`"),
        ("nonsense", "this is no JSON object"),
        ("{nonsense", "key must be a string"),
        (
            r#"{"pattern": 5}"#,
            "invalid type: integer `5`, expected a string",
        ),
        (r#"{"pattern": "a", "path": "b"}"#, "unknown field `path`"),
        (r#"{"pattern": "a", "count": -1}"#, "expected u64"),
        (
            r#"{"pattern": "a", "mode": "left"}"#,
            "unknown variant `left`, expected `up` or `down`",
        ),
        (r#"["a"]"#, "this is no JSON object"),
        (&long, "unknown field `xxx"),
    ];

    for (text, complaint) in table {
        let reason = read::<Example>(text).unwrap_err().0;
        assert!(reason.contains(complaint), "{text}: {reason}");
        assert!(reason.contains(&schema_of::<Example>().to_string()));
        assert!(reason.len() < 1_500, "{reason}");
    }
}

#[test]
fn a_null_is_as_good_as_nothing() {
    let example: Example = read(r#"{"pattern": "a", "count": null}"#).unwrap();

    assert_eq!(
        example,
        Example {
            pattern: "a".to_owned(),
            count: None,
            mode: None
        }
    );
}

#[test]
fn a_call_is_shown_exactly_and_whole() {
    let table = [
        (
            r#"{"pattern": "**/*.rs"}"#,
            r#"pattern="**/*.rs""#.to_owned(),
        ),
        (
            r#"{"a": 1, "b": [true], "c": null}"#,
            "a=1 b=[true] c=null".to_owned(),
        ),
        (
            r#"{"a": "two\nlines \u001b[31mred"}"#,
            r#"a="two\nlines \u001b[31mred""#.to_owned(),
        ),
        (r#"{"a b=\"c": 1}"#, r#""a b=\"c"=1"#.to_owned()),
        ("not\n json", "not\n json".to_owned()),
        ("{}", String::new()),
        ("", String::new()),
    ];
    let long = json!({"a": "x".repeat(500)}).to_string();

    for (text, expected) in table {
        assert_eq!(shown(text), expected);
    }
    assert_eq!(shown(&long), format!("a=\"{}\"", "x".repeat(500)));
}
