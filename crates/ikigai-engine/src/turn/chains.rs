//! Chains of turns that agents and processes start, without a message of a person (E24b).

use std::collections::BTreeSet;

use ikigai_core::data::{self, UserData, UserOrigin};
use ikigai_core::{AgentId, Kind, Micros, Row, Span};
use ikigai_store::{MailOrigin, MailRecord};

use crate::{EngineError, Worker};

/// Maximum length of a chain.
const MOST_TURNS: usize = 20;

/// Newest messages that are read of an agent, to measure a chain.
const MOST_MESSAGES: usize = 256;

/// Reason for the end of a chain.
pub(super) const CHAIN_IS_OVER: &str =
    "limit reached: 20 turns in a row started by agents. Send a message to continue";

impl Worker {
    /// Returns true if this mail may not start one more turn.
    ///
    /// The count is read from rows, so that it survives a restart. A message of a person to the
    /// parent or to a sender begins a new chain too.
    pub(super) async fn is_chain_over(&self, waiting: &[MailRecord]) -> Result<bool, EngineError> {
        if waiting.iter().any(|mail| mail.origin == MailOrigin::User) {
            return Ok(false);
        }
        let own = self.newest_messages(self.id()).await?;
        if turns_of(&own, None) < MOST_TURNS {
            return Ok(false);
        }
        let parent = self.ledger().agent.state.fork();
        let parent = parent.and_then(|fork| fork.parent_uuid);
        let senders: BTreeSet<_> = waiting.iter().filter_map(|mail| mail.from).collect();
        let mut since = None;
        for other in senders.into_iter().chain(parent) {
            let messages = self.newest_messages(other).await?;
            let newest = messages.iter().find(|row| is_by_person(row));
            since = since.max(newest.map(|row| row.created_at));
        }
        Ok(turns_of(&own, since) >= MOST_TURNS)
    }

    /// Reads the newest messages in an agent's own log, the newest first.
    async fn newest_messages(&self, agent: AgentId) -> Result<Vec<Row>, EngineError> {
        let spans = vec![Span::whole(agent)];
        let store = self.ledger().engine.reader();
        Ok(store.user_rows(spans, MOST_MESSAGES).await?)
    }
}

/// Counts the turns that other messages than a person's started, after that time.
fn turns_of(newest_first: &[Row], since: Option<Micros>) -> usize {
    let mut turns = 0;
    let mut later = None;
    for row in newest_first {
        if !is_automatic(row) || since.is_some_and(|since| row.created_at <= since) {
            break;
        }
        // The messages with which a turn starts follow each other.
        let is_same_turn = later == Some(row.at.seq.next());
        turns += usize::from(!is_same_turn);
        later = Some(row.at.seq);
    }
    turns
}

fn origin_of(row: &Row) -> Option<UserOrigin> {
    data::read::<UserData>(row.data.as_deref()).origin
}

fn is_by_person(row: &Row) -> bool {
    row.kind.read_as() == Some(Kind::User)
        && matches!(origin_of(row), None | Some(UserOrigin::Typed))
}

fn is_automatic(row: &Row) -> bool {
    !matches!(
        origin_of(row),
        None | Some(UserOrigin::Typed | UserOrigin::Fork)
    )
}
