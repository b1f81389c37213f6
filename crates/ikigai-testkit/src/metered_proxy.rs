//! A proxy to a PostgreSQL server that counts statements and round trips, and delays both directions.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Traffic of all connections of one proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Executed statements, with the name of their connection.
    pub statements: Vec<(String, String)>,
    /// Times that a client had to wait for the server before it sent more. Connecting counts apart.
    pub round_trips: usize,
    /// Bytes from the server.
    pub bytes: usize,
    /// Time from the start of each connection until it was usable.
    pub connects: Vec<Duration>,
}

impl Traffic {
    /// Counts the statements whose connection and text fulfil a condition.
    pub fn count(&self, is_counted: impl Fn(&str, &str) -> bool) -> usize {
        let counted = self.statements.iter();
        counted.filter(|(name, sql)| is_counted(name, sql)).count()
    }

    /// Returns each different statement with its connection and count, the most frequent first.
    pub fn ranking(&self) -> Vec<(usize, &str, &str)> {
        let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for (name, sql) in &self.statements {
            *counts.entry((name, sql)).or_default() += 1;
        }
        let mut ranking: Vec<_> = counts
            .into_iter()
            .map(|((name, sql), count)| (count, name, sql))
            .collect();
        ranking.sort_by_key(|(count, ..)| std::cmp::Reverse(*count));
        ranking
    }
}

/// A proxy between the users of its socket and a server.
pub struct MeteredProxy {
    directory: TempDir,
    traffic: Arc<Mutex<Traffic>>,
}

impl MeteredProxy {
    /// Makes a proxy to the server with a socket in this directory; each round trip takes longer by `delay`.
    pub fn to(server: &Path, delay: Duration) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(".s.PGSQL.5432")).unwrap();
        let server = server.join(".s.PGSQL.5432");
        let traffic = Arc::new(Mutex::new(Traffic::default()));
        let shared = Arc::clone(&traffic);
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let (shared, server) = (Arc::clone(&shared), server.clone());
                thread::spawn(move || serve(client, server, &shared, delay / 2));
            }
        });
        Self { directory, traffic }
    }

    /// Returns the URL of a database through this proxy.
    pub fn url(&self, database: &str) -> String {
        let directory = self.directory.path().display();
        format!("postgres://postgres@/{database}?host={directory}")
    }

    /// Returns the traffic since the last call.
    pub fn take(&self) -> Traffic {
        let mut traffic = self.traffic.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *traffic)
    }
}

/// State of one connection, as seen from the messages of both sides.
struct MeteredConnection {
    traffic: Arc<Mutex<Traffic>>,
    begun: Instant,
    /// Name that the client gave, once its first message has passed.
    name: Option<String>,
    /// The server has accepted it.
    is_open: bool,
    /// The server has sent something since the client did.
    is_answered: bool,
    prepared: HashMap<Vec<u8>, String>,
    portals: HashMap<Vec<u8>, String>,
}

impl MeteredConnection {
    fn traffic(&self) -> std::sync::MutexGuard<'_, Traffic> {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in whole messages of the client, and removes them from the buffer.
    fn take_client(&mut self, buffer: &mut Vec<u8>) {
        if self.name.is_none() {
            let Some(length) = length_at(buffer, 0).filter(|length| buffer.len() >= *length) else {
                return;
            };
            let startup: Vec<u8> = buffer.drain(..length).collect();
            let words: Vec<&[u8]> = startup[8..].split(|byte| *byte == 0).collect();
            let place = words.iter().position(|word| *word == b"application_name");
            let name = place.and_then(|place| words.get(place + 1));
            self.name = Some(name.map_or_else(String::new, |name| text(name)));
        }
        while let Some(length) = length_at(buffer, 1).filter(|length| buffer.len() > *length) {
            let message: Vec<u8> = buffer.drain(..=length).collect();
            self.take_message(message[0], &message[5..]);
        }
    }

    fn take_message(&mut self, kind: u8, body: &[u8]) {
        let mut words = body.split(|byte| *byte == 0);
        let mut word = || words.next().unwrap_or_default();
        match kind {
            b'P' => {
                let name = word().to_vec();
                self.prepared.insert(name, text(word()));
            }
            b'B' => {
                let portal = word().to_vec();
                let sql = self.prepared.get(word()).cloned().unwrap_or_default();
                self.portals.insert(portal, sql);
            }
            b'E' => {
                let sql = self.portals.get(word()).cloned().unwrap_or_default();
                self.count(&sql);
            }
            b'Q' => {
                let sql = text(word());
                let statements = sql.split(';').filter(|sql| !sql.trim().is_empty());
                statements.for_each(|sql| self.count(sql));
            }
            _ => {}
        }
    }

    fn count(&self, sql: &str) {
        let name = self.name.clone().unwrap_or_default();
        let sql = sql.split_whitespace().collect::<Vec<_>>().join(" ");
        self.traffic().statements.push((name, sql));
    }
}

/// Returns the length that a message states at this place of the buffer.
fn length_at(buffer: &[u8], place: usize) -> Option<usize> {
    let bytes = buffer.get(place..place + 4)?.try_into().ok()?;
    usize::try_from(u32::from_be_bytes(bytes)).ok()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn serve(client: UnixStream, server: PathBuf, traffic: &Arc<Mutex<Traffic>>, delay: Duration) {
    let Ok(server) = UnixStream::connect(server) else {
        return;
    };
    let connection = Arc::new(Mutex::new(MeteredConnection {
        traffic: Arc::clone(traffic),
        begun: Instant::now(),
        name: None,
        is_open: false,
        is_answered: false,
        prepared: HashMap::new(),
        portals: HashMap::new(),
    }));
    let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let other = Arc::clone(&connection);
    let mut unread = Vec::new();
    thread::spawn(move || {
        forward(from, to, delay, move |bytes| {
            let mut connection = other.lock().unwrap_or_else(PoisonError::into_inner);
            if connection.is_open && std::mem::take(&mut connection.is_answered) {
                connection.traffic().round_trips += 1;
            }
            unread.extend_from_slice(bytes);
            connection.take_client(&mut unread);
        });
    });
    let mut unread = Vec::new();
    forward(server, client, delay, move |bytes| {
        let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        connection.is_answered = true;
        connection.traffic().bytes += bytes.len();
        if connection.is_open {
            return;
        }
        unread.extend_from_slice(bytes);
        while let Some(length) = length_at(&unread, 1).filter(|length| unread.len() > *length) {
            if unread[0] == b'Z' {
                connection.is_open = true;
                // The last message has still half the way to go.
                let took = connection.begun.elapsed() + delay;
                connection.traffic().connects.push(took);
                return;
            }
            unread.drain(..=length);
        }
    });
}

/// Forwards bytes with a delay until either end is gone; `notice` sees them first.
fn forward(
    mut from: UnixStream,
    mut to: UnixStream,
    delay: Duration,
    mut notice: impl FnMut(&[u8]),
) {
    let (sender, receiver): (Sender<(Instant, Vec<u8>)>, Receiver<_>) = channel();
    let late = thread::spawn(move || {
        for (due, bytes) in receiver {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        notice(&buffer[..count]);
        let late = (Instant::now() + delay, buffer[..count].to_vec());
        if sender.send(late).is_err() {
            break;
        }
    }
    drop(sender);
    let _ = late.join();
    let _ = from.shutdown(Shutdown::Both);
}
