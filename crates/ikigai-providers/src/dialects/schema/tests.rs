use serde_json::json;

use super::{is_strict, object_schema, without};

#[test]
fn a_schema_becomes_a_plain_object() {
    let table = [
        (json!(null), json!({"type": "object", "properties": {}})),
        (
            json!({"type": "object"}),
            json!({"type": "object", "properties": {}}),
        ),
        (
            json!({"$schema": "x", "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
        ),
        (
            json!({"oneOf": [
                {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"properties": {"b": {"type": "number"}}, "required": ["b"]},
            ]}),
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}}}),
        ),
        (
            json!({"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}], "required": []}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
        ),
    ];
    for (given, expected) in table {
        assert_eq!(object_schema(&given), expected, "{given}");
        assert_eq!(object_schema(&expected), expected, "{given} twice");
    }
}

#[test]
fn strict_mode_takes_only_closed_objects_that_need_all_their_properties() {
    let text = json!({"type": "string"});
    let table = [
        (
            json!({"type": "object", "additionalProperties": false, "properties": {}}),
            true,
        ),
        (json!({"type": "object", "properties": {}}), false),
        (
            json!({"type": "object", "additionalProperties": false}),
            false,
        ),
        (
            json!({"type": "object", "additionalProperties": false, "properties": {"a": text}, "required": ["a"]}),
            true,
        ),
        (
            json!({"type": "object", "additionalProperties": false, "properties": {"a": text}}),
            false,
        ),
        (
            json!({"type": "object", "additionalProperties": false, "required": ["a"],
                "properties": {"a": {"type": "string", "default": "x"}}}),
            false,
        ),
        (
            json!({"type": "object", "additionalProperties": false, "required": ["a"],
                "properties": {"a": {"type": "array", "items": {"type": "object"}}}}),
            false,
        ),
        (
            json!({"type": "object", "additionalProperties": false, "required": ["a"],
                "properties": {"a": {"type": ["array", "null"], "items": text}}}),
            true,
        ),
        (
            json!({"type": "object", "additionalProperties": false, "required": ["a"],
                "properties": {"a": {"description": "anything"}}}),
            false,
        ),
    ];
    for (schema, expected) in table {
        assert_eq!(is_strict(&schema), expected, "{schema}");
    }
}

#[test]
fn forbidden_keywords_go_and_properties_of_that_name_stay() {
    let schema = json!({
        "type": "object", "default": {}, "additionalProperties": {"default": 1, "type": "number"},
        "properties": {"default": {"type": "string", "default": "x"}},
        "anyOf": [{"default": 2, "enum": ["default"]}],
    });

    let expected = json!({
        "type": "object", "additionalProperties": {"type": "number"},
        "properties": {"default": {"type": "string"}},
        "anyOf": [{"enum": ["default"]}],
    });
    assert_eq!(without(&schema, &["default"]), expected);
}
