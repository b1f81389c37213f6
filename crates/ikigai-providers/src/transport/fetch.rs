//! Reads small JSON documents of a server, such as its list of models.

use std::fmt::Display;
use std::time::Duration;

use reqwest::{Url, header};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::Client;

/// Largest document: the longest known list of models has a third of this.
const MOST_BYTES: usize = 4 << 20;

/// Error of reading a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoDocument {
    /// The server refuses with this status.
    Status(u16),
    /// No server answers.
    Unanswered(String),
    /// The answer is no JSON document, or too large.
    Unreadable(String),
}

/// Returns the document at a URL, if there is one within the deadline.
pub(crate) async fn fetch(client: &Client, url: &str, deadline: Duration) -> Option<Value> {
    fetch_with(client, url, &[], deadline).await.ok()
}

/// Returns the document at a URL, requested with these headers.
pub(crate) async fn fetch_with(
    client: &Client,
    url: &str,
    headers: &[(String, SecretString)],
    deadline: Duration,
) -> Result<Value, NoDocument> {
    let read = tokio::time::timeout(deadline, read(client, url, headers, None));
    let late = |_| NoDocument::Unanswered(format!("no answer within {} s", deadline.as_secs()));
    read.await.map_err(late)?
}

/// Reads the document of a GET, or of a POST with a body.
///
/// Has no deadline: the caller sets one.
pub(crate) async fn read(
    client: &Client,
    url: &str,
    headers: &[(String, SecretString)],
    body: Option<&Value>,
) -> Result<Value, NoDocument> {
    let unanswered = |reason: &dyn Display| NoDocument::Unanswered(reason.to_string());
    let unreadable = |reason: &dyn Display| NoDocument::Unreadable(reason.to_string());
    let url = Url::parse(url).map_err(|error| unanswered(&error))?;
    let client = client.to(&url).map_err(|error| unanswered(&error))?;
    let mut request = match body {
        None => client.get(url),
        Some(body) => client
            .post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .body(body.to_string()),
    };
    for (name, value) in headers {
        request = request.header(name, value.expose_secret());
    }
    let sent = request.send().await;
    let mut response = sent.map_err(|error| unanswered(&error.without_url()))?;
    if !response.status().is_success() {
        return Err(NoDocument::Status(response.status().as_u16()));
    }
    let content_type = response.headers().get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    if content_type.is_some_and(|value| value.starts_with("text/event-stream")) {
        return Err(unreadable(&"the answer is a stream of events"));
    }
    let mut body = Vec::new();
    loop {
        let chunk = response.chunk().await;
        let Some(chunk) = chunk.map_err(|error| unanswered(&error.without_url()))? else {
            break;
        };
        body.extend_from_slice(&chunk);
        if body.len() > MOST_BYTES {
            return Err(unreadable(&"the answer is too long"));
        }
    }
    serde_json::from_slice(&body).map_err(|_| unreadable(&"the answer is not JSON"))
}
