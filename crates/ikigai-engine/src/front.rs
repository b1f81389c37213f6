//! What front ends say to an agent at work, and what they are told.

use std::collections::VecDeque;
use std::time::Duration;

use ikigai_core::data::{AnsweredBy, Cause};
use ikigai_core::{Row, RowRef};
use ikigai_providers::Wait;
use ikigai_store::{MailId, MailRecord};
use tokio::sync::mpsc;

use crate::commands::Next;
use crate::{EngineError, Errand};

/// What a front end is told while a turn goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// A turn has begun, or goes on.
    Began,
    /// The turn has ended.
    Ended(Outcome),
    /// A row was stored.
    Stored(Row),
    /// A row was stored before, to settle what a former process had left unfinished.
    Settled(Row),
    /// More text came; it is not yet a row.
    Text(String),
    /// The model thinks; not yet a row.
    Thinking(String),
    /// The model begins to call this tool.
    Calling(String),
    /// The request failed and will be sent again after a pause.
    Waiting(Wait),
    /// The answer begins anew; text that was told before does not count.
    Again,
    /// A call has begun to run.
    Running(RowRef),
    /// The newest line that a running call printed.
    Progress {
        /// Which call.
        call: RowRef,
        /// The line.
        line: String,
    },
    /// New whole lines that a running call printed, for screens. They are not in the log.
    Output {
        /// Which call.
        call: RowRef,
        /// The lines, each with its end, without control characters and secrets.
        text: String,
    },
    /// A call waits until somebody allows or refuses it.
    Question(Question),
    /// A question needs no answer any more: a rule allows the call by now, or its turn was stopped.
    Unasked(RowRef),
    /// A message waits for the next break.
    Queued {
        /// Its name, to take it back by.
        mail: MailId,
        /// What it says.
        text: String,
    },
    /// A message that waited will not be sent; the text is the user's again.
    TakenBack(String),
    /// What was typed could not be stored, so nothing was done with it.
    NotStored {
        /// What was typed.
        text: String,
        /// Why.
        reason: String,
    },
    /// A front end is to do something, because a command says so.
    Next(Next),
    /// A line that a shell command of the user printed; not yet a row.
    Printed(String),
    /// What a command shows that leaves no row.
    Preview {
        /// The line that asked for it.
        line: String,
        /// What it shows.
        output: String,
    },
    /// Something a person is told that is no event.
    Notice(String),
    /// Something a person should know that is no event.
    Warning(String),
    /// Mode or rules of the log are not in force here; the text offers to grant them.
    GrantOffer(String),
    /// The store fails and is tried again; nothing is lost so far.
    StoreAway(String),
}

/// What a front end asks of an agent at work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// To stop.
    Stop(Stop),
    /// To take this message in at the next break.
    Say(String),
    /// To carry out this line: a command, or one for the user's shell.
    Command(String),
    /// To show what this command would print, if it is one that only shows something.
    Preview(String),
    /// To do this as soon as it has nothing else to do.
    Do(Errand),
    /// Not to send a message that waits.
    TakeBack(MailId),
    /// To do with a call as somebody answered.
    Answer {
        /// Which call.
        call: RowRef,
        /// What was answered.
        answer: Answer,
        /// By whom.
        by: AnsweredBy,
    },
}

/// A call that waits until somebody allows or refuses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The call.
    pub call: RowRef,
    /// The name of the agent whose call it is.
    pub agent: String,
    /// Which tool.
    pub tool: String,
    /// The call for a person.
    pub shown: String,
    /// Where it would run.
    pub workdir: String,
    /// More to see before answering: a diff.
    pub preview: Option<String>,
    /// What *always* would allow.
    pub pattern: String,
}

/// What somebody answered to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This once.
    Once,
    /// From now on, whatever fits the pattern.
    Always(String),
    /// No; the model is told why, if a reason is given.
    No(Option<String>),
}

/// Why a turn is to end early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Somebody wants it.
    Interrupt(Cause),
    /// It took this long.
    Deadline(Duration),
}

/// How a turn ended. All of it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The model said all it had to say.
    Completed,
    /// It was interrupted.
    Interrupted(Cause),
    /// It failed, for this reason.
    Failed(String),
}

/// How many intents may wait to be heard.
pub const INTENTS: usize = 64;

