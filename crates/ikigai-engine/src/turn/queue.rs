//! Messages that arrive during a turn: mail from the user, delivered at the next boundary.

use ikigai_core::data::Cause;
use ikigai_core::{Event, RowRef, Seq};
use ikigai_store::{Effect, MailEffect, MailId, MailOrigin, MailRecord, MailTopic};

use super::pins::{PinChanges, pin_changes};
use super::{Turn, Worker, environment};
use crate::environment::{CrashPoint, draw_mail};
use crate::family::shown_mail;
use crate::frontend::{FrontEnd, Stop, UiEvent, UserRequest, WaitingLine};
use crate::input::{During, UserInput};
use crate::ledger::{CommitPlan, Ledger, read_held};
use crate::processes::shown_notice;
use crate::{EngineError, mentions};

/// Senders whose mail is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Senders {
    /// Only the user.
    User,
    /// Within a turn: the user, and background processes.
    UserAndProcesses,
    /// At the start of a turn: all senders.
    Anybody,
}

/// Place of a delivery in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Boundary {
    /// At the start of a turn, where pinned files are read.
    Start,
    /// Between two requests of a turn.
    Within,
}

impl Worker {
    /// Handles a request of a front end within a turn. Returns a stop to its caller.
    pub(crate) async fn handle(
        &mut self,
        request: UserRequest,
        front: &mut FrontEnd<'_>,
    ) -> Result<Option<Stop>, EngineError> {
        match request {
            UserRequest::Stop(stop) => return Ok(Some(stop)),
            UserRequest::Line(input) => return Ok(self.handle_line(input.into(), front).await),
            UserRequest::Submit(submission) => {
                return Ok(self.handle_line(submission.into(), front).await);
            }
            UserRequest::List(listing) => self.interpreter().list(self, listing, front).await?,
            UserRequest::Do(job) => front.jobs.push_back(job),
            UserRequest::TakeBack(mail) => self.inbox().take_back(mail, front).await,
            // The question is closed, so the answer is too late.
            UserRequest::Answer { .. } => {}
        }
        Ok(None)
    }

    /// Queues a message or runs a command, now or later. Returns a stop if it ends the turn.
    async fn handle_line(
        &mut self,
        mut waiting: WaitingLine,
        front: &mut FrontEnd<'_>,
    ) -> Option<Stop> {
        waiting.input = self.resolved(waiting.input).await;
        match waiting.input.during() {
            None => self.inbox().queue(waiting, front).await,
            Some(During::AtOnce) => self.interpreter().run(self, waiting, front).await,
            Some(During::AtBreak) => front.at_break.push_back(waiting),
            Some(During::Interrupts) => {
                front.after_turn.push_back(waiting);
                return Some(Stop::Interrupt(Cause::User));
            }
        }
        None
    }

    /// Makes a line that calls a command or skill in this conversation a message.
    pub(crate) async fn resolved(&self, input: UserInput) -> UserInput {
        let UserInput::Unknown(typed) = &input else {
            return input;
        };
        let extensions = self.engine().extensions(&self.ledger().workdir()).await;
        match extensions.callable(&typed.name) {
            Some(text) if !text.forks => UserInput::Message(typed.line.clone()),
            _ => input,
        }
    }

    /// Handles received requests; returns the first stop.
    pub(crate) async fn drain(
        &mut self,
        front: &mut FrontEnd<'_>,
    ) -> Result<Option<Stop>, EngineError> {
        let mut first = None;
        while let Some(request) = front.next_pending() {
            let stop = self.handle(request, front).await?;
            first = first.or(stop);
        }
        Ok(first)
    }

    pub(crate) fn inbox(&mut self) -> Inbox<'_> {
        Inbox {
            ledger: self.ledger_mut(),
        }
    }
}

/// Mail of one agent: queued, withdrawn, and delivered as rows.
pub(crate) struct Inbox<'a> {
    ledger: &'a mut Ledger,
}

