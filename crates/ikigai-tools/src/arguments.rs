//! Arguments: from the text that a model wrote to a typed value, with advice when it does not fit.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

/// Why arguments are not understood, in words that help the model to do better.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct BadArguments(pub String);

/// The JSON schema of a type of arguments, as models are told it.
pub fn schema_of<T: JsonSchema>() -> Value {
    let mut schema = schemars::SchemaGenerator::default()
        .into_root_schema_for::<T>()
        .to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
    }
    schema
}

/// Reads arguments. No text at all counts as no arguments.
pub fn read<T: DeserializeOwned + JsonSchema>(text: &str) -> Result<T, BadArguments> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    serde_json::from_str(text).map_err(|error| {
        let wanted = schema_of::<T>();
        BadArguments(format!(
            "the arguments do not fit: {error}. They must be a JSON object that fits this schema: {wanted}"
        ))
    })
}
