//! What front ends say to an agent at work, and what they are told.

use std::collections::VecDeque;
use std::time::Duration;

use ikigai_core::data::{AnsweredBy, Cause};
use ikigai_core::spelling::spell_out;
use ikigai_core::{Micros, Row, RowRef};
use ikigai_providers::Wait;
use ikigai_store::{MailId, MailRecord};
use tokio::sync::mpsc;

use crate::commands::{Line, Next, parse};
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
    /// Queued mail became a row.
    Delivered(MailId),
    /// Queued mail was withdrawn; its text goes back to the user.
    TakenBack {
        /// Id of the mail.
        mail: MailId,
        /// Text of the mail.
        text: String,
    },
    /// A submission is in the log or in the queue, or its command ran.
    Received(MailId),
    /// The store failed, so a submitted message is not stored or its outcome is unknown.
    ///
    /// The front end keeps it and calls [`crate::Engine::store_pending`] until that succeeds.
    Unstored {
        /// Id of the submission.
        id: MailId,
        /// Text of the failure.
        reason: String,
    },
    /// What was typed could not be stored, so nothing was done with it.
    NotStored {
        /// Id of the submission, if it has one.
        id: Option<MailId>,
        /// What was typed.
        text: String,
        /// Why.
        reason: String,
    },
    /// A front end is to do something, because a command says so.
    Next(Next),
    /// A shell command of the user runs.
    ShellStarted {
        /// Id of the submission, if it has one.
        id: Option<MailId>,
        /// The command line.
        command: String,
    },
    /// The shell command of the user ended.
    ShellEnded,
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
    /// The same as `Command`, with an id under which the line is stored exactly once.
    Submit(Submission),
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

/// A typed line with an id, so that it is stored exactly once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Id of the submission, and of the mail if it becomes mail.
    pub id: MailId,
    /// Time of the submission; also the time of its row if it becomes a row directly.
    pub at: Micros,
    /// The typed line.
    pub line: String,
}

/// A command line that waits for a break or for the end of the turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WaitingLine {
    pub(crate) line: String,
    /// Id of the submission, if it has one.
    pub(crate) id: Option<MailId>,
}

impl WaitingLine {
    fn into_intent(self) -> Intent {
        match self.id {
            // Only the row of a message has the time of its submission, and this is a command.
            Some(id) => Intent::Submit(Submission {
                id,
                at: Micros(0),
                line: self.line,
            }),
            None => Intent::Command(self.line),
        }
    }
}

impl From<String> for WaitingLine {
    fn from(line: String) -> Self {
        Self { line, id: None }
    }
}

impl From<Submission> for WaitingLine {
    fn from(submission: Submission) -> Self {
        Self {
            id: Some(submission.id),
            line: submission.line,
        }
    }
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
    /// The whole call, spelled out.
    pub shown: String,
    /// Where it would run, spelled out.
    pub workdir: String,
    /// The whole diff of an edit, spelled out.
    pub preview: Option<String>,
    /// Exact pattern that *always* allows.
    pub pattern: String,
    /// Hash of the exact call and the pattern; an approval by a program names it.
    pub hash: String,
}

impl Question {
    /// The pattern that *always* would allow, spelled out.
    pub fn spelled_pattern(&self) -> String {
        spell_out(&self.pattern)
    }
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
    pub(crate) at_break: VecDeque<WaitingLine>,
    /// Commands that ended the turn, to be carried out after it.
    pub(crate) after_turn: VecDeque<WaitingLine>,
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
            self.tell(Update::TakenBack {
                mail: mail.id,
                text: mail.text,
            });
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
            match intent {
                Intent::Say(text) | Intent::Command(text) => {
                    self.after_turn.push_back(text.into());
                }
                Intent::Submit(submission) => self.after_turn.push_back(submission.into()),
                _ => {}
            }
        }
        let waiting = self.at_break.drain(..).chain(self.after_turn.drain(..));
        for waiting in waiting.collect::<Vec<_>>() {
            self.not_stored(waiting, error);
        }
    }

    /// Reports why the agent ends, and hands back everything that it was told and did not do.
    pub(crate) fn end(&mut self, error: &EngineError) {
        self.tell(Update::Warning(error.to_string()));
        self.intents.close();
        self.give_back(error);
    }

    /// Reports a line that was not stored: the front end keeps a message or shows the line again.
    pub(crate) fn not_stored(&mut self, waiting: WaitingLine, error: &EngineError) {
        let WaitingLine { line: text, id } = waiting;
        let reason = error.to_string();
        let is_message = matches!(parse(&text), Line::Message(_));
        let update = match id {
            Some(id) if is_message && error.may_pass() => Update::Unstored { id, reason },
            id => Update::NotStored { id, text, reason },
        };
        self.tell(update);
    }

    /// Takes out everything that waits, for the desk of the next errand.
    pub(crate) fn take_waiting(&mut self) -> Vec<Intent> {
        let lines = self.at_break.drain(..).chain(self.after_turn.drain(..));
        let mut waiting: Vec<_> = lines.map(WaitingLine::into_intent).collect();
        waiting.extend(self.errands.drain(..).map(Intent::Do));
        waiting.append(&mut self.heard);
        waiting
    }

    /// Returns whether the process ends or the agent was killed, by an intent still waiting.
    pub(crate) fn hears_end(&self) -> bool {
        let ends = |intent: &Intent| {
            matches!(
                intent,
                Intent::Stop(Stop::Interrupt(Cause::Exit | Cause::Kill))
            )
        };
        self.heard.iter().any(ends)
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
