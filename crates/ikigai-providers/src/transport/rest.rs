//! Reads the rest of a body after its terminal event, to reuse the connection.

use std::time::Duration;

use tokio::time::timeout;

/// Longest wait for the end of the body. A server that keeps it open gets a closed connection.
const REST_TIME: Duration = Duration::from_secs(5);

/// Largest rest: the last events of all providers are smaller.
const REST_BYTES: usize = 64 << 10;

/// Reads a body to its end, within limits of time and size.
pub(super) async fn read(mut response: reqwest::Response) {
    let to_end = async {
        let mut left = REST_BYTES;
        while let Ok(Some(bytes)) = response.chunk().await {
            match left.checked_sub(bytes.len()) {
                Some(fewer) => left = fewer,
                None => return,
            }
        }
    };
    // The response is complete whatever the end is.
    let _ = timeout(REST_TIME, to_end).await;
}