/// The front end of a turn, as the agent at work sees it.
pub struct Desk<'a> {
    intents: &'a mut mpsc::Receiver<Intent>,
    /// What is said by others of this process: that the agent was killed, or has mail to answer.
    others: Option<mpsc::Receiver<Intent>>,
    updates: &'a mut (dyn FnMut(Update) + Send),
    /// Whether somebody is there who can answer questions.
    pub(crate) answers: bool,
    /// What was heard while it could not be heeded.
    pub(crate) heard: Vec<Intent>,
    /// Messages of this front end that wait.
    pub(crate) queued: Vec<(MailId, String)>,
    /// Commands that wait for the next break of the turn.
    pub(crate) at_break: VecDeque<String>,
    /// Commands that ended the turn, to be carried out after it.
    pub(crate) after_turn: VecDeque<String>,
    /// What others ask the agent to do when it has nothing else to do.
    pub(crate) errands: VecDeque<Errand>,
}

impl<'a> Desk<'a> {
    /// A front end that says things over a channel and is told things by a call.
    pub fn new(
        intents: &'a mut mpsc::Receiver<Intent>,
        updates: &'a mut (dyn FnMut(Update) + Send),
    ) -> Self {
        Self {
            intents,
            others: None,
            updates,
            answers: true,
            heard: Vec::new(),
            queued: Vec::new(),
            at_break: VecDeque::new(),
            after_turn: VecDeque::new(),
            errands: VecDeque::new(),
        }
    }

    /// Nobody is there to answer questions: what would be asked is refused.
    #[must_use]
    pub fn without_answers(mut self) -> Self {
        self.answers = false;
        self
    }

    /// Has something heeded first that was said before.
    pub(crate) fn hear_first(&mut self, intents: Vec<Intent>) {
        self.heard.splice(0..0, intents);
    }

    /// Whether an answer to the question about a call was heard and not yet heeded.
    pub(crate) fn is_answered(&self, call: RowRef) -> bool {
        let answers =
            |intent: &Intent| matches!(intent, Intent::Answer { call: of, .. } if *of == call);
        self.heard.iter().any(answers)
    }

    /// The next intent; never, once the front end is gone. Safe to drop.
    pub(crate) async fn next(&mut self) -> Intent {
        if !self.heard.is_empty() {
            return self.heard.remove(0);
        }
        tokio::select! {
            biased;
            Some(intent) = self.intents.recv() => intent,
            Some(intent) = said_by(self.others.as_mut()) => intent,
            else => std::future::pending().await,
        }
    }

    /// Listens to others of this process too.
    pub(crate) fn listen_to(&mut self, others: mpsc::Receiver<Intent>) {
        self.others = Some(others);
    }

    /// Says whether something waits until the agent has nothing else to do.
    pub(crate) fn has_something_to_do(&self) -> bool {
        let lines = self.at_break.len() + self.after_turn.len();
        lines + self.queued.len() + self.errands.len() > 0
    }

    /// An intent that was said already, if there is one.
    pub(crate) fn next_said(&mut self) -> Option<Intent> {
        if !self.heard.is_empty() {
            return Some(self.heard.remove(0));
        }
        let said = self.intents.try_recv().ok();
        said.or_else(|| self.others.as_mut()?.try_recv().ok())
    }

    pub(crate) fn tell(&mut self, update: Update) {
        (self.updates)(update);
    }

    /// Hands messages that waited back to their user.
    pub(crate) fn hand_back(&mut self, mail: Vec<MailRecord>) {
        for mail in mail {
            self.queued.retain(|(queued, _)| *queued != mail.id);
            self.tell(Update::TakenBack(mail.text));
        }
    }

    /// Who wants the agent to stop and was not heeded yet.
    pub(crate) fn stop_heard(&self) -> Option<Cause> {
        self.heard.iter().find_map(|intent| match intent {
            Intent::Stop(Stop::Interrupt(cause)) => Some(*cause),
            _ => None,
        })
    }

    /// Hands back what was said and was never heeded, because the turn failed.
    pub(crate) fn give_back(&mut self, error: &EngineError) {
        while let Some(intent) = self.next_said() {
            if let Intent::Say(text) | Intent::Command(text) = intent {
                self.after_turn.push_back(text);
            }
        }
        let waiting = self.at_break.drain(..).chain(self.after_turn.drain(..));
        for text in waiting.collect::<Vec<_>>() {
            let reason = error.to_string();
            self.tell(Update::NotStored { text, reason });
        }
    }

    pub(crate) fn told(&mut self, rows: Vec<Row>) {
        for row in rows {
            self.tell(Update::Stored(row));
        }
    }
}

/// What others of this process say; nothing if they are not listened to.
async fn said_by(others: Option<&mut mpsc::Receiver<Intent>>) -> Option<Intent> {
    others?.recv().await
}
