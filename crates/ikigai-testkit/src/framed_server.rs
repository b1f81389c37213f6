//! A model server that sends each event separately: one HTTP/1.1 chunk or one HTTP/2 frame.

mod chunks;
mod http2;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::tls;

/// Time limit of every wait; only an endless test reaches it.
const PATIENCE: Duration = Duration::from_mins(1);

/// Framing of events in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One chunk of HTTP/1.1 each, without TLS.
    Chunks,
    /// One DATA frame of HTTP/2 each, over TLS.
    Http2Frames,
}

/// Events of a response, and the time between them.
#[derive(Clone, Debug, Default)]
pub struct EventStream {
    /// Events in wire form: `data: …` and a blank line.
    pub events: Vec<String>,
    /// Time from one event to the next; zero sends them as a burst.
    pub interval: Duration,
}

/// A server that answers every POST request with the same events, and any other with 404.
///
/// A lookup of the model's window is no POST: its answer must not count as the one measured.
/// Its threads end with the process; connections are kept alive.
#[derive(Debug)]
pub struct FramedServer {
    address: SocketAddr,
    framing: Framing,
    shared: Arc<FramedState>,
    sent: Mutex<Receiver<Instant>>,
}

/// State that the server's threads report to.
#[derive(Debug)]
struct FramedState {
    stream: EventStream,
    connections: AtomicUsize,
    sent: Mutex<Sender<Instant>>,
}

impl FramedServer {
    /// Starts a server on a free port.
    pub fn start(framing: Framing, stream: EventStream) -> Self {
        let (sender, sent) = mpsc::channel();
        let shared = Arc::new(FramedState {
            stream,
            connections: AtomicUsize::new(0),
            sent: Mutex::new(sender),
        });
        let address = match framing {
            Framing::Chunks => chunks::listen(&shared),
            Framing::Http2Frames => http2::listen(&shared),
        };
        Self {
            address,
            framing,
            shared,
            sent: Mutex::new(sent),
        }
    }

    /// Returns the base URL.
    pub fn url(&self) -> String {
        match self.framing {
            Framing::Chunks => format!("http://{}", self.address),
            Framing::Http2Frames => format!("https://{}", self.address),
        }
    }

    /// Returns the certificate that clients must trust, if the server uses TLS.
    pub fn ca_file(&self) -> Option<PathBuf> {
        (self.framing == Framing::Http2Frames).then(tls::authority_file)
    }

    /// Returns the number of connections that clients have opened.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Waits for the end of the next response; returns the time of its last event. Blocks.
    pub fn await_sent(&self) -> Instant {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.recv_timeout(PATIENCE).expect("an answer is sent")
    }
}

impl FramedState {
    fn count_connection(&self) {
        self.connections.fetch_add(1, Ordering::SeqCst);
    }

    fn report_sent(&self) {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        // Without a receiver there is nothing to measure.
        let _ = sent.send(Instant::now());
    }
}

impl EventStream {
    /// Returns the time until an event is due, counted from the first one.
    fn left_until(&self, index: usize, begun: Instant) -> Duration {
        let due = self.interval * u32::try_from(index).unwrap_or(u32::MAX);
        due.saturating_sub(begun.elapsed())
    }
}
