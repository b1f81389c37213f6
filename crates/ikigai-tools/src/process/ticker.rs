//! Rate-limited progress of a run.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// Shortest interval between two reports.
const PAUSE: Duration = Duration::from_millis(50);

/// Reports the newest line of an output.
pub(crate) struct Ticker {
    progress: Arc<dyn Fn(&str) + Send + Sync>,
    reported: Option<Instant>,
    last: String,
    is_waiting: bool,
}

impl Ticker {
    /// Creates a ticker that reports to `progress`.
    pub(crate) fn new(progress: Arc<dyn Fn(&str) + Send + Sync>) -> Self {
        Self {
            progress,
            reported: None,
            last: String::new(),
            is_waiting: false,
        }
    }

    /// Records new output, and reports it at once if the interval has passed.
    ///
    /// Returns true if it was time for a report.
    pub(crate) fn see(&mut self, newest_line: impl FnOnce() -> String) -> bool {
        self.is_waiting = true;
        let is_time = self
            .reported
            .is_none_or(|reported| reported.elapsed() >= PAUSE);
        if is_time {
            self.report(newest_line);
        }
        is_time
    }

    /// Waits until the next report is due; for ever if there is no new output.
    pub(crate) async fn due(&self) {
        match (self.is_waiting, self.reported) {
            (true, Some(reported)) => tokio::time::sleep_until(reported + PAUSE).await,
            (true, None) => {}
            (false, _) => std::future::pending().await,
        }
    }

    /// Reports the newest line, unless it was reported last.
    pub(crate) fn report(&mut self, newest_line: impl FnOnce() -> String) {
        self.is_waiting = false;
        self.reported = Some(Instant::now());
        let line = newest_line();
        if !line.is_empty() && line != self.last {
            (self.progress)(&line);
            self.last = line;
        }
    }
}

#[cfg(test)]
mod tests;
