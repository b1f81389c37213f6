//! Leases: taken and given back, and commits that need none.

use ikigai_core::{AgentId, Epoch};
use ikigai_store::{
    AgentRecord, Batch, CommitError, Committed, Effect, LeaseEffect, MailEffect, MailId,
    MailOrigin, MailTopic, Status,
};

use super::{Ledger, Starter};
use crate::environment::draw_mail;
use crate::message_size::check_message_to;
use crate::{Engine, EngineError};

impl Ledger {
    /// Takes an agent's lease and reads the agent.
    pub(crate) async fn open(
        engine: &Engine,
        agent: &AgentRecord,
        starter: Starter,
    ) -> Result<Self, EngineError> {
        if agent.status != Status::Running {
            return Err(EngineError::Dead(agent.name.clone()));
        }
        let old_mail = engine.reader().queued_mail(agent.id).await?;
        let take = Effect::Lease(LeaseEffect::Take { agent: agent.id });
        let taken = engine.commit_effects(vec![take]).await?;
        let epoch = taken.leases.first().map_or(Epoch(0), |(_, epoch)| *epoch);
        let mut ledger = Self::begin(engine.clone(), agent.id, epoch, starter).await?;
        ledger.old_mail = old_mail.iter().map(|mail| mail.id).collect();
        ledger.mend_columns(agent).await?;
        Ok(ledger)
    }

    /// Gives the lease back, so that another process can take it at once.
    pub(crate) async fn release(self) -> Result<(), EngineError> {
        let give = Effect::Lease(LeaseEffect::Give {
            agent: self.id(),
            epoch: self.epoch,
        });
        self.engine.commit_effects(vec![give]).await?;
        Ok(())
    }
}

impl Engine {
    /// Queues a message of the user for an agent that another process holds.
    pub async fn post(&self, to: AgentId, text: &str) -> Result<(), EngineError> {
        check_message_to(self, to, text).await?;
        let mail = draw_mail(self.environment());
        self.post_as(mail, to, text).await
    }

    /// Sends mail of the user under an id. Fails if there is mail with that id.
    pub(crate) async fn post_as(
        &self,
        mail: MailId,
        to: AgentId,
        text: &str,
    ) -> Result<(), EngineError> {
        let send = Effect::Mail(MailEffect::Send {
            mail,
            to,
            origin: MailOrigin::User,
            from: None,
            about: MailTopic::Message,
            text: text.to_owned(),
            at: self.environment().now(),
            author: self.person(),
        });
        self.commit_effects(vec![send]).await?;
        Ok(())
    }

    /// Stores a batch that claims no lease of a ledger of this process.
    pub(crate) async fn commit_without_lease(
        &self,
        batch: Batch,
    ) -> Result<Committed, CommitError> {
        self.log().commit(batch).await
    }

    pub(super) async fn commit_effects(
        &self,
        effects: Vec<Effect>,
    ) -> Result<Committed, CommitError> {
        let batch = Batch {
            with: effects,
            ..Batch::default()
        };
        self.commit_without_lease(batch).await
    }
}
