use serde_json::json;

use super::*;

#[test]
fn what_does_not_fit_is_named() {
    let schema = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "share": {"type": ["number", "null"]},
            "mode": {"enum": ["fast", "slow"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "place": {
                "type": "object",
                "properties": {"line": {"type": "integer"}},
                "required": ["line"],
            },
        },
        "required": ["text"],
        "additionalProperties": false,
    });
    let cases = [
        (json!({"text": "a"}), Ok(())),
        (
            json!({"text": "a", "count": 2, "share": null, "mode": "slow", "tags": ["x"],
                   "place": {"line": 1, "more": true}}),
            Ok(()),
        ),
        (json!({"text": "a", "count": 2.0}), Ok(())),
        (json!([]), Err("they must be an object, not array")),
        (json!("text"), Err("they must be an object, not string")),
        (json!({}), Err("`text` is missing")),
        (json!({"text": 1}), Err("`text` must be string, not number")),
        (
            json!({"text": "a", "count": 1.5}),
            Err("`count` must be integer, not number"),
        ),
        (
            json!({"text": "a", "share": "x"}),
            Err("`share` must be number or null, not string"),
        ),
        (
            json!({"text": "a", "mode": "x"}),
            Err("`mode` must be one of \"fast\", \"slow\""),
        ),
        (
            json!({"text": "a", "tags": ["x", 1]}),
            Err("`tags[1]` must be string, not number"),
        ),
        (
            json!({"text": "a", "place": {}}),
            Err("`place.line` is missing"),
        ),
        (json!({"text": "a", "x": 1}), Err("there is no `x`")),
    ];

    for (value, expected) in cases {
        assert_eq!(
            check(&value, &schema),
            expected.map_err(str::to_owned),
            "{value}"
        );
    }
}

#[test]
fn a_schema_that_says_nothing_takes_any_object() {
    for schema in [json!({}), json!(true), json!({"type": "strange"}), json!(7)] {
        assert_eq!(check(&json!({"a": [1, {"b": null}]}), &schema), Ok(()));
    }
}
