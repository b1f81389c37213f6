//! Common rules of the OpenAI dialects.

use serde_json::{Map, Value};

/// Returns a text that must be present and not empty.
pub(super) fn text<'a>(object: &'a Value, key: &str) -> Result<&'a str, String> {
    let text = object.get(key).and_then(Value::as_str);
    text.filter(|text| !text.is_empty())
        .ok_or_else(|| format!("`{key}` is missing or empty"))
}

/// Checks a JSON object in text form.
pub(super) fn object_text(object: &Value, key: &str) -> Result<(), String> {
    let text = text(object, key)?;
    let parsed = serde_json::from_str::<Map<String, Value>>(text);
    parsed
        .map(drop)
        .map_err(|error| format!("`{key}` is no object: {error}"))
}

/// Checks the name of a tool, or the id of a call.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    if super::is_name(name) {
        Ok(())
    } else {
        Err(format!("`{name}` is no legal id or name"))
    }
}

/// Checks the schema of a tool's arguments.
pub(super) fn check_schema(schema: &Value) -> Result<(), String> {
    if schema["type"] != "object" || !schema["properties"].is_object() {
        return Err("a schema is no object with properties".to_owned());
    }
    let forbidden = ["allOf", "anyOf", "oneOf", "enum", "not"];
    match forbidden.iter().find(|key| !schema[**key].is_null()) {
        Some(key) => Err(format!("a schema has `{key}` at its top")),
        None => Ok(()),
    }
}
