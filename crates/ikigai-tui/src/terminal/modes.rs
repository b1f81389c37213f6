//! Raw mode and back.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{
    OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcgetpgrp,
    tcsetattr, ttyname,
};

use super::PATIENCE;
use super::process_group::Standing;

/// Sequence that switches a terminal to the screen.
/// Saves the title, enters the alternate screen, enables bracketed paste and focus reports, and
/// distinguishes keys (first as xterm does, then as kitty does). Terminals ignore sequences that
/// they do not know.
pub(super) const ENTER: &[u8] =
    b"\x1b[22;2t\x1b[?1049h\x1b[?2004h\x1b[?1004h\x1b[>4;1m\x1b[>1u\x1b[m";

/// Sequence that undoes it. It also ends a partial sequence, a partial frame and a scroll region.
const LEAVE: &[u8] = b"\x1b\\\x1b[?2026l\x1b[r\x1b[m\x1b]8;;\x1b\\\x1b[<1u\x1b[>4m\
    \x1b[?1006l\x1b[?1002l\x1b[?1004l\x1b[?2004l\x1b[?25h\x1b[?1049l\x1b[23;2t\x1b[m";

/// Terminal in raw mode, with its previous modes.
static ENTERED: Mutex<Option<EnteredModes>> = Mutex::new(None);

struct EnteredModes {
    tty: OwnedFd,
    before: Termios,
}

/// Opens the terminal again, so that non-blocking mode applies to this process only.
pub(super) fn open() -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let controlling = rustix::fs::open("/dev/tty", flags, Mode::empty());
    let tty = controlling.or_else(|_| {
        let name = ttyname(io::stdin(), Vec::new())?;
        rustix::fs::open(name, flags, Mode::empty())
    })?;
    Ok(tty)
}

/// Returns the sequence that turns the mouse on or off.
pub(super) fn mouse(on: bool) -> &'static [u8] {
    if on {
        b"\x1b[?1002h\x1b[?1006h"
    } else {
        b"\x1b[?1006l\x1b[?1002l"
    }
}

/// Sets raw mode, and remembers the previous modes.
pub(super) fn enter(tty: &OwnedFd) -> io::Result<()> {
    let mut entered = ENTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let before = match entered.take() {
        Some(entered) => entered.before,
        None => tcgetattr(tty)?,
    };
    let mut raw = before.clone();
    raw.make_raw();
    raw.special_codes[SpecialCodeIndex::VMIN] = 1;
    raw.special_codes[SpecialCodeIndex::VTIME] = 0;
    *entered = Some(EnteredModes {
        tty: tty.try_clone()?,
        before,
    });
    tcsetattr(tty, OptionalActions::Now, &raw)?;
    Ok(())
}

/// Returns true if this process's group is the terminal's foreground group.
pub(super) fn is_foreground(tty: BorrowedFd<'_>) -> bool {
    // A terminal that is not the controlling one has no such group.
    tcgetpgrp(tty).is_err() || Standing::own().is_none_or(|own| own.group == own.foreground)
}

/// Restores the terminal; does nothing if it is not in raw mode.
/// May be called at any time, also from a panic hook: it waits for no lock and allocates nothing.
pub fn restore() {
    let entered = match ENTERED.try_lock() {
        Ok(mut entered) => entered.take(),
        Err(TryLockError::Poisoned(entered)) => entered.into_inner().take(),
        Err(TryLockError::WouldBlock) => None,
    };
    let Some(EnteredModes { tty, before }) = entered else {
        return;
    };
    // Mouse reports that came meanwhile are not for the shell, but keys typed after the screen is
    // gone are, so leave the screen last. A closed terminal needs nothing of this.
    let _ = tcflush(&tty, QueueSelector::IFlush);
    let _ = tcsetattr(&tty, OptionalActions::Now, &before);
    let _ = write(tty.as_fd(), LEAVE, PATIENCE);
}

/// Writes all bytes, or until the terminal accepts none for `patience`; returns the count.
pub(super) fn write(tty: BorrowedFd<'_>, bytes: &[u8], patience: Duration) -> io::Result<usize> {
    let end = Instant::now() + patience;
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        match rustix::io::write(tty, rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => written += count,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                let timeout = Timespec::try_from(left).ok();
                let mut polled = [PollFd::from_borrowed_fd(tty, PollFlags::OUT)];
                match poll(&mut polled, timeout.as_ref()) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(written)
}

/// Returns true if a terminal is in raw mode, or is entering or leaving it.
pub(super) fn is_entered() -> bool {
    match ENTERED.try_lock() {
        Ok(entered) => entered.is_some(),
        Err(TryLockError::Poisoned(entered)) => entered.into_inner().is_some(),
        Err(TryLockError::WouldBlock) => true,
    }
}
