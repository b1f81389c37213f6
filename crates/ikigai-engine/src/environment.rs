//! Time and randomness, which reach the engine only from here, so that a run can be repeated.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use ikigai_core::{AgentId, Micros, ProcessId, SessionId};
use ikigai_store::{MailId, RunId};
use ikigai_tools::permission::GrantKey;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// What the engine cannot decide by itself.
pub trait Environment: Send + Sync {
    /// The time of day.
    fn now(&self) -> Micros;

    /// Sixteen random bytes.
    fn random(&self) -> [u8; 16];

    /// The day of a moment, as it is called where the user is.
    fn day(&self, at: Micros) -> String {
        universal_day(at)
    }

    /// Where the user is, for times that are typed.
    fn zone(&self) -> TimeZone {
        TimeZone::UTC
    }

    /// The user's home.
    fn home(&self) -> Option<PathBuf> {
        None
    }

    /// The key that tags grants of this user on this machine; by default that of this process.
    fn grant_key(&self) -> GrantKey {
        GrantKey::of_this_process()
    }

    /// Is told where a turn is, by one of [`POINTS`]; tests end the process there.
    fn passes(&self, _point: &'static str) {}
}

/// Where a process can die so that it makes a difference to the next one: before and after
/// whatever is stored, and between that and what is done because of it.
pub const POINTS: &[&str] = &[
    "before the message is stored",
    "after the message is stored",
    "before the window is cut",
    "after the window is cut",
    "before the summary is stored",
    "after the summary is stored",
    "before the request",
    "after the request",
    "at the first words",
    "before the draft is stored",
    "after the draft is stored",
    "before the answer is stored",
    "after the answer is stored",
    "before the permission is stored",
    "after the permission is stored",
    "before the call is journalled",
    "after the call is journalled",
    "after the call is started",
    "before the result is stored",
    "before the blob is stored",
    "after the blob is stored",
    "after the result is stored",
    "before the message is queued",
    "after the message is queued",
    "before the queue is taken in",
    "after the queue is taken in",
    "before the elision is stored",
    "after the elision is stored",
    "before the stop is stored",
    "after the stop is stored",
    "before the failure is stored",
    "after the failure is stored",
    "before the settlement is stored",
    "after the settlement is stored",
    "before the resumption is stored",
    "after the resumption is stored",
    "before the retry is stored",
    "after the retry is stored",
    "before the fork is stored",
    "after the fork is stored",
    "before the kill is stored",
    "after the kill is stored",
    "before the mail is sent",
    "after the mail is sent",
    "before the wait is answered",
    "after the wait is answered",
];

/// The day of a moment in universal time.
fn universal_day(at: Micros) -> String {
    Timestamp::from_microsecond(at.0).map_or_else(
        |_| "(no day)".to_owned(),
        |time| time.strftime("%Y-%m-%d").to_string(),
    )
}

/// The real world.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl Environment for System {
    fn now(&self) -> Micros {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    fn random(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        if File::open("/dev/urandom")
            .and_then(|mut file| file.read_exact(&mut bytes))
            .is_err()
        {
            // Only ids hang on this: the standard library's hasher keys differ for each process
            // and each call, and the clock goes on.
            bytes = scattered(self.now());
        }
        bytes
    }

    fn day(&self, at: Micros) -> String {
        let Ok(time) = Timestamp::from_microsecond(at.0) else {
            return universal_day(at);
        };
        let here = time.to_zoned(TimeZone::system());
        here.strftime("%Y-%m-%d").to_string()
    }

    fn zone(&self) -> TimeZone {
        TimeZone::system()
    }

    fn home(&self) -> Option<PathBuf> {
        std::env::home_dir().filter(|home| home.is_absolute())
    }
}

fn scattered(now: Micros) -> [u8; 16] {
    use std::hash::{BuildHasher, RandomState};
    let half = || RandomState::new().hash_one(now.0).to_be_bytes();
    let (high, low) = (half(), half());
    std::array::from_fn(|i| if i < 8 { high[i] } else { low[i - 8] })
}

/// Draws an agent's id.
pub(crate) fn draw_agent(environment: &dyn Environment) -> AgentId {
    draw(environment, AgentId::from_random)
}

/// Draws a session's id.
pub(crate) fn draw_session(environment: &dyn Environment) -> SessionId {
    draw(environment, SessionId::from_random)
}

/// Draws the name of a mail.
pub(crate) fn draw_mail(environment: &dyn Environment) -> MailId {
    MailId(u128::from_be_bytes(environment.random()))
}

/// Draws the name of a tool's run.
pub(crate) fn draw_run(environment: &dyn Environment) -> RunId {
    RunId(u128::from_be_bytes(environment.random()))
}

/// What goes into the environment of a call's processes.
pub(crate) fn cookie_of(run: Option<RunId>) -> String {
    run.map_or_else(String::new, |run| format!("{:032x}", run.0))
}

impl System {
    /// Draws the id of this process.
    pub fn draw_process(&self) -> ProcessId {
        draw(self, ProcessId::from_random)
    }
}

fn draw<T>(environment: &dyn Environment, make: impl Fn([u8; 16]) -> Option<T>) -> T {
    loop {
        if let Some(id) = make(environment.random()) {
            return id;
        }
    }
}
