//! A call that waits for the user's answer: shown above the input, answered by single keys, but never
//! by a letter that was typed for something else.

use std::time::{Duration, Instant};

use ikigai_core::RowRef;
use ikigai_core::data::AnsweredBy;
use ikigai_core::spelling::spell_out;
use ikigai_engine::{Answer, Question};

use super::draw::Eye;
use super::hints::Hints;
use super::lines::NARROW;
use super::question_rows::{self, Body};
use super::{App, Mode, Pane};
use crate::input::Editor;
use crate::key::{Code, Key};
use crate::keys::{self, Action, Meaning};
use crate::line::Line;
use crate::look::{Look, Role};
use crate::paint::Grid;
use crate::text::{clean_line, cut, one_line};
use crate::width::width;

/// It takes keys only when nothing was typed for so long.
const GUARD: Duration = Duration::from_millis(700);

/// Label of a pattern that is typed.
const PATTERN_LABEL: &str = "  always allow ";

/// How far a question is.
#[derive(Default)]
pub(super) struct Asked {
    question: Option<Question>,
    /// Whether keys go to it.
    is_open: bool,
    /// The first row of it that is seen.
    top: usize,
    /// Rows of it that were seen at once.
    page: usize,
    seen: Seen,
    /// An approving key came before that.
    is_hurried: bool,
    /// The pattern that the user typed in place of the proposed one.
    pattern: Option<String>,
    body: Option<Body>,
    /// What is typed for the answer.
    typing: Option<(Typing, Editor)>,
}

/// Part of a question that was on the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Seen {
    #[default]
    Beginning,
    /// The end of the call.
    Call,
    /// The end of the pattern too.
    All,
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

    fn call(&self) -> Option<RowRef> {
        self.question.as_ref().map(|question| question.call)
    }

    /// The pattern that *always* grants.
    fn pattern(&self) -> String {
        let proposed = || self.question.as_ref().map(|question| &question.pattern);
        let pattern = self.pattern.as_ref().or_else(proposed);
        pattern.cloned().unwrap_or_default()
    }
}

impl App {
    /// The question of the agent that is shown, if there is one.
    fn question(&self) -> Option<&Question> {
        self.roster.live(self.current)?.questions.first()
    }

