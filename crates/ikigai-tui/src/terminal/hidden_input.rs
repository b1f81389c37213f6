//! Terminal without echo.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Terminal without echo, with its previous modes.
/// An exit may leave no time to drop [`HiddenInput`].
static HIDING: Mutex<Option<(OwnedFd, Termios)>> = Mutex::new(None);

/// Echo is off until this is dropped.
pub struct HiddenInput(());

impl HiddenInput {
    /// Turns echo off; `change` may change further modes.
    /// Discards pending input, because it was visible.
    pub fn begin(terminal: impl AsFd, change: impl FnOnce(&mut Termios)) -> io::Result<Self> {
        let before = tcgetattr(&terminal)?;
        let mut modes = before.clone();
        modes.local_modes.remove(LocalModes::ECHO);
        change(&mut modes);
        let kept = terminal.as_fd().try_clone_to_owned()?;
        *HIDING.lock().unwrap_or_else(PoisonError::into_inner) = Some((kept, before));
        tcsetattr(&terminal, OptionalActions::Flush, &modes)?;
        Ok(Self(()))
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        show_input();
    }
}

/// Turns echo on again, if it was off.
pub(super) fn show_input() {
    let hiding = HIDING.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((terminal, before)) = hiding {
        // A closed terminal needs nothing.
        let _ = tcsetattr(&terminal, OptionalActions::Now, &before);
    }
}
