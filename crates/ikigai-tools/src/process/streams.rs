//! What goes into a child and what comes out of it, read without end and kept within bounds.

use std::io;

use tokio::net::unix::pipe::{Receiver, Sender};

use super::ticker::Ticker;
use crate::output::Collector;

/// How much is read at once: as much as a pipe holds by default.
const CHUNK_BYTES: usize = 64 * 1024;

/// How many chunks are taken from a pipe whose writers should all be gone: more than the largest
/// pipe holds. Somebody outside the run may hold it and write for ever.
const MOST_LAST_CHUNKS: usize = 64;

/// Our ends of a child's pipes.
pub(crate) struct Streams {
    input: Option<(Sender, Vec<u8>, usize)>,
    output: Stream,
    errors: Stream,
    ticker: Ticker,
    /// Which of the two wrote last.
    newest: Newest,
}

#[derive(Clone, Copy)]
enum Newest {
    Output,
    Errors,
}

/// One direction out of the child.
struct Stream {
    pipe: Option<Receiver>,
    kept: Collector,
    buffer: Vec<u8>,
}

impl Streams {
    /// Reads `output`, and `errors` if these come apart, keeping `most_bytes` of each; writes
    /// `input` as fast as it is taken.
    pub(crate) fn new(
        input: Option<(Sender, Vec<u8>)>,
        output: Receiver,
        errors: Option<Receiver>,
        most_bytes: usize,
        ticker: Ticker,
    ) -> Self {
        Self {
            input: input.map(|(pipe, bytes)| (pipe, bytes, 0)),
            output: Stream::new(Some(output), most_bytes),
            errors: Stream::new(errors, most_bytes),
            ticker,
            newest: Newest::Output,
        }
    }

    /// Whether something may still come out.
    pub(crate) fn is_open(&self) -> bool {
        self.output.pipe.is_some() || self.errors.pipe.is_some()
    }

    /// Moves what can be moved next. Waits for ever when everything is closed. Nothing is lost if
    /// it is dropped while it waits.
    pub(crate) async fn pump(&mut self) {
        tokio::select! {
            () = ready_to_write(self.input.as_ref()) => self.write(),
            () = self.output.ready() => {
                if self.output.read() {
                    self.newest = Newest::Output;
                    self.ticker.see(|| self.output.kept.newest_line());
                }
            }
            () = self.errors.ready() => {
                if self.errors.read() {
                    self.newest = Newest::Errors;
                    self.ticker.see(|| self.errors.kept.newest_line());
                }
            }
            () = self.ticker.due() => {
                let newest = match self.newest {
                    Newest::Output => &self.output,
                    Newest::Errors => &self.errors,
                };
                self.ticker.tell(|| newest.kept.newest_line());
            }
        }
    }

    /// Takes what is left in the pipes without waiting for more, and gives everything.
    pub(crate) fn finish(mut self) -> (Collector, Collector) {
        for _ in 0..MOST_LAST_CHUNKS {
            let (more_output, more_errors) = (self.output.read(), self.errors.read());
            if !more_output && !more_errors {
                break;
            }
        }
        (self.output.kept, self.errors.kept)
    }

    fn write(&mut self) {
        let Some((pipe, bytes, written)) = &mut self.input else {
            return;
        };
        match pipe.try_write(bytes.get(*written..).unwrap_or_default()) {
            Ok(more) => *written += more,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            // The child does not want it: that is its own affair.
            Err(_) => *written = bytes.len(),
        }
        if *written >= bytes.len() {
            self.input = None;
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

    /// Takes a chunk if one is there.
    fn read(&mut self) -> bool {
        let Some(pipe) = &self.pipe else {
            return false;
        };
        let read = match pipe.try_read(&mut self.buffer) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(_) => 0,
        };
        if read == 0 {
            self.pipe = None;
            return false;
        }
        self.kept.push(self.buffer.get(..read).unwrap_or_default());
        true
    }
}
