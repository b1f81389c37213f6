//! Messages that arrive while the agent is at work: mail from the user, taken in at the next break.

use ikigai_core::data::Cause;
use ikigai_core::{Event, RowRef, Seq};
use ikigai_store::{Effect, MailEffect, MailId, MailRecord};

use super::{During, Worker};
use crate::environment::{CrashPoint, draw_mail};
use crate::family::shown_mail;
use crate::frontend::{FrontEnd, Stop, UiEvent, UserRequest, WaitingLine};
use crate::ledger::{CommitPlan, read_held};
use crate::{EngineError, mentions};

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
        request: UserRequest,
        front: &mut FrontEnd<'_>,
    ) -> Result<Option<Stop>, EngineError> {
        match request {
            UserRequest::Stop(stop) => return Ok(Some(stop)),
            UserRequest::Say(text) => self.queue(text.into(), front).await,
            UserRequest::Command(line) => return Ok(self.heed_line(line.into(), front).await),
            UserRequest::Submit(submission) => {
                return Ok(self.heed_line(submission.into(), front).await);
            }
            UserRequest::Preview(line) => self.interpreter.preview(self, line, front).await?,
            UserRequest::Do(job) => front.jobs.push_back(job),
            UserRequest::TakeBack(mail) => self.take_back(mail, front).await,
            // Answers to what is not asked are too late: the call was closed meanwhile.
            UserRequest::Answer { .. } => {}
        }
        Ok(None)
    }

    /// Queues a message or runs a command, now or later; returns a stop if it ends the turn.
    async fn heed_line(&mut self, waiting: WaitingLine, front: &mut FrontEnd<'_>) -> Option<Stop> {
        match self.interpreter.during(&waiting.line) {
            None => self.queue(waiting, front).await,
            Some(During::AtOnce) => self.interpreter.run(self, waiting, front).await,
            Some(During::AtBreak) => front.at_break.push_back(waiting),
            Some(During::Interrupts) => {
                front.after_turn.push_back(waiting);
                return Some(Stop::Interrupt(Cause::User));
            }
        }
        None
    }

    /// Stores a message for the next break. If that fails, the front end gets it back.
    pub(crate) async fn queue(&mut self, waiting: WaitingLine, front: &mut FrontEnd<'_>) {
        let WaitingLine { line: text, id } = waiting;
        match self.check_waiting(&text).await {
            Ok(()) => {}
            Err(EngineError::NotSent(reason)) => {
                return front.tell(UiEvent::NotStored { id, text, reason });
            }
            Err(error) => return front.not_stored(WaitingLine { line: text, id }, &error),
        }
        let mail = id.unwrap_or_else(|| draw_mail(&*self.ledger.engine.environment));
        let send = Effect::Mail(MailEffect::Send {
            mail,
            to: self.ledger.agent.state.agent(),
            from: None,
            text: text.clone(),
            at: self.ledger.engine.environment.now(),
        });
        self.ledger.crash_point(CrashPoint::BeforeMessageQueued);
        let stored = match self.ledger.commit(CommitPlan::effects(vec![send])).await {
            Ok(_) => Ok(()),
            Err(error) => match self.waiting(Senders::User).await {
                Ok(waiting) if waiting.iter().any(|waits| waits.id == mail) => Ok(()),
                _ => Err(error),
            },
        };
        match stored {
            Ok(()) => {
                self.ledger.crash_point(CrashPoint::AfterMessageQueued);
                front.queued.push((mail, text.clone()));
                front.tell(UiEvent::Queued { mail, text });
                if id.is_some() {
                    front.tell(UiEvent::Received(mail));
                }
            }
            Err(error) => front.not_stored(WaitingLine { line: text, id }, &error),
        }
    }

    /// Reports messages that a former process queued and never delivered. The next turn sends them.
    pub(super) async fn tell_queued(&self, front: &mut FrontEnd<'_>) -> Result<(), EngineError> {
        for MailRecord { id: mail, text, .. } in self.waiting(Senders::User).await? {
            front.tell(UiEvent::Queued { mail, text });
        }
        Ok(())
    }

    /// Hands a message that waits back to its user; one that was taken in meanwhile is not.
    pub(crate) async fn take_back(&mut self, mail: MailId, front: &mut FrontEnd<'_>) {
        let Ok(waiting) = self.waiting(Senders::User).await else {
            return;
        };
        let Some(found) = waiting.into_iter().find(|waits| waits.id == mail) else {
            return;
        };
        let withdraw = withdrawn(std::slice::from_ref(&found));
        let is_gone = match self.ledger.commit(CommitPlan::effects(withdraw)).await {
            Ok(_) => true,
            // Of a commit of unknown outcome the mail itself tells what came.
            Err(_) => match self.waiting(Senders::User).await {
                Ok(waiting) => waiting.iter().all(|waits| waits.id != mail),
                Err(_) => false,
            },
        };
        if is_gone {
            front.hand_back(vec![found]);
        }
    }

    /// The messages of this front end that a user who interrupts the turn gets back: an interrupt
    /// sends nothing. They are withdrawn with the row that tells of it.
    pub(super) async fn taken_back(
        &self,
        stop: &Stop,
        front: &mut FrontEnd<'_>,
    ) -> Result<Vec<MailRecord>, EngineError> {
        if *stop != Stop::Interrupt(Cause::User) || front.queued.is_empty() {
            return Ok(Vec::new());
        }
        let mut waiting = read_held!(front, self.waiting(Senders::User));
        waiting.retain(|mail| front.queued.iter().any(|(queued, _)| *queued == mail.id));
        Ok(waiting)
    }

    /// Heeds what was said so far; hands back the first wish to stop.
    pub(crate) async fn hear(
        &mut self,
        front: &mut FrontEnd<'_>,
    ) -> Result<Option<Stop>, EngineError> {
        let mut first = None;
        while let Some(request) = front.next_said() {
            let stop = self.heed(request, front).await?;
            first = first.or(stop);
        }
        Ok(first)
    }

    /// Queued mail of these senders, in the order of arrival.
    pub(super) async fn waiting(&self, senders: Senders) -> Result<Vec<MailRecord>, EngineError> {
        let agent = self.ledger.agent.state.agent();
        let mut waiting = self.ledger.engine.store.queued_mail(agent).await?;
        waiting.retain(|mail| senders == Senders::Anybody || mail.from.is_none());
        Ok(waiting)
    }

    /// The rows that mail becomes.
    pub(super) async fn shown(&self, mail: &[MailRecord]) -> Result<Vec<Event>, EngineError> {
        let mut events = Vec::new();
        for mail in mail {
            let Some(from) = mail.from else {
                events.push(mentions::queued_row(&self.ledger, &mail.text).await);
                continue;
            };
            let sender = self.ledger.engine.store.agent(from).await?;
            let name = sender.as_ref().map(|sender| &*sender.name);
            events.push(shown_mail(mail, name));
        }
        Ok(events)
    }

    /// Takes in what waits from the user: each message becomes a row, in the transaction that
    /// marks it as delivered. Says whether there was any.
    pub(super) async fn take_in_queued(
        &mut self,
        front: &mut FrontEnd<'_>,
    ) -> Result<bool, EngineError> {
        self.take_in(Senders::User, front).await
    }

    /// Takes in what waits from these senders.
    pub(super) async fn take_in(
        &mut self,
        senders: Senders,
        front: &mut FrontEnd<'_>,
    ) -> Result<bool, EngineError> {
        let agent = self.ledger.agent.state.agent();
        let waiting = read_held!(front, self.waiting(senders));
        if waiting.is_empty() {
            return Ok(false);
        }
        let events = read_held!(front, self.shown(&waiting));
        let consume = |head: Seq| consumed(&waiting, RowRef::new(agent, head));
        self.ledger.crash_point(CrashPoint::BeforeQueueTakenIn);
        let rows = self
            .ledger
            .commit(CommitPlan::events(events).with_at(&consume).waiting(front))
            .await?;
        self.ledger.crash_point(CrashPoint::AfterQueueTakenIn);
        front.queued.clear();
        for mail in &waiting {
            front.tell(UiEvent::Delivered(mail.id));
        }
        front.told(rows);
        Ok(true)
    }
}

/// The effects that take mail back.
pub(super) fn withdrawn(mail: &[MailRecord]) -> Vec<Effect> {
    let withdraw = |mail: &MailRecord| Effect::Mail(MailEffect::Withdraw { mail: mail.id });
    mail.iter().map(withdraw).collect()
}

/// The effects that deliver mail by the rows after `head`, one each.
pub(super) fn consumed(mail: &[MailRecord], head: RowRef) -> Vec<Effect> {
    let mut by = head;
    let mut effects = Vec::new();
    for mail in mail {
        by.seq = by.seq.next();
        effects.push(Effect::Mail(MailEffect::Consume { mail: mail.id, by }));
    }
    effects
}
