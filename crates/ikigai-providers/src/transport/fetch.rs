//! Reading a small JSON document, for looking whether somebody is there.

use std::time::Duration;

use reqwest::Url;
use serde_json::Value;

use super::Client;

/// A list of models is far smaller.
const MOST_BYTES: usize = 1 << 20;

/// The document at an address, if there is one within the deadline. Nobody there is no error.
pub(crate) async fn fetch(client: &Client, url: &str, deadline: Duration) -> Option<Value> {
    tokio::time::timeout(deadline, read(client, url))
        .await
        .ok()?
}

async fn read(client: &Client, url: &str) -> Option<Value> {
    let url = Url::parse(url).ok()?;
    let mut response = client.to(&url).ok()?.get(url).send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        body.extend_from_slice(&chunk);
        if body.len() > MOST_BYTES {
            return None;
        }
    }
    serde_json::from_slice(&body).ok()
}
