//! Reader of terminal input.

use std::io;
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe;
use tokio::sync::watch;

use super::{KeyDecoder, TerminalError};
use crate::key::TerminalEvent;

/// Buffer size of a read; a terminal buffers no more.
const PART: usize = 4096;

/// Number of reads after which other tasks get a turn.
const MOST_PARTS: usize = 64;

/// Terminal input as a stream of events.
#[derive(Debug)]
pub struct Input {
    tty: pipe::Receiver,
    shown: watch::Receiver<bool>,
    decoder: KeyDecoder,
}

impl Input {
    pub(super) fn new(tty: OwnedFd, shown: watch::Receiver<bool>) -> io::Result<Self> {
        Ok(Self {
            // The terminal is read like a pipe; no other operation is needed.
            tty: pipe::Receiver::from_owned_fd_unchecked(tty)?,
            shown,
            decoder: KeyDecoder::default(),
        })
    }

    /// Waits for input and appends its events. Cancel safe.
    /// Reads nothing while another program has the terminal.
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

    /// Reads the available input.
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
