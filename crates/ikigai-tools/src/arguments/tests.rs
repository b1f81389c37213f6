use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Aliases, ToolArguments, convert_timeout, display_text, read, schema_of};

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Example {
    /// Text to find.
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

impl ToolArguments for Example {
    const ALIASES: Aliases = &[("query", "pattern"), ("-n", "count")];
}

#[test]
fn schemas_have_only_plain_words() {
    assert_eq!(
        schema_of::<Example>(),
        json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "Text to find."},
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
    let long = format!(r#"{{"{}": 1}}"#, "x".repeat(10_000));
    let table = [
        ("", "missing field `pattern`"),
        ("{}", "missing field `pattern`"),
        ("nonsense", "this is not a JSON object"),
        ("{nonsense", "key must be a string"),
        (r#"{"pattern": {}}"#, "invalid type: map, expected a string"),
        (
            r#"{"patern": "a"}"#,
            "missing field `pattern`; ignored unknown field `patern`",
        ),
        (
            r#"{"pattern": "a", "query": "b"}"#,
            "`pattern` and `query` mean the same and differ; give only `pattern`",
        ),
        (
            r#"{"query": "a", "query": "b"}"#,
            "`query` is given twice, with different values",
        ),
        (r#"{"pattern": "a", "count": -1}"#, "expected u64"),
        (r#"{"pattern": "a", "count": "many"}"#, "expected u64"),
        (
            r#"{"pattern": "a", "mode": "left"}"#,
            "unknown variant `left`, expected `up` or `down`",
        ),
        (r#"["a"]"#, "this is not a JSON object"),
        (&long, "ignored unknown field `xxx"),
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
    let example = read::<Example>(r#"{"pattern": "a", "count": null, "other": null}"#).unwrap();

    assert_eq!(example.remark, None);
    assert_eq!(
        example.values,
        Example {
            pattern: "a".to_owned(),
            count: None,
            mode: None
        }
    );
}

#[test]
fn arguments_that_were_cut_off_propose_smaller_steps() {
    let whole = r#"{"pattern": "two words", "count": 12}"#;

    for end in 1..whole.len() {
        let reason = read::<Example>(&whole[..end]).unwrap_err().0;
        let expected = format!(
            "the call was cut off by the limit of the answer's length: its arguments end after {end} \
             bytes, so nothing was done. Make smaller steps: "
        );
        assert!(reason.starts_with(&expected), "{reason}");
    }
    assert!(read::<Example>(whole).is_ok());
}

#[test]
fn other_spellings_are_resolved_once() {
    let table = [
        (r#"{"query": "a"}"#, r#"pattern="a""#, None),
        (r#"{"Query": 5}"#, r#"pattern="5""#, None),
        (r#"{"pattern": "a", "query": "a"}"#, r#"pattern="a""#, None),
        (
            r#"{"pattern": "a", "-n": "7"}"#,
            r#"count=7 pattern="a""#,
            None,
        ),
        (
            r#"{"pattern": "a", "count": 7.0}"#,
            r#"count=7 pattern="a""#,
            None,
        ),
        (
            r#"{"pattern": "a", "mode": "Up", "description": "why"}"#,
            r#"mode="up" pattern="a""#,
            None,
        ),
        (
            r#"{"pattern": "a", "depth": 3}"#,
            r#"pattern="a""#,
            Some("ignored unknown field `depth`"),
        ),
        (
            r#"{"pattern": "a", "depth": 3, "two\nlines": 0}"#,
            r#"pattern="a""#,
            Some("ignored unknown fields `depth`, `two lines`"),
        ),
    ];

    for (text, shown, remark) in table {
        let call = read::<Example>(text).unwrap();
        assert_eq!(call.shown, shown, "{text}");
        assert_eq!(call.remark.as_deref(), remark, "{text}");
    }
}

#[test]
fn timeouts_may_be_in_milliseconds() {
    let table = [
        (json!({"timeout": 30}), Ok(json!({"timeout": 30}))),
        (json!({"timeout": 3600}), Ok(json!({"timeout": 3600}))),
        (json!({"timeout": 5_000}), Ok(json!({"timeout": 5}))),
        (json!({"timeout": 120_000}), Ok(json!({"timeout": 120}))),
        (json!({"timeout": 90_500}), Ok(json!({"timeout": 91}))),
        // Two hours, which the tool refuses.
        (json!({"timeout": 7_200}), Ok(json!({"timeout": 7_200}))),
        (json!({"timeout_ms": 1500}), Ok(json!({"timeout": 2}))),
        (json!({"timeout_ms": "90000"}), Ok(json!({"timeout": 90}))),
        (
            json!({"timeout_ms": 2000, "timeout": 2}),
            Ok(json!({"timeout": 2})),
        ),
        (
            json!({"timeout_ms": 2000, "timeout": 3}),
            Err("`timeout` and `timeout_ms` differ; give only `timeout`, in seconds"),
        ),
        (
            json!({"timeout_ms": "soon"}),
            Err("`timeout_ms` must be a number of milliseconds"),
        ),
        // Too long in either unit, which the tool refuses.
        (
            json!({"timeout": 9_000_000}),
            Ok(json!({"timeout": 9_000_000})),
        ),
    ];

    for (fields, expected) in table {
        let mut converted = fields.as_object().unwrap().clone();
        let outcome = convert_timeout(&mut converted, 3600);
        let outcome = outcome.map(|()| serde_json::Value::Object(converted));
        assert_eq!(outcome, expected.map_err(str::to_owned), "{fields}");
    }
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
        assert_eq!(display_text(text), expected);
    }
    assert_eq!(display_text(&long), format!("a=\"{}\"", "x".repeat(500)));
}
