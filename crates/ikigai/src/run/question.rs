//! Approval questions of tools on the terminal.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ikigai_core::data::AnsweredBy;
use ikigai_core::spelling::clean_line;
use ikigai_core::{AgentId, RowRef};
use ikigai_engine::{Answer, Engine, Question, UserRequest};
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::mpsc::Sender;

use crate::output::{print_stderr, visible};

/// Asks the user at the terminal, one question after the other.
pub(crate) struct Asker {
    questions: std::sync::mpsc::Sender<Question>,
    /// Questions that need no answer any more.
    moot: Arc<Mutex<HashSet<RowRef>>>,
}

impl Asker {
    /// Creates an asker if there is a terminal.
    ///
    /// Answers go to the agent of the call; `own` gets them over a channel.
    pub(crate) fn find(engine: Engine, own: AgentId, answers: Sender<UserRequest>) -> Option<Self> {
        if !io::stderr().is_terminal() {
            return None;
        }
        let terminal = OpenOptions::new().read(true).open("/dev/tty").ok()?;
        let (questions, asked) = std::sync::mpsc::channel::<Question>();
        let moot: Arc<Mutex<HashSet<RowRef>>> = Arc::default();
        let is_moot = moot.clone();
        // The thread is detached: only the terminal ends its read.
        std::thread::spawn(move || {
            let mut lines = BufReader::new(terminal);
            for question in asked {
                if lock(&is_moot).remove(&question.call) {
                    continue;
                }
                let answer = ask(&question, &mut lines);
                let request = UserRequest::Answer {
                    call: question.call,
                    answer,
                    by: AnsweredBy::User,
                };
                let agent = question.call.agent;
                if agent != own {
                    engine.tell_waiting(agent, request);
                } else if answers.blocking_send(request).is_err() {
                    return;
                }
            }
        });
        Some(Self { questions, moot })
    }

    /// Withdraws a question, unless the user is seeing it already.
    pub(crate) fn drop_question(&self, call: RowRef) {
        lock(&self.moot).insert(call);
    }

    /// Queues a question.
    pub(crate) fn ask(&self, question: &Question) {
        // Asking again makes a withdrawn question valid.
        lock(&self.moot).remove(&question.call);
        // The thread ends only with the turn.
        let _ = self.questions.send(question.clone());
    }
}

fn lock(calls: &Mutex<HashSet<RowRef>>) -> MutexGuard<'_, HashSet<RowRef>> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Repeats a question until the answer is valid. A closed terminal means no.
fn ask(question: &Question, lines: &mut BufReader<File>) -> Answer {
    // Further lines of a pattern are indented, so that none looks like an answer.
    let pattern = question.spelled_pattern().replace('\n', "\n      ");
    let keys = visible(&format!(
        "  y once · a always allow {} \"{pattern}\" · n no · r REASON no, with a reason > ",
        question.tool
    ));
    print_stderr(&question_text(question));
    // Input typed before the question was shown is not an answer.
    let _ = tcflush(lines.get_ref(), QueueSelector::IFlush);
    loop {
        // The lock is held only for the write, because others print meanwhile.
        let _ = write!(io::stderr(), "{keys}");
        let mut line = String::new();
        match lines.read_line(&mut line) {
            Ok(1..) => {}
            Ok(0) | Err(_) => return Answer::No(None),
        }
        if let Some(answer) = answer_of(line.trim(), &question.pattern) {
            return answer;
        }
    }
}

/// Parses an answer; an empty line is not one.
fn answer_of(line: &str, pattern: &str) -> Option<Answer> {
    match line {
        "y" | "yes" => Some(Answer::Once),
        "a" | "always" => Some(Answer::Always(pattern.to_owned())),
        "n" | "no" => Some(Answer::No(None)),
        other => {
            let reason = other.strip_prefix("r ")?.trim();
            (!reason.is_empty()).then(|| Answer::No(Some(reason.to_owned())))
        }
    }
}

/// Formats the whole question: call and diff are complete.
fn question_text(question: &Question) -> String {
    let head = format!(
        "? {}: {} needs approval, in {}",
        clean_line(&question.agent),
        clean_line(&question.tool),
        clean_line(&question.workdir),
    );
    let preview = question.preview.as_deref().unwrap_or_default();
    let lines = question.shown.split('\n').chain(preview.lines());
    let lines = lines.map(|line| format!("\n    {}", visible(line)));
    head + &lines.collect::<String>()
}
