//! Messages that arrive while the agent is at work: mail from the user, taken in at the next break.

use ikigai_core::data::Cause;
use ikigai_core::{RowRef, Seq};
use ikigai_store::{Effect, MailId, MailRecord};

use crate::agents::shown_mail;
use crate::environment::draw_mail;
use crate::front::{Desk, Intent, Stop, Update};
use crate::{EngineError, Worker};

/// Whose mail is taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Senders {
    /// In the middle of a turn: only what the user says.
    User,
    /// At its beginning: everything.
    Anybody,
}

impl Worker {
    /// Does what a front end asks in the middle of a turn, unless it is to stop, which is handed
    /// back.
    pub(crate) async fn heed(
        &mut self,
        intent: Intent,
        desk: &mut Desk<'_>,
    ) -> Result<Option<Stop>, EngineError> {
        match intent {
            Intent::Stop(stop) => return Ok(Some(stop)),
            Intent::Say(text) => self.queue(text, desk).await,
            Intent::TakeBack(mail) => self.take_back(mail, desk).await,
            // Answers to what is not asked are too late: the call was closed meanwhile.
            Intent::Answer { .. } => {}
        }
        Ok(None)
    }

    /// Stores a message for the next break. If that fails, the text is handed back.
    async fn queue(&mut self, text: String, desk: &mut Desk<'_>) {
        let mail = draw_mail(&*self.engine.environment);
        let send = Effect::SendMail {
            mail,
            to: self.agent.state.agent(),
            from: None,
            text: text.clone(),
            at: self.engine.environment.now(),
        };
        self.passes("before the message is queued");
        match self.commit(Vec::new(), vec![send]).await {
            Ok(_) => {
                self.passes("after the message is queued");
                desk.queued.push((mail, text.clone()));
                desk.tell(Update::Queued { mail, text });
            }
            Err(error) => {
                let reason = error.to_string();
                desk.tell(Update::NotStored { text, reason });
            }
        }
    }

    /// Hands a message that waits back to its user; one that was taken in meanwhile is not.
    async fn take_back(&mut self, mail: MailId, desk: &mut Desk<'_>) {
        let Some(index) = desk.queued.iter().position(|(queued, _)| *queued == mail) else {
            return;
        };
        let withdraw = Effect::WithdrawMail { mail };
        if self.commit(Vec::new(), vec![withdraw]).await.is_ok() {
            let (_, text) = desk.queued.remove(index);
            desk.tell(Update::TakenBack(text));
        }
    }

    /// Hands all messages that wait back to a user who interrupts the turn: an interrupt sends
    /// nothing.
    pub(super) async fn take_back_all(&mut self, stop: &Stop, desk: &mut Desk<'_>) {
        if *stop != Stop::Interrupt(Cause::User) {
            return;
        }
        for (mail, _) in desk.queued.clone() {
            self.take_back(mail, desk).await;
        }
    }

    /// Takes in what waits from the user: each message becomes a row, in the transaction that
    /// marks it as delivered. Says whether there was any.
    pub(super) async fn take_in_queued(
        &mut self,
        desk: &mut Desk<'_>,
    ) -> Result<bool, EngineError> {
        self.take_in(Senders::User, desk).await
    }

    /// Takes in what waits from these senders.
    pub(super) async fn take_in(
        &mut self,
        senders: Senders,
        desk: &mut Desk<'_>,
    ) -> Result<bool, EngineError> {
        let agent = self.agent.state.agent();
        let mut waiting = self.engine.store.queued_mail(agent).await?;
        waiting.retain(|mail| senders == Senders::Anybody || mail.from.is_none());
        if waiting.is_empty() {
            return Ok(false);
        }
        let mut events = Vec::new();
        for mail in &waiting {
            let sender = match mail.from {
                Some(from) => self.engine.store.agent(from).await?,
                None => None,
            };
            events.push(shown_mail(
                mail,
                sender.as_ref().map(|sender| &*sender.name),
            ));
        }
        let consume = |head: Seq| consumed(&waiting, RowRef::new(agent, head));
        self.passes("before the queue is taken in");
        let rows = self.commit_held_at(events, &consume, desk).await?;
        self.passes("after the queue is taken in");
        desk.queued.clear();
        desk.told(rows);
        Ok(true)
    }
}

/// The effects that deliver mail by the rows after `head`, one each.
fn consumed(mail: &[MailRecord], head: RowRef) -> Vec<Effect> {
    let mut by = head;
    let mut effects = Vec::new();
    for mail in mail {
        by.seq = by.seq.next();
        effects.push(Effect::ConsumeMail { mail: mail.id, by });
    }
    effects
}
