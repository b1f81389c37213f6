//! Diagnostics log of exchanges.
//!
//! Texts of users, models and providers have a separate target, which must be enabled.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Request, Response};
use tracing::{Level, debug, enabled, info, trace, warn};

use super::words::{self, Secrets};
use crate::answer::ProviderError;
use crate::dialect::Dialect;

/// Target of bodies, headers and providers' texts.
pub const BODIES: &str = "ikigai_providers::bodies";

/// Largest logged part of a response: above usual responses, below runaway ones.
const MOST_ANSWER_BYTES: usize = 1 << 20;

/// Headers with the providers' request ids; support asks for them.
const NUMBERS: [&str; 3] = ["request-id", "x-request-id", "x-goog-request-id"];

/// Response headers that are as secret as a key.
const SECRET_ANSWERS: [&str; 2] = ["set-cookie", "www-authenticate"];

/// Logs a request that is sent.
pub(super) fn sending(request: &Request, dialect: &dyn Dialect, attempt: u32, secrets: &Secrets) {
    let server = words::server(request.url().as_str());
    let body = request.body().and_then(reqwest::Body::as_bytes);
    let body = body.unwrap_or_default();
    let (dialect, bytes) = (dialect.name(), body.len());
    info!(server, dialect, attempt, bytes, "sending a request");
    if is_enabled() {
        let address = words::address(request.url());
        let headers = headers_of(request.headers(), words::is_harmless, secrets);
        let body = secrets.hide_in(body);
        trace!(target: BODIES, address, headers, body, "request");
    }
}

/// Logs the head of a response.
pub(super) fn head(response: &Response, server: &str, secrets: &Secrets) {
    let status = response.status().as_u16();
    let number = NUMBERS.iter().find_map(|name| {
        let value = response.headers().get(*name)?;
        value.to_str().ok()
    });
    let number = number.unwrap_or_default();
    info!(server, status, number, "an answer begins");
    if is_enabled() {
        let is_public = |name: &str| !SECRET_ANSWERS.contains(&name);
        let headers = headers_of(response.headers(), is_public, secrets);
        trace!(target: BODIES, status, headers, "head of an answer");
    }
}

/// Logs a complete response.
pub(super) fn log_finished(server: &str, bytes: usize) {
    debug!(server, bytes, "the answer is whole");
}

/// Logs a failed attempt; `pause` precedes the next one.
///
/// The provider's message may quote the request.
pub(super) fn log_failure(
    server: &str,
    error: &ProviderError,
    attempt: u32,
    pause: Option<Duration>,
) {
    let kind = format!("{:?}", error.kind);
    let status = error.status.unwrap_or_default();
    let pause = pause.map(words::time).unwrap_or_default();
    warn!(server, kind, status, attempt, pause, "a try failed");
    trace!(target: BODIES, message = error.message, "what failed");
}

/// Logs the body of a refusal, which is already redacted.
pub(super) fn refusal(body: &str) {
    trace!(target: BODIES, body, "refusal");
}

/// Copy of a response, which is logged as a whole when it ends.
///
/// Redaction needs the whole: a secret may be split between two reads.
pub(super) struct BodyCopy {
    bytes: Vec<u8>,
    secrets: Arc<Secrets>,
}

impl BodyCopy {
    /// Starts a copy, if the log is enabled.
    pub(super) fn begin(secrets: &Arc<Secrets>) -> Option<Self> {
        is_enabled().then(|| Self {
            bytes: Vec::new(),
            secrets: Arc::clone(secrets),
        })
    }

    /// Adds more of the response.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let room = MOST_ANSWER_BYTES - self.bytes.len();
        self.bytes.extend(bytes.iter().take(room));
    }

    fn text(&self) -> String {
        let body = self.secrets.hide_in(&self.bytes);
        if self.bytes.len() < MOST_ANSWER_BYTES {
            return body;
        }
        // The end may hold a part of a secret, and a part of a character.
        let unsafe_bytes = self.secrets.longest() + char::REPLACEMENT_CHARACTER.len_utf8();
        let end = body.floor_char_boundary(body.len().saturating_sub(unsafe_bytes));
        format!("{}…", &body[..end])
    }
}

impl Drop for BodyCopy {
    fn drop(&mut self) {
        let body = self.text();
        trace!(target: BODIES, body, "answer");
    }
}

fn is_enabled() -> bool {
    enabled!(target: BODIES, Level::TRACE)
}

fn headers_of(headers: &HeaderMap, shows: impl Fn(&str) -> bool, secrets: &Secrets) -> String {
    let line = |(name, value): (&HeaderName, &HeaderValue)| {
        let value = if shows(name.as_str()) {
            secrets.hide_in(value.as_bytes())
        } else {
            "[secret]".to_owned()
        };
        format!("{name}: {value}")
    };
    headers.iter().map(line).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;
    use crate::transport::PreparedRequest;

    const KEY: &str = "sk-very-secret";

    #[test]
    fn the_end_of_a_long_answer_shows_no_half_of_a_key() {
        let call = PreparedRequest {
            url: "https://example.org".to_owned(),
            headers: vec![("x-api-key".to_owned(), SecretString::from(KEY))],
            body: Vec::new(),
            dialect: &crate::dialects::chat::Chat,
            content_limit: usize::MAX,
        };
        let secrets = Arc::new(Secrets::of(&call));

        for seen in 0..=KEY.len() {
            let mut kept = BodyCopy {
                bytes: Vec::new(),
                secrets: Arc::clone(&secrets),
            };
            kept.add("é".repeat((MOST_ANSWER_BYTES - seen) / 2).as_bytes());
            kept.add(KEY.as_bytes());
            kept.add(b"and more of it");

            let text = kept.text();
            assert!(text.len() > MOST_ANSWER_BYTES - 64, "{seen}");
            assert!(!text.contains("sk-"), "{seen}");
        }
    }
}
