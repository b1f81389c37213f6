//! Tool schemas, adapted to the dialects.

use serde_json::{Map, Value, json};

/// Keywords that are refused at the top of a tool's schema: it must be a plain object.
const ALTERNATIVES: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Keywords of strict mode; any other makes it refuse the tool.
const STRICT_KEYWORDS: [&str; 19] = [
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "pattern",
    "properties",
    "required",
    "type",
];

/// Converts a tool's schema to a plain object, which every provider accepts.
///
/// It has all properties at the top and no alternatives; properties of alternatives are merged.
pub fn object_schema(parameters: &Value) -> Value {
    let mut schema = parameters.as_object().cloned().unwrap_or_default();
    let mut properties = take_object(&mut schema, "properties");
    let mut required = take_list(&mut schema, "required");
    for keyword in ALTERNATIVES {
        for branch in take_list(&mut schema, keyword) {
            let Value::Object(mut branch) = branch else {
                continue;
            };
            for (name, property) in take_object(&mut branch, "properties") {
                properties.entry(name).or_insert(property);
            }
            if keyword == "allOf" {
                required.extend(take_list(&mut branch, "required"));
            }
        }
    }
    for keyword in ["$schema", "$id", "enum", "const", "not"] {
        schema.remove(keyword);
    }
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    required.retain(Value::is_string);
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    Value::Object(schema)
}

/// Returns true if OpenAI's strict mode accepts a schema.
///
/// Every object must be closed and require all its properties, and all keywords must be known.
pub fn is_strict(schema: &Value) -> bool {
    let Some(schema) = schema.as_object() else {
        return false;
    };
    let known = |key: &String| STRICT_KEYWORDS.contains(&key.as_str());
    let typed = ["type", "$ref", "anyOf", "enum", "const"];
    if !schema.keys().all(known) || !typed.iter().any(|key| schema.contains_key(*key)) {
        return false;
    }
    let is_object = has_type(schema, "object") || schema.contains_key("properties");
    let closed = !is_object || is_closed(schema);
    let listed = !has_type(schema, "array") || schema.contains_key("items");
    closed && listed && children(schema).all(is_strict)
}

/// Removes the keywords that a dialect refuses, at every depth.
///
/// Properties with such names stay.
pub fn without(schema: &Value, forbidden: &[&str]) -> Value {
    let Some(object) = schema.as_object() else {
        return schema.clone();
    };
    let kept = object
        .iter()
        .filter(|(key, _)| !forbidden.contains(&key.as_str()));
    let kept = kept.map(|(key, value)| {
        let value = match (place_of(key), value) {
            (KeywordValue::Schema, value) => without(value, forbidden),
            (KeywordValue::Map, Value::Object(map)) => {
                let inner = map
                    .iter()
                    .map(|(name, inner)| (name.clone(), without(inner, forbidden)));
                Value::Object(inner.collect())
            }
            (KeywordValue::List, Value::Array(list)) => {
                Value::Array(list.iter().map(|inner| without(inner, forbidden)).collect())
            }
            (_, value) => value.clone(),
        };
        (key.clone(), value)
    });
    Value::Object(kept.collect())
}

/// Type of a keyword's value.
enum KeywordValue {
    Schema,
    Map,
    List,
    Plain,
}

fn place_of(keyword: &str) -> KeywordValue {
    match keyword {
        "items"
        | "additionalProperties"
        | "not"
        | "contains"
        | "propertyNames"
        | "if"
        | "then"
        | "else" => KeywordValue::Schema,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            KeywordValue::Map
        }
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => KeywordValue::List,
        _ => KeywordValue::Plain,
    }
}

fn take_object(schema: &mut Map<String, Value>, key: &str) -> Map<String, Value> {
    match schema.remove(key) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

fn take_list(schema: &mut Map<String, Value>, key: &str) -> Vec<Value> {
    match schema.remove(key) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

fn has_type(schema: &Map<String, Value>, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(word)) => word == name,
        Some(Value::Array(words)) => words.iter().any(|word| word == name),
        _ => false,
    }
}

fn is_closed(schema: &Map<String, Value>) -> bool {
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return false;
    };
    let required = schema.get("required").and_then(Value::as_array);
    let needs = |name: &String| required.is_some_and(|list| list.iter().any(|word| word == name));
    closed && properties.keys().all(needs)
}

/// Returns the subschemas that strict mode knows.
fn children(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let maps = ["properties", "$defs"].into_iter();
    let maps = maps.filter_map(|key| schema.get(key)?.as_object());
    let alternatives = schema.get("anyOf").and_then(Value::as_array);
    maps.flat_map(Map::values)
        .chain(schema.get("items"))
        .chain(alternatives.into_iter().flatten())
}

#[cfg(test)]
mod tests;
