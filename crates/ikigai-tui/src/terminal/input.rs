//! Reads what the terminal sends.

use std::io;
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe;
use tokio::sync::watch;

use super::{KeyDecoder, TerminalError};
use crate::key::TerminalEvent;

/// How much is read at once; a terminal holds no more for us.
const PART: usize = 4096;

/// After so many parts others get a turn, though there is more to read.
const MOST_PARTS: usize = 64;

/// What comes from a terminal, as it comes.
#[derive(Debug)]
pub struct Input {
    tty: pipe::Receiver,
    shown: watch::Receiver<bool>,
    decoder: KeyDecoder,
}

impl Input {
    pub(super) fn new(tty: OwnedFd, shown: watch::Receiver<bool>) -> io::Result<Self> {
        Ok(Self {
            // A terminal is read like a pipe: nothing else is asked of it.
            tty: pipe::Receiver::from_owned_fd_unchecked(tty)?,
            shown,
            decoder: KeyDecoder::default(),
        })
    }

    /// Waits until something comes, and appends what happened. Reads nothing while the terminal
    /// belongs to somebody else. May be dropped at any time; nothing is lost.
    pub async fn read(&mut self, out: &mut Vec<TerminalEvent>) -> Result<(), TerminalError> {
        let before = out.len();
        while out.len() == before {
            let shown = self.shown.wait_for(|shown| *shown).await;
            shown.map_err(|_| TerminalError::Gone)?;
            self.tty.readable().await.map_err(|_| TerminalError::Gone)?;
            if *self.shown.borrow() {
                self.take(out)?;
            }
        }
        Ok(())
    }

    /// Reads what is there.
    fn take(&mut self, out: &mut Vec<TerminalEvent>) -> Result<(), TerminalError> {
        let mut buffer = [0; PART];
        for _ in 0..MOST_PARTS {
            match self.tty.try_read(&mut buffer) {
                Ok(0) => return Err(TerminalError::Gone),
                Ok(count) => {
                    let bytes = buffer.get(..count).unwrap_or_default();
                    self.decoder.feed(bytes, out);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.decoder.finish(out);
                    return Ok(());
                }
                Err(_) => return Err(TerminalError::Gone),
            }
        }
        Ok(())
    }
}
