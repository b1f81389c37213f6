//! Open questions of plain mode, in the order in which they came. The first one is shown.

use std::collections::VecDeque;
use std::time::Instant;

use ikigai_core::RowRef;
use ikigai_engine::{Answer, Question};

/// Questions that wait for an answer.
#[derive(Default)]
pub(super) struct PrintedQuestions {
    queue: VecDeque<Question>,
    /// Time at which the first one was written; none before.
    shown_at: Option<Instant>,
}

/// Meaning of a line that was typed while a question is open.
pub(super) enum TypedLine {
    /// Answer to the question of this call, which is removed.
    Answer(RowRef, Answer),
    /// A number that was typed before the question was shown, so it approves nothing.
    Early,
    /// No answer, and nothing else to keep.
    Invalid,
    /// Message or command.
    Other,
}

impl PrintedQuestions {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn first(&self) -> Option<&Question> {
        self.queue.front()
    }

    pub(super) fn clear(&mut self) {
        self.queue.clear();
    }

    /// Adds a question, or replaces the one of the same call; returns true if it must be shown.
    pub(super) fn add(&mut self, question: &Question) -> bool {
        let same = self
            .queue
            .iter_mut()
            .find(|asked| asked.call == question.call);
        match same {
            Some(same) => same.clone_from(question),
            None => self.queue.push_back(question.clone()),
        }
        let is_first = self
            .first()
            .is_some_and(|first| first.call == question.call);
        if is_first {
            self.shown_at = None;
        }
        is_first
    }

    /// Removes a question; returns true if it was the first.
    pub(super) fn remove(&mut self, call: RowRef) -> bool {
        let was_first = self.first().is_some_and(|first| first.call == call);
        self.queue.retain(|asked| asked.call != call);
        if was_first {
            self.shown_at = None;
        }
        was_first
    }

    /// Notes that all output was written.
    pub(super) fn set_written(&mut self, now: Instant) {
        if !self.is_empty() {
            self.shown_at.get_or_insert(now);
        }
    }

    /// Interprets a line that was read at a time.
    pub(super) fn interpret(&mut self, line: &str, read_at: Instant) -> TypedLine {
        let Some(first) = self.first() else {
            return TypedLine::Other;
        };
        let is_early = self.shown_at.is_none_or(|shown| read_at <= shown);
        match answer_of(line, first) {
            Some(_) if is_early => TypedLine::Early,
            Some(answer) => match self.queue.pop_front() {
                Some(question) => {
                    self.shown_at = None;
                    TypedLine::Answer(question.call, answer)
                }
                None => TypedLine::Other,
            },
            // One word is an attempt to answer; more are worth keeping.
            None if is_early || line.split_whitespace().nth(1).is_some() => TypedLine::Other,
            None => TypedLine::Invalid,
        }
    }
}

/// Parses the number of an answer; no other input approves.
fn answer_of(line: &str, question: &Question) -> Option<Answer> {
    let line = line.trim();
    let (number, why) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match (number, why.trim()) {
        ("1", "") => Some(Answer::Once),
        ("2", "") => Some(Answer::Always(question.pattern.clone())),
        ("3", "") => Some(Answer::No(None)),
        ("4", why) if !why.is_empty() => Some(Answer::No(Some(why.to_owned()))),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
