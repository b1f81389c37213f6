//! Check of arguments against a tool's schema.
//!
//! This is no full validator: it knows types, required names, choices, and the content of objects
//! and lists. It accepts everything else, and the tool itself may refuse it.

use serde_json::Value;

/// Deepest level that is checked, because a schema can be anything.
const MOST_LEVELS: usize = 16;

/// Returns the first mismatch as an error.
pub(super) fn check(value: &Value, schema: &Value) -> Result<(), String> {
    if !value.is_object() {
        return Err(format!("they must be an object, not {}", kind(value)));
    }
    fits(value, schema, "", MOST_LEVELS)
}

fn fits(value: &Value, schema: &Value, name: &str, levels: usize) -> Result<(), String> {
    if levels == 0 {
        return Ok(());
    }
    let wanted = types(schema);
    if !wanted.is_empty() && !wanted.iter().any(|wanted| is_a(value, wanted)) {
        let wanted = wanted.join(" or ");
        return Err(format!("`{name}` must be {wanted}, not {}", kind(value)));
    }
    if let Some(Value::Array(choices)) = schema.get("enum")
        && !choices.contains(value)
    {
        let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
        return Err(format!("`{name}` must be one of {}", choices.join(", ")));
    }
    match value {
        Value::Object(_) => fits_object(value, schema, name, levels),
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else {
                return Ok(());
            };
            items.iter().enumerate().try_for_each(|(index, item)| {
                fits(item, schema, &format!("{name}[{index}]"), levels - 1)
            })
        }
        _ => Ok(()),
    }
}

fn fits_object(value: &Value, schema: &Value, name: &str, levels: usize) -> Result<(), String> {
    let Value::Object(object) = value else {
        return Ok(());
    };
    let full = |key: &str| {
        if name.is_empty() {
            key.to_owned()
        } else {
            format!("{name}.{key}")
        }
    };
    let required = schema.get("required").and_then(Value::as_array);
    for key in required.into_iter().flatten().filter_map(Value::as_str) {
        if !object.contains_key(key) {
            return Err(format!("`{}` is missing", full(key)));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (key, value) in object {
        match properties.and_then(|properties| properties.get(key)) {
            Some(schema) => fits(value, schema, &full(key), levels - 1)?,
            None if schema.get("additionalProperties") == Some(&Value::Bool(false)) => {
                return Err(format!("there is no `{}`", full(key)));
            }
            None => {}
        }
    }
    Ok(())
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_a(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => {
            value.is_i64()
                || value.is_u64()
                || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        // Unknown type: the tool has to check it.
        _ => true,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests;
