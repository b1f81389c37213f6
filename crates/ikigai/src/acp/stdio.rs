//! Threads that read messages from standard input and write them to standard output.

use std::io::{self, BufRead, BufReader, Write};
use std::thread::JoinHandle;

use tokio::sync::mpsc;

use super::wire::ClientMessage;

/// Longest message: a prompt with some images.
const LONGEST_LINE: usize = 32 << 20;

/// Messages that wait to be handled or written. A client that sends or reads slowly stops us here.
const WAITING: usize = 64;

/// Reads standard input until its end. A last line without its end is no message.
///
/// The thread blocks in a read that only the client ends.
pub(super) fn incoming() -> io::Result<mpsc::Receiver<ClientMessage>> {
    let (sender, receiver) = mpsc::channel(WAITING);
    let read = move || {
        let mut input = BufReader::new(io::stdin());
        while let Some(message) = next_message(&mut input, LONGEST_LINE) {
            if sender.blocking_send(message).is_err() {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("ikigai-acp-in".to_owned());
    thread.spawn(read)?;
    Ok(receiver)
}

/// Reads the next message, skipping empty lines; none at the end.
fn next_message(input: &mut impl BufRead, most: usize) -> Option<ClientMessage> {
    loop {
        let mut line = Vec::new();
        let limit = u64::try_from(most).unwrap_or(u64::MAX);
        let read = io::Read::take(&mut *input, limit).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return None;
        }
        if line.last() != Some(&b'\n') {
            if line.len() < most {
                return None;
            }
            input.skip_until(b'\n').ok()?;
            return Some(ClientMessage::too_long(most));
        }
        if !line.trim_ascii().is_empty() {
            return Some(ClientMessage::parse(&line));
        }
    }
}

/// Writer of messages to standard output.
pub(super) struct MessageWriter {
    lines: Option<mpsc::Sender<String>>,
    thread: Option<JoinHandle<()>>,
}

impl MessageWriter {
    pub(super) fn start() -> io::Result<Self> {
        let (lines, mut queued) = mpsc::channel::<String>(WAITING);
        let write = move || {
            let mut out = io::stdout();
            while let Some(line) = queued.blocking_recv() {
                // The client is gone; the reader of standard input reports it, too.
                if out.write_all(line.as_bytes()).is_err() || out.flush().is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("ikigai-acp-out".to_owned());
        Ok(Self {
            lines: Some(lines),
            thread: Some(thread.spawn(write)?),
        })
    }

    /// Queues a line. Waits for a client that reads slowly; a client that is gone does not matter.
    pub(super) async fn send(&self, line: String) {
        if let Some(lines) = &self.lines {
            let _ = lines.send(line).await;
        }
    }

    /// Waits until all lines are written. The exit deadline ends a wait for a client that does
    /// not read.
    pub(super) fn finish(&mut self) {
        self.lines = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(mut input: &[u8], most: usize) -> Vec<ClientMessage> {
        std::iter::from_fn(|| next_message(&mut input, most)).collect()
    }

    #[test]
    fn overlong_lines_are_skipped_and_half_a_line_is_no_message() {
        let hello = "{\"jsonrpc\":\"2.0\",\"method\":\"hello\"}";
        let long = "x".repeat(300);
        let input = format!("{long}\n\n  \n{hello}\n{long}{long}\n{hello}\n{hello}");

        let found = messages(input.as_bytes(), 100);

        let message = ClientMessage::parse(hello.as_bytes());
        assert_eq!(found.len(), 4);
        assert_eq!(found[1], message);
        assert_eq!(found[3], message);
        assert_eq!(found[0], ClientMessage::too_long(100));
        assert_eq!(found[2], ClientMessage::too_long(100));
    }
}
