//! What the system tells a program with a screen.

use std::io;

use rustix::process::{Pid, Signal as Number, getpgid, getpgrp, getppid, getsid};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How many ancestors are looked at for a shell.
const MOST_ANCESTORS: usize = 64;

/// What was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The terminal has another size.
    Resized,
    /// The process goes on after it was stopped.
    Continued,
    /// It is to stop, and to give the terminal back first.
    Stop,
    /// It is to end.
    Terminate,
    /// The terminal is gone.
    HangUp,
    /// Somebody sent what Ctrl-C sends where keys are not read one by one.
    Interrupt,
}

/// Listens to what is told.
#[derive(Debug)]
pub struct Signals {
    resized: Signal,
    continued: Signal,
    stop: Signal,
    terminate: Signal,
    hang_up: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Begins to listen; from here on these signals do nothing by themselves.
    pub fn new() -> io::Result<Self> {
        let listen = |number: Number| signal(SignalKind::from_raw(number.as_raw()));
        Ok(Self {
            resized: listen(Number::WINCH)?,
            continued: listen(Number::CONT)?,
            stop: listen(Number::TSTP)?,
            terminate: listen(Number::TERM)?,
            hang_up: listen(Number::HUP)?,
            interrupt: listen(Number::INT)?,
        })
    }

    /// Waits for the next. May be dropped at any time.
    pub async fn next(&mut self) -> Told {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => Told::Terminate,
            _ = self.hang_up.recv() => Told::HangUp,
            _ = self.interrupt.recv() => Told::Interrupt,
            _ = self.continued.recv() => Told::Continued,
            _ = self.stop.recv() => Told::Stop,
            _ = self.resized.recv() => Told::Resized,
        }
    }
}

/// Stops this process and all of its group, until somebody continues them.
pub(super) fn stop_group() -> io::Result<()> {
    // Not the signal of Ctrl-Z, for that one is listened to.
    rustix::process::kill_current_process_group(Number::STOP)?;
    Ok(())
}

/// Whether a shell waits for this process's group: some ancestor in the same session is in another
/// group. Without one nobody would ever continue it.
pub(super) fn is_watched() -> bool {
    let own = getpgrp();
    let Ok(session) = getsid(None) else {
        return false;
    };
    let mut ancestor = getppid();
    for _ in 0..MOST_ANCESTORS {
        let Some(pid) = ancestor else {
            return false;
        };
        if getsid(Some(pid)) != Ok(session) {
            return false;
        }
        match getpgid(Some(pid)) {
            Ok(group) if group == own => ancestor = parent(pid),
            Ok(_) => return true,
            Err(_) => return false,
        }
    }
    false
}

/// The parent of another process.
fn parent(pid: Pid) -> Option<Pid> {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    let stat = std::fs::read_to_string(path).ok()?;
    // The name, which may hold anything, is between parentheses; then come state and parent.
    let (_, after) = stat.rsplit_once(')')?;
    let parent = after.split_whitespace().nth(1)?.parse().ok()?;
    Pid::from_raw(parent)
}
