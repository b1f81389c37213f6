//! Arguments: from the text that a model wrote to a typed value, with advice when it does not fit.

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use crate::files::sha256_hex;
use crate::output::clean;

/// Why arguments are not understood, in words that help the model to do better.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct BadArguments(pub String);

/// Digits of a call's hash: 64 bits.
const HASH_DIGITS: usize = 16;

/// How much of a complaint about arguments the model is told: it can quote them.
const MOST_COMPLAINT_CHARS: usize = 300;

/// The JSON schema of a type of arguments, as models are told it. Only plain words of JSON schema
/// are left, because providers understand different parts of it: no references, no formats, and
/// what is optional is left out rather than null.
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

/// Reads arguments. No text at all counts as no arguments.
pub fn read<T: DeserializeOwned + JsonSchema>(text: &str) -> Result<T, BadArguments> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    // A list of the values in their order would be taken too.
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

/// All arguments of a call, exactly: `pattern="**/*.rs" path="src"`.
///
/// Values are JSON, so no value can look like another argument. Arguments that are no object stay
/// as they are.
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

/// Hash of an exact call and of the pattern that *always* would grant for it.
///
/// It is the first 16 hexadecimal digits of the SHA-256 of the four texts, each followed by a zero
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

/// A text on one line without control characters, cut if it is long.
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
