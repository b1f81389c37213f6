//! Rows and drafts that another process stores for the current agent.

use std::time::{Duration, Instant};

use ikigai_core::{AgentId, Seq};
use ikigai_engine::{Engine, Follow, Followed, StoreError};

/// Pause after a failure of the store.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Follows the current agent while another process owns it.
#[derive(Default)]
pub(super) struct Follower {
    follow: Option<Follow>,
    /// Time of the next read after a failure of the store.
    retry_at: Option<Instant>,
    arrived: Vec<Followed>,
}

impl Follower {
    /// Follows the agent from the row after `head` on.
    pub(super) fn start(&mut self, engine: &Engine, agent: AgentId, head: Option<Seq>) {
        self.follow = head.and_then(|head| engine.follow(agent, head).ok());
    }

    /// Follows no agent any more.
    pub(super) fn stop(&mut self) {
        self.follow = None;
    }

    pub(super) fn is_active(&self) -> bool {
        self.follow.is_some()
    }

    /// Waits for the next rows or a longer draft; waits forever without an agent. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<Followed, StoreError> {
        let Some(follow) = &mut self.follow else {
            return std::future::pending().await;
        };
        if let Some(retry_at) = self.retry_at {
            tokio::time::sleep_until(retry_at.into()).await;
        }
        follow.next_live().await
    }

    /// Keeps a result of [`Self::next`] until [`Self::take`]; returns its error.
    pub(super) fn add(&mut self, result: Result<Followed, StoreError>) -> Result<(), StoreError> {
        self.retry_at = None;
        match result {
            Ok(Followed::Closed) => self.stop(),
            Ok(followed) => self.arrived.push(followed),
            Err(error) => {
                // Nothing was read, so no event is missed.
                self.retry_at = Some(Instant::now() + RETRY_PAUSE);
                return Err(error);
            }
        }
        Ok(())
    }

    pub(super) fn take(&mut self) -> Vec<Followed> {
        std::mem::take(&mut self.arrived)
    }
}
