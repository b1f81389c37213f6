//! The question layer: a call that waits for the user's approval, above the input.
//!
//! Single keys answer it, but never a letter that was typed for something else.

use std::time::{Duration, Instant};

use ikigai_core::RowRef;
use ikigai_core::counts::counted;
use ikigai_core::spelling::spell_out;
use ikigai_engine::{Answer, Question};

use super::UiContext;
use super::draw::ItemLayout;
use super::hints::Hints;
use super::key_repeat::KeyRepeat;
use super::layer::{Area, Handled, Layer};
use super::lines::NARROW;
use super::mouse::WHEEL_ROWS;
use super::question_rows::{self, Body};
use crate::input::Editor;
use crate::key::{KeyCode, KeyPress, MouseAction, MouseEvent};
use crate::keys::{self, Action, Meaning};
use crate::line::TextLine;
use crate::look::{Look, Tone};
use crate::paint::Grid;
use crate::text::{clean_line, cut, one_line};
use crate::width::width;

/// A question takes keys only after this time without typing.
const GUARD: Duration = Duration::from_millis(700);

/// Label of a pattern that is typed.
const PATTERN_LABEL: &str = "  always allow ";

/// First question of the current agent.
#[derive(Default)]
pub(super) struct QuestionLayer {
    question: Option<Question>,
    /// True if it takes the keys.
    is_open: bool,
    /// First row of it on the screen.
    top: usize,
    /// Number of its rows on the screen.
    page: usize,
    seen: VisiblePart,
    /// An approving key came before the end was visible.
    is_hurried: bool,
    /// Pattern that the user typed in place of the proposed one.
    pattern: Option<String>,
    body: Option<Body>,
    /// Text that the user types for the answer.
    typing: Option<(Typing, Editor)>,
    /// Approving keys, also those of earlier questions.
    repeat: KeyRepeat,
}

/// Part of a question that was on the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum VisiblePart {
    #[default]
    Beginning,
    /// The end of the call.
    Call,
    /// The end of the pattern too.
    All,
}

/// Text field of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Typing {
    /// Pattern to allow from now on.
    Pattern,
    /// Reason for a refusal.
    Reason,
}

impl UiContext {
    /// Returns the key modes of closed questions, of this agent and of others.
    pub(super) fn question_modes(&self) -> Vec<keys::KeyMode> {
        let own = self.question().map(|_| keys::KeyMode::ClosedQuestion);
        let others = self.other_question().map(|_| keys::KeyMode::Others);
        own.into_iter().chain(others).collect()
    }
}

impl QuestionLayer {
    /// Gives the keys back to the input until the user stops typing.
    pub(super) fn wait(&mut self) {
        self.is_open = false;
    }

    /// Takes the keys at once.
    pub(super) fn open(&mut self) {
        self.is_open = self.question.is_some();
    }

    /// Reports whether the question takes the keys.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Sets the question; another one begins unread and closed.
    pub(super) fn set(&mut self, question: Option<&Question>) {
        if question != self.question.as_ref() {
            *self = Self {
                question: question.cloned(),
                repeat: std::mem::take(&mut self.repeat),
                ..Self::default()
            };
        }
    }

    /// Reports whether the user types the text of an answer.
    pub(super) fn is_typing(&self) -> bool {
        self.typing.is_some()
    }

    /// Follows the questions of the current agent; opens one once the user stops typing.
    pub(super) fn sync(&mut self, ctx: &UiContext, may_open: bool) {
        self.set(ctx.question());
        let opens = self.opens_at(ctx, may_open);
        if opens.is_some_and(|at| ctx.now >= at) {
            self.is_open = true;
        }
    }

    /// Returns the time at which a closed question takes the keys.
    pub(super) fn opens_at(&self, ctx: &UiContext, may_open: bool) -> Option<Instant> {
        let is_closed = self.question.is_some() && !self.is_open;
        let at = ctx.typed_at.map_or(ctx.now, |typed| typed + GUARD);
        (is_closed && may_open).then_some(at)
    }

    /// Returns the time at which the answer of a quick key is due.
    pub(super) fn answers_at(&self) -> Option<Instant> {
        self.repeat.due_at()
    }

    /// Gives an approving answer, unless its key may be the repetition of a held one.
    fn approve(&mut self, call: RowRef, action: Action, ctx: &mut UiContext) {
        if self.repeat.press(call, action, ctx.now) {
            self.give_approval(call, action, ctx);
        }
    }

