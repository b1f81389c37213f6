//! A scripted HTTP server: each connection plays the next script, to the byte.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::net::sockopt;

use crate::tcp_server::{PATIENCE, TcpServer, held};

/// First byte of a TLS handshake: no HTTP request follows that could be read.
const TLS_HANDSHAKE: u8 = 0x16;

/// Actions of one connection after its request was read; then it closes.
#[derive(Clone, Debug, Default)]
pub struct Script(Vec<Act>);

#[derive(Clone, Debug)]
enum Act {
    Send(Vec<u8>),
    AwaitGo,
    AwaitClose,
    Reset,
}

impl Script {
    /// Makes an empty script.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a whole response with a content length.
    pub fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let length = body.len().to_string();
        let mut all = headers.to_vec();
        all.push(("content-length", &length));
        Self::new().head(status, &all).send(body)
    }

    /// Makes the head of a stream of events whose body ends with the connection.
    pub fn stream() -> Self {
        Self::new().head(200, &[("content-type", "text/event-stream")])
    }

    /// Makes the head of a chunked stream, in which an early end is detectable.
    pub fn chunked() -> Self {
        Self::new().head(
            200,
            &[
                ("content-type", "text/event-stream"),
                ("transfer-encoding", "chunked"),
            ],
        )
    }

    /// Sends a status line and headers.
    #[must_use]
    pub fn head(self, status: u16, headers: &[(&str, &str)]) -> Self {
        let mut head = format!("HTTP/1.1 {status} Scripted\r\nconnection: close\r\n");
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        self.send(head + "\r\n")
    }

    /// Sends bytes unchanged, in a separate segment.
    #[must_use]
    pub fn send(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.0.push(Act::Send(bytes.into()));
        self
    }

    /// Sends a chunk; an empty one ends the body.
    #[must_use]
    pub fn chunk(self, bytes: &str) -> Self {
        self.send(format!("{:x}\r\n{bytes}\r\n", bytes.len()))
    }

    /// Returns all bytes that it sends.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let sent = self.0.iter().filter_map(|act| match act {
            Act::Send(bytes) => Some(bytes.as_slice()),
            _ => None,
        });
        sent.flatten().copied().collect()
    }

    /// Waits for [`Server::go`].
    #[must_use]
    pub fn await_go(mut self) -> Self {
        self.0.push(Act::AwaitGo);
        self
    }

    /// Waits until the client closes the connection, then wakes [`Server::await_closed`].
    #[must_use]
    pub fn await_close(mut self) -> Self {
        self.0.push(Act::AwaitClose);
        self
    }

    /// Ends the connection with a reset.
    #[must_use]
    pub fn reset(mut self) -> Self {
        self.0.push(Act::Reset);
        self
    }
}

/// A received request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Method and path.
    pub line: String,
    /// Headers in order, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Received {
    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// The server. It ends on drop; connections that still wait end with their client.
#[derive(Debug)]
pub struct Server {
    listening: TcpServer,
    shared: Arc<ServerState>,
    go: Sender<()>,
    closed: Mutex<Receiver<()>>,
}

#[derive(Debug)]
struct ServerState {
    scripts: Mutex<VecDeque<Script>>,
    received: Mutex<Vec<Received>>,
    go: Mutex<Receiver<()>>,
    closed: Sender<()>,
}

impl Server {
    /// Starts to listen. The first connection plays the first script, and so on.
    ///
    /// A connection without a script gets status 500 and a header that forbids a retry.
    pub fn start(scripts: impl IntoIterator<Item = Script>) -> Self {
        let (go, going) = mpsc::channel();
        let (closing, closed) = mpsc::channel();
        let shared = Arc::new(ServerState {
            scripts: Mutex::new(scripts.into_iter().collect()),
            received: Mutex::default(),
            go: Mutex::new(going),
            closed: closing,
        });
        let state = Arc::clone(&shared);
        Self {
            listening: TcpServer::start(move || {
                let script = held(&state.scripts).pop_front().unwrap_or_else(|| {
                    let headers = [("x-should-retry", "false")];
                    Script::answer(500, &headers, "there is no script for this request")
                });
                let state = Arc::clone(&state);
                move |stream| play(stream, script, &state)
            }),
            shared,
            go,
            closed: Mutex::new(closed),
        }
    }

    /// Returns host and port.
    pub fn address(&self) -> String {
        self.listening.address.to_string()
    }

    /// Returns a plain HTTP URL for a path that begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.listening.address)
    }

    /// Returns the requests so far.
    pub fn received(&self) -> Vec<Received> {
        held(&self.shared.received).clone()
    }

    /// Wakes one waiting script.
    pub fn go(&self) {
        self.go.send(()).unwrap();
    }

    /// Waits until a client has closed a connection whose script waits for that. Blocks.
    pub fn await_closed(&self) {
        let closed = held(&self.closed).recv_timeout(PATIENCE);
        closed.expect("the client closes the connection");
    }
}

fn play(mut stream: TcpStream, script: Script, shared: &ServerState) -> io::Result<()> {
    if let Some(request) = read_request(&mut stream)? {
        held(&shared.received).push(request);
    }
    let awaits_close = script.0.iter().any(|act| matches!(act, Act::AwaitClose));
    // A reset counts as a close; only a client that stays does not.
    let stays = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
    for act in script.0 {
        match act {
            Act::Send(bytes) => {
                let sent = stream.write_all(&bytes);
                // The client may close before all of it is sent.
                if awaits_close && sent.as_ref().is_err_and(|error| !stays(error)) {
                    let _ = shared.closed.send(());
                }
                sent?;
            }
            Act::AwaitGo => {
                held(&shared.go)
                    .recv_timeout(PATIENCE)
                    .map_err(io::Error::other)?;
            }
            Act::AwaitClose => {
                let ended = stream.read_to_end(&mut Vec::new());
                if !ended.is_err_and(|error| stays(&error)) {
                    let _ = shared.closed.send(());
                }
            }
            Act::Reset => {
                sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Reads a request; none if it is no HTTP, or the client only connected.
pub(crate) fn read_request(stream: &mut TcpStream) -> io::Result<Option<Received>> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    let head_bytes = loop {
        if bytes.first() == Some(&TLS_HANDSHAKE) {
            return Ok(None);
        }
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        match stream.read(&mut part)? {
            0 => return Ok(None),
            read => bytes.extend(&part[..read]),
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_bytes]).into_owned();
    let mut lines = head.lines();
    let line = lines.next().unwrap_or_default();
    let line = line.strip_suffix(" HTTP/1.1").unwrap_or(line).to_owned();
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let mut request = Received {
        line,
        headers,
        body: bytes.split_off(head_bytes),
    };
    let length = request.header("content-length").map(str::parse::<usize>);
    let length = length.and_then(Result::ok).unwrap_or_default();
    let rest = length.saturating_sub(request.body.len());
    let mut tail = vec![0; rest];
    stream.read_exact(&mut tail)?;
    request.body.extend(tail);
    Ok(Some(request))
}
