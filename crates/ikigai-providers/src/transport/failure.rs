//! Failures of the transport, in words for users.

use std::error::Error;
use std::io;
use std::time::Duration;

use reqwest::{StatusCode, Url};
use serde_json::Value;

use super::words;
use crate::answer::{FailureKind, ProviderError};
use crate::dialect::Dialect;
use crate::dialects::overflow;
use crate::retry::{self, RetryHeaders};
use crate::sse::SseError;

/// Makes the error for a request that got no head of a response.
pub(super) fn sending(server: &str, error: &reqwest::Error, connect: Duration) -> ProviderError {
    if error.is_timeout() {
        let within = words::time(connect);
        return ProviderError::new(
            FailureKind::Timeout,
            format!("cannot connect to {server} within {within}"),
        );
    }
    if let Some(tls) = find_tls(error) {
        let mut failure = ProviderError::new(
            FailureKind::Connection,
            format!("no secure connection to {server}: {tls}"),
        );
        // Certificates and protocols do not change within seconds.
        failure.should_retry = Some(false);
        return failure;
    }
    if says(error, "dns error") {
        return ProviderError::new(
            FailureKind::Connection,
            format!("cannot find {server}: its name has no address"),
        );
    }
    if says(error, "invalid HTTP") {
        return ProviderError::new(
            FailureKind::Malformed,
            format!("{server} does not speak HTTP"),
        );
    }
    let cause = cause(error);
    let message = if error.is_connect() {
        format!("cannot connect to {server}: {cause}")
    } else {
        format!("the connection to {server} broke before an answer came: {cause}")
    };
    ProviderError::new(FailureKind::Connection, message)
}

/// Makes the error for a missing head of the response.
pub(super) fn no_answer(server: &str, within: Duration) -> ProviderError {
    let within = words::time(within);
    ProviderError::new(
        FailureKind::Timeout,
        format!("no answer from {server} within {within}"),
    )
}

/// Makes the error for a timeout between two pieces of the response.
pub(super) fn silent(server: &str, idle: Duration) -> ProviderError {
    let idle = words::time(idle);
    ProviderError::new(
        FailureKind::Timeout,
        format!("the answer stopped: nothing from {server} for {idle}"),
    )
}

/// Makes the error for a connection that broke during the response.
pub(super) fn connection_error(server: &str, error: &reqwest::Error) -> ProviderError {
    let cause = cause(error);
    let message = format!("the connection to {server} broke in the middle of the answer: {cause}");
    let kind = if find_io(error).is_some_and(|kind| kind != io::ErrorKind::UnexpectedEof) {
        FailureKind::Connection
    } else {
        FailureKind::CutOff
    };
    ProviderError::new(kind, message)
}

/// Makes the error for a body that ended inside an event.
pub(super) fn cut_inside_event() -> ProviderError {
    ProviderError::new(
        FailureKind::CutOff,
        "the answer was cut off in the middle of an event",
    )
}

/// Makes the error for a response without a body.
pub(super) fn empty(server: &str) -> ProviderError {
    ProviderError::new(
        FailureKind::CutOff,
        format!("{server} sent an empty answer"),
    )
}

/// Makes the error for a stream that cannot be parsed.
pub(super) fn unreadable(error: SseError) -> ProviderError {
    ProviderError::new(FailureKind::Malformed, error.to_string())
}

/// Makes the error for a response whose content exceeds its limit.
pub(super) fn endless(most_bytes: usize) -> ProviderError {
    ProviderError::new(
        FailureKind::Malformed,
        format!("stopped: the answer is longer than {most_bytes} bytes, the limit for this model"),
    )
}

/// Makes the error for a stream that exceeds the limit for events of any type.
pub(super) fn endless_stream(most_bytes: usize) -> ProviderError {
    ProviderError::new(
        FailureKind::Malformed,
        format!("the answer is longer than {} MB", most_bytes >> 20),
    )
}

/// Returns true if a response of this content type can be a stream.
///
/// Small servers omit the type or send a general one.
pub(super) fn may_be_stream(content_type: Option<&str>) -> bool {
    matches!(
        essence(content_type).as_str(),
        "" | "text/event-stream" | "text/plain" | "application/octet-stream"
    )
}

/// Explains a body with status 200 that is no stream of events; none if it is an empty stream.
pub(super) fn no_stream(
    server: &str,
    dialect: &dyn Dialect,
    content_type: Option<&str>,
    text: &str,
) -> Option<ProviderError> {
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return Some(empty(server));
    }
    let lines_of_streams = [":", "data:", "event:", "id:", "retry:"];
    if content_type.is_none() && lines_of_streams.iter().any(|line| text.starts_with(line)) {
        return None;
    }
    let mut error = ProviderError::new(FailureKind::Malformed, String::new());
    error.status = Some(200);
    let essence = essence(content_type);
    let what = if words::is_page(&essence, text) {
        "a web page".to_owned()
    } else if essence.is_empty() {
        "something else".to_owned()
    } else {
        format!("`{essence}`")
    };
    let excerpt = words::excerpt(text);
    error.message = format!("{server} sent {what} instead of an event stream: {excerpt}");
    explain(dialect, text, &mut error);
    Some(error)
}

