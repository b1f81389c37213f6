//! Mail: durable, first in first out, delivered by the row that shows it.

use ikigai_core::data::{UserData, UserOrigin, Verdict};
use ikigai_core::{Event, Row};
use ikigai_store::{AgentRecord, CommitError, Effect, MailEffect, MailId, MailRecord, Status};

use super::mail_topic::{MailTopic, framed_mail};
use super::{Deal, Dealt, Family, done};
use crate::EngineError;
use crate::agent_tools::SendArguments;
use crate::calls::OpenCall;
use crate::environment::{CrashPoint, draw_mail};
use crate::frontend::FrontEnd;
use crate::ledger::{CommitPlan, Ledger, read_held};

/// Size limit of mail; longer texts belong in a file.
pub(crate) const MOST_MAIL_BYTES: usize = 64 * 1024;

/// Fails if a text cannot be sent to an agent.
pub(crate) fn check_mail(to: &AgentRecord, text: &str) -> Result<(), EngineError> {
    if text.trim().is_empty() {
        return Err(EngineError::EmptyMessage);
    }
    if text.len() > MOST_MAIL_BYTES {
        return Err(EngineError::LongMail {
            bytes: text.len(),
            most: MOST_MAIL_BYTES,
        });
    }
    if to.status != Status::Running {
        return Err(EngineError::Dead(to.name.clone()));
    }
    Ok(())
}

impl Ledger {
    /// Returns the effect that sends mail to an agent, and the mail's id.
    pub(crate) fn mail_to(
        &self,
        to: &AgentRecord,
        text: &str,
    ) -> Result<(MailId, Effect), EngineError> {
        check_mail(to, text)?;
        let mail = draw_mail(&*self.engine.environment);
        let send = Effect::Mail(MailEffect::Send {
            mail,
            to: to.id,
            from: Some(self.agent.state.agent()),
            text: text.to_owned(),
            at: self.engine.environment.now(),
        });
        Ok((mail, send))
    }

    /// Stores the rows that end a turn, with the report to the agent's parent.
    pub(crate) async fn commit_ending(
        &mut self,
        events: Vec<Event>,
        with: Vec<Effect>,
        report: Option<&str>,
        front: &mut FrontEnd<'_>,
    ) -> Result<Vec<Row>, EngineError> {
        let report = match report {
            Some(text) => read_held!(front, self.report(text)),
            None => None,
        };
        if let Some(report) = report {
            let both = with.iter().cloned().chain([report]).collect();
            let plan = CommitPlan::events(events.clone()).with(both);
            match self.commit(plan.waiting(front)).await {
                // The parent died meanwhile.
                Err(EngineError::Commit(CommitError::Dead(_))) => {}
                stored => return stored,
            }
        }
        let plan = CommitPlan::events(events).with(with);
        self.commit(plan.waiting(front)).await
    }

    /// Builds the effect that mails this agent's last answer to its parent. None unless the
    /// parent's model forked it and the parent lives.
    pub(crate) async fn report(&self, text: &str) -> Result<Option<Effect>, EngineError> {
        let fork = self.agent.state.fork();
        let parent = fork.and_then(|fork| fork.parent_uuid.filter(|_| fork.call.is_some()));
        let Some(parent) = parent else {
            return Ok(None);
        };
        let Some(parent) = self.engine.store.agent(parent).await? else {
            return Ok(None);
        };
        let text = shortened(text);
        Ok(self.mail_to(&parent, &text).ok().map(|(_, send)| send))
    }
}

impl Family<'_> {
    /// Executes a call of `send`.
    pub(super) async fn deal_send(
        &mut self,
        arguments: SendArguments,
        call: &OpenCall,
        front: &mut FrontEnd<'_>,
    ) -> Deal {
        let to = match self.named(&arguments.to).await? {
            Ok(to) => to,
            Err(reason) => return Ok(Err(reason)),
        };
        let send = match self.ledger.mail_to(&to, &arguments.message) {
            Ok((_, send)) => send,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let result = call.result(done(format!("sent to {}", to.name)), Verdict::Ran);
        self.ledger.crash_point(CrashPoint::BeforeMailSent);
        match self
            .ledger
            .commit(
                CommitPlan::events(vec![result])
                    .with(vec![send])
                    .waiting(front),
            )
            .await
        {
            Ok(rows) => {
                self.ledger.crash_point(CrashPoint::AfterMailSent);
                front.told(rows);
                Ok(Ok(Dealt::Done))
            }
            Err(EngineError::Commit(CommitError::Dead(_))) => {
                Ok(Err(EngineError::Dead(to.name).to_string()))
            }
            Err(error) => Err(error),
        }
    }
}

/// Shortens a text to the size limit of mail.
fn shortened(text: &str) -> String {
    const NOTE: &str = "\n[the rest is in the sender's own log]";
    if text.len() <= MOST_MAIL_BYTES {
        return text.to_owned();
    }
    let mut end = MOST_MAIL_BYTES - NOTE.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{NOTE}", &text[..end])
}

/// Builds the row of mail at the beginning of a turn; the name of its sender may be unknown.
pub(crate) fn shown_mail(mail: &MailRecord, sender: Option<&str>, topic: MailTopic) -> Event {
    let Some(from) = mail.from else {
        return Event::user(&mail.text);
    };
    let sender = sender.map_or_else(|| from.to_string(), str::to_owned);
    let data = UserData {
        origin: Some(UserOrigin::Mail),
        typed: Some(format!("✉ {sender}: {}", mail.text)),
        from: Some(from),
        ..UserData::default()
    };
    Event::User {
        text: framed_mail(&sender, topic, &mail.text),
        data,
    }
}