    fn give_approval(&self, call: RowRef, action: Action, ctx: &mut UiContext) {
        let answer = match action {
            Action::AnswerAlways => Answer::Always(self.pattern()),
            _ => Answer::Once,
        };
        ctx.answer(call, answer);
    }

    fn call(&self) -> Option<RowRef> {
        self.question.as_ref().map(|question| question.call)
    }

    /// Returns the pattern that *always* grants.
    fn pattern(&self) -> String {
        let proposed = || self.question.as_ref().map(|question| &question.pattern);
        let pattern = self.pattern.as_ref().or_else(proposed);
        pattern.cloned().unwrap_or_default()
    }

    fn answer_typed(&mut self, typing: Typing, editor: Editor, ctx: &mut UiContext) {
        let Some(call) = self.call() else {
            return;
        };
        let text = editor.text().trim().to_owned();
        let answer = match typing {
            Typing::Reason if text.is_empty() => Answer::No(None),
            Typing::Reason => Answer::No(Some(text)),
            Typing::Pattern if text.is_empty() => {
                self.typing = Some((typing, editor));
                return ctx.toast("Type a pattern, or press Esc to go back");
            }
            // A pattern that does not fit its row is shown first, and granted by a key.
            Typing::Pattern if width(&spell_out(&text)) > typing_room(ctx) => {
                return self.propose(text, ctx);
            }
            Typing::Pattern => Answer::Always(text),
        };
        ctx.answer(call, answer);
    }

    /// Shows a pattern that was typed in place of the proposed one.
    fn propose(&mut self, pattern: String, ctx: &UiContext) {
        self.pattern = Some(pattern);
        self.body = None;
        self.seen = VisiblePart::Beginning;
        self.lay_out(ctx);
        let body = self.body.as_ref();
        self.top = body.and_then(|body| body.pattern_row).unwrap_or(0);
    }

    fn scroll(&mut self, rows: isize) {
        self.top = self.top.saturating_add_signed(rows);
    }

    fn type_answer(&mut self, typing: Typing, text: &str) {
        let mut editor = Editor::default();
        editor.set(text);
        self.typing = Some((typing, editor));
    }

    /// Lays the question out for the width of the screen, unless that is done.
    fn lay_out(&mut self, ctx: &UiContext) {
        let is_current = |body: &Body| body.columns == ctx.columns;
        if self.body.as_ref().is_some_and(is_current) {
            return;
        }
        let pattern = spell_out(&self.pattern());
        let name_of = |agent| ctx.name_of(agent);
        let question = self.question.as_ref();
        let own = question.map_or(ctx.current, |question| question.call.agent);
        let context = ItemLayout::new(ctx, own).context(&name_of);
        self.body = question.map(|question| Body::new(question, &pattern, &context));
    }

    /// Returns the rows of the question that fit; the last one counts the rest.
    fn visible_rows(&mut self, room: usize, columns: u16) -> Vec<TextLine> {
        let Some(body) = &self.body else {
            return Vec::new();
        };
        let all = body.lines.len();
        self.top = self.top.min(all.saturating_sub(room));
        let left = all - self.top;
        let is_all = left <= room;
        self.page = if is_all || room < 2 { room } else { room - 1 };
        let seen = if is_all {
            VisiblePart::All
        } else if self.top + self.page >= body.call_rows() {
            VisiblePart::Call
        } else {
            VisiblePart::Beginning
        };
        self.seen = self.seen.max(seen);
        self.is_hurried &= self.seen != VisiblePart::All;
        let rows = body.lines.iter().skip(self.top).take(self.page);
        let mut rows: Vec<TextLine> = rows.cloned().collect();
        if !is_all && room >= 2 {
            let more = left - self.page;
            rows.push(more_row(more, self.is_hurried, columns));
        }
        rows
    }

    /// Returns the rows of the possible answers, or of the answer that is typed.
    fn answer_rows(&self, room: u16, columns: u16) -> Vec<TextLine> {
        if let Some((typing, _)) = &self.typing {
            let (label, keys): (_, &[&str]) = match typing {
                Typing::Pattern => (PATTERN_LABEL, &["Enter allow", "* matches anything"]),
                Typing::Reason => ("  Reason: ", &["Enter reject"]),
            };
            let hints = Hints {
                gap: "  ",
                keys,
                way_out: "Esc back",
                look: Look::of(Tone::Faint),
            };
            let hint = hints.after(&TextLine::default(), columns);
            return vec![hint, TextLine::of(label, Tone::Question)];
        }
        let Some(question) = &self.question else {
            return Vec::new();
        };
        let pattern = spell_out(&self.pattern());
        // Two rows are left for the question.
        let most = usize::from(room).saturating_sub(2);
        question_rows::answers(question, &pattern, columns, most)
    }

