//! What has arrived and must not be lost: a store that is away is tried again, and whoever wants
//! the turn to stop is heard meanwhile.

use std::pin::pin;
use std::time::Duration;

use ikigai_core::{Event, Row};
use ikigai_store::{CommitError, Effect, blobs};
use tokio::time::{Instant, sleep_until, timeout};

use crate::frontend::{Desk, Intent, Update};
use crate::worker::{Beside, BesideAt, EffectsAt};
use crate::{EngineError, Worker};

/// How often, and after which pause, something is offered to a store that fails.
const TRIES: u32 = 600;
const PAUSE: Duration = Duration::from_secs(1);

/// After so long without an answer of the store, whoever looks on is told. It goes on waiting: what
/// became of a commit is known to the store alone.
const SILENCE: Duration = Duration::from_secs(3);

impl Worker {
    /// Stores events that must not be lost, however long the store is away.
    pub(crate) async fn commit_held(
        &mut self,
        events: Vec<Event>,
        with: Vec<Effect>,
        desk: &mut Desk<'_>,
    ) -> Result<Vec<Row>, EngineError> {
        self.commit_held_at(events, &|_| with.clone(), desk).await
    }

    /// The same, with effects that name the places of the rows: they are given the head.
    pub(super) async fn commit_held_at(
        &mut self,
        events: Vec<Event>,
        with: EffectsAt<'_>,
        desk: &mut Desk<'_>,
    ) -> Result<Vec<Row>, EngineError> {
        let beside = |head| Beside {
            with: with(head),
            ..Beside::default()
        };
        self.commit_held_beside(events, &beside, desk).await
    }

    /// The same, together with rows of other agents: they are given the head.
    pub(crate) async fn commit_held_beside(
        &mut self,
        events: Vec<Event>,
        beside: BesideAt<'_>,
        desk: &mut Desk<'_>,
    ) -> Result<Vec<Row>, EngineError> {
        let mut attempt = self.attempt(events);
        for _ in 1..TRIES {
            match told_if_silent(self.try_commit(&mut attempt, beside), desk).await {
                Err(error) if may_return(&error) => pause(&error, desk).await?,
                other => return other,
            }
        }
        self.try_commit(&mut attempt, beside).await
    }

    /// Stores the rows that end a turn, and with them what the agent reports to whoever forked it.
    pub(super) async fn commit_ending(
        &mut self,
        events: Vec<Event>,
        with: Vec<Effect>,
        report: Option<&str>,
        desk: &mut Desk<'_>,
    ) -> Result<Vec<Row>, EngineError> {
        let report = match report {
            Some(text) => read_held!(desk, self.report(text)),
            None => None,
        };
        if let Some(report) = report {
            let both = with.iter().cloned().chain([report]).collect();
            match self.commit_held(events.clone(), both, desk).await {
                // Nobody is there any more to whom it could be reported.
                Err(EngineError::Commit(CommitError::Dead(_))) => {}
                stored => return stored,
            }
        }
        self.commit_held(events, with, desk).await
    }

    /// Stores a blob that must not be lost; returns its hash.
    pub(crate) async fn put_blob_held(
        &self,
        bytes: &[u8],
        desk: &mut Desk<'_>,
    ) -> Result<String, EngineError> {
        self.passes("before the blob is stored");
        let hash = self.put_blob(bytes, desk).await?;
        self.passes("after the blob is stored");
        Ok(hash)
    }

    async fn put_blob(&self, bytes: &[u8], desk: &mut Desk<'_>) -> Result<String, EngineError> {
        for _ in 1..TRIES {
            let put = blobs::put_blob(self.engine.store(), bytes).await;
            match put.map_err(EngineError::from) {
                Err(error) if may_return(&error) => pause(&error, desk).await?,
                other => return Ok(other?.to_string()),
            }
        }
        Ok(blobs::put_blob(self.engine.store(), bytes)
            .await?
            .to_string())
    }
}

/// Reads what the turn cannot go on without, however long the store is away.
///
/// A function would have to be given a closure that lends its future, and such a one cannot be
/// sent to another thread, as agents are.
macro_rules! read_held {
    ($desk:expr, $read:expr) => {{
        let mut patience = $crate::turn::held::Patience::default();
        loop {
            if let Some(read) = patience.wait($read.await, $desk).await? {
                break read;
            }
        }
    }};
}

pub(super) use read_held;

/// How often reading was tried.
#[derive(Default)]
pub(super) struct Patience {
    tries: u32,
}

impl Patience {
    /// Waits a little if the store failed and may come back; hands on what else came of it.
    pub(super) async fn wait<T>(
        &mut self,
        read: Result<T, impl Into<EngineError>>,
        desk: &mut Desk<'_>,
    ) -> Result<Option<T>, EngineError> {
        self.tries += 1;
        match read.map_err(Into::into) {
            Err(error) if may_return(&error) && self.tries < TRIES => {
                pause(&error, desk).await?;
                Ok(None)
            }
            read => read.map(Some),
        }
    }
}

/// Waits for the store; tells whoever looks on if that takes long.
pub(super) async fn told_if_silent<T>(work: impl Future<Output = T>, desk: &mut Desk<'_>) -> T {
    let mut work = pin!(work);
    if let Ok(done) = timeout(SILENCE, &mut work).await {
        return done;
    }
    desk.tell(Update::StoreAway("the store does not answer".to_owned()));
    work.await
}

/// Returns whether a store that fails so may work again by itself, with a known outcome.
fn may_return(error: &EngineError) -> bool {
    error.store_failure().is_some() && error.may_pass()
}

/// Waits a little. What is heard meanwhile is kept for later; a second wish to stop ends the
/// waiting, because nobody should have to wait for a store that does not come back.
async fn pause(error: &EngineError, desk: &mut Desk<'_>) -> Result<(), EngineError> {
    desk.tell(Update::StoreAway(error.to_string()));
    let end = Instant::now() + PAUSE;
    let mut heard = std::mem::take(&mut desk.heard);
    let stops = |heard: &[Intent]| {
        let is_stop = |intent: &&Intent| matches!(intent, Intent::Stop(_));
        heard.iter().filter(is_stop).count()
    };
    loop {
        tokio::select! {
            () = sleep_until(end) => break,
            intent = desk.next() => heard.push(intent),
        }
    }
    desk.heard = heard;
    if stops(&desk.heard) > 1 {
        return Err(EngineError::StoreAway(error.to_string()));
    }
    Ok(())
}
