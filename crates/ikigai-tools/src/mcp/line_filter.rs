//! Filter between a server's output and the library: bounded lines of JSON only.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::unix::pipe::Receiver;
use tokio::time::Instant;

use super::error_tail::ErrorTail;
use crate::output::MOST_KEPT_BYTES;

/// Size of one read: the default capacity of a pipe.
const CHUNK_BYTES: usize = 64 * 1024;

/// Longest message: the largest output that is stored, in base64, with some room.
const MOST_MESSAGE_BYTES: usize = MOST_KEPT_BYTES / 3 * 4 + 1024 * 1024;

/// Most messages and bytes within one [`FLOOD_WINDOW`].
const MOST_MESSAGES: usize = 5_000;
const MOST_BYTES: usize = 256 * 1024 * 1024;

/// Time over which messages are counted.
const FLOOD_WINDOW: Duration = Duration::from_secs(1);

/// Most bytes of a line that is no message which the user sees.
const MOST_SHOWN_BYTES: usize = 400;

/// Copies messages until the server closes its output; the error says what it did wrong.
///
/// Lines that are no JSON objects are moved to the tail: many servers print greetings.
pub(crate) async fn copy_messages(
    output: Receiver,
    mut library: impl AsyncWrite + Unpin,
    tail: &ErrorTail,
) -> Result<(), String> {
    let mut line = Vec::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut counter = FloodCounter::new();
    loop {
        let came = match read(&output, &mut buffer).await {
            Ok(0) | Err(_) => return Ok(()),
            Ok(came) => buffer.get(..came).unwrap_or_default(),
        };
        for piece in came.split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(piece);
            if line.len() > MOST_MESSAGE_BYTES {
                let most = MOST_MESSAGE_BYTES / (1024 * 1024);
                return Err(format!("it sent a message of more than {most} MB"));
            }
            if !piece.ends_with(b"\n") {
                continue;
            }
            counter.count(line.len())?;
            if line.trim_ascii_start().starts_with(b"{") {
                // The library has ended: so does the server.
                if library.write_all(&line).await.is_err() {
                    return Ok(());
                }
            } else if !line.trim_ascii().is_empty() {
                line.truncate(MOST_SHOWN_BYTES);
                tail.note(&format!("stdout: {}", String::from_utf8_lossy(&line)));
            }
            line.clear();
        }
    }
}

/// Copies standard error to the tail until the server closes it.
pub(crate) async fn copy_errors(errors: Receiver, tail: &ErrorTail) {
    let mut buffer = vec![0; CHUNK_BYTES];
    while let Ok(came) = read(&errors, &mut buffer).await {
        match buffer.get(..came) {
            Some([]) | None => return,
            Some(came) => tail.push(came),
        }
    }
}

async fn read(pipe: &Receiver, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        pipe.readable().await?;
        match pipe.try_read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return read,
        }
    }
}

/// Messages and bytes of the present time window.
struct FloodCounter {
    since: Instant,
    messages: usize,
    bytes: usize,
}

impl FloodCounter {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            messages: 0,
            bytes: 0,
        }
    }

    fn count(&mut self, bytes: usize) -> Result<(), String> {
        if self.since.elapsed() > FLOOD_WINDOW {
            *self = Self::new();
        }
        self.messages += 1;
        self.bytes += bytes;
        if self.messages > MOST_MESSAGES || self.bytes > MOST_BYTES {
            return Err(format!(
                "it sent more than {MOST_MESSAGES} messages in a second"
            ));
        }
        Ok(())
    }
}
