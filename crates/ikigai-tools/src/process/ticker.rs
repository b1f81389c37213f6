//! How a run goes, told often enough to be seen and seldom enough to cost nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// How often it is told at most.
const PAUSE: Duration = Duration::from_millis(50);

/// Tells the newest line of an output.
pub(crate) struct Ticker {
    progress: Arc<dyn Fn(&str) + Send + Sync>,
    told: Option<Instant>,
    last: String,
    is_waiting: bool,
}

impl Ticker {
    /// Tells it to `progress`.
    pub(crate) fn new(progress: Arc<dyn Fn(&str) + Send + Sync>) -> Self {
        Self {
            progress,
            told: None,
            last: String::new(),
            is_waiting: false,
        }
    }

    /// Something came: it will be told, at once if nothing was told for a while.
    ///
    /// Reports whether it was time to tell something.
    pub(crate) fn see(&mut self, newest_line: impl FnOnce() -> String) -> bool {
        self.is_waiting = true;
        let is_time = self.told.is_none_or(|told| told.elapsed() >= PAUSE);
        if is_time {
            self.tell(newest_line);
        }
        is_time
    }

    /// Waits until it is time to tell something; for ever if there is nothing.
    pub(crate) async fn due(&self) {
        match (self.is_waiting, self.told) {
            (true, Some(told)) => tokio::time::sleep_until(told + PAUSE).await,
            (true, None) => {}
            (false, _) => std::future::pending().await,
        }
    }

    /// Tells the newest line, if it is not the one that was told last.
    pub(crate) fn tell(&mut self, newest_line: impl FnOnce() -> String) {
        self.is_waiting = false;
        self.told = Some(Instant::now());
        let line = newest_line();
        if !line.is_empty() && line != self.last {
            (self.progress)(&line);
            self.last = line;
        }
    }
}

#[cfg(test)]
mod tests;