    /// Opens a question once nobody types, and forgets one that is answered.
    pub(super) fn mind_question(&mut self) {
        let question = self.question();
        if question != self.asked.question.as_ref() {
            let question = question.cloned();
            self.asked = Asked {
                question,
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
        let is_closed = self.asked.question.is_some() && !self.asked.is_open;
        is_closed && matches!(self.mode, Mode::Input | Mode::Leaving)
    }

    /// Whether there is a question.
    pub(super) fn has_question(&self) -> bool {
        self.asked.question.is_some()
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
        let Some(call) = self.asked.call() else {
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
            // One that cannot be seen as a whole is shown first, and granted by a key.
            Typing::Pattern if width(&spell_out(&text)) > self.typing_room() => {
                return self.propose(text);
            }
            Typing::Pattern => Answer::Always(text),
        };
        self.answer(call, answer);
    }

    /// Columns in which the whole of what is typed can be seen.
    fn typing_room(&self) -> usize {
        usize::from(self.columns).saturating_sub(width(PATTERN_LABEL) + 1)
    }

    /// Shows a pattern that was typed in place of the proposed one.
    fn propose(&mut self, pattern: String) {
        self.asked.pattern = Some(pattern);
        self.asked.body = None;
        self.asked.seen = Seen::Beginning;
        self.lay_out_question();
        let body = self.asked.body.as_ref();
        self.asked.top = body.and_then(|body| body.pattern_row).unwrap_or(0);
    }

    /// Does what a key means for an open question; says whether it means something there.
    pub(super) fn act_in_question(&mut self, action: Action) -> bool {
        if !self.asked.is_open {
            return false;
        }
        let Some(call) = self.asked.call() else {
            return false;
        };
        let page = isize::try_from(self.asked.page.max(1)).unwrap_or(isize::MAX);
        match action {
            Action::AnswerOnce if self.has_seen_call() => self.answer(call, Answer::Once),
            Action::AnswerAlways if self.has_seen_end() => {
                self.answer(call, Answer::Always(self.asked.pattern()));
            }
            Action::AnswerNo => self.answer(call, Answer::No(None)),
            Action::AnswerPattern if self.has_seen_end() => {
                self.type_answer(Typing::Pattern, &self.asked.pattern());
            }
            Action::AnswerOnce | Action::AnswerAlways | Action::AnswerPattern => {
                self.asked.is_hurried = true;
            }
            Action::AnswerNoWhy => self.type_answer(Typing::Reason, ""),
            Action::QuestionUp => drop(self.scroll_question(-1)),
            Action::QuestionDown => drop(self.scroll_question(1)),
            Action::QuestionPageUp => drop(self.scroll_question(-page)),
            Action::QuestionPageDown => drop(self.scroll_question(page)),
            Action::QuestionTop => drop(self.scroll_question(isize::MIN)),
            Action::QuestionEnd => drop(self.scroll_question(isize::MAX)),
            _ => return false,
        }
        true
    }

    /// Scrolls an open question by a number of rows; returns whether there is one.
    pub(super) fn scroll_question(&mut self, rows: isize) -> bool {
        if self.asked.is_open {
            self.asked.top = self.asked.top.saturating_add_signed(rows);
        }
        self.asked.is_open
    }

    /// True if the end of the call was on the screen.
    fn has_seen_call(&mut self) -> bool {
        self.has_seen_end() || self.asked.seen == Seen::Call
    }

    /// True if the end of the question was on the screen, the pattern included.
    fn has_seen_end(&mut self) -> bool {
        if self.asked.seen != Seen::All {
            // Without a terminal nothing was drawn since the last key.
            self.draw(&mut Grid::default());
        }
        self.asked.seen == Seen::All
    }

    /// Refuses what is asked and stops the turn, if a question has the keys.
    pub(super) fn refuse_and_stop(&mut self) -> bool {
        let call = self.asked.call().filter(|_| self.asked.is_open);
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
        self.asked.is_open = self.asked.question.is_some();
    }

    pub(super) fn answer(&mut self, call: RowRef, answer: Answer) {
        self.give_answer(call, answer, AnsweredBy::User);
    }

    /// Refuses the first question of another agent.
    pub(super) fn refuse_other(&mut self) {
        let other = self.roster.asking().find(|(id, _)| *id != self.current);
        let question = other.and_then(|(_, known)| known.live.questions.first());
        match question.map(|question| question.call) {
            Some(call) => self.answer(call, Answer::No(None)),
            None => self.say("no other agent asks"),
        }
    }

    /// Lays the question out for the width of the screen, unless that is done.
    fn lay_out_question(&mut self) {
        let columns = self.columns;
        let is_current = |body: &Body| body.columns == columns;
        if self.asked.body.as_ref().is_some_and(is_current) {
            return;
        }
        let pattern = spell_out(&self.asked.pattern());
        let name_of = |agent| self.name_of(agent);
        let manner = Eye::new(self, self.current).manner(&name_of);
        let question = self.asked.question.as_ref();
        let body = question.map(|question| Body::new(question, &pattern, &manner));
        self.asked.body = body;
    }

    /// Draws what is asked above a row. Returns the row that is left above it.
    pub(super) fn draw_question(&mut self, _pane: &Pane, grid: &mut Grid, bottom: u16) -> u16 {
        let mut bottom = bottom;
        if let Some(line) = self.others_line() {
            bottom -= 1;
            grid.line(bottom, 0, &line);
        }
        let Some(question) = &self.asked.question else {
            return bottom;
        };
        if !self.asked.is_open {
            let asks = format!("? {} asks", clean_line(&question.tool));
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
        self.lay_out_question();
        let answers = self.answer_rows(bottom);
        let room = if self.is_tight() {
            bottom
        } else {
            bottom * 2 / 3
        };
        let room = usize::from(room).saturating_sub(answers.len()).max(1);
        let rows = self.visible_rows(room).into_iter().chain(answers);
        let rows: Vec<Line> = rows.collect();
        let height = u16::try_from(rows.len()).unwrap_or(bottom).min(bottom);
        let top = bottom - height;
        // If there is no room for all, the answers are what is seen.
        let hidden = rows.len() - usize::from(height);
        for (row, line) in (top..bottom).zip(rows.iter().skip(hidden)) {
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

    /// Rows of the question that fit into `room`, the last of which counts those that follow.
    fn visible_rows(&mut self, room: usize) -> Vec<Line> {
        let asked = &mut self.asked;
        let Some(body) = &asked.body else {
            return Vec::new();
        };
        let all = body.lines.len();
        asked.top = asked.top.min(all.saturating_sub(room));
        let left = all - asked.top;
        let is_all = left <= room;
        asked.page = if is_all || room < 2 { room } else { room - 1 };
        let seen = if is_all {
            Seen::All
        } else if asked.top + asked.page >= body.call_rows() {
            Seen::Call
        } else {
            Seen::Beginning
        };
        asked.seen = asked.seen.max(seen);
        asked.is_hurried &= asked.seen != Seen::All;
        let rows = body.lines.iter().skip(asked.top).take(asked.page);
        let mut rows: Vec<Line> = rows.cloned().collect();
        if !is_all && room >= 2 {
            let more = left - asked.page;
            rows.push(more_row(more, asked.is_hurried, self.columns));
        }
        rows
    }

    /// The row of answers, or of the answer that is typed.
    fn answer_rows(&self, bottom: u16) -> Vec<Line> {
        if let Some((typing, _)) = &self.asked.typing {
            let (label, keys): (_, &[&str]) = match typing {
                Typing::Pattern => (PATTERN_LABEL, &["Enter allows", "* stands for anything"]),
                Typing::Reason => ("  no, because ", &["Enter refuses"]),
            };
            let hints = Hints {
                gap: "  ",
                keys,
                way_out: "Esc back",
                look: Look::of(Role::Faint),
            };
            let hint = hints.after(&Line::default(), self.columns);
            return vec![hint, Line::of(label, Role::Question)];
        }
        let Some(question) = &self.asked.question else {
            return Vec::new();
        };
        let pattern = spell_out(&self.asked.pattern());
        // Two rows of the question are seen beside them.
        let most = usize::from(bottom).saturating_sub(2);
        question_rows::answers(question, &pattern, self.columns, most)
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
            one_line(&question.shown),
        );
        // A long call is cut before its keys are.
        let (keys, way_out): (&[&str], _) = if self.columns < NARROW {
            (&["Alt-N no"], "Alt-G open")
        } else {
            (&[], "Alt-N no · Alt-G open")
        };
        let hints = Hints {
            gap: "   ",
            keys,
            way_out,
            look: Look::of(Role::Faint),
        };
        let line = Line::of(clean_line(&text), Role::Question);
        Some(hints.after(&line, self.columns))
    }
}

/// Row that counts the rows that follow, and says that they come before an approval.
fn more_row(more: usize, is_hurried: bool, columns: u16) -> Line {
    let lines = if more == 1 { "line" } else { "lines" };
    let (long, short, look) = if is_hurried {
        let long = format!("  … {more} more {lines} · read to the end first: PgDn, End");
        let look = Look::of(Role::Warning).with(Look::BOLD);
        (long, format!("  … {more}: PgDn first"), look)
    } else {
        let long = format!("  … {more} more {lines} · PgDn");
        (
            long,
            format!("  … {more} more · PgDn"),
            Role::Question.into(),
        )
    };
    let fits = width(&long) <= usize::from(columns);
    Line::of(if fits { long } else { short }, look)
}