    fn draw_open(&mut self, area: Area, ctx: &UiContext, grid: &mut Grid) -> Area {
        let bottom = area.bottom();
        let room = if ctx.is_tight() {
            bottom
        } else {
            bottom * 2 / 3
        };
        let top = self.draw_rows(area, room, ctx, grid);
        area.above(if ctx.is_tight() { 0 } else { top })
    }

    /// Draws call and answers in the last `room` rows of an area; returns the first drawn row.
    pub(super) fn draw_rows(
        &mut self,
        area: Area,
        room: u16,
        ctx: &UiContext,
        grid: &mut Grid,
    ) -> u16 {
        let (bottom, columns) = (area.bottom(), area.columns);
        self.lay_out(ctx);
        let answers = self.answer_rows(room, columns);
        let most = usize::from(room);
        let room = most.saturating_sub(answers.len()).max(1);
        let rows = self.visible_rows(room, columns).into_iter().chain(answers);
        let rows: Vec<TextLine> = rows.collect();
        let height = u16::try_from(rows.len().min(most)).unwrap_or(bottom);
        let height = height.min(bottom);
        let top = bottom - height;
        // Without room for all, keep the answers on the screen.
        let hidden = rows.len() - usize::from(height);
        for (row, line) in (top..bottom).zip(rows.iter().skip(hidden)) {
            grid.fill(row, Tone::Text);
            grid.line(row, 0, &cut(line, columns, "…"));
        }
        if let Some((_, editor)) = &mut self.typing {
            let label = rows.last().map_or(0, |line| width(&line.text()));
            let label = u16::try_from(label).unwrap_or(0);
            let room = columns.saturating_sub(label + 1).max(1);
            let (typed, column) = editor.one_row(room);
            grid.line(bottom - 1, label, &typed);
            grid.cursor = Some((bottom - 1, (label + column).min(columns - 1)));
        }
        top
    }
}

impl Layer for QuestionLayer {
    fn bindings(&self, _ctx: &UiContext) -> Vec<keys::KeyMode> {
        vec![keys::KeyMode::Question]
    }

    /// Types the text of an answer.
    fn key(&mut self, key: KeyPress, ctx: &mut UiContext) -> Handled {
        let Some((typing, mut editor)) = self.typing.take() else {
            return Handled::No;
        };
        let meaning = ctx.bindings.meaning(&[keys::KeyMode::Input], &[key]);
        match (meaning, key.code) {
            (Meaning::Action(Action::Send), _) => {
                self.answer_typed(typing, editor, ctx);
                return Handled::Yes;
            }
            (Meaning::Action(Action::Escape | Action::Interrupt), _) => return Handled::Yes,
            (Meaning::Action(Action::Edit(edit)), _) => {
                editor.apply(edit);
            }
            (Meaning::Nothing, KeyCode::Char(character)) if !key.ctrl && !key.alt => {
                editor.insert(character.encode_utf8(&mut [0; 4]));
            }
            _ => {}
        }
        self.typing = Some((typing, editor));
        Handled::Yes
    }

    fn act(&mut self, action: Action, ctx: &mut UiContext) -> Handled {
        let Some(call) = self.call() else {
            return Handled::No;
        };
        let page = isize::try_from(self.page.max(1)).unwrap_or(isize::MAX);
        if !matches!(action, Action::AnswerOnce | Action::AnswerAlways) {
            self.repeat.cancel();
        }
        match action {
            Action::AnswerOnce if self.seen >= VisiblePart::Call => {
                self.approve(call, action, ctx);
            }
            Action::AnswerAlways if self.seen == VisiblePart::All => {
                self.approve(call, action, ctx);
            }
            Action::AnswerNo => ctx.answer(call, Answer::No(None)),
            Action::AnswerPattern if self.seen == VisiblePart::All => {
                self.type_answer(Typing::Pattern, &self.pattern());
            }
            Action::AnswerOnce | Action::AnswerAlways | Action::AnswerPattern => {
                self.is_hurried = true;
            }
            Action::AnswerNoWhy => self.type_answer(Typing::Reason, ""),
            Action::QuestionUp => self.scroll(-1),
            Action::QuestionDown => self.scroll(1),
            Action::QuestionPageUp => self.scroll(-page),
            Action::QuestionPageDown => self.scroll(page),
            Action::QuestionTop => self.scroll(isize::MIN),
            Action::QuestionEnd => self.scroll(isize::MAX),
            Action::Escape => {
                ctx.answer(call, Answer::No(None));
                ctx.interrupt();
            }
            _ => return Handled::No,
        }
        Handled::Yes
    }

