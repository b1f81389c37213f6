//! Typed lines with an id. After a failure, a message is stored exactly once.

use ikigai_core::data::{self, UserData};
use ikigai_core::{AgentId, Kind, Micros, PageQuery, Row, Seq, Span};
use ikigai_store::CommitError;

use crate::environment::draw_mail;
use crate::frontend::{Submission, UserRequest};
use crate::input::UserInput;
use crate::message_size::check_message_to;
use crate::{AgentJob, Engine, EngineError};

/// Rows read per query, and in total, to find the row of a submission.
const PAGE_ROWS: usize = 64;
const MOST_ROWS: usize = 4096;

/// Rows older than a submission by more than this end the search for its row.
const CLOCK_SLACK: i64 = 3_600_000_000;

impl Engine {
    /// Makes a submission of a typed line.
    pub fn submission(&self, input: UserInput) -> Submission {
        Submission {
            id: draw_mail(self.environment()),
            at: self.environment().now(),
            input,
        }
    }

    /// Stores a pending message exactly once, as mail, and makes its agent answer it.
    ///
    /// Safe to call again after any failure: a commit of unknown outcome is looked up first, by the
    /// id of the mail and by the time and text of the row.
    pub async fn store_pending(
        &self,
        agent: AgentId,
        pending: &Submission,
    ) -> Result<(), EngineError> {
        let record = self.reader().agent(agent).await?;
        let record = record.ok_or_else(|| EngineError::NoSuchAgent(agent.to_string()))?;
        // Taking the lease waits for a running commit of a former holder.
        match self.activate(&record).await {
            Ok(()) | Err(EngineError::Commit(CommitError::Held { .. })) => {}
            Err(error) => return Err(error),
        }
        if !self.is_submitted(agent, pending).await? {
            check_message_to(self, agent, pending.line()).await?;
            self.post_as(pending.id, agent, pending.line()).await?;
        }
        // An inactive agent reads the mail with its next turn.
        self.hub().deliver(agent, UserRequest::Do(AgentJob::Mail));
        Ok(())
    }

    /// Returns true if a submitted message is in the log or mail of its agent.
    pub async fn is_submitted(
        &self,
        agent: AgentId,
        submission: &Submission,
    ) -> Result<bool, EngineError> {
        let mail = self.reader().mail(agent).await?;
        if mail.iter().any(|mail| mail.id == submission.id) {
            return Ok(true);
        }
        let oldest = Micros(submission.at.0.saturating_sub(CLOCK_SLACK));
        let mut to = Seq(i64::MAX as u64);
        for _ in 0..MOST_ROWS / PAGE_ROWS {
            let query = PageQuery::newest(Span::new(agent, Seq(1), to), PAGE_ROWS);
            let rows = self.reader().page(query).await?;
            if rows.iter().any(|row| is_row_of(row, submission)) {
                return Ok(true);
            }
            match rows.last() {
                Some(last) if last.created_at >= oldest && last.at.seq > Seq(1) => {
                    to = last.at.seq.before();
                }
                _ => break,
            }
        }
        Ok(false)
    }
}

/// Returns true if a row is the message of a submission.
fn is_row_of(row: &Row, submission: &Submission) -> bool {
    if row.kind.read_as() != Some(Kind::User) || row.created_at != submission.at {
        return false;
    }
    let typed = data::read::<UserData>(row.data.as_deref()).typed;
    let text = typed.as_deref().or(row.content.as_deref());
    text == Some(submission.line().replace('\0', "\u{2400}").as_str())
        || text == Some(submission.line())
}
