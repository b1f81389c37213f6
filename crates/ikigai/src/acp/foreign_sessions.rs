//! Sessions whose agents another process holds: they are followed, and messages go there as mail.

use std::time::Duration;

use ikigai_core::AgentId;
use ikigai_core::words::Severity;
use ikigai_engine::{
    CommitError, Engine, EngineError, Followed, ProcessRecord, Submission, UiEvent,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::server::AcpServer;
use super::wire::RpcError;

/// News that wait to be shown.
pub(super) const WAITING: usize = 16;

/// Pause after a failure of the store.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// News about an agent of another process.
pub(super) type ForeignNews = (AgentId, Followed);

/// Task that follows an agent. Dropping it ends it.
pub(super) struct SessionFollower {
    task: JoinHandle<()>,
}

impl Drop for SessionFollower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl AcpServer {
    /// Takes an agent's lease, or follows it if another process holds it.
    pub(super) async fn take_or_follow(&mut self, id: AgentId) -> Result<(), EngineError> {
        let record = self.engine.reader().agent(id).await?;
        let record = record.ok_or_else(|| EngineError::NoSuchAgent(id.to_string()))?;
        match Box::pin(self.engine.activate(&record)).await {
            Ok(()) => {
                if let Some(session) = self.sessions.get_mut(&id) {
                    session.follower = None;
                }
                Ok(self.catch_up(id).await?)
            }
            Err(EngineError::Commit(CommitError::Held { owner, .. })) => {
                self.follow(id, &owner).await;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn follow(&mut self, id: AgentId, owner: &ProcessRecord) {
        let news = self.foreign_news.clone();
        let engine = self.engine.clone();
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        if session.follower.is_some() {
            return;
        }
        let after = session.shown_to;
        let task = tokio::spawn(follow(engine, id, after, news));
        session.follower = Some(SessionFollower { task });
        let text = format!(
            "Open in another ikigai (pid {} on {}): its work is shown here, and your messages are \
             queued there",
            owner.pid, owner.host
        );
        self.note(id, Severity::Info, &text).await;
    }

    /// Shows news of another process.
    pub(super) async fn show_foreign(&mut self, (id, news): ForeignNews) {
        // The agent may be ours by now.
        let session = self.sessions.get(&id);
        let Some(session) = session.filter(|session| session.follower.is_some()) else {
            return;
        };
        match news {
            Followed::Rows(rows) => {
                for row in rows {
                    self.show_event(id, &UiEvent::Stored(row)).await;
                }
            }
            Followed::Draft(text) => {
                let shown = session.streamed_text();
                let event = match text.strip_prefix(shown) {
                    Some("") => return,
                    Some(more) => UiEvent::Text(more.to_owned()),
                    None if text.is_empty() => return,
                    None => {
                        self.show_event(id, &UiEvent::Again).await;
                        UiEvent::Text(text)
                    }
                };
                self.show_event(id, &event).await;
            }
            Followed::Closed => {}
        }
    }

    /// Queues a message for the process that holds the agent. Its answer comes as updates.
    pub(super) async fn post(
        &mut self,
        id: AgentId,
        submission: &Submission,
    ) -> Result<(), RpcError> {
        if !submission.input.is_message() {
            return Err(RpcError::failed(
                "the agent is open in another ikigai, so commands do not run here",
            ));
        }
        let stored = self.engine.store_pending(id, submission).await;
        stored.map_err(RpcError::failed)
    }
}

async fn follow(
    engine: Engine,
    agent: AgentId,
    after: ikigai_core::Seq,
    news: mpsc::Sender<ForeignNews>,
) {
    let mut after = after;
    loop {
        let Ok(mut follow) = engine.follow(agent, after) else {
            return;
        };
        while let Ok(found) = follow.next_live().await {
            if let Followed::Rows(rows) = &found
                && let Some(last) = rows.last()
            {
                after = last.at.seq;
            }
            let is_closed = found == Followed::Closed;
            if news.send((agent, found)).await.is_err() || is_closed {
                return;
            }
        }
        // The store failed. Nothing that was not shown is skipped.
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}
