//! Tolerant reading of arguments: aliases, other types, unknown fields.
//!
//! Models write the names and types of tools that they were trained with. Everything is resolved
//! here, once, before a call is judged, shown and run, so that all three see the same values.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Fields that describe a call for people; they have no effect and need no mention.
const DESCRIPTIONS: &[&str] = &["description", "explanation"];

/// Object with its fields in the order written, repeated names included.
pub(super) struct Pairs(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct PairsVisitor;

        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        input.deserialize_map(PairsVisitor)
    }
}

impl From<Map<String, Value>> for Pairs {
    fn from(object: Map<String, Value>) -> Self {
        Self(object.into_iter().collect())
    }
}

/// Fields by their names in the schema, and the names of ignored ones.
#[derive(Debug, Default)]
pub(super) struct ResolvedFields {
    pub(super) fields: Map<String, Value>,
    pub(super) ignored: Vec<String>,
}

/// Resolves the names of fields and converts their values to the types of the schema.
///
/// An error names two spellings of one field that have different values.
pub(super) fn resolve(
    pairs: Pairs,
    schema: &Value,
    aliases: &[(&str, &str)],
) -> Result<ResolvedFields, String> {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let field_of = |name: &str| {
        let alias = aliases.iter().find(|(alias, _)| *alias == name);
        match properties.get_key_value(name) {
            Some((field, _)) => Some(field.as_str()),
            None => alias.map(|(_, field)| *field),
        }
    };
    let mut resolved = ResolvedFields::default();
    let mut spellings: Map<String, Value> = Map::new();
    for (name, value) in pairs.0 {
        let Some(field) = field_of(&name).or_else(|| field_of(&snake_case(&name))) else {
            if !value.is_null() && !DESCRIPTIONS.contains(&name.as_str()) {
                resolved.ignored.push(name);
            }
            continue;
        };
        // A null is no value: optional fields are left out.
        if value.is_null() {
            continue;
        }
        let value = match properties.get(field) {
            Some(property) => convert(value, property),
            None => value,
        };
        if let Some(earlier) = resolved.fields.get(field)
            && *earlier != value
        {
            let other = spellings[field].as_str().unwrap_or(field);
            return Err(if other == name {
                format!("`{name}` is given twice, with different values")
            } else {
                format!("`{other}` and `{name}` mean the same and differ; give only `{field}`")
            });
        }
        spellings.insert(field.to_owned(), Value::String(name));
        resolved.fields.insert(field.to_owned(), value);
    }
    Ok(resolved)
}

/// Converts `filePath` and `file-path` to `file_path`.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut after_lower = false;
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && after_lower {
            snake.push('_');
        }
        after_lower = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        snake.push(match letter {
            '-' => '_',
            letter => letter.to_ascii_lowercase(),
        });
    }
    snake
}

/// Converts a value to the type that a schema wants; others stay as they are.
fn convert(value: Value, schema: &Value) -> Value {
    match (schema["type"].as_str(), value) {
        (Some("integer"), Value::String(text)) => match text.trim().parse::<u64>() {
            Ok(number) => Value::Number(number.into()),
            Err(_) => Value::String(text),
        },
        (Some("integer"), Value::Number(number)) => Value::Number(whole(number)),
        (Some("boolean"), Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::String(text),
        },
        (Some("string"), Value::Number(number)) => Value::String(number.to_string()),
        (Some("string"), Value::String(text)) if schema.get("enum").is_some() => {
            Value::String(choice(text, &schema["enum"]))
        }
        (Some("array"), Value::String(text)) => match serde_json::from_str(&text) {
            Ok(list @ Value::Array(_)) => convert(list, schema),
            _ => convert(Value::Array(vec![Value::String(text)]), schema),
        },
        (Some("array"), Value::Array(items)) => {
            let items = items.into_iter();
            Value::Array(items.map(|item| convert(item, &schema["items"])).collect())
        }
        (Some("array"), value) => Value::Array(vec![convert(value, &schema["items"])]),
        (_, value) => value,
    }
}

/// Converts `5.0` to `5`.
fn whole(number: Number) -> Number {
    // JSON numbers below 2^53 are exact.
    const MOST: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(value) if number.is_f64() && value.fract() == 0.0 && (0.0..MOST).contains(&value) => {
            let text = format!("{value:.0}");
            text.parse::<u64>().map_or(number, Number::from)
        }
        _ => number,
    }
}

/// Returns the choice that a text means, whatever its case.
fn choice(text: String, choices: &Value) -> String {
    let choices = choices.as_array().into_iter().flatten();
    let wanted = snake_case(text.trim());
    let found = choices.filter_map(Value::as_str).find(|it| *it == wanted);
    found.map_or(text, str::to_owned)
}
