//! The terminal: its input, its output, and its restoration on exit.

mod decode;
mod exit_deadline;
mod hidden_input;
mod input;
mod modes;
mod panic;
mod process_group;
mod signals;
mod wire;

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use rustix::termios::tcgetwinsize;
use thiserror::Error;
use tokio::net::unix::pipe;
use tokio::sync::watch;

pub use decode::{KeyDecoder, LONGEST_PASTE};
pub(crate) use exit_deadline::treat_interrupt_as_key;
pub use exit_deadline::{begin_exit, enforce_exit_deadline, exit_time_left, is_exiting};
pub use hidden_input::HiddenInput;
pub use input::Input;
pub use modes::restore;
pub use panic::{hold_panics, take_panic};
pub use signals::{SignalEvent, Signals};
pub(crate) use signals::{is_watched, stop_group};
pub use wire::{
    BELL, LONGEST_COPY, STATUS_CLEAR, STATUS_QUERY, clipboard, copy_to_tmux, notification,
    program_status, title,
};

/// Limits of the screen size; a terminal may report any size.
const MOST_COLUMNS: u16 = 1_000;
const MOST_ROWS: u16 = 500;

/// Limit of bytes queued for a terminal that does not read; a frame is shorter.
const MOST_WAITING: usize = 8 << 20;

/// Longest wait for a terminal that does not read, when leaving it.
const PATIENCE: Duration = Duration::from_millis(300);

/// Why the terminal cannot be used.
#[derive(Debug, Error)]
pub enum TerminalError {
    /// There is none.
    #[error("this needs a terminal")]
    None(#[source] io::Error),
    /// It refuses a setting.
    #[error("cannot set up the terminal")]
    SetUp(#[source] io::Error),
    /// It was closed.
    #[error("the terminal is gone")]
    Gone,
}

/// Terminal that shows a screen, in raw mode; restored when dropped.
#[derive(Debug)]
pub struct Terminal {
    tty: OwnedFd,
    mouse: bool,
    shown: watch::Sender<bool>,
    /// Bytes that the terminal has not read.
    waiting: Vec<u8>,
}

impl Terminal {
    /// Takes the terminal of this process and shows a screen, without queries to it.
    pub fn open(mouse: bool) -> Result<Self, TerminalError> {
        let tty = modes::open().map_err(TerminalError::None)?;
        let mut terminal = Self {
            tty,
            mouse,
            shown: watch::Sender::new(false),
            waiting: Vec::new(),
        };
        terminal.show()?;
        Ok(terminal)
    }

    /// Returns its columns and rows.
    pub fn size(&self) -> (u16, u16) {
        let size = tcgetwinsize(&self.tty).ok();
        let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
        size.map_or((80, 24), |size| {
            (size.ws_col.min(MOST_COLUMNS), size.ws_row.min(MOST_ROWS))
        })
    }

    /// Creates the input reader. Needs a runtime; there must be only one reader.
    pub fn input(&self) -> Result<Input, TerminalError> {
        let tty = self.tty.try_clone().map_err(TerminalError::SetUp)?;
        Input::new(tty, self.shown.subscribe()).map_err(TerminalError::SetUp)
    }

    /// Sends bytes without waiting; queues the part that the terminal does not accept.
    /// Drops them while the screen is hidden or the queue is over its limit: make the next frame
    /// only when [`Terminal::is_clear`].
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), TerminalError> {
        if !self.is_shown() || self.waiting.len() > MOST_WAITING {
            return Ok(());
        }
        self.waiting.extend_from_slice(bytes);
        self.push()
    }

    /// Reports whether the terminal has read all bytes.
    pub fn is_clear(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Waits until the terminal has accepted all bytes. Cancel safe.
    pub async fn clear(&mut self) -> Result<(), TerminalError> {
        while !self.waiting.is_empty() {
            // A terminal reports that it is writable as a pipe does.
            let tty = self.tty.try_clone().map_err(TerminalError::SetUp)?;
            let tty = pipe::Sender::from_owned_fd_unchecked(tty).map_err(TerminalError::SetUp)?;
            tty.writable().await.map_err(|_| TerminalError::Gone)?;
            self.push()?;
        }
        Ok(())
    }

    /// Reports whether the screen is shown: not while suspended or in the background.
    pub fn is_shown(&self) -> bool {
        *self.shown.borrow()
    }

    /// Turns the mouse on or off.
    pub fn set_mouse(&mut self, mouse: bool) -> Result<(), TerminalError> {
        self.mouse = mouse;
        self.send(modes::mouse(mouse))
    }

    /// Gives the terminal back and stops this process's group, as Ctrl-Z does in a shell.
    /// Call [`Terminal::resume`] on [`SignalEvent::Continued`]. Does nothing and returns false if
    /// no shell could continue the process.
    pub fn suspend(&mut self) -> Result<bool, TerminalError> {
        if !signals::is_watched() {
            return Ok(false);
        }
        self.hide();
        signals::stop_group().map_err(TerminalError::SetUp)?;
        Ok(true)
    }

    /// Gives the terminal back for another program, such as an editor.
    /// [`Terminal::resume`] takes it again.
    pub fn hide(&mut self) {
        self.shown.send_replace(false);
        self.flush();
        modes::restore();
    }

    /// Shows the screen again after the process was continued or another program ended.
    /// Returns false if the process is in the background, where it must not touch the terminal. The
    /// screen's contents are unknown afterwards.
    pub fn resume(&mut self) -> Result<bool, TerminalError> {
        if !modes::is_foreground(self.tty.as_fd()) {
            self.shown.send_replace(false);
            return Ok(false);
        }
        self.show()?;
        Ok(true)
    }

    fn show(&mut self) -> Result<(), TerminalError> {
        modes::enter(&self.tty).map_err(TerminalError::SetUp)?;
        self.waiting.clear();
        self.shown.send_replace(true);
        self.send(modes::ENTER)?;
        if self.mouse {
            self.send(modes::mouse(true))?;
        }
        Ok(())
    }

    /// Writes as much as the terminal takes.
    fn push(&mut self) -> Result<(), TerminalError> {
        let written = modes::write(self.tty.as_fd(), &self.waiting, Duration::ZERO);
        let written = written.map_err(|_| TerminalError::Gone)?;
        self.waiting.drain(..written.min(self.waiting.len()));
        Ok(())
    }

    /// Writes the rest of a frame. Otherwise the terminal would read later bytes as part of it.
    fn flush(&mut self) {
        // Ignore a terminal that accepts nothing.
        let _ = modes::write(self.tty.as_fd(), &self.waiting, PATIENCE);
        self.waiting.clear();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.hide();
        panic::print_message();
    }
}
