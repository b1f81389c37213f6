//! A proxy to a server that can cut, silence, or lose replies.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use tempfile::TempDir;

use crate::postgres::Database;

/// Treatment of forwarded bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Way {
    /// Forwards all bytes.
    #[default]
    Open,
    /// Forwards nothing, without closing connections.
    Silent,
    /// Forwards all bytes; after these, the connection ends with the next reply, which is lost.
    Losing(Vec<u8>),
}

#[derive(Default)]
struct ProxyState {
    way: Mutex<Way>,
    changed: Condvar,
    streams: Mutex<Vec<UnixStream>>,
}

impl ProxyState {
    /// Waits while the proxy is silent.
    fn pass(&self) {
        let mut way = self.way.lock().unwrap();
        while *way == Way::Silent {
            way = self.changed.wait(way).unwrap();
        }
    }

    fn set(&self, way: Way) {
        *self.way.lock().unwrap() = way;
        self.changed.notify_all();
    }
}

/// A proxy between the users of its URL and a server.
pub struct Proxy {
    directory: TempDir,
    database: String,
    shared: Arc<ProxyState>,
}

impl Proxy {
    /// Makes a proxy to the server of a database.
    pub fn to(database: &Database) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(".s.PGSQL.5432")).unwrap();
        let server = database.directory().join(".s.PGSQL.5432");
        let shared = Arc::new(ProxyState::default());
        let each = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let (shared, server) = (Arc::clone(&each), server.clone());
                thread::spawn(move || serve(client, server, &shared));
            }
        });
        Self {
            directory,
            database: database.name().to_owned(),
            shared,
        }
    }

    /// Returns the URL of the database through this proxy.
    pub fn url(&self) -> String {
        format!(
            "postgres://postgres@/{}?host={}&connect_timeout=2",
            self.database,
            self.directory.path().display()
        )
    }

    /// Stops forwarding.
    pub fn silence(&self) {
        self.shared.set(Way::Silent);
    }

    /// Forwards again.
    pub fn open(&self) {
        self.shared.set(Way::Open);
    }

    /// Ends all connections.
    pub fn cut(&self) {
        for stream in self.shared.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Loses the reply to a request that contains these bytes.
    pub fn lose_answer_to(&self, bytes: &str) {
        self.shared.set(Way::Losing(bytes.as_bytes().to_vec()));
    }

    /// Returns true if the reply was lost.
    pub fn has_lost(&self) -> bool {
        *self.shared.way.lock().unwrap() == Way::Open
    }
}

fn serve(client: UnixStream, server: PathBuf, shared: &Arc<ProxyState>) {
    shared.pass();
    let Ok(server) = UnixStream::connect(server) else {
        return;
    };
    let is_losing = Arc::new(Mutex::new(false));
    {
        let mut streams = shared.streams.lock().unwrap();
        streams.push(client.try_clone().unwrap());
        streams.push(server.try_clone().unwrap());
    }
    let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let (there, losing) = (Arc::clone(shared), Arc::clone(&is_losing));
    thread::spawn(move || {
        forward(from, to, &there, |bytes| {
            let way = there.way.lock().unwrap().clone();
            if let Way::Losing(sought) = way
                && bytes.windows(sought.len()).any(|it| it == sought)
            {
                *losing.lock().unwrap() = true;
            }
            true
        });
    });
    forward(server, client, shared, |_| {
        let is_lost = std::mem::take(&mut *is_losing.lock().unwrap());
        if is_lost {
            shared.set(Way::Open);
        }
        !is_lost
    });
}

/// Forwards bytes until either end is gone or a reply must be lost.
fn forward(
    mut from: UnixStream,
    mut to: UnixStream,
    shared: &ProxyState,
    mut may_pass: impl FnMut(&[u8]) -> bool,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        shared.pass();
        if !may_pass(&buffer[..count]) || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
