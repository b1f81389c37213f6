//! A model server that sends each event by itself: one HTTP/1.1 chunk or one HTTP/2 frame.

mod chunks;
mod http2;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::tls;

/// Longest wait for anything; only a test that would never end gets there.
const PATIENCE: Duration = Duration::from_mins(1);

/// Framing of events in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One chunk of HTTP/1.1 each, without TLS.
    Chunks,
    /// One DATA frame of HTTP/2 each, over TLS.
    Http2Frames,
}

/// Events of an answer, and the time between them.
#[derive(Clone, Debug, Default)]
pub struct EventStream {
    /// Each as it is sent: `data: …` and a blank line.
    pub events: Vec<String>,
    /// Time from one event to the next; zero sends them as a burst.
    pub interval: Duration,
}

/// A server that answers every request with the same events.
///
/// Its threads end with the process; connections are kept alive.
#[derive(Debug)]
pub struct FramedServer {
    address: SocketAddr,
    framing: Framing,
    shared: Arc<Shared>,
    sent: Mutex<Receiver<Instant>>,
}

/// State that the server's threads report to.
#[derive(Debug)]
struct Shared {
    stream: EventStream,
    connections: AtomicUsize,
    sent: Mutex<Sender<Instant>>,
}

impl FramedServer {
    /// Listens on a port of its own.
    pub fn start(framing: Framing, stream: EventStream) -> Self {
        let (sender, sent) = mpsc::channel();
        let shared = Arc::new(Shared {
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

    /// Base address.
    pub fn url(&self) -> String {
        match self.framing {
            Framing::Chunks => format!("http://{}", self.address),
            Framing::Http2Frames => format!("https://{}", self.address),
        }
    }

    /// The certificate that clients must trust, if the server uses TLS.
    pub fn ca_file(&self) -> Option<PathBuf> {
        (self.framing == Framing::Http2Frames).then(tls::authority_file)
    }

    /// Number of connections that clients have opened.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Waits for the end of the next answer; returns when its last event was sent. Blocks.
    pub fn await_sent(&self) -> Instant {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.recv_timeout(PATIENCE).expect("an answer is sent")
    }
}

impl Shared {
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
    /// Time until an event is due, counted from the first one.
    fn left_until(&self, index: usize, begun: Instant) -> Duration {
        let due = self.interval * u32::try_from(index).unwrap_or(u32::MAX);
        due.saturating_sub(begun.elapsed())
    }
}