    /// Gives the answer of a quick key that no other key followed.
    fn tick(&mut self, ctx: &mut UiContext) {
        if let Some((call, action)) = self.repeat.due(ctx.now)
            && self.is_open
            && self.call() == Some(call)
        {
            self.give_approval(call, action, ctx);
        }
    }

    /// Closes the question: the letters that follow are of a sentence.
    fn text(&mut self, _text: &str, _ctx: &mut UiContext) -> Handled {
        self.repeat.cancel();
        self.wait();
        Handled::No
    }

    fn mouse(&mut self, mouse: MouseEvent, _ctx: &mut UiContext) -> Handled {
        match mouse.action {
            MouseAction::WheelUp if self.is_open => self.scroll(-WHEEL_ROWS),
            MouseAction::WheelDown if self.is_open => self.scroll(WHEEL_ROWS),
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn draw(&mut self, area: Area, ctx: &mut UiContext, grid: &mut Grid) -> Area {
        let mut area = area;
        if let Some(line) = others_line(ctx) {
            area.rows -= 1;
            grid.line(area.bottom(), 0, &line);
        }
        let Some(question) = &self.question else {
            return area;
        };
        if self.is_open {
            return self.draw_open(area, ctx, grid);
        }
        let asks = format!("? {} needs approval", clean_line(&question.tool));
        let hints = Hints {
            gap: " · ",
            keys: &[],
            way_out: "Tab to answer",
            look: Look::of(Tone::Question),
        };
        area.rows -= 1;
        let line = hints.after(&TextLine::of(asks, Tone::Question), area.columns);
        grid.line(area.bottom(), 0, &line);
        area
    }
}

/// Returns the columns for a whole pattern while it is typed.
fn typing_room(ctx: &UiContext) -> usize {
    usize::from(ctx.columns).saturating_sub(width(PATTERN_LABEL) + 1)
}

/// Returns the row about questions of other agents.
fn others_line(ctx: &UiContext) -> Option<TextLine> {
    let others: Vec<_> = ctx
        .roster
        .asking()
        .filter(|(id, _)| *id != ctx.current)
        .collect();
    let (_, first) = others.first()?;
    let question = first.live.questions.first()?;
    let needs = if others.len() == 1 { "needs" } else { "need" };
    let agents = format!("{} {needs}", counted(others.len(), "agent"));
    let name = &first.branch.agent.name;
    let text = if ctx.columns < NARROW {
        format!("? {name} needs approval")
    } else {
        let call = one_line(&question.shown);
        format!("? {agents} approval · {name}: {} \"{call}\"", question.tool)
    };
    // A long call is cut before its keys are.
    let (keys, way_out): (&[&str], _) = if ctx.columns < NARROW {
        (&["Alt-N no"], "Alt-G open")
    } else {
        (&[], "Alt-N no · Alt-G open")
    };
    let hints = Hints {
        gap: "   ",
        keys,
        way_out,
        look: Look::of(Tone::Faint),
    };
    let line = TextLine::of(clean_line(&text), Tone::Question);
    Some(hints.after(&line, ctx.columns))
}

/// Renders the row that counts the rows below, which must be seen before an approval.
fn more_row(more: usize, is_hurried: bool, columns: u16) -> TextLine {
    let lines = counted(more, "more line");
    let (long, short, look) = if is_hurried {
        let long = format!("  … {lines} · scroll to the end first: PgDn or End");
        let look = Look::of(Tone::Warning).with(Look::BOLD);
        (long, format!("  … {more}: PgDn first"), look)
    } else {
        let long = format!("  … {lines} · PgDn");
        (
            long,
            format!("  … {more} more · PgDn"),
            Tone::Question.into(),
        )
    };
    let fits = width(&long) <= usize::from(columns);
    TextLine::of(if fits { long } else { short }, look)
}
