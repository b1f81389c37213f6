//! JSON-RPC messages, one per line.

use std::fmt::Display;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The line is no JSON.
const PARSE_ERROR: i64 = -32700;
/// The line is JSON, but no message.
const INVALID_REQUEST: i64 = -32600;
/// The method does not exist.
const UNKNOWN_METHOD: i64 = -32601;
/// The parameters do not fit the method.
const INVALID_PARAMETERS: i64 = -32602;
/// The method failed.
const FAILED: i64 = -32603;
/// The session or another resource does not exist.
const NOT_FOUND: i64 = -32002;

/// Received message.
#[derive(Debug, PartialEq)]
pub(super) enum ClientMessage {
    /// It wants an answer.
    Call {
        id: Value,
        method: String,
        params: Value,
    },
    /// It wants no answer.
    Notification { method: String, params: Value },
    /// Answer to one of our requests; none if the client refused it.
    Response { id: Value, result: Option<Value> },
    /// Invalid message, and the id of the answer that reports it.
    Invalid { id: Value, error: RpcError },
}

/// Error answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct RpcError {
    code: i64,
    message: String,
}

impl RpcError {
    fn new(code: i64, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }

    pub(super) fn unknown_method(method: &str) -> Self {
        let method: String = method.chars().take(80).collect();
        Self::new(UNKNOWN_METHOD, format!("no method `{method}`"))
    }

    pub(super) fn invalid(reason: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMETERS, reason)
    }

    pub(super) fn not_found(reason: impl Into<String>) -> Self {
        Self::new(NOT_FOUND, reason)
    }

    pub(super) fn failed(reason: impl Display) -> Self {
        Self::new(FAILED, reason.to_string())
    }
}

impl ClientMessage {
    /// Parses one line. Total.
    pub(super) fn parse(line: &[u8]) -> Self {
        let value = match serde_json::from_slice(line) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => return Self::invalid(Value::Null, "a message is one JSON object"),
            Err(error) => {
                let error = RpcError::new(PARSE_ERROR, format!("this is no JSON: {error}"));
                return Self::Invalid {
                    id: Value::Null,
                    error,
                };
            }
        };
        Self::of_fields(value)
    }

    /// Reports a line over the size limit, which was skipped.
    pub(super) fn too_long(most: usize) -> Self {
        let reason = format!("the message is longer than {} MiB", most >> 20);
        Self::invalid(Value::Null, &reason)
    }

    fn of_fields(mut fields: Map<String, Value>) -> Self {
        let id = fields.remove("id");
        if let Some(id) = &id
            && !is_id(id)
        {
            return Self::invalid(Value::Null, "`id` is no string and no whole number");
        }
        if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            let id = id.unwrap_or_default();
            return Self::invalid(id, "`jsonrpc` is not \"2.0\"");
        }
        let params = fields.remove("params").unwrap_or_else(|| json!({}));
        match (fields.remove("method"), id) {
            (Some(Value::String(method)), Some(id)) => Self::Call { id, method, params },
            (Some(Value::String(method)), None) => Self::Notification { method, params },
            (Some(_), id) => Self::invalid(id.unwrap_or_default(), "`method` is no string"),
            (None, Some(id)) if fields.contains_key("error") => Self::Response { id, result: None },
            (None, Some(id)) => match fields.remove("result") {
                Some(result) => Self::Response {
                    id,
                    result: Some(result),
                },
                None => Self::invalid(id, "neither a request nor an answer"),
            },
            (None, None) => Self::invalid(Value::Null, "neither a request nor an answer"),
        }
    }

    fn invalid(id: Value, reason: &str) -> Self {
        Self::Invalid {
            id,
            error: RpcError::new(INVALID_REQUEST, reason),
        }
    }
}

fn is_id(id: &Value) -> bool {
    id.is_null() || id.is_string() || id.is_i64() || id.is_u64()
}

/// Reads the parameters of a method.
pub(super) fn parameters<T: for<'d> Deserialize<'d>>(params: Value) -> Result<T, RpcError> {
    serde_json::from_value(params).map_err(|error| RpcError::invalid(error.to_string()))
}

/// Makes the line of an answer.
pub(super) fn answer_line(id: &Value, answer: Result<Value, RpcError>) -> String {
    let message = match answer {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    };
    line_of(&message)
}

/// Makes the line of a notification.
pub(super) fn notification_line(method: &str, params: &impl Serialize) -> String {
    line_of(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

/// Makes the line of a request to the client.
pub(super) fn request_line(id: u64, method: &str, params: &impl Serialize) -> String {
    line_of(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

/// JSON escapes line breaks, so that one message is one line.
fn line_of(message: &Value) -> String {
    format!("{message}\n")
}

#[cfg(test)]
mod tests;
