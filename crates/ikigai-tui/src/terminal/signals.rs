//! Signals for a program with a screen.

use std::io;

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::process_group::Standing;

/// Most ancestors searched for a shell.
const MOST_ANCESTORS: usize = 64;

/// A signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalEvent {
    /// The terminal has another size.
    Resized,
    /// The process was continued after a stop.
    Continued,
    /// The process should stop, after giving the terminal back.
    Stop,
    /// The process should exit.
    Terminate,
    /// The terminal was closed.
    HangUp,
    /// SIGINT, as Ctrl-C sends it in cooked mode.
    Interrupt,
}

/// Receives signals.
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
    /// Starts listening; these signals have no default effect any more.
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

    /// Forgets stop signals that were meant for a program on the terminal.
    pub fn forget_stops(&mut self) -> io::Result<()> {
        let fresh = Self::new()?;
        self.continued = fresh.continued;
        self.stop = fresh.stop;
        self.interrupt = fresh.interrupt;
        Ok(())
    }

    /// Waits for the next. May be dropped at any time.
    pub async fn next(&mut self) -> SignalEvent {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => SignalEvent::Terminate,
            _ = self.hang_up.recv() => SignalEvent::HangUp,
            _ = self.interrupt.recv() => SignalEvent::Interrupt,
            _ = self.continued.recv() => SignalEvent::Continued,
            _ = self.stop.recv() => SignalEvent::Stop,
            _ = self.resized.recv() => SignalEvent::Resized,
        }
    }
}

/// Stops this process and its group until they are continued.
pub(crate) fn stop_group() -> io::Result<()> {
    // Not the signal of Ctrl-Z, for that one is listened to.
    rustix::process::kill_current_process_group(Number::STOP)?;
    Ok(())
}

/// Returns true if a job-control shell can continue this process's group.
/// Such a shell is an ancestor in the same session and another group. Without one, a stopped
/// process would stay stopped.
pub(crate) fn is_watched() -> bool {
    Standing::own().is_some_and(|own| is_watched_by(own, Standing::of))
}

fn is_watched_by(own: Standing, of: impl Fn(i32) -> Option<Standing>) -> bool {
    let mut parent = own.parent;
    for _ in 0..MOST_ANCESTORS {
        // An ancestor outside of the namespace is in another session.
        let Some(ancestor) = of(parent).filter(|it| it.session == own.session) else {
            return false;
        };
        if ancestor.group != own.group {
            return true;
        }
        parent = ancestor.parent;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{Standing, is_watched_by};

    /// Number, parent, group, session.
    type Process = (i32, i32, i32, i32);

    fn standing(stands: &[Process], pid: i32) -> Option<Standing> {
        let (_, parent, group, session) = *stands.iter().find(|it| it.0 == pid)?;
        Some(Standing {
            parent,
            group,
            session,
            foreground: group,
        })
    }

    #[test]
    fn a_shell_is_an_ancestor_of_another_group_in_the_session() {
        let table: &[(&str, bool, &[Process])] = &[
            ("a shell", true, &[(9, 5, 9, 5), (5, 1, 5, 5)]),
            (
                "behind a script",
                true,
                &[(9, 8, 8, 5), (8, 5, 8, 5), (5, 1, 5, 5)],
            ),
            ("its own session", false, &[(9, 5, 9, 9), (5, 1, 5, 5)]),
            (
                "all of one group",
                false,
                &[(9, 8, 8, 8), (8, 1, 8, 8), (1, 0, 0, 0)],
            ),
            ("a parent out of sight", false, &[(9, 0, 9, 9)]),
            (
                "a session out of sight",
                false,
                &[(9, 5, 0, 0), (5, 0, 0, 0)],
            ),
            ("itself its parent", false, &[(9, 9, 9, 9)]),
        ];
        for (case, expected, stands) in table {
            let own = standing(stands, 9).unwrap();
            let watched = is_watched_by(own, |pid| standing(stands, pid));
            assert_eq!(watched, *expected, "{case}");
        }
    }
}
