//! Mail: durable, first in first out, delivered by the row that shows it.

use ikigai_core::data::{UserData, UserOrigin, Verdict};
use ikigai_core::environment_block::frame;
use ikigai_core::{Event, Row};
use ikigai_store::{
    AgentRecord, CommitError, Effect, MailEffect, MailId, MailOrigin, MailRecord, MailTopic, Status,
};

use super::{Family, FamilyOutcome, FamilyResult, done};
use crate::EngineError;
use crate::agent_tools::SendArguments;
use crate::calls::OpenCall;
use crate::environment::{CrashPoint, draw_mail};
use crate::frontend::FrontEnd;
use crate::ledger::{CommitPlan, Ledger, read_held};

/// Size limit of mail; longer texts belong in a file.
pub(crate) const MOST_MAIL_BYTES: usize = 64 * 1024;

/// Last answer of a child, or the failure of its turn, for its parent.
pub(crate) struct ChildReport {
    text: String,
    about: MailTopic,
}

impl ChildReport {
    /// Makes the report of a finished turn.
    pub(crate) fn of_answer(text: String) -> Self {
        Self {
            text,
            about: MailTopic::Report,
        }
    }

    /// Makes the report of a failed turn.
    pub(crate) fn of_failure(reason: &str) -> Self {
        Self {
            text: format!("I could not finish: {reason}"),
            about: MailTopic::Failed,
        }
    }
}

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

/// Describes a failure to send for a model, with what it can do instead.
pub(super) fn send_refusal(error: &EngineError) -> String {
    match error {
        EngineError::Dead(name) => format!(
            "{error}, so it gets no messages. Call `recall` with `agent: \"{name}\"` for what it did, or \
             `fork` another child"
        ),
        _ => error.to_string(),
    }
}

impl Ledger {
    /// Returns the effect that sends mail to an agent, and the mail's id.
    pub(crate) fn mail_to(
        &self,
        to: &AgentRecord,
        text: &str,
        about: MailTopic,
    ) -> Result<(MailId, Effect), EngineError> {
        check_mail(to, text)?;
        let mail = draw_mail(self.engine.environment());
        let send = Effect::Mail(MailEffect::Send {
            mail,
            to: to.id,
            origin: MailOrigin::Agent,
            from: Some(self.agent.state.agent()),
            about,
            text: text.to_owned(),
            at: self.engine.environment().now(),
            author: None,
        });
        Ok((mail, send))
    }

    /// Stores the rows that end a turn, with the report to the agent's parent.
    pub(crate) async fn commit_ending(
        &mut self,
        events: Vec<Event>,
        with: Vec<Effect>,
        report: Option<&ChildReport>,
        front: &mut FrontEnd<'_>,
    ) -> Result<Vec<Row>, EngineError> {
        let report = match report {
            Some(report) => read_held!(front, self.report(report)),
            None => None,
        };
        if let Some(report) = report {
            let both = with.iter().cloned().chain([report]).collect();
            let plan = CommitPlan::events(events.clone()).with(both);
            let stored = self.commit(plan.waiting(front)).await;
            // The parent may die meanwhile.
            if !matches!(stored, Err(EngineError::Commit(CommitError::Dead(_)))) {
                wake_idle_parent(self);
                return stored;
            }
        }
        let plan = CommitPlan::events(events).with(with);
        self.commit(plan.waiting(front)).await
    }

    /// Builds the effect that mails this agent's last answer to its parent. None unless the
    /// parent's model forked it and the parent lives.
    pub(crate) async fn report(&self, report: &ChildReport) -> Result<Option<Effect>, EngineError> {
        let fork = self.agent.state.fork();
        let parent = fork.and_then(|fork| fork.parent_uuid.filter(|_| fork.call.is_some()));
        let Some(parent) = parent else {
            return Ok(None);
        };
        let Some(parent) = self.engine.reader().agent(parent).await? else {
            return Ok(None);
        };
        let text = shorten(&report.text);
        let sent = self.mail_to(&parent, &text, report.about);
        Ok(sent.ok().map(|(_, send)| send))
    }
}

/// Starts a turn of an idle parent. One that awaits its children is at work (E10e).
fn wake_idle_parent(ledger: &Ledger) {
    let fork = ledger.agent.state.fork();
    let Some(parent) = fork.and_then(|fork| fork.parent_uuid) else {
        return;
    };
    let hub = ledger.engine.hub();
    if hub.is_working(parent) == Some(false) {
        hub.wake(parent);
    }
}

impl Family<'_> {
    /// Executes a call of `send`.
    pub(super) async fn run_send(
        &mut self,
        arguments: SendArguments,
        call: &OpenCall,
        front: &mut FrontEnd<'_>,
    ) -> FamilyResult {
        let to = match self.named(&arguments.to).await? {
            Ok(to) => to,
            Err(reason) => return Ok(Err(reason)),
        };
        let about = if arguments.question {
            MailTopic::Question
        } else {
            MailTopic::Message
        };
        let send = match self.ledger.mail_to(&to, &arguments.message, about) {
            Ok((_, send)) => send,
            Err(error) => return Ok(Err(send_refusal(&error))),
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
                front.emit_rows(rows);
                Ok(Ok(FamilyOutcome::Sent(to)))
            }
            Err(EngineError::Commit(CommitError::Dead(_))) => {
                Ok(Err(send_refusal(&EngineError::Dead(to.name))))
            }
            Err(error) => Err(error),
        }
    }
}

/// Shortens a text to the size limit of mail.
fn shorten(text: &str) -> String {
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
pub(crate) fn shown_mail(mail: &MailRecord, sender: Option<&str>) -> Event {
    let sender = match (sender, mail.from) {
        (Some(name), _) => name.to_owned(),
        (None, Some(from)) => from.to_string(),
        (None, None) => mail.origin.word().to_owned(),
    };
    let data = UserData {
        origin: Some(UserOrigin::Mail),
        typed: Some(format!("✉ {sender}: {}", mail.text)),
        from: mail.from,
        ..UserData::default()
    };
    Event::User {
        text: framed_mail(&sender, mail),
        data,
    }
}

/// Frames the text of mail, so that it cannot pass as the user's words.
pub(super) fn framed_mail(sender: &str, mail: &MailRecord) -> String {
    let attributes = [("from", sender), ("about", mail.about.word())];
    frame("message", &attributes, &mail.text)
}
