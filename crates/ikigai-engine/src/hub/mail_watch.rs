//! Mail that starts a turn of an idle agent of this process (E10d).

use ikigai_core::AgentId;
use ikigai_store::{MailId, MailOrigin, MailRecord, ReadLog, StoreError};

use super::Hub;
use crate::frontend::{AgentJob, UserRequest};

impl Hub {
    /// Records mail that starts no turn, such as mail from before a restart (E9a).
    pub(crate) fn know_mail(&self, agent: AgentId, mail: impl IntoIterator<Item = MailId>) {
        if let Some(slot) = self.slots().get_mut(&agent) {
            slot.known_mail.extend(mail);
        }
    }

    /// Starts a turn with an agent's mail, after its work. False for agents of other processes.
    pub(crate) fn wake(&self, agent: AgentId) -> bool {
        self.deliver(agent, UserRequest::Do(AgentJob::Mail))
    }

    /// Starts turns of idle agents of this process that have new mail.
    pub(super) async fn wake_idle(&self, store: &dyn ReadLog) {
        for agent in self.active_agents() {
            if self.is_working(agent) == Some(false) {
                // A failing store gives no answer; the next change triggers another check.
                let wakes = self.takes_new_mail(store, agent).await.unwrap_or(false);
                if wakes {
                    self.wake(agent);
                }
            }
        }
    }

    /// Returns true if new mail starts a turn of an agent of this process. Asks once per mail.
    pub(crate) async fn takes_new_mail(
        &self,
        store: &dyn ReadLog,
        agent: AgentId,
    ) -> Result<bool, StoreError> {
        let mut new = store.queued_mail(agent).await?;
        match self.slots().get(&agent) {
            Some(slot) => new.retain(|mail| !slot.known_mail.contains(&mail.id)),
            None => return Ok(false),
        }
        let mut wakes = false;
        for mail in &new {
            wakes = wakes || starts_turn(store, agent, mail).await?;
        }
        self.know_mail(agent, new.iter().map(|mail| mail.id));
        Ok(wakes)
    }
}

/// Returns true if mail starts a turn: of the user, a process, a parent or a child.
async fn starts_turn(
    store: &dyn ReadLog,
    to: AgentId,
    mail: &MailRecord,
) -> Result<bool, StoreError> {
    let from = match (mail.origin, mail.from) {
        (MailOrigin::User | MailOrigin::Process, _) => return Ok(true),
        (MailOrigin::Agent, None) => return Ok(false),
        (MailOrigin::Agent, Some(from)) => from,
    };
    let parent_of = async |agent| {
        let record = store.agent(agent).await?;
        Ok::<_, StoreError>(record.and_then(|record| record.parent))
    };
    Ok(parent_of(to).await? == Some(from) || parent_of(from).await? == Some(to))
}
