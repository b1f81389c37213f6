//! A call that waits for the user's answer: shown above the input, answered by single keys, but never
//! by a letter that was typed for something else.

use std::time::{Duration, Instant};

use ikigai_core::RowRef;
use ikigai_core::data::AnsweredBy;
use ikigai_engine::{Answer, Intent, Question};

use super::draw::Eye;
use super::hints::Hints;
use super::{App, Mode, Pane, Wish, lines};
use crate::input::Editor;
use crate::key::{Code, Key};
use crate::keys::{self, Action, Meaning};
use crate::line::{Line, Span};
use crate::look::{Look, Role};
use crate::paint::Grid;
use crate::rows::{self, Manner};
use crate::text::{clean, cut, wrap};
use crate::width::width;

/// It takes keys only when nothing was typed for so long.
const GUARD: Duration = Duration::from_millis(700);

/// How far a question is.
#[derive(Default)]
pub(super) struct Asked {
    /// About which call.
    call: Option<RowRef>,
    /// Whether keys go to it.
    is_open: bool,
    /// The first row of it that is seen.
    top: usize,
    /// What is typed for the answer.
    typing: Option<(Typing, Editor)>,
}

/// What is typed for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Typing {
    /// The pattern that is to be allowed from now on.
    Pattern,
    /// Why it is not allowed.
    Reason,
}

impl Asked {
    /// Gives the keys back to the input, until nobody types.
    pub(super) fn wait(&mut self) {
        self.is_open = false;
    }

    /// Whether keys go to the question.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }
}

impl App {
    /// The question of the agent that is shown, if there is one.
    fn question(&self) -> Option<&Question> {
        self.roster.live(self.current)?.questions.first()
    }

    /// Opens a question once nobody types, and forgets one that is answered.
    pub(super) fn mind_question(&mut self) {
        let call = self.question().map(|question| question.call);
        if call != self.asked.call {
            self.asked = Asked {
                call,
                ..Asked::default()
            };
        }
        if self.waits_for_quiet() && self.is_quiet() {
            self.asked.is_open = true;
        }
    }

    /// Whether nothing was typed for a while.
    fn is_quiet(&self) -> bool {
        self.quiet_at().is_none_or(|at| self.now >= at)
    }

    /// When nothing will have been typed for a while.
    fn quiet_at(&self) -> Option<Instant> {
        self.typed_at.map(|typed| typed + GUARD)
    }

    /// When a question that waits for quiet opens.
    pub(super) fn question_opens_at(&self) -> Option<Instant> {
        self.waits_for_quiet()
            .then(|| self.quiet_at().unwrap_or(self.now))
    }

    /// Whether a question opens by itself: letters mean something else in other modes.
    fn waits_for_quiet(&self) -> bool {
        let is_closed = self.asked.call.is_some() && !self.asked.is_open;
        is_closed && matches!(self.mode, Mode::Input | Mode::Leaving)
    }

    /// Whether there is a question.
    pub(super) fn has_question(&self) -> bool {
        self.asked.call.is_some()
    }

    /// Whether another agent asks something.
    pub(super) fn others_ask(&self) -> bool {
        self.roster.asking().any(|(id, _)| id != self.current)
    }

    /// Takes a key as text for an answer, if one is being typed.
    pub(super) fn question_types(&mut self, key: Key) -> bool {
        let Some((typing, mut editor)) = self.asked.typing.take() else {
            return false;
        };
        let meaning = self.bindings.meaning(&[keys::Mode::Input], &[key]);
        match (meaning, key.code) {
            (Meaning::Action(Action::Send), _) => {
                self.answer_typed(typing, editor);
                return true;
            }
            (Meaning::Action(Action::Escape | Action::Interrupt), _) => return true,
            (Meaning::Action(Action::Edit(edit)), _) => {
                editor.apply(edit);
            }
            (Meaning::Nothing, Code::Char(character)) if !key.ctrl && !key.alt => {
                editor.insert(character.encode_utf8(&mut [0; 4]));
            }
            _ => {}
        }
        self.asked.typing = Some((typing, editor));
        true
    }

    fn answer_typed(&mut self, typing: Typing, editor: Editor) {
        let Some(call) = self.asked.call else {
            return;
        };
        let text = editor.text().trim().to_owned();
        let answer = match typing {
            Typing::Reason if text.is_empty() => Answer::No(None),
            Typing::Reason => Answer::No(Some(text)),
            Typing::Pattern if text.is_empty() => {
                self.asked.typing = Some((typing, editor));
                return self.say("a pattern is needed · Esc goes back");
            }
            Typing::Pattern => Answer::Always(text),
        };
        self.answer(call, answer);
    }

