//! Pipes of a child: input, and output collected within bounds.

use std::io;

use tokio::net::unix::pipe::{Receiver, Sender};

use super::ticker::Ticker;
use super::unseen_lines::UnseenLines;
use super::{OutputListeners, OutputPump};
use crate::output::Collector;

/// Size of one read: the default capacity of a pipe.
const CHUNK_BYTES: usize = 64 * 1024;

/// Most chunks read from a pipe after all writers should be gone.
///
/// More than the largest pipe holds. A process outside of the run may hold it and write for ever.
const MOST_LAST_CHUNKS: usize = 64;

/// Our ends of a child's pipes.
pub(crate) struct Streams {
    input: Option<(Sender, Vec<u8>, usize)>,
    output: Stream,
    errors: Stream,
    ticker: Ticker,
    /// Stream that was written last.
    newest: NewestLine,
    unseen: UnseenLines,
    errors_come_apart: bool,
    listeners: OutputListeners,
}

#[derive(Clone, Copy)]
enum NewestLine {
    Output,
    Errors,
}

/// Output stream of the child.
struct Stream {
    pipe: Option<Receiver>,
    kept: Collector,
    buffer: Vec<u8>,
}

impl Streams {
    /// Reads `output` and separate `errors`, keeping `most_bytes` of each; writes `input` as fast
    /// as the child reads it.
    pub(crate) fn new(
        input: Option<(Sender, Vec<u8>)>,
        output: Receiver,
        errors: Option<Receiver>,
        most_bytes: usize,
        listeners: OutputListeners,
    ) -> Self {
        Self {
            errors_come_apart: errors.is_some(),
            input: input.map(|(pipe, bytes)| (pipe, bytes, 0)),
            output: Stream::new(Some(output), most_bytes),
            errors: Stream::new(errors, most_bytes),
            ticker: Ticker::new(listeners.line.clone()),
            newest: NewestLine::Output,
            unseen: UnseenLines::default(),
            listeners,
        }
    }

    /// Drains the pipes without waiting for more, and returns everything.
    pub(crate) fn finish(mut self) -> (Collector, Collector) {
        for _ in 0..MOST_LAST_CHUNKS {
            let more_output = self.output.read().is_some();
            let more_errors = self.errors.read().is_some();
            if !more_output && !more_errors {
                break;
            }
        }
        (self.output.kept, self.errors.kept)
    }

    fn show_unseen(&mut self) {
        if let Some(text) = self.unseen.take() {
            (self.listeners.output)(&text);
        }
    }

    fn write(&mut self) {
        let Some((pipe, bytes, written)) = &mut self.input else {
            return;
        };
        match pipe.try_write(bytes.get(*written..).unwrap_or_default()) {
            Ok(more) => *written += more,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            // The child closed its input; that is not an error.
            Err(_) => *written = bytes.len(),
        }
        if *written >= bytes.len() {
            self.input = None;
        }
    }
}

impl OutputPump for Streams {
    fn is_open(&self) -> bool {
        self.output.pipe.is_some() || self.errors.pipe.is_some()
    }

    async fn pump(&mut self) {
        tokio::select! {
            () = ready_to_write(self.input.as_ref()) => self.write(),
            () = self.output.ready() => {
                // If errors are separate, the output is a response for a program.
                let is_shown = !self.errors_come_apart;
                if let Some(came) = self.output.read() {
                    if is_shown {
                        self.unseen.push(came);
                    }
                    self.newest = NewestLine::Output;
                    if self.ticker.see(|| self.output.kept.newest_line()) {
                        self.show_unseen();
                    }
                }
            }
            () = self.errors.ready() => {
                if let Some(came) = self.errors.read() {
                    self.unseen.push(came);
                    self.newest = NewestLine::Errors;
                    if self.ticker.see(|| self.errors.kept.newest_line()) {
                        self.show_unseen();
                    }
                }
            }
            () = self.ticker.due() => {
                let newest = match self.newest {
                    NewestLine::Output => &self.output,
                    NewestLine::Errors => &self.errors,
                };
                self.ticker.report(|| newest.kept.newest_line());
                self.show_unseen();
            }
        }
    }
}

async fn ready_to_write(input: Option<&(Sender, Vec<u8>, usize)>) {
    match input {
        Some((pipe, _, _)) => {
            // An error shows again at the write.
            let _ = pipe.writable().await;
        }
        None => std::future::pending().await,
    }
}

impl Stream {
    fn new(pipe: Option<Receiver>, most_bytes: usize) -> Self {
        Self {
            buffer: vec![0; if pipe.is_some() { CHUNK_BYTES } else { 0 }],
            pipe,
            kept: Collector::keeping(most_bytes),
        }
    }

    async fn ready(&self) {
        match &self.pipe {
            Some(pipe) => {
                let _ = pipe.readable().await;
            }
            None => std::future::pending().await,
        }
    }

    /// Reads a chunk if one is available.
    fn read(&mut self) -> Option<&[u8]> {
        let read = match self.pipe.as_ref()?.try_read(&mut self.buffer) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
            Err(_) => 0,
        };
        if read == 0 {
            self.pipe = None;
            return None;
        }
        let came = self.buffer.get(..read).unwrap_or_default();
        self.kept.push(came);
        Some(came)
    }
}
