//! The terminal: its input, its output, and its restoration on exit.

mod decode;
mod exit_deadline;
mod hidden;
mod input;
mod modes;
mod panic;
mod signals;
mod standing;
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
pub use hidden::HiddenInput;
pub use input::Input;
pub use modes::restore;
pub use panic::{hold_panics, take_panic};
pub use signals::{SignalEvent, Signals};
pub(crate) use signals::{is_watched, stop_group};
pub use wire::{BELL, LONGEST_COPY, clipboard, copy_to_tmux, notification, title};

/// The largest screen that is drawn. A terminal may say anything about its size.
const MOST_COLUMNS: u16 = 1_000;
const MOST_ROWS: u16 = 500;

/// Most bytes kept for a terminal that does not read; a frame is shorter.
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

/// A terminal that shows a screen, in raw mode. It is as before when this is dropped.
#[derive(Debug)]
pub struct Terminal {
    tty: OwnedFd,
    mouse: bool,
    shown: watch::Sender<bool>,
    /// Bytes that the terminal has not read.
    waiting: Vec<u8>,
}

impl Terminal {
    /// Takes the terminal of this process and makes it show a screen. Asks it nothing.
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

    /// Its columns and rows.
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

    /// Returns when the terminal has taken all that was sent. May be dropped at any time, and called
    /// again.
    pub async fn clear(&mut self) -> Result<(), TerminalError> {
        while !self.waiting.is_empty() {
            // A terminal reports that it is writable like a pipe.
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

    /// Gives the terminal back and stops this process and its group, as a shell expects it of
    /// Ctrl-Z. When [`SignalEvent::Continued`] comes, [`Terminal::resume`] is to be called. Does nothing and
    /// returns false if there is no shell that could continue the process.
    pub fn suspend(&mut self) -> Result<bool, TerminalError> {
        if !signals::is_watched() {
            return Ok(false);
        }
        self.hide();
        signals::stop_group().map_err(TerminalError::SetUp)?;
        Ok(true)
    }

    /// Gives the terminal back for another program that runs in the meantime, such as an editor.
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

    /// Writes the rest of a frame, lest the terminal takes what follows for a part of it.
    fn flush(&mut self) {
        // A terminal that takes nothing cannot be helped.
        let _ = modes::write(self.tty.as_fd(), &self.waiting, PATIENCE);
        self.waiting.clear();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.hide();
        panic::tell();
    }
}
