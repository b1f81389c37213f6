//! Arguments of calls: parsed from a model's text, with advice on errors.

mod tolerance;

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::files::sha256_hex;
use crate::output::clean;
use tolerance::{Pairs, resolve};

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

/// Other names of fields: alias, then field.
pub type Aliases = &'static [(&'static str, &'static str)];

/// Arguments of a tool, with the other spellings that it accepts.
pub trait ToolArguments: DeserializeOwned + JsonSchema {
    /// Other names of its fields.
    ///
    /// Names in other cases need no alias: `filePath` is `file_path`.
    const ALIASES: Aliases = &[];

    /// Converts other shapes of the fields, after their names are resolved.
    ///
    /// Aliases can lead to fields that only this function knows; it removes them.
    fn convert(_fields: &mut Map<String, Value>) -> Result<(), String> {
        Ok(())
    }
}

/// Arguments of a call, resolved once for judging, showing and running it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallArguments<T> {
    /// Parsed values.
    pub values: T,
    /// All values that have an effect, for people.
    pub shown: String,
    /// Remark for the model about ignored fields, on one line.
    pub remark: Option<String>,
}

/// Returns an error if a JSON text ends in its middle: the model was cut off.
pub fn check_complete(text: &str) -> Result<(), BadArguments> {
    let parsed: Result<IgnoredAny, _> = serde_json::from_str(text);
    match parsed {
        Err(error) if error.is_eof() => Err(BadArguments(format!(
            "the call was cut off by the limit of the answer's length: its arguments end after {} \
             bytes, so nothing was done. Make smaller steps: write a long file in parts, the first \
             with file_write and each other with file_edit, and make fewer calls in one answer.",
            text.len()
        ))),
        _ => Ok(()),
    }
}

/// Parses arguments. An empty text counts as no arguments.
///
/// Accepts aliases, numbers and booleans as text, and ignores unknown fields.
pub fn read<T: ToolArguments>(text: &str) -> Result<CallArguments<T>, BadArguments> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    check_complete(text)?;
    let schema = schema_of::<T>();
    let parse = || {
        // Serde would also accept a list of the values in order.
        if !text.trim_start().starts_with('{') {
            return Err("this is not a JSON object".to_owned());
        }
        let pairs: Pairs = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut resolved = resolve(pairs, &schema, T::ALIASES)?;
        T::convert(&mut resolved.fields)?;
        let remark = ignored_fields(&resolved.ignored);
        let fields = Value::Object(resolved.fields);
        let shown = shown_value(&fields);
        match serde_json::from_value(fields) {
            Ok(values) => Ok(CallArguments {
                values,
                shown,
                remark,
            }),
            Err(error) => Err(match remark {
                Some(remark) => format!("{error}; {remark}"),
                None => error.to_string(),
            }),
        }
    };
    parse().map_err(|complaint| {
        let complaint = one_line(&complaint, MOST_COMPLAINT_CHARS);
        BadArguments(format!(
            "the arguments do not fit: {complaint}. They must be a JSON object that fits this schema: {schema}"
        ))
    })
}

/// Parses an object inside of arguments, such as one item of a list.
pub fn read_item<T: ToolArguments>(item: Value) -> Result<T, String> {
    let Value::Object(object) = item else {
        return Err(format!(
            "{} is not a JSON object",
            one_line(&item.to_string(), 100)
        ));
    };
    let mut resolved = resolve(Pairs::from(object), &schema_of::<T>(), T::ALIASES)?;
    T::convert(&mut resolved.fields)?;
    serde_json::from_value(Value::Object(resolved.fields)).map_err(|error| error.to_string())
}

/// Field of a timeout in milliseconds, to which aliases lead.
pub const MILLISECONDS: &str = "timeout_ms";

/// Converts a timeout in milliseconds to whole seconds, rounded up.
///
/// Other programs count `timeout` in milliseconds: a round number above the longest timeout, or one
/// far above it, is taken as such.
pub fn convert_timeout(fields: &mut Map<String, Value>, most_seconds: u64) -> Result<(), String> {
    if let Some(value) = fields.remove(MILLISECONDS) {
        let text = value.as_str().and_then(|text| text.trim().parse().ok());
        let Some(milliseconds) = value.as_u64().or(text) else {
            return Err(format!("`{MILLISECONDS}` must be a number of milliseconds"));
        };
        let seconds = Value::from(milliseconds.div_ceil(1000));
        if fields.get("timeout").is_some_and(|other| *other != seconds) {
            return Err(format!(
                "`timeout` and `{MILLISECONDS}` differ; give only `timeout`, in seconds"
            ));
        }
        fields.insert("timeout".to_owned(), seconds);
    } else if let Some(timeout) = fields.get("timeout").and_then(Value::as_u64)
        && timeout > most_seconds
        && (timeout % 1000 == 0 || timeout / 10 > most_seconds)
        && timeout.div_ceil(1000) <= most_seconds
    {
        fields.insert("timeout".to_owned(), timeout.div_ceil(1000).into());
    }
    Ok(())
}

/// Returns the remark about fields that have no effect.
fn ignored_fields(names: &[String]) -> Option<String> {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let names = one_line(&quoted.join(", "), MOST_COMPLAINT_CHARS / 2);
    match quoted.len() {
        0 => None,
        1 => Some(format!("ignored unknown field {names}")),
        _ => Some(format!("ignored unknown fields {names}")),
    }
}

/// Formats all arguments of a call, exactly: `pattern="**/*.rs" path="src"`.
///
/// Values are JSON, so no value can look like another argument. Arguments that are not an object
/// are returned as they are.
pub fn display_text(arguments: &str) -> String {
    match serde_json::from_str(arguments) {
        Ok(value @ Value::Object(_)) => shown_value(&value),
        _ => arguments.trim().to_owned(),
    }
}

fn shown_value(arguments: &Value) -> String {
    let object = arguments.as_object().into_iter().flatten();
    let pairs = object.map(|(key, value)| {
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
    shorten(line.trim(), most_chars)
}

fn shorten(text: &str, most_chars: usize) -> String {
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
