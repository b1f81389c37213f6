//! Arguments of calls: parsed from a model's text, with advice on errors.

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use crate::files::sha256_hex;
use crate::output::clean;

/// Error about arguments, in words that help the model to correct them.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct BadArguments(pub String);

/// Digits of a call's hash: 64 bits.
const HASH_DIGITS: usize = 16;

/// Longest error about arguments sent to the model, because it can quote them.
const MOST_COMPLAINT_CHARS: usize = 300;

/// Returns the JSON schema of an arguments type, as sent to models.
///
/// Uses only basic JSON schema, because providers support different parts of it: no references, no
/// formats, and optional fields are left out instead of null.
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::default().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("title");
        object.remove("description");
    }
    make_plain(&mut schema);
    schema
}

/// Parses arguments. An empty text counts as no arguments.
pub fn read<T: DeserializeOwned + JsonSchema>(text: &str) -> Result<T, BadArguments> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    // Serde would also accept a list of the values in order.
    let read = if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| error.to_string())
    } else {
        Err("this is no JSON object".to_owned())
    };
    read.map_err(|complaint| {
        let complaint = one_line(&complaint, MOST_COMPLAINT_CHARS);
        let wanted = schema_of::<T>();
        BadArguments(format!(
            "the arguments do not fit: {complaint}. They must be a JSON object that fits this schema: {wanted}"
        ))
    })
}

/// Formats all arguments of a call, exactly: `pattern="**/*.rs" path="src"`.
///
/// Values are JSON, so no value can look like another argument. Arguments that are not an object
/// are returned as they are.
pub fn shown(arguments: &str) -> String {
    let Ok(Value::Object(object)) = serde_json::from_str(arguments) else {
        return arguments.trim().to_owned();
    };
    let pairs = object.iter().map(|(key, value)| {
        if is_word(key) {
            format!("{key}={value}")
        } else {
            format!("{}={value}", Value::String(key.clone()))
        }
    });
    pairs.collect::<Vec<_>>().join(" ")
}

/// Hashes a call together with the pattern that *always* would grant for it.
///
/// Returns the first 16 hexadecimal digits of the SHA-256 of four texts, each followed by a zero
/// byte: tool, arguments as the model wrote them, working directory, pattern.
pub fn call_hash(tool: &str, arguments: &str, workdir: &str, pattern: &str) -> String {
    let texts = [tool, arguments, workdir, pattern, ""];
    let mut hash = sha256_hex(texts.join("\0").as_bytes());
    hash.truncate(HASH_DIGITS);
    hash
}

fn is_word(key: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    !key.is_empty() && key.chars().all(is_part)
}

/// Returns a text on one line without control characters, shortened to the limit.
pub fn one_line(text: &str, most_chars: usize) -> String {
    let line = clean(text.as_bytes()).replace(['\n', '\t'], " ");
    shortened(line.trim(), most_chars)
}

fn shortened(text: &str, most_chars: usize) -> String {
    match text.char_indices().nth(most_chars) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

fn make_plain(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.get("default").is_some_and(Value::is_null) {
                object.remove("default");
            }
            if object.get("format").is_some_and(Value::is_string) {
                object.remove("format");
            }
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(words)) = object.get_mut("enum") {
                words.retain(|word| !word.is_null());
            }
            if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
                choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
                if let [Value::Object(only)] = choices.as_slice() {
                    let only = only.clone();
                    object.remove("anyOf");
                    for (key, value) in only {
                        object.entry(key).or_insert(value);
                    }
                }
            }
            object.values_mut().for_each(make_plain);
        }
        Value::Array(items) => items.iter_mut().for_each(make_plain),
        _ => {}
    }
}
