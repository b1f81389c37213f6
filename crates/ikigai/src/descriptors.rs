//! Check that enough file descriptors are available.

use std::io;
use std::os::fd::OwnedFd;

use anyhow::{Context as _, Result};
use rustix::fs::{Mode, OFlags, open};

/// Descriptors that a start needs: store, runtime, signals, terminal and control socket.
///
/// Tokio panics if it cannot open those for signals, so check before.
const NEEDED: usize = 40;

/// Fails if the process cannot open as many files as a start needs.
pub(crate) fn check() -> Result<()> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let opened: Result<Vec<OwnedFd>, _> = (0..NEEDED)
        .map(|_| open("/", flags, Mode::empty()))
        .collect();
    opened.map_err(io::Error::from).with_context(|| {
        format!("ikigai needs {NEEDED} file descriptors\nhint: raise the limit: ulimit -n 1024")
    })?;
    Ok(())
}
