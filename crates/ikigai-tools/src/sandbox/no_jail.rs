//! Where there is no sandbox.

use std::io;
use std::path::{Path, PathBuf};

use crate::Confinement;

/// A sandbox that nobody has.
#[derive(Debug)]
pub(crate) enum Jail {}

impl Jail {
    /// There is none.
    #[expect(clippy::unnecessary_wraps, reason = "it can fail where there is one")]
    pub(crate) fn of(_confinement: &Confinement, _program: &Path) -> io::Result<Option<Self>> {
        Ok(None)
    }

    /// There are no namespaces.
    pub(crate) fn with_namespaces(
        self,
        _confinement: &Confinement,
        _read_only: &[PathBuf],
    ) -> Self {
        match self {}
    }

    /// There is no supervisor.
    pub(crate) fn supervised(&mut self) -> io::Result<ListenerReceiver> {
        match *self {}
    }

    /// Nobody can.
    pub(crate) fn enter(self) -> io::Result<()> {
        match self {}
    }
}

/// Listener of a sandbox, of which there is none.
#[derive(Debug)]
pub(crate) enum ListenerReceiver {}

impl ListenerReceiver {
    /// There is nothing to receive.
    pub(crate) fn receive(self) -> Option<Listener> {
        match self {}
    }
}

/// There are no namespaces that could fail.
pub(crate) fn give_up_namespaces(_error: &io::Error) -> bool {
    false
}

/// Listener that nothing sends.
#[derive(Debug)]
pub(crate) enum Listener {}

impl Listener {
    /// There are no mounts.
    pub(crate) fn has_mounts(&self) -> bool {
        match *self {}
    }

    /// There is nothing to serve.
    pub(crate) fn serve(
        self,
        _is_of_run: impl Fn(i32) -> bool + Send + Sync + 'static,
    ) -> io::Result<()> {
        match self {}
    }
}
