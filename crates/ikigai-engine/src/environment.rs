//! Environment of the engine. Time and randomness come only from here, so that a run can be
//! repeated.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use ikigai_core::{AgentId, MachineId, Micros, PersonName, ProcessId, SessionId};
use ikigai_store::{MailId, ReservationId, RunId};
use ikigai_tools::permission::GrantKey;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Operating system and shell of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// Operating system and processor, such as `linux x86_64`.
    pub system: String,
    /// Shell that runs command lines.
    pub shell: String,
}

/// External inputs of the engine: time, ids, randomness, person, machine and grant key.
pub trait Environment: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Micros;

    /// Returns sixteen random bytes.
    fn random(&self) -> [u8; 16];

    /// Returns the calendar day of a moment in the user's time zone.
    fn day(&self, at: Micros) -> String {
        universal_day(at)
    }

    /// Returns the time zone of the user, for typed times.
    fn zone(&self) -> TimeZone {
        TimeZone::UTC
    }

    /// Returns the user's home directory.
    fn home(&self) -> Option<PathBuf> {
        None
    }

    /// Returns the platform, for the environment block of messages; without one there is none.
    fn platform(&self) -> Option<Platform> {
        None
    }

    /// Returns the key that tags grants of this user on this machine.
    fn grant_key(&self) -> GrantKey {
        GrantKey::of_this_process()
    }

    /// Returns the person for whom the engine works: the author of what they type and decide.
    fn person(&self) -> Option<PersonName> {
        None
    }

    /// Returns the machine on which the engine works; its directories are its workspaces.
    fn machine(&self) -> Option<MachineId> {
        None
    }

    /// Returns the host name of the machine, for display.
    fn host(&self) -> Option<String> {
        None
    }

    /// Handles a crash point; tests end the process there.
    fn crash_point(&self, _point: CrashPoint) {}
}

ikigai_core::words::stored_words! {
    /// Moment at which the death of a process matters to the next one.
    ///
    /// Before and after each commit, and between a commit and its consequences.
    CrashPoint {
        BeforeMessageStored = "before the message is stored",
        AfterMessageStored = "after the message is stored",
        BeforeWindowCut = "before the window is cut",
        AfterWindowCut = "after the window is cut",
        BeforeSummaryStored = "before the summary is stored",
        AfterSummaryStored = "after the summary is stored",
        BeforeRequest = "before the request",
        AfterRequest = "after the request",
        AtFirstWords = "at the first words",
        BeforeDraftStored = "before the draft is stored",
        AfterDraftStored = "after the draft is stored",
        BeforeAnswerStored = "before the answer is stored",
        AfterAnswerStored = "after the answer is stored",
        BeforePermissionStored = "before the permission is stored",
        AfterPermissionStored = "after the permission is stored",
        BeforeCallJournalled = "before the call is journalled",
        AfterCallJournalled = "after the call is journalled",
        AfterCallStarted = "after the call is started",
        BeforeResultStored = "before the result is stored",
        BeforeBlobStored = "before the blob is stored",
        AfterBlobStored = "after the blob is stored",
        AfterResultStored = "after the result is stored",
        BeforeMessageQueued = "before the message is queued",
        AfterMessageQueued = "after the message is queued",
        BeforeQueueTakenIn = "before the queue is taken in",
        AfterQueueTakenIn = "after the queue is taken in",
        BeforeElisionStored = "before the elision is stored",
        AfterElisionStored = "after the elision is stored",
        BeforeStopStored = "before the stop is stored",
        AfterStopStored = "after the stop is stored",
        BeforeFailureStored = "before the failure is stored",
        AfterFailureStored = "after the failure is stored",
        BeforeSettlementStored = "before the settlement is stored",
        AfterSettlementStored = "after the settlement is stored",
        BeforeResumptionStored = "before the resumption is stored",
        AfterResumptionStored = "after the resumption is stored",
        BeforeRetryStored = "before the retry is stored",
        AfterRetryStored = "after the retry is stored",
        BeforeForkStored = "before the fork is stored",
        AfterForkStored = "after the fork is stored",
        BeforeKillStored = "before the kill is stored",
        AfterKillStored = "after the kill is stored",
        BeforeMailSent = "before the mail is sent",
        AfterMailSent = "after the mail is sent",
        BeforeWaitAnswered = "before the wait is answered",
        AfterWaitAnswered = "after the wait is answered",
    }
}

/// Returns the calendar day of a moment in UTC.
fn universal_day(at: Micros) -> String {
    Timestamp::from_microsecond(at.0).map_or_else(
        |_| "(no day)".to_owned(),
        |time| time.strftime("%Y-%m-%d").to_string(),
    )
}

/// System clock and random generator.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl Environment for System {
    fn now(&self) -> Micros {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the random device does not block"
    )]
    fn random(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        if File::open("/dev/urandom")
            .and_then(|mut file| file.read_exact(&mut bytes))
            .is_err()
        {
            // Only ids depend on this: the standard library's hasher keys differ for each process
            // and each call, and the clock advances.
            bytes = scatter(self.now());
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

    fn platform(&self) -> Option<Platform> {
        Some(Platform {
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            shell: ikigai_tools::process::shell().to_owned(),
        })
    }

    fn home(&self) -> Option<PathBuf> {
        std::env::home_dir().filter(|home| home.is_absolute())
    }
}

fn scatter(now: Micros) -> [u8; 16] {
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

/// Draws the id of a mail.
pub(crate) fn draw_mail(environment: &dyn Environment) -> MailId {
    MailId(u128::from_be_bytes(environment.random()))
}

/// Draws the id of a reservation.
pub(crate) fn draw_reservation(environment: &dyn Environment) -> ReservationId {
    ReservationId(u128::from_be_bytes(environment.random()))
}

/// Draws the id of a tool's run.
pub(crate) fn draw_run(environment: &dyn Environment) -> RunId {
    RunId(u128::from_be_bytes(environment.random()))
}

/// Returns the value of the environment variable that marks a call's processes.
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