    /// Does what a key means for an open question; says whether it means something there.
    pub(super) fn act_in_question(&mut self, action: Action) -> bool {
        if !self.asked.is_open {
            return false;
        }
        let Some(question) = self.question() else {
            return false;
        };
        let (call, pattern) = (question.call, question.pattern.clone());
        match action {
            Action::AnswerOnce => self.answer(call, Answer::Once),
            Action::AnswerAlways => self.answer(call, Answer::Always(pattern)),
            Action::AnswerNo => self.answer(call, Answer::No(None)),
            Action::AnswerPattern => self.type_answer(Typing::Pattern, &pattern),
            Action::AnswerNoWhy => self.type_answer(Typing::Reason, ""),
            Action::QuestionUp => self.asked.top = self.asked.top.saturating_sub(1),
            Action::QuestionDown => self.asked.top += 1,
            Action::QuestionPageUp => self.asked.top = self.asked.top.saturating_sub(10),
            Action::QuestionPageDown => self.asked.top += 10,
            _ => return false,
        }
        true
    }

    /// Refuses what is asked and stops the turn, if a question has the keys.
    pub(super) fn refuse_and_stop(&mut self) -> bool {
        let call = self.asked.call.filter(|_| self.asked.is_open);
        let Some(call) = call else { return false };
        self.answer(call, Answer::No(None));
        self.interrupt();
        true
    }

    fn type_answer(&mut self, typing: Typing, text: &str) {
        let mut editor = Editor::default();
        editor.set(text);
        self.asked.typing = Some((typing, editor));
    }

    /// Gives the keys to the question at once.
    pub(super) fn open_question(&mut self) {
        self.mode = Mode::Input;
        self.asked.is_open = self.asked.call.is_some();
    }

    pub(super) fn answer(&mut self, call: RowRef, answer: Answer) {
        self.give_answer(call, answer, AnsweredBy::User);
    }

    pub(super) fn give_answer(&mut self, call: RowRef, answer: Answer, by: AnsweredBy) {
        let answer = Intent::Answer { call, answer, by };
        self.roster
            .live_mut(call.agent)
            .questions
            .retain(|question| question.call != call);
        self.wishes.push(Wish::Say(call.agent, answer));
    }

    /// Answers the first question of another agent.
    pub(super) fn answer_other(&mut self, make: impl Fn(&Question) -> Answer) {
        let other = self.roster.asking().find(|(id, _)| *id != self.current);
        let question = other.and_then(|(_, known)| known.live.questions.first());
        let answer = question.map(|question| (question.call, make(question)));
        match answer {
            Some((call, answer)) => self.answer(call, answer),
            None => self.say("no other agent asks"),
        }
    }

    /// Draws what is asked above a row. Returns the row that is left above it.
    pub(super) fn draw_question(&mut self, _pane: &Pane, grid: &mut Grid, bottom: u16) -> u16 {
        let mut bottom = bottom;
        if let Some(line) = self.others_line() {
            bottom -= 1;
            grid.line(bottom, 0, &line);
        }
        let Some(question) = self.question() else {
            return bottom;
        };
        if !self.asked.is_open {
            let asks = format!("? {} asks", clean(&question.tool));
            let hints = Hints {
                gap: " · ",
                keys: &[],
                way_out: "Tab to answer",
                look: Look::of(Role::Question),
            };
            bottom -= 1;
            let line = hints.after(&Line::of(asks, Role::Question), self.columns);
            grid.line(bottom, 0, &line);
            return bottom;
        }
        let name_of = |agent| self.name_of(agent);
        let manner = Eye::new(self, self.current).manner(&name_of);
        let mut all = body(question, &manner);
        let answers = self.answer_rows(question);
        let room = if self.is_tight() {
            bottom
        } else {
            bottom * 2 / 3
        };
        let room = usize::from(room).saturating_sub(answers.len() + 1).max(1);
        self.asked.top = self.asked.top.min(all.len().saturating_sub(room));
        let more = all.len().saturating_sub(self.asked.top + room);
        all.drain(..self.asked.top);
        all.truncate(room);
        if more > 0 && !all.is_empty() {
            // The line that makes room for this one is not seen either.
            let text = format!("  … {} more lines · ↓ scrolls", more + 1);
            all.pop();
            all.push(Line::of(text, Role::Faint));
        }
        let rows: Vec<Line> = all.into_iter().chain(answers).collect();
        let height = u16::try_from(rows.len()).unwrap_or(bottom).min(bottom);
        let top = bottom - height;
        for (row, line) in (top..bottom).zip(&rows) {
            grid.fill(row, Role::Text);
            grid.line(row, 0, &cut(line, self.columns, "…"));
        }
        if let Some((_, editor)) = &mut self.asked.typing {
            let label = rows.last().map_or(0, |line| width(&line.text()));
            let label = u16::try_from(label).unwrap_or(0);
            let room = self.columns.saturating_sub(label + 1).max(1);
            let (typed, column) = editor.one_row(room);
            grid.line(bottom - 1, label, &typed);
            grid.cursor = Some((bottom - 1, (label + column).min(self.columns - 1)));
        }
        if self.is_tight() { 0 } else { top }
    }

