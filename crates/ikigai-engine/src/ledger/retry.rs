//! Retries while the store is away. The front end gets an event, and can stop the wait.

use std::pin::pin;
use std::time::Duration;

use ikigai_store::blobs;
use tokio::time::{Instant, sleep_until, timeout};

use super::Ledger;
use crate::EngineError;
use crate::environment::CrashPoint;
use crate::frontend::{FrontEnd, UiEvent, UserRequest};

/// Attempts against a store that fails.
pub(super) const TRIES: u32 = 600;

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_secs(1);

/// Silence of the store after which the front end gets an event.
/// The commit is still awaited: only the store knows its outcome.
const SILENCE: Duration = Duration::from_secs(3);

impl Ledger {
    /// Stores a blob, however long the store is away; returns its hash.
    pub(crate) async fn put_blob(
        &self,
        bytes: &[u8],
        front: &mut FrontEnd<'_>,
    ) -> Result<String, EngineError> {
        self.crash_point(CrashPoint::BeforeBlobStored);
        let hash = read_held!(front, self.try_put_blob(bytes));
        self.crash_point(CrashPoint::AfterBlobStored);
        Ok(hash)
    }

    /// Stores a blob; returns its hash.
    pub(crate) async fn try_put_blob(&self, bytes: &[u8]) -> Result<String, EngineError> {
        let hash = blobs::put_blob(self.engine.log(), bytes).await?;
        Ok(hash.to_string())
    }
}

/// Reads data that the turn needs, however long the store is away.
///
/// A macro, because a function would take a closure that lends its future, which cannot be sent to
/// another thread.
macro_rules! read_held {
    ($front:expr, $read:expr) => {{
        let mut patience = $crate::ledger::Patience::default();
        loop {
            if let Some(read) = patience.wait($read.await, $front).await? {
                break read;
            }
        }
    }};
}

pub(crate) use read_held;

/// Stores several contents; with a front end, however long the store is away.
pub(crate) async fn put_blobs(
    ledger: &Ledger,
    contents: &[Vec<u8>],
    front: &mut Option<&mut FrontEnd<'_>>,
) -> Result<(), EngineError> {
    let put =
        || async { Ok::<_, EngineError>(blobs::put_blobs(ledger.engine.log(), contents).await?) };
    ledger.crash_point(CrashPoint::BeforeBlobStored);
    match front {
        Some(front) => read_held!(front, put()),
        None => put().await?,
    }
    ledger.crash_point(CrashPoint::AfterBlobStored);
    Ok(())
}

/// Count of attempts.
#[derive(Default)]
pub(crate) struct Patience {
    tries: u32,
}

impl Patience {
    /// Pauses if the store failed and may come back; returns any other result.
    pub(crate) async fn wait<T>(
        &mut self,
        read: Result<T, impl Into<EngineError>>,
        front: &mut FrontEnd<'_>,
    ) -> Result<Option<T>, EngineError> {
        self.tries += 1;
        match read.map_err(Into::into) {
            Err(error) if may_return(&error) && self.tries < TRIES => {
                pause(&error, front).await?;
                Ok(None)
            }
            read => read.map(Some),
        }
    }
}

/// Awaits the store; sends an event to the front end if it takes long.
pub(crate) async fn report_silence<T>(
    work: impl Future<Output = T>,
    front: &mut FrontEnd<'_>,
) -> T {
    let mut work = pin!(work);
    if let Ok(done) = timeout(SILENCE, &mut work).await {
        return done;
    }
    front.emit(UiEvent::StoreAway("the store does not answer".to_owned()));
    work.await
}

/// Returns true if the store may recover from this failure, with a known outcome.
pub(super) fn may_return(error: &EngineError) -> bool {
    error.store_failure().is_some() && error.may_pass()
}

/// Pauses before the next attempt.
///
/// Requests that arrive meanwhile are kept for later. A second request to stop ends the wait with
/// an error, because no user should have to wait for a store that does not come back.
pub(super) async fn pause(
    error: &EngineError,
    front: &mut FrontEnd<'_>,
) -> Result<(), EngineError> {
    front.emit(UiEvent::StoreAway(error.to_string()));
    let end = Instant::now() + PAUSE;
    let mut pending = std::mem::take(&mut front.pending);
    let stops = |pending: &[UserRequest]| {
        let is_stop = |request: &&UserRequest| matches!(request, UserRequest::Stop(_));
        pending.iter().filter(is_stop).count()
    };
    loop {
        tokio::select! {
            () = sleep_until(end) => break,
            request = front.next() => pending.push(request),
        }
    }
    front.pending = pending;
    if stops(&front.pending) > 1 {
        return Err(EngineError::StoreAway(error.to_string()));
    }
    Ok(())
}