/// A response whose status is not 200.
pub(super) struct Refusal<'a> {
    pub(super) server: &'a str,
    pub(super) dialect: &'a dyn Dialect,
    pub(super) status: StatusCode,
    pub(super) retry_headers: RetryHeaders,
    pub(super) location: Option<&'a str>,
    pub(super) content_type: Option<&'a str>,
    pub(super) text: &'a str,
}

/// Explains a refusal: with the provider's words if it has any, else by the status.
pub(super) fn refusal_error(refusal: &Refusal<'_>) -> ProviderError {
    let status = refusal.status.as_u16();
    let bare = format!(
        "{} answered {}",
        refusal.server,
        status_words(refusal.status)
    );
    let text = refusal.text.trim();
    let mut error = ProviderError::new(retry::kind_of_status(status), String::new());
    error.status = Some(status);
    error.retry_after = refusal.retry_headers.retry_after;
    error.should_retry = refusal.retry_headers.should_retry;
    error.message = if let Some(location) = refusal.location {
        format!("{bare} and points to `{}`", without_query(location))
    } else if text.is_empty() {
        bare
    } else if words::is_page(&essence(refusal.content_type), text) {
        format!("{bare} with a web page: {}", words::excerpt(text))
    } else {
        format!("{bare}: {}", words::excerpt(text))
    };
    explain(refusal.dialect, text, &mut error);
    if error.kind != FailureKind::TooLong {
        // Gateways also refuse in plain text.
        overflow::recognise(&Value::Null, &mut error);
    }
    error
}

/// Reads the body with the dialect, if it is JSON with an error.
fn explain(dialect: &dyn Dialect, text: &str, error: &mut ProviderError) {
    let Ok(body) = serde_json::from_str::<Value>(text) else {
        return;
    };
    // Gemini wraps the error in a list if the request was not for a stream of events.
    let body = match body {
        Value::Array(list) => list.into_iter().next().unwrap_or_default(),
        body => body,
    };
    if error.status != Some(200) || body.get("error").is_some_and(|error| !error.is_null()) {
        dialect.explain(&body, error);
    }
}

fn status_words(status: StatusCode) -> String {
    match (status.as_u16(), status.canonical_reason()) {
        // This status is in no standard, but several providers use it.
        (529, _) => "529 Overloaded".to_owned(),
        (number, Some(reason)) => format!("{number} {reason}"),
        (number, None) => number.to_string(),
    }
}

/// Returns the media type without its parameters, in lower case; empty if there is none.
fn essence(content_type: Option<&str>) -> String {
    let essence = content_type.unwrap_or_default().split(';').next();
    essence.unwrap_or_default().trim().to_ascii_lowercase()
}

/// Returns a URL without parts that may be secret.
fn without_query(location: &str) -> String {
    if let Ok(mut url) = Url::parse(location) {
        url.set_query(None);
        url.set_fragment(None);
        // Both fail only for URLs that cannot have a user.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        return url.to_string();
    }
    let end = location.find(['?', '#']).unwrap_or(location.len());
    words::clean(location.get(..end).unwrap_or_default())
}

/// Returns an error and all its causes.
fn chain(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let first: &(dyn Error + 'static) = error;
    std::iter::successors(Some(first), |&error| {
        // The source of an I/O error is that of the error inside it, which would be skipped.
        let wrapped = error.downcast_ref().and_then(io::Error::get_ref);
        match wrapped {
            Some(inner) => Some(inner),
            None => error.source(),
        }
    })
}

fn says(error: &reqwest::Error, words: &str) -> bool {
    chain(error).any(|cause| cause.to_string().starts_with(words))
}

fn find_io(error: &reqwest::Error) -> Option<io::ErrorKind> {
    let inputs = chain(error).filter_map(|cause| cause.downcast_ref::<io::Error>());
    inputs.last().map(io::Error::kind)
}

fn find_tls(error: &reqwest::Error) -> Option<&rustls::Error> {
    chain(error).find_map(|cause| cause.downcast_ref())
}

/// Returns the innermost cause in a few words; the outermost would show the whole URL.
fn cause(error: &reqwest::Error) -> String {
    match find_io(error) {
        Some(io::ErrorKind::ConnectionRefused) => return "connection refused".to_owned(),
        Some(io::ErrorKind::ConnectionReset) => return "connection reset".to_owned(),
        Some(io::ErrorKind::UnexpectedEof) => return "connection closed".to_owned(),
        _ => {}
    }
    let Some(innermost) = chain(error).skip(1).last() else {
        return "unknown cause".to_owned();
    };
    let text = innermost.to_string();
    match text.as_str() {
        "connection closed before message completed" | "unexpected EOF during chunk size line" => {
            "connection closed".to_owned()
        }
        _ => words::clean(text.split(" (os error").next().unwrap_or_default()),
    }
}
