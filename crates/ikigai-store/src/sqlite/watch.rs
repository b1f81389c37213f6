//! Telling others of commits, and hearing of theirs.
//!
//! After each commit eight bytes are written into a file beside the database. Listeners watch that
//! file, and ask SQLite whether anything has changed; since the writer may die between commit and
//! writing, they also ask now and then by themselves.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::connect::Target;
use super::place::open_own;
use super::read_only::ReadVersions;
use crate::error::StoreError;
use crate::watch::Watch;

pub(super) use crate::watch::Changes;

/// How long a commit may stay unnoticed whose writer died before telling of it.
const SLOW_CHECK: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// The writer's side.
pub(super) struct Notifier {
    changes: Changes,
    path: PathBuf,
    file: Option<File>,
    count: u64,
}

impl Notifier {
    pub(super) fn new(target: &Target, changes: Changes) -> Self {
        Self {
            changes,
            path: target.place.notify(),
            file: None,
            count: 0,
        }
    }

    /// Tells everybody that something was committed. It is a hint, so failing is harmless.
    pub(super) fn committed(&mut self) {
        self.changes.tell();
        if self.file.is_none() {
            self.file = open_own(&self.path).ok();
        }
        self.count = self.count.wrapping_add(1);
        if let Some(file) = &self.file
            && file.write_at(&self.count.to_ne_bytes(), 0).is_err()
        {
            self.file = None;
        }
    }
}

/// Keeps the listening thread alive; it ends when the last listener drops this.
struct Feed {
    // The other end sees it close.
    wake: UnixStream,
}

/// The listeners' side.
pub(super) struct Listening {
    target: Arc<Target>,
    changes: Changes,
    running: Mutex<Running>,
}

#[derive(Default)]
struct Running {
    feed: Weak<Feed>,
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    pub(super) fn new(target: Arc<Target>, changes: Changes) -> Self {
        Self {
            target,
            changes,
            running: Mutex::default(),
        }
    }

    /// Adds a listener. Whatever is committed after this returns, it is told of.
    pub(super) fn watch(&self) -> Result<Watch, StoreError> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let receiver = self.changes.subscribe().ok_or(StoreError::Closed)?;
        if let Some(feed) = running.feed.upgrade() {
            return Ok(Watch::new(receiver, feed));
        }
        // The former thread ends as soon as it sees that nobody listens.
        if let Some(thread) = running.thread.take() {
            let _ = thread.join();
        }
        let (feed, listener) = Listener::start(&self.target, self.changes.clone())?;
        let thread = thread::Builder::new()
            .name("ikigai-store-watch".to_owned())
            .spawn(move || listener.run())
            .map_err(|error| StoreError::Io(Box::new(error)))?;
        let feed = Arc::new(feed);
        running.feed = Arc::downgrade(&feed);
        running.thread = Some(thread);
        Ok(Watch::new(receiver, feed))
    }

    /// Ends the thread and tells the listeners that nothing more will come.
    pub(super) fn close(&self) {
        self.changes.close();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = running.feed.upgrade() {
            let _ = feed.wake.shutdown(std::net::Shutdown::Both);
        }
        if let Some(thread) = running.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The listening thread's own.
struct Listener {
    target: Arc<Target>,
    changes: Changes,
    connection: Option<Connection>,
    versions: Option<ReadVersions>,
    version: i64,
    touched: Touched,
    end: UnixStream,
}

impl Listener {
    fn start(target: &Arc<Target>, changes: Changes) -> Result<(Feed, Self), StoreError> {
        let fail = |error| target.error(error);
        let touched = Touched::start(target);
        let versions = target.read_versions();
        let connection = target.connect_reading().map_err(fail)?;
        let version = data_version(&connection).map_err(fail)?;
        let (wake, end) = UnixStream::pair().map_err(|error| StoreError::Io(Box::new(error)))?;
        let listener = Self {
            target: Arc::clone(target),
            changes,
            connection: Some(connection),
            versions,
            version,
            touched,
            end,
        };
        Ok((Feed { wake }, listener))
    }

    fn run(mut self) {
        loop {
            let mut fds = vec![PollFd::new(&self.end, PollFlags::IN)];
            if let Some(fd) = self.touched.fd() {
                fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
            }
            match poll(&mut fds, Some(&SLOW_CHECK)) {
                Ok(_) if !fds[0].revents().is_empty() => return self.close(),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => thread::sleep(std::time::Duration::from_secs(1)),
            }
            self.touched.drain();
            self.check();
        }
    }

    fn close(self) {
        if let Some(connection) = self.connection {
            self.target.close(connection);
        }
    }

    fn check(&mut self) {
        let versions = self.target.read_versions();
        if versions != self.versions {
            // Files that are read without locks have changed: read them anew.
            self.versions = versions;
            self.connection = None;
            self.version = -1;
        }
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => match self.target.connect_reading() {
                Ok(connection) => connection,
                // It is tried again by the next check.
                Err(_) => return,
            },
        };
        if let Ok(version) = data_version(&connection) {
            if version != self.version {
                self.version = version;
                self.changes.tell();
            }
            self.connection = Some(connection);
        } else {
            // Another connection counts anew, so its first number says nothing.
            self.version = -1;
        }
    }
}

/// A number that changes when another connection has committed.
fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("PRAGMA data_version")?
        .query_row([], |row| row.get(0))
}

/// Tells when the file beside the database is written. Where it cannot be watched, because the
/// system has no inotify or no more of it to give, the slow check has to do.
struct Touched {
    inotify: Option<OwnedFd>,
}

impl Touched {
    fn start(target: &Target) -> Self {
        Self {
            inotify: listen(&target.place.notify()),
        }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.as_ref().map(AsFd::as_fd)
    }

    /// Takes what was told so far, so that the next wait waits.
    fn drain(&self) {
        #[cfg(target_os = "linux")]
        if let Some(inotify) = &self.inotify {
            let mut buffer = [std::mem::MaybeUninit::uninit(); 1024];
            let mut events = rustix::fs::inotify::Reader::new(inotify, &mut buffer);
            while events.next().is_ok() {}
        }
    }
}

#[cfg(target_os = "linux")]
fn listen(path: &Path) -> Option<OwnedFd> {
    use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};

    open_own(path).ok()?;
    let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
    add_watch(&inotify, path, WatchFlags::MODIFY).ok()?;
    Some(inotify)
}

#[cfg(not(target_os = "linux"))]
fn listen(_path: &Path) -> Option<OwnedFd> {
    None
}