impl Inbox<'_> {
    /// Queues a message for the next boundary. If that fails, the front end gets it back.
    pub(crate) async fn queue(&mut self, waiting: WaitingLine, front: &mut FrontEnd<'_>) {
        let WaitingLine { input, id } = &waiting;
        let (text, id) = (input.line().to_owned(), *id);
        match self.check(&text).await {
            Ok(()) => {}
            Err(EngineError::NotSent(reason)) => {
                let input = waiting.input;
                return front.emit(UiEvent::NotStored { id, input, reason });
            }
            Err(error) => return front.not_stored(waiting, &error),
        }
        let mail = id.unwrap_or_else(|| draw_mail(self.ledger.engine.environment()));
        let send = Effect::Mail(MailEffect::Send {
            mail,
            to: self.ledger.agent.state.agent(),
            origin: MailOrigin::User,
            from: None,
            about: MailTopic::Message,
            text: text.clone(),
            at: self.ledger.engine.environment().now(),
            author: self.ledger.engine.person(),
        });
        self.ledger.crash_point(CrashPoint::BeforeMessageQueued);
        let stored = match self.ledger.commit(CommitPlan::effects(vec![send])).await {
            Ok(_) => Ok(()),
            Err(error) => match self.waiting(Senders::User).await {
                Ok(queued) if queued.iter().any(|waits| waits.id == mail) => Ok(()),
                _ => Err(error),
            },
        };
        match stored {
            Ok(()) => {
                self.ledger.crash_point(CrashPoint::AfterMessageQueued);
                front.queued.push((mail, text.clone()));
                front.emit(UiEvent::Queued { mail, text });
                if id.is_some() {
                    front.emit(UiEvent::Received(mail));
                }
            }
            Err(error) => front.not_stored(waiting, &error),
        }
    }

    /// Fails if a queued message would be too long, or a file is unreadable.
    async fn check(&self, text: &str) -> Result<(), EngineError> {
        let message = mentions::waiting_row(self.ledger, text).await?;
        match Turn::prepare(self.ledger).await {
            Ok(turn) => turn.check_message(&message, &self.ledger.agent),
            // The turn that takes the message reports the missing model.
            Err(EngineError::NoModel(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Reports messages that a former process queued but did not deliver. The next turn sends them.
    pub(super) async fn tell_queued(&self, front: &mut FrontEnd<'_>) -> Result<(), EngineError> {
        for MailRecord { id: mail, text, .. } in self.waiting(Senders::User).await? {
            front.emit(UiEvent::Queued { mail, text });
        }
        Ok(())
    }

    /// Returns a queued message to its user, unless it was delivered meanwhile.
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
            // The mail itself shows the outcome of an unknown commit.
            Err(_) => match self.waiting(Senders::User).await {
                Ok(waiting) => waiting.iter().all(|waits| waits.id != mail),
                Err(_) => false,
            },
        };
        if is_gone {
            front.hand_back(vec![found]);
        }
    }

    /// Finds queued messages of this front end that an interrupt returns. An interrupt sends
    /// nothing. They are withdrawn with the row of the interrupt.
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

    /// Returns the queued mail of these senders, in the order of arrival.
    pub(super) async fn waiting(&self, senders: Senders) -> Result<Vec<MailRecord>, EngineError> {
        let agent = self.ledger.agent.state.agent();
        let mut waiting = self.ledger.engine.reader().queued_mail(agent).await?;
        waiting.retain(|mail| match senders {
            Senders::User => mail.origin == MailOrigin::User,
            Senders::UserAndProcesses => mail.origin != MailOrigin::Agent,
            Senders::Anybody => true,
        });
        Ok(waiting)
    }

    /// Builds the rows of mail.
    pub(super) async fn shown(&self, mail: &[MailRecord]) -> Result<Vec<Event>, EngineError> {
        let mut events = Vec::new();
        for mail in mail {
            if mail.origin == MailOrigin::User {
                events.push(mentions::queued_row(self.ledger, &mail.text).await);
                continue;
            }
            if let Some(process) = mail.process {
                events.push(shown_notice(mail, process));
                continue;
            }
            let sender = match mail.from {
                Some(from) => self.ledger.engine.reader().agent(from).await?,
                None => None,
            };
            let name = sender.as_ref().map(|sender| &*sender.name);
            events.push(shown_mail(mail, name));
        }
        Ok(events)
    }

    /// Delivers queued mail of these senders; returns false if there is none.
    /// Each message becomes a row, in the transaction that marks it as delivered.
    pub(super) async fn take_in(
        &mut self,
        senders: Senders,
        boundary: Boundary,
        front: &mut FrontEnd<'_>,
    ) -> Result<bool, EngineError> {
        let agent = self.ledger.agent.state.agent();
        let waiting = read_held!(front, self.waiting(senders));
        if waiting.is_empty() {
            return Ok(false);
        }
        let mut events = read_held!(front, self.shown(&waiting));
        let changes = match boundary {
            Boundary::Start => read_held!(front, pin_changes(self.ledger)),
            Boundary::Within => PinChanges::default(),
        };
        changes.warn(front);
        let answers = front.answers;
        read_held!(
            front,
            environment::add(self.ledger, &mut events, answers, &changes)
        );
        let before = changes.rows.len();
        let first = before as u64;
        let consume = |head: Seq| consume(&waiting, RowRef::new(agent, Seq(head.0 + first)));
        let events = changes.rows.into_iter().chain(events).collect();
        self.ledger.crash_point(CrashPoint::BeforeQueueTakenIn);
        let rows = self
            .ledger
            .commit(
                CommitPlan::events(events)
                    .with_at(&consume)
                    .by_senders(before, &waiting)
                    .waiting(front),
            )
            .await?;
        self.ledger.crash_point(CrashPoint::AfterQueueTakenIn);
        front.queued.clear();
        for mail in &waiting {
            front.emit(UiEvent::Delivered(mail.id));
        }
        front.emit_rows(rows);
        Ok(true)
    }
}

/// Builds the effects that withdraw mail.
pub(super) fn withdrawn(mail: &[MailRecord]) -> Vec<Effect> {
    let withdraw = |mail: &MailRecord| Effect::Mail(MailEffect::Withdraw { mail: mail.id });
    mail.iter().map(withdraw).collect()
}

/// Builds the effects that deliver mail by the rows after `head`, one each.
pub(super) fn consume(mail: &[MailRecord], head: RowRef) -> Vec<Effect> {
    let mut by = head;
    let mut effects = Vec::new();
    for mail in mail {
        by.seq = by.seq.next();
        effects.push(Effect::Mail(MailEffect::Consume { mail: mail.id, by }));
    }
    effects
}