    /// The row of answers; nothing is preselected.
    fn answer_rows(&self, question: &Question) -> Vec<Line> {
        if let Some((typing, _)) = &self.asked.typing {
            let (label, keys): (_, &[&str]) = match typing {
                Typing::Pattern => ("always allow ", &["Enter allows", "* stands for anything"]),
                Typing::Reason => ("no, because ", &["Enter refuses"]),
            };
            let hints = Hints {
                gap: "  ",
                keys,
                way_out: "Esc back",
                look: Look::of(Role::Faint),
            };
            let hint = hints.after(&Line::default(), self.columns);
            return vec![hint, Line::of(format!("  {label}"), Role::Question)];
        }
        let key = Look::of(Role::Question).with(Look::BOLD);
        let always = format!(
            " always: {} \"{}\"",
            question.tool,
            clean(&question.pattern)
        );
        let answers = [
            ("y", " once".to_owned()),
            ("a", always),
            ("e", " edit that pattern".to_owned()),
            ("n", " no".to_owned()),
            ("r", " no, and say why".to_owned()),
            ("Esc", " no, and stop".to_owned()),
        ];
        let mut rows: Vec<Line> = Vec::new();
        for (letter, what) in answers {
            let answer = [Span::new(letter, key), Span::new(what, Role::Text)];
            let wide: usize = answer.iter().map(|span| width(&span.text)).sum();
            let used = rows.last().map(|row| width(&row.text()));
            match (rows.last_mut(), used) {
                // None is broken in the middle if it fits into a row.
                (Some(row), Some(used)) if used + 3 + wide <= usize::from(self.columns) => {
                    row.spans.push(Span::new(" · ", Role::Faint));
                    row.spans.extend(answer);
                }
                _ => {
                    let indent = [Span::new("  ", Role::Text)];
                    let line = [&indent[..], &answer].concat();
                    rows.extend(wrap(&Line::new(line), self.columns, &indent));
                }
            }
        }
        rows
    }

    /// What other agents ask, in one row.
    fn others_line(&self) -> Option<Line> {
        let others: Vec<_> = self
            .roster
            .asking()
            .filter(|(id, _)| *id != self.current)
            .collect();
        let (_, first) = others.first()?;
        let question = first.live.questions.first()?;
        let text = format!(
            "? {} ask{} · {}: {} \"{}\"",
            others.len(),
            if others.len() == 1 { "s" } else { "" },
            first.branch.agent.name,
            question.tool,
            lines::first_line(&question.shown),
        );
        let hints = Hints {
            gap: "   ",
            keys: &["Alt-Y once", "Alt-A always", "Alt-N no"],
            way_out: "Alt-G go there",
            look: Look::of(Role::Faint),
        };
        let line = Line::of(clean(&text), Role::Question);
        Some(hints.after(&line, self.columns))
    }
}

/// What is asked: tool, directory, and the whole command or change.
pub(super) fn body(question: &Question, manner: &Manner<'_>) -> Vec<Line> {
    let head = Line::new(vec![
        Span::new(
            format!("? {} ", clean(&question.tool)),
            Look::of(Role::Question).with(Look::BOLD),
        ),
        Span::new(format!("in {}", clean(&question.workdir)), Role::Faint),
    ]);
    let mut all = vec![head];
    let indent = [Span::new("  ", Role::Text)];
    for line in clean(&question.shown).lines() {
        let line = Line {
            spans: vec![indent[0].clone(), Span::new(line, Role::Code)],
            lead: 1,
            joined: None,
        };
        all.extend(wrap(&line, manner.width, &indent));
    }
    if let Some(preview) = &question.preview {
        all.extend(rows::diff(preview, manner));
    }
    all
}
