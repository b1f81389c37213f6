//! Layer of the inbox: list above, the selected entry below.

use std::time::{Duration, Instant};

use ikigai_core::RowRef;
use ikigai_engine::InboxKind;

use super::super::layer::{Area, Handled, Layer};
use super::super::mouse::WHEEL_ROWS;
use super::super::question::QuestionLayer;
use super::super::{EngineRequest, UiContext};
use super::{InboxItem, waiting};
use crate::key::{KeyPress, MouseAction, MouseEvent};
use crate::keys::{self, Action};
use crate::line::TextLine;
use crate::paint::Grid;

/// Time that a question must be on the screen before it takes an answer.
const LOOKED_AT: Duration = Duration::from_millis(700);

/// The inbox on the screen.
#[derive(Default)]
pub(in crate::app) struct InboxLayer {
    selected: Option<RowRef>,
    /// Position of the selection, which an entry that takes its place inherits.
    place: usize,
    /// The question of the selected entry, and since when it is on the screen.
    pub(super) question: QuestionLayer,
    since: Option<(RowRef, Instant)>,
    /// Entry whose question was requested from the process that asks it.
    requested: Option<RowRef>,
    /// The selected entry laid out, without a question, and for how many columns.
    pub(super) body: Option<(RowRef, u16, Vec<TextLine>)>,
    /// First row of it on the screen, and number of rows.
    pub(super) top: usize,
    pub(super) page: usize,
    /// The end of the selected entry was on the screen.
    pub(super) is_end_seen: bool,
    /// First entry of the list on the screen.
    pub(super) list_top: usize,
    /// Entries by row of the last frame.
    pub(super) drawn: Vec<Option<RowRef>>,
}

impl InboxLayer {
    /// Opens the inbox at its newest entry.
    pub(in crate::app) fn open(ctx: &mut UiContext) {
        ctx.selection = None;
        ctx.toast = None;
        let mut inbox = Self::default();
        inbox.follow(ctx);
        inbox.request_question(ctx);
        ctx.open(inbox);
    }

    /// Returns the index of the selected entry.
    pub(super) fn index(&self, items: &[InboxItem<'_>]) -> Option<usize> {
        let found = items
            .iter()
            .position(|item| Some(item.row) == self.selected);
        found.or_else(|| items.len().checked_sub(1).map(|last| self.place.min(last)))
    }

    /// Follows the entries: another one takes the place of a selected one that is gone.
    pub(super) fn follow(&mut self, ctx: &UiContext) {
        let items = waiting(ctx);
        let index = self.index(&items);
        let item = index.and_then(|index| items.get(index));
        let row = item.map(|item| item.row);
        if row != self.selected {
            self.top = 0;
            self.is_end_seen = false;
            self.body = None;
        }
        self.selected = row;
        self.place = index.unwrap_or(0);
        self.question.set(item.and_then(|item| item.question));
        self.question.open();
        if self.since.map(|(shown, _)| shown) != row {
            self.since = None;
        }
    }

    /// Requests the question of the selected entry, if another process asks it.
    fn request_question(&mut self, ctx: &mut UiContext) {
        let items = waiting(ctx);
        let item = self.index(&items).and_then(|index| items.get(index));
        let is_foreign =
            |item: &&InboxItem<'_>| item.kind == InboxKind::Question && item.question.is_none();
        let row = item.filter(is_foreign).map(|item| item.row);
        let Some(row) = row.filter(|row| self.requested != Some(*row)) else {
            return;
        };
        self.requested = Some(row);
        ctx.effects.push(EngineRequest::AskHolder(row.agent));
    }

    /// Says where the question of the selected entry is to be answered.
    fn name_holder(&self, ctx: &mut UiContext) {
        let items = waiting(ctx);
        let item = items.iter().find(|item| Some(item.row) == self.selected);
        let entry = item.filter(|item| item.kind == InboxKind::Question);
        let entry = entry.and_then(|item| item.entry);
        let text = match entry.and_then(|entry| entry.agent.owner.as_ref()) {
            Some(owner) => format!(
                "Answer it in the ikigai that asks: pid {} on {}",
                owner.pid, owner.host
            ),
            None => "No question to answer here. Enter opens the agent".to_owned(),
        };
        ctx.toast(text);
    }

    /// Notes that the selected entry is on the screen.
    pub(super) fn note_shown(&mut self, ctx: &UiContext) {
        if let Some(row) = self.selected {
            self.since.get_or_insert((row, ctx.now));
        }
    }

    /// Reports whether the question was on the screen long enough to be answered.
    fn is_looked_at(&self, ctx: &UiContext) -> bool {
        let is_over = |since: Instant| ctx.now.saturating_duration_since(since) >= LOOKED_AT;
        self.since.is_some_and(|(_, since)| is_over(since))
    }

    fn select(&mut self, place: usize, ctx: &mut UiContext) {
        self.leave_entry(ctx);
        let items = waiting(ctx);
        let last = items.len().saturating_sub(1);
        self.place = place.min(last);
        self.selected = items.get(self.place).map(|item| item.row);
        (self.top, self.is_end_seen, self.body) = (0, false, None);
        self.follow(ctx);
    }

    fn previous(&mut self, ctx: &mut UiContext) {
        if let Some(place) = self.place.checked_sub(1) {
            self.select(place, ctx);
        }
    }

    /// Selects the next entry; after the last one the first, if `wraps`.
    fn next(&mut self, wraps: bool, ctx: &mut UiContext) {
        // A report that is read leaves its place to the next entry.
        let is_gone = self.leave_entry(ctx);
        let place = self.place + usize::from(!is_gone);
        let ends = wraps && place >= waiting(ctx).len();
        self.select(if ends { 0 } else { place }, ctx);
    }

    /// Marks the selected report as read if its end was on the screen; returns true then.
    fn leave_entry(&mut self, ctx: &mut UiContext) -> bool {
        let Some(row) = self.selected.filter(|_| self.is_end_seen) else {
            return false;
        };
        let items = waiting(ctx);
        let is_report = |it: &InboxItem<'_>| it.row == row && it.kind == InboxKind::Report;
        let is_read = items.iter().any(is_report);
        if is_read {
            ctx.inbox.remove(row);
            ctx.effects.push(EngineRequest::MarkRead(row));
        }
        is_read
    }

    fn dismiss(&mut self, ctx: &mut UiContext) {
        let items = waiting(ctx);
        let item = self
            .selected
            .and_then(|row| items.iter().find(|it| it.row == row));
        let Some(item) = item else {
            return;
        };
        if item.kind == InboxKind::Question {
            return ctx.toast("Questions cannot be dismissed. Answer it");
        }
        let row = item.row;
        if let Some(entry) = ctx.inbox.remove(row) {
            ctx.effects.push(EngineRequest::Dismiss(Box::new(entry)));
        }
        self.follow(ctx);
    }

    fn go(&mut self, ctx: &mut UiContext) {
        let items = waiting(ctx);
        let item = self
            .selected
            .and_then(|row| items.iter().find(|it| it.row == row));
        let Some(agent) = item.map(|item| item.agent) else {
            return ctx.close();
        };
        self.leave_entry(ctx);
        if agent == ctx.current {
            ctx.close();
        } else {
            ctx.effects.push(EngineRequest::Show(agent));
        }
    }

    fn scroll(&mut self, rows: isize) {
        self.top = self.top.saturating_add_signed(rows);
    }

    /// Scrolls the selected entry; a question by its own keys.
    fn scroll_by(&mut self, action: Action, ctx: &mut UiContext) {
        let page = isize::try_from(self.page.max(1)).unwrap_or(isize::MAX);
        let (of_question, rows) = match action {
            Action::InboxPageUp => (Action::QuestionPageUp, -page),
            Action::InboxPageDown => (Action::QuestionPageDown, page),
            Action::InboxTop => (Action::QuestionTop, isize::MIN),
            _ => (Action::QuestionEnd, isize::MAX),
        };
        if self.question.act(of_question, ctx) == Handled::No {
            self.scroll(rows);
        }
    }
}

impl Layer for InboxLayer {
    fn bindings(&self, _ctx: &UiContext) -> Vec<keys::KeyMode> {
        vec![keys::KeyMode::Inbox, keys::KeyMode::Question]
    }

