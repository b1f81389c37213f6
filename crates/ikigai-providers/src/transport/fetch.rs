//! Reading a small JSON document, for looking whether somebody is there.

use std::time::Duration;

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::Client;

/// A list of models is far smaller.
const MOST_BYTES: usize = 1 << 20;

/// Why there is no document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoDocument {
    /// Somebody is there and says no, with this status.
    Status(u16),
    /// Nobody is there, or what came is none.
    Nobody(String),
}

/// The document at an address, if there is one within the deadline. Nobody there is no error.
pub(crate) async fn fetch(client: &Client, url: &str, deadline: Duration) -> Option<Value> {
    fetch_with(client, url, &[], deadline).await.ok()
}

/// The document at an address that is asked for with these headers.
pub(crate) async fn fetch_with(
    client: &Client,
    url: &str,
    headers: &[(String, SecretString)],
    deadline: Duration,
) -> Result<Value, NoDocument> {
    let read = tokio::time::timeout(deadline, read(client, url, headers));
    let late = |_| NoDocument::Nobody(format!("no answer within {} s", deadline.as_secs()));
    read.await.map_err(late)?
}

async fn read(
    client: &Client,
    url: &str,
    headers: &[(String, SecretString)],
) -> Result<Value, NoDocument> {
    let nobody = |reason: &dyn std::fmt::Display| NoDocument::Nobody(reason.to_string());
    let failed = |error: reqwest::Error| nobody(&error.without_url());
    let url = Url::parse(url).map_err(|error| nobody(&error))?;
    let mut request = client.to(&url).map_err(|error| nobody(&error))?.get(url);
    for (name, value) in headers {
        request = request.header(name, value.expose_secret());
    }
    let mut response = request.send().await.map_err(failed)?;
    if !response.status().is_success() {
        return Err(NoDocument::Status(response.status().as_u16()));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        body.extend_from_slice(&chunk);
        if body.len() > MOST_BYTES {
            return Err(nobody(&"the answer is too long"));
        }
    }
    serde_json::from_slice(&body).map_err(|_| nobody(&"the answer is no JSON"))
}
