//! Notification of commits between processes.
//!
//! After each commit the writer writes eight bytes into a file next to the database. Listeners
//! watch that file and ask SQLite for its data version. Since the writer may die between commit and
//! notification, they also poll.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::connect::SqliteTarget;
use super::paths::open_own;
use super::read_only::ReadVersions;
use crate::error::StoreError;
use crate::watch::Watch;

pub(super) use crate::watch::CommitSignal;

/// Polling interval, for commits whose writer died before the notification.
const SLOW_CHECK: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Sends notifications, for the writer.
pub(super) struct FileNotifier {
    changes: CommitSignal,
    path: PathBuf,
    file: Option<File>,
    count: u64,
}

impl FileNotifier {
    pub(super) fn new(target: &SqliteTarget, changes: CommitSignal) -> Self {
        Self {
            changes,
            path: target.place.notify(),
            file: None,
            count: 0,
        }
    }

    /// Notifies all subscribers of a commit. It is a hint, so failing is harmless.
    pub(super) fn committed(&mut self) {
        self.changes.notify();
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

/// Keeps the listener thread alive until the last subscriber drops it.
struct ListenerGuard {
    // The thread sees the other end close.
    wake: UnixStream,
}

/// Manages the listener thread, for subscribers.
pub(super) struct CommitWatcher {
    target: Arc<SqliteTarget>,
    changes: CommitSignal,
    running: Mutex<ListenerThread>,
}

#[derive(Default)]
struct ListenerThread {
    feed: Weak<ListenerGuard>,
    thread: Option<JoinHandle<()>>,
}

impl CommitWatcher {
    pub(super) fn new(target: Arc<SqliteTarget>, changes: CommitSignal) -> Self {
        Self {
            target,
            changes,
            running: Mutex::default(),
        }
    }

    /// Adds a subscriber, which hears of every commit after this returns.
    pub(super) fn watch(&self) -> Result<Watch, StoreError> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let receiver = self.changes.subscribe().ok_or(StoreError::Closed)?;
        if let Some(feed) = running.feed.upgrade() {
            return Ok(Watch::new(receiver, feed));
        }
        // The former thread ends once it has no subscribers.
        if let Some(thread) = running.thread.take() {
            let _ = thread.join();
        }
        let (feed, listener) = FileListener::start(&self.target, self.changes.clone())?;
        let thread = thread::Builder::new()
            .name("ikigai-store-watch".to_owned())
            .spawn(move || listener.run())
            .map_err(|error| StoreError::Io(Box::new(error)))?;
        let feed = Arc::new(feed);
        running.feed = Arc::downgrade(&feed);
        running.thread = Some(thread);
        Ok(Watch::new(receiver, feed))
    }

    /// Ends the thread and closes all subscriptions.
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

/// State of the listener thread.
struct FileListener {
    target: Arc<SqliteTarget>,
    changes: CommitSignal,
    connection: Option<Connection>,
    versions: Option<ReadVersions>,
    version: i64,
    touched: NotifyFileWatch,
    end: UnixStream,
}

impl FileListener {
    fn start(
        target: &Arc<SqliteTarget>,
        changes: CommitSignal,
    ) -> Result<(ListenerGuard, Self), StoreError> {
        let fail = |error| target.error(error);
        let touched = NotifyFileWatch::start(target);
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
        Ok((ListenerGuard { wake }, listener))
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
            // Files that are read without locks have changed: reopen them.
            self.versions = versions;
            self.connection = None;
            self.version = -1;
        }
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => match self.target.connect_reading() {
                Ok(connection) => connection,
                // The next check retries.
                Err(_) => return,
            },
        };
        if let Ok(version) = data_version(&connection) {
            if version != self.version {
                self.version = version;
                self.changes.notify();
            }
            self.connection = Some(connection);
        } else {
            // Data versions of different connections are not comparable.
            self.version = -1;
        }
    }
}

/// Returns the number that changes when another connection commits.
fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("PRAGMA data_version")?
        .query_row([], |row| row.get(0))
}

/// Watches the notification file.
///
/// Without inotify, or when its limit is reached, polling remains.
struct NotifyFileWatch {
    inotify: Option<OwnedFd>,
}

impl NotifyFileWatch {
    fn start(target: &SqliteTarget) -> Self {
        Self {
            inotify: listen(&target.place.notify()),
        }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.as_ref().map(AsFd::as_fd)
    }

    /// Discards pending events.
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
