//! Copy of a process's output for the call that waits for it.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;

use tokio::net::unix::pipe::Sender;

/// Pipe to a waiting call, with the output that it has not taken yet.
#[derive(Debug)]
pub(super) struct OutputCopy {
    pub(super) pipe: Sender,
    pub(super) pending: VecDeque<u8>,
}

impl OutputCopy {
    /// Takes over the pipe that the keeper got as standard error.
    pub(super) fn to_errors() -> io::Result<Self> {
        let errors = io::stderr();
        let pipe = errors.as_fd().try_clone_to_owned()?;
        let nothing = OpenOptions::new().write(true).open("/dev/null")?;
        // The call must see the end of the pipe before the keeper exits.
        replace_errors(&nothing)?;
        Ok(Self {
            pipe: Sender::from_owned_fd(pipe)?,
            pending: VecDeque::new(),
        })
    }

    /// Returns true if the call has not taken everything.
    pub(super) fn is_behind(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Writes what fits into the pipe; false if its reader is gone.
    pub(super) fn write(&mut self) -> bool {
        while self.is_behind() {
            let (front, _) = self.pending.as_slices();
            match self.pipe.try_write(front) {
                Ok(written) => drop(self.pending.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
        true
    }
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the standard library does not offer this call")]
fn replace_errors(file: &File) -> io::Result<()> {
    // SAFETY: both numbers are open descriptors of this process, and standard error has no owner
    // in Rust that would close it.
    let done = unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(file), libc::STDERR_FILENO) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Leaves it as it is: the call sees the end of the pipe when the keeper exits.
#[cfg(not(target_os = "linux"))]
fn replace_errors(_file: &File) -> io::Result<()> {
    Ok(())
}