    /// Types the text of an answer.
    fn key(&mut self, key: KeyPress, ctx: &mut UiContext) -> Handled {
        self.follow(ctx);
        if !self.question.is_typing() {
            return Handled::No;
        }
        let handled = self.question.key(key, ctx);
        self.follow(ctx);
        handled
    }

    fn act(&mut self, action: Action, ctx: &mut UiContext) -> Handled {
        match action {
            Action::Inbox => self.next(true, ctx),
            Action::InboxUp => self.previous(ctx),
            Action::InboxDown => self.next(false, ctx),
            Action::InboxPageUp | Action::InboxPageDown | Action::InboxTop | Action::InboxEnd => {
                self.scroll_by(action, ctx);
            }
            Action::InboxGo => self.go(ctx),
            Action::InboxDismiss => self.dismiss(ctx),
            Action::InboxLeave => {
                self.leave_entry(ctx);
                ctx.close();
            }
            Action::AnswerOnce
            | Action::AnswerAlways
            | Action::AnswerPattern
            | Action::AnswerNo
            | Action::AnswerNoWhy => {
                if self.selected.is_none() {
                    return Handled::Yes;
                }
                if !self.is_looked_at(ctx) {
                    ctx.toast("Wait a moment: this entry just appeared");
                } else if self.question.act(action, ctx) == Handled::No {
                    self.name_holder(ctx);
                }
                self.follow(ctx);
            }
            _ => return Handled::No,
        }
        self.request_question(ctx);
        Handled::Yes
    }

    fn mouse(&mut self, mouse: MouseEvent, ctx: &mut UiContext) -> Handled {
        let rows = match mouse.action {
            MouseAction::WheelUp => -WHEEL_ROWS,
            MouseAction::WheelDown => WHEEL_ROWS,
            MouseAction::Release => {
                let row = self.drawn.get(usize::from(mouse.row)).copied().flatten();
                let items = waiting(ctx);
                let place = row.and_then(|row| items.iter().position(|it| it.row == row));
                if let Some(place) = place {
                    self.select(place, ctx);
                    self.request_question(ctx);
                }
                return Handled::Yes;
            }
            MouseAction::Press | MouseAction::Drag => return Handled::Yes,
        };
        if self.question.mouse(mouse, ctx) == Handled::No {
            self.scroll(rows);
        }
        Handled::Yes
    }

    fn covers_input(&self) -> bool {
        true
    }

    fn draw(&mut self, area: Area, ctx: &mut UiContext, grid: &mut Grid) -> Area {
        self.follow(ctx);
        self.draw_inbox(ctx, grid);
        area.above(area.row)
    }

    /// Gives the answer of a quick key that no other key followed.
    fn tick(&mut self, ctx: &mut UiContext) {
        self.question.tick(ctx);
        self.follow(ctx);
    }

    fn next_tick(&self, _ctx: &UiContext) -> Option<Instant> {
        self.question.answers_at()
    }

    fn refresh(&mut self, ctx: &mut UiContext) {
        self.follow(ctx);
        self.request_question(ctx);
    }
}
