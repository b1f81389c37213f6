//! A terminal that shows nothing of what is typed.

use std::io;
use std::os::fd::AsFd;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// See the module; it is as before when this is dropped.
pub struct Hidden<T: AsFd> {
    terminal: T,
    before: Termios,
}

impl<T: AsFd> Hidden<T> {
    /// Hides what is typed from now on; `change` may change further modes. What was typed before is
    /// thrown away: it was seen.
    pub fn begin(terminal: T, change: impl FnOnce(&mut Termios)) -> io::Result<Self> {
        let before = tcgetattr(&terminal)?;
        let mut modes = before.clone();
        modes.local_modes.remove(LocalModes::ECHO);
        change(&mut modes);
        tcsetattr(&terminal, OptionalActions::Flush, &modes)?;
        Ok(Self { terminal, before })
    }
}

impl<T: AsFd> Drop for Hidden<T> {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}
