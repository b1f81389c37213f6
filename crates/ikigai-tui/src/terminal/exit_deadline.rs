//! Upper bound on the time the program takes to exit, even if its threads wait.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal as Number;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use tokio::time::sleep_until;

use super::hidden_input::show_input;
use super::modes::restore;

/// Longest time from the request to exit until the end of the process.
const EXIT_WITHIN: Duration = Duration::from_secs(2);

/// Time within which signals count as one. `timeout` and a closing terminal send each to the
/// process and to its group.
const SAME_SIGNAL: Duration = Duration::from_millis(100);

/// A Ctrl-C this recent counts as the first of two signals.
const RECENT: Duration = Duration::from_secs(2);

/// Exit code of an exit by signals, as shells number SIGINT.
const INTERRUPTED: u8 = 130;

static STARTED: OnceLock<Instant> = OnceLock::new();
static STARTS: Notify = Notify::const_new();
static EXIT_CODE: AtomicU8 = AtomicU8::new(INTERRUPTED);
static IS_ENFORCED: AtomicBool = AtomicBool::new(false);
static INTERRUPT_IS_KEY: AtomicBool = AtomicBool::new(false);

/// Starts the thread that ends the process when leaving takes too long.
///
/// SIGTERM, SIGHUP and SIGINT start the clock, and a second signal ends the process at once. The
/// thread has its own runtime, so it works while all others are blocked.
///
/// Calls after the first do nothing.
pub fn enforce_exit_deadline() -> io::Result<()> {
    if IS_ENFORCED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new()
        .name("ikigai-exit".to_owned())
        .spawn(move || {
            if runtime.block_on(watch()).is_ok() {
                restore();
                show_input();
                std::process::exit(EXIT_CODE.load(Ordering::Relaxed).into());
            }
        })?;
    Ok(())
}

/// Treats SIGINT as a key press instead of a request to exit.
pub(crate) fn treat_interrupt_as_key() {
    INTERRUPT_IS_KEY.store(true, Ordering::Relaxed);
}

/// Starts the clock; `code` is the exit code if the time runs out.
pub fn begin_exit(code: u8) {
    if STARTED.set(Instant::now()).is_ok() {
        EXIT_CODE.store(code, Ordering::Relaxed);
        STARTS.notify_one();
    }
}

/// Returns true if the program is exiting, even by an early signal.
pub fn is_exiting() -> bool {
    STARTED.get().is_some()
}

/// Returns the time left for leaving; all of it before it began.
pub fn exit_time_left() -> Duration {
    let elapsed = STARTED.get().map_or(Duration::ZERO, Instant::elapsed);
    EXIT_WITHIN.saturating_sub(elapsed)
}

/// Waits until the process must end. Fails if signals cannot be received.
async fn watch() -> io::Result<()> {
    let mut ends = EndSignals::listen()?;
    let mut last = None;
    // Invariant: signals come first, so that a Ctrl-C that makes the program leave is not taken
    // for another one after it.
    loop {
        tokio::select! {
            biased;
            is_interrupt = ends.next() => {
                last = Some(Instant::now());
                if !is_interrupt || !INTERRUPT_IS_KEY.load(Ordering::Relaxed) {
                    begin_exit(INTERRUPTED);
                    break;
                }
            }
            () = STARTS.notified() => break,
        }
    }
    let started = *STARTED.get_or_init(Instant::now);
    let mut last = last.filter(|last| last.elapsed() < RECENT);
    loop {
        tokio::select! {
            biased;
            _ = ends.next() => {
                if last.is_some_and(|last: Instant| last.elapsed() >= SAME_SIGNAL) {
                    return Ok(());
                }
                last.get_or_insert_with(Instant::now);
            }
            () = sleep_until((started + EXIT_WITHIN).into()) => return Ok(()),
        }
    }
}

struct EndSignals {
    terminate: Signal,
    hang_up: Signal,
    interrupt: Signal,
}

impl EndSignals {
    fn listen() -> io::Result<Self> {
        let listen = |number: Number| signal(SignalKind::from_raw(number.as_raw()));
        Ok(Self {
            terminate: listen(Number::TERM)?,
            hang_up: listen(Number::HUP)?,
            interrupt: listen(Number::INT)?,
        })
    }

    /// Waits for a signal; returns true if it is SIGINT.
    async fn next(&mut self) -> bool {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => false,
            _ = self.hang_up.recv() => false,
            _ = self.interrupt.recv() => true,
        }
    }
}
