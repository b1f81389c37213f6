//! Failures of Gemini, before a response and inside one.

use std::time::Duration;

use serde_json::Value;

use crate::answer::{FailureKind, ProviderError};
use crate::dialects::overflow;
use crate::dialects::refusal::shorten;

/// Returns the failure of an error inside a stream.
pub(super) fn inside_stream(chunk: &Value) -> ProviderError {
    let words = "the provider reported an error without a message";
    let mut error = ProviderError::new(FailureKind::Unavailable, words);
    explain(chunk, &mut error);
    error
}

/// Returns the failure of a blocked prompt.
pub(super) fn blocked_error(reason: &str, words: Option<&str>) -> ProviderError {
    let words = words.map(|words| format!(": {words}")).unwrap_or_default();
    let message = format!("the provider refused the conversation ({reason}){words}");
    ProviderError::new(FailureKind::BadRequest, message)
}

/// Reads message, kind, pause and index from an error body.
///
/// Its form is `{"error":{"code":…,"message":…,"status":…,"details":[…]}}`, perhaps inside a list.
pub(super) fn explain(body: &Value, error: &mut ProviderError) {
    let body = body.get(0).unwrap_or(body);
    let Some(error_object) = body.get("error") else {
        return overflow::recognise(body, error);
    };
    let text = |field: &str| error_object.get(field).and_then(Value::as_str);
    let status = text("status").unwrap_or_default();
    let message = text("message").or_else(|| error_object.as_str());
    if let Some(words) = message.and_then(shorten) {
        error.message = words;
    } else if !status.is_empty() {
        status.clone_into(&mut error.message);
    }
    let details = error_object.get("details").and_then(Value::as_array);
    let details = details.map_or(&[][..], Vec::as_slice);
    if let Some(kind) = kind_of(status, &error.message, details) {
        error.kind = kind;
    }
    overflow::recognise(body, error);
    // A header is more exact.
    if error.retry_after.is_none() {
        error.retry_after = details.iter().find_map(retry_delay);
    }
    let violations = details.iter().filter_map(|detail| {
        let field = detail.pointer("/fieldViolations/0/field");
        field.and_then(Value::as_str)
    });
    let mut words = std::iter::once(error.message.as_str()).chain(violations);
    error.names_message = words.find_map(content_named);
}

fn kind_of(status: &str, words: &str, details: &[Value]) -> Option<FailureKind> {
    let has_reason = |reason: &str| {
        let mut reasons = details.iter().filter_map(|detail| detail.get("reason"));
        reasons.any(|error_object| error_object == reason)
    };
    let kind = match status {
        "INVALID_ARGUMENT" | "FAILED_PRECONDITION"
            if has_reason("API_KEY_INVALID") || words.contains("API key not valid") =>
        {
            FailureKind::Unauthorized
        }
        "INVALID_ARGUMENT" | "FAILED_PRECONDITION" | "OUT_OF_RANGE" => FailureKind::BadRequest,
        "UNAUTHENTICATED" => FailureKind::Unauthorized,
        "PERMISSION_DENIED" => FailureKind::Forbidden,
        "NOT_FOUND" => FailureKind::NotFound,
        // A daily quota does not recover within a retry.
        "RESOURCE_EXHAUSTED" if details.iter().any(is_of_the_day) => FailureKind::Quota,
        "RESOURCE_EXHAUSTED" => FailureKind::RateLimited,
        "ABORTED" | "CANCELLED" | "DEADLINE_EXCEEDED" | "INTERNAL" | "UNAVAILABLE" | "UNKNOWN" => {
            FailureKind::Unavailable
        }
        _ => return None,
    };
    Some(kind)
}

fn is_of_the_day(detail: &Value) -> bool {
    let violations = detail.get("violations").and_then(Value::as_array);
    violations.into_iter().flatten().any(|violation| {
        let quota = violation.get("quotaId").and_then(Value::as_str);
        quota.is_some_and(|quota| quota.contains("PerDay"))
    })
}

/// Returns the pause of a `RetryInfo`: `34s`, `0.5s`.
fn retry_delay(detail: &Value) -> Option<Duration> {
    let seconds = detail.get("retryDelay")?.as_str()?.strip_suffix('s')?;
    Duration::try_from_secs_f64(seconds.parse().ok()?).ok()
}

/// Returns the index of the content that words like `contents[3].parts[0]` name.
fn content_named(words: &str) -> Option<usize> {
    let (_, rest) = words.split_once("contents[")?;
    let (index, _) = rest.split_once(']')?;
    index.parse().ok()
}
