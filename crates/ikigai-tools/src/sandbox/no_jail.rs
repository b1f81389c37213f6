//! Stub for systems without a sandbox.

use std::io;
use std::path::{Path, PathBuf};

use crate::Confinement;

/// Sandbox; has no values.
#[derive(Debug)]
pub(crate) enum Jail {}

impl Jail {
    /// Returns none.
    #[expect(clippy::unnecessary_wraps, reason = "it can fail where there is one")]
    pub(crate) fn of(
        _confinement: &Confinement,
        _program: &Path,
        _files: super::FileStops,
    ) -> io::Result<Option<Self>> {
        Ok(None)
    }

    /// Unreachable.
    pub(crate) fn with_namespaces(
        self,
        _confinement: &Confinement,
        _read_only: &[PathBuf],
    ) -> Self {
        match self {}
    }

    /// Unreachable.
    pub(crate) fn supervise(&mut self) -> io::Result<ListenerReceiver> {
        match *self {}
    }

    /// Unreachable.
    pub(crate) fn enter(self) -> io::Result<()> {
        match self {}
    }
}

/// Receiver of a listener; has no values.
#[derive(Debug)]
pub(crate) enum ListenerReceiver {}

impl ListenerReceiver {
    /// Unreachable.
    pub(crate) fn receive(self) -> Option<Listener> {
        match self {}
    }
}

/// Returns false: there are no namespaces that could fail.
pub(crate) fn give_up_namespaces(_error: &io::Error) -> bool {
    false
}

/// Listener; has no values.
#[derive(Debug)]
pub(crate) enum Listener {}

impl Listener {
    /// Unreachable.
    pub(crate) fn has_mounts(&self) -> bool {
        match *self {}
    }

    /// Unreachable.
    pub(crate) fn serve(
        self,
        _reach: super::LoopbackReach,
        _recorder: Option<crate::file_history::Recorder>,
        _is_of_run: impl Fn(i32) -> bool + Send + Sync + 'static,
    ) -> io::Result<()> {
        match self {}
    }
}
