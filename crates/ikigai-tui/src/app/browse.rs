//! Browse mode: a cursor over whole events, and actions on the event at the cursor.

use std::time::Instant;

use ikigai_core::counts::counted;
use ikigai_core::data::{self, RewindData};
use ikigai_core::view::Entry;
use ikigai_core::{Kind, Row, RowRef};

use super::layer::{Area, Handled, Layer};
use super::line_prompt::{LinePrompt, PromptOutcome};
use super::needle::Needle;
use super::{LoadRequest, TerminalAction, UiContext, event, mouse};
use crate::key::{KeyPress, MouseEvent};
use crate::keys::{self, Action};
use crate::look::Tone;
use crate::paint::Grid;
use crate::scrollback::{Id, ItemContent, ScrollbackItem, join_rows};

/// Most pages read for one key press.
const MOST_PAGES: usize = 50;

/// Most rewinds that `/history` unfolds.
const MOST_UNFOLDED: usize = 8;

/// Cursor over events of the current agent.
pub(super) struct Browse {
    /// Event at the cursor.
    pub(super) cursor: Id,
    /// Text to find.
    pub(super) find: String,
    /// Search that reads older pages.
    pub(super) seek: Option<Seek>,
    /// Pages that it may still read.
    pages: usize,
    /// A click opened it, so that letters may be meant for the input.
    is_clicked: bool,
    prompt: Option<(BrowsePrompt, LinePrompt)>,
}

/// Prompt of browse mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BrowsePrompt {
    /// Text to find.
    Find,
    /// Label of a mark.
    Label,
}

/// Target of a search in older events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seek {
    /// The event above.
    Event,
    /// The user's message above.
    Message,
    /// The text to find.
    Text,
    /// The same for the first time: newer events follow if no older one has it.
    NewText,
    /// The first event.
    First,
}

impl Browse {
    /// Opens browse mode, at an event or at the last one.
    pub(super) fn open(ctx: &mut UiContext, at: Option<Id>) {
        if let Some(browse) = Self::at(ctx, at) {
            ctx.open(browse);
        }
    }

    /// Opens browse mode at an event that a search found.
    pub(super) fn open_at_match(ctx: &mut UiContext, at: Option<Id>, found: String) {
        let Some(mut browse) = Self::at(ctx, at) else {
            return;
        };
        browse.is_clicked = false;
        browse.find = found;
        browse.show_match(browse.cursor, ctx);
        ctx.open(browse);
    }

    /// Opens browse mode with the rows that rewinds hid.
    pub(super) fn open_all(ctx: &mut UiContext) {
        Self::open(ctx, None);
        let rewinds = ctx.pane().map_or_else(Vec::new, |pane| {
            let items = pane.scrollback.items().iter().rev();
            let rewinds = items.filter_map(|item| left_by(item).map(|_| item.id.row()));
            let folded = rewinds.flatten().filter(|row| !pane.shows_left(*row));
            folded.take(MOST_UNFOLDED).collect()
        });
        ctx.effects
            .extend(rewinds.into_iter().map(LoadRequest::RewoundRows));
    }

    fn at(ctx: &mut UiContext, at: Option<Id>) -> Option<Self> {
        let is_clicked = at.is_some();
        let items = ctx.pane().map_or(&[][..], |pane| pane.scrollback.items());
        let last = || items.iter().rev().find(|item| is_event(item));
        let Some(cursor) = at.or_else(|| last().map(|item| item.id)) else {
            ctx.toast("Nothing to browse yet");
            return None;
        };
        let browse = Self {
            cursor,
            find: String::new(),
            seek: None,
            pages: 0,
            is_clicked,
            prompt: None,
        };
        ctx.selection = None;
        ctx.toast = None;
        ctx.with_pane(|pane, eye| pane.scrollback.hold(eye));
        browse.reveal(ctx);
        Some(browse)
    }

    /// Moves to the older event that is sought, reading older pages if needed.
    fn seek(&mut self, seek: Seek, ctx: &mut UiContext) {
        if seek == Seek::Event && self.scroll_within(-1, ctx) {
            return;
        }
        let pages = self.pages;
        let Some(pane) = ctx.pane() else { return };
        let is_complete = pane.is_complete;
        let find = Needle::new(&self.find);
        if matches!(seek, Seek::Text | Seek::NewText) && find.is_nothing() {
            return ctx.toast("No search yet: press /");
        }
        let items = pane.scrollback.items();
        let place = pane.scrollback.place(self.cursor).unwrap_or(0);
        let above = items.get(..place).unwrap_or_default();
        let found = match seek {
            Seek::Event => above.iter().rev().find(|item| is_event(item)),
            Seek::Message => above.iter().rev().find(|item| is_message(item)),
            Seek::Text | Seek::NewText => above.iter().rev().find(|item| is_in(item, &find)),
            Seek::First => items.iter().find(|item| is_event(item)),
        };
        let found = found.map(|item| item.id);
        if let Some(id) = found {
            self.cursor = id;
            match seek {
                Seek::Text | Seek::NewText => self.show_match(id, ctx),
                Seek::Event => {
                    ctx.with_pane(|pane, eye| pane.scrollback.reveal_end(id, eye));
                }
                Seek::Message | Seek::First => self.reveal(ctx),
            }
        }
        let is_there = found.is_some() && (seek != Seek::First || is_complete);
        let reads_on = !is_there && !is_complete && pages > 0;
        self.seek = reads_on.then_some(seek);
        self.pages = pages.saturating_sub(usize::from(reads_on));
        if reads_on {
            ctx.effects.push(LoadRequest::OlderRows);
        } else if !is_there && is_complete && seek == Seek::NewText {
            self.find_below(ctx);
        } else if !is_there {
            ctx.toast(match (seek, is_complete) {
                (Seek::Event | Seek::First, true) => "This is the first event",
                (Seek::Message, true) => "No earlier message of yours",
                (Seek::Text | Seek::NewText, true) => "No match above. N searches below",
                (_, false) => "No match so far. Repeat to search further",
            });
        }
    }

    fn go_down(&mut self, is_wanted: impl Fn(&ScrollbackItem) -> bool, ctx: &mut UiContext) {
        if self.scroll_within(1, ctx) {
            return;
        }
        let found = self.below(ctx).find(|item| is_wanted(item));
        match found.map(|item| item.id) {
            Some(id) => self.move_to(id, ctx),
            None => go_to_end(ctx),
        }
        ctx.want_newer();
    }

    fn go_last(&mut self, ctx: &mut UiContext) {
        ctx.with_pane(|pane, _| pane.come_back());
        let items = ctx.pane().map_or(&[][..], |pane| pane.scrollback.items());
        let last = items.iter().rev().find(|item| is_event(item));
        if let Some(id) = last.map(|item| item.id) {
            self.move_to(id, ctx);
        }
        go_to_end(ctx);
    }

    fn below<'a>(&self, ctx: &'a UiContext) -> impl Iterator<Item = &'a ScrollbackItem> + use<'a> {
        let items = ctx.pane().map_or(&[][..], |pane| {
            let place = pane.scrollback.place(self.cursor);
            let next = place.map_or(0, |place| place + 1);
            pane.scrollback.items().get(next..).unwrap_or_default()
        });
        items.iter()
    }

    /// Scrolls if more of the event lies beyond the edge of the screen.
    fn scroll_within(&self, direction: isize, ctx: &mut UiContext) -> bool {
        let half = isize::try_from(ctx.rows / 2).unwrap_or(1).max(1);
        ctx.with_pane(|pane, eye| {
            let hidden = pane.scrollback.hidden_rows(self.cursor, eye);
            let (above, below) = hidden.unwrap_or_default();
            let rows = if direction < 0 { above } else { below };
            let rows = isize::try_from(rows).unwrap_or(half).min(half);
            if rows > 0 {
                pane.scrollback.scroll(rows * direction, eye);
            }
            rows > 0
        })
        .unwrap_or(false)
    }

    fn move_to(&mut self, id: Id, ctx: &mut UiContext) {
        self.cursor = id;
        self.reveal(ctx);
    }

    fn reveal(&self, ctx: &mut UiContext) {
        ctx.with_pane(|pane, eye| pane.scrollback.reveal(self.cursor, eye));
    }

    /// Folds or unfolds the event. A rewind shows the rows that it hid.
    fn unfold(&self, ctx: &mut UiContext) {
        let item = ctx
            .pane()
            .and_then(|pane| pane.scrollback.item(self.cursor));
        if let (Id::Row(row), Some(_)) = (self.cursor, item.and_then(left_by)) {
            ctx.effects.push(LoadRequest::RewoundRows(row));
        } else {
            ctx.with_pane(|pane, _| pane.scrollback.toggle(self.cursor));
            self.reveal(ctx);
        }
    }

    /// Finds text: in older events first.
    fn find(&mut self, text: String, ctx: &mut UiContext) {
        self.find = text;
        self.pages = MOST_PAGES;
        let needle = Needle::new(&self.find);
        if needle.is_nothing() {
            return;
        }
        let here = ctx
            .pane()
            .and_then(|pane| pane.scrollback.item(self.cursor));
        if here.is_some_and(|item| is_in(item, &needle)) {
            return self.show_match(self.cursor, ctx);
        }
        self.seek(Seek::NewText, ctx);
    }

    fn find_below(&mut self, ctx: &mut UiContext) {
        let needle = Needle::new(&self.find);
        if needle.is_nothing() {
            return ctx.toast("No search yet: press /");
        }
        let found = self.below(ctx).find(|item| is_in(item, &needle));
        match found.map(|item| item.id) {
            Some(id) => {
                self.move_to(id, ctx);
                self.show_match(id, ctx);
            }
            None => ctx.toast("No match below"),
        }
    }

    /// Unfolds an event if its match is folded away, and scrolls to the match.
    fn show_match(&self, id: Id, ctx: &mut UiContext) {
        let needle = Needle::new(&self.find);
        ctx.with_pane(|pane, eye| {
            let mut lines = pane.scrollback.lines(id, eye);
            let all = join_rows(lines.iter().map(|line| (line, 0, usize::MAX)));
            if !needle.is_in(&all) {
                pane.scrollback.toggle(id);
                lines = pane.scrollback.lines(id, eye);
            }
            let row = lines.iter().position(|line| needle.is_in(&line.text()));
            pane.scrollback.reveal(id, eye);
            if let Some(row) = row {
                pane.scrollback.reveal_row(id, row, eye);
            }
        });
    }

    fn row(&self, ctx: &UiContext) -> Option<Row> {
        let item = ctx.pane()?.scrollback.item(self.cursor)?;
        row_of(item).cloned()
    }

    fn copy_event(&self, as_markdown: bool, ctx: &mut UiContext) {
        let Some(row) = self.row(ctx) else {
            return;
        };
        let text = if as_markdown {
            event::markdown(&row)
        } else {
            event::text(&row)
        };
        if text.is_empty() {
            return ctx.toast("No text to copy");
        }
        let count = counted(text.chars().count(), "character");
        let how = if as_markdown { " as Markdown" } else { "" };
        ctx.toast(format!("Copied {count}{how}"));
        ctx.effects.push(TerminalAction::Copy(text));
    }

    fn rewind_here(&self, ctx: &mut UiContext) {
        let Some(row) = self.row(ctx) else {
            return;
        };
        // On a rewind the target is the row that it left.
        let rewind: RewindData = data::read(row.data.as_deref());
        let is_rewind = row.kind.read_as() == Some(Kind::Rewind);
        let target = rewind.from.filter(|_| is_rewind);
        let target = target.unwrap_or_else(|| with_its_cost(row.at, ctx));
        run(format!("/rewind {}", ctx.row_name(target)), ctx);
    }

    fn edit_here(&self, ctx: &mut UiContext) {
        let Some(row) = self.row(ctx) else {
            return;
        };
        if row.kind.read_as() == Some(Kind::User) {
            run(format!("/rewind {}", ctx.row_name(row.at)), ctx);
        } else {
            ctx.toast("Only your messages can be edited. [ for the previous one");
        }
    }

    fn fork_here(&self, ctx: &mut UiContext) {
        if let Some(row) = self.row(ctx) {
            let at = ctx.row_name(with_its_cost(row.at, ctx));
            run(format!("/fork --at {at} --go"), ctx);
        }
    }

    /// Requires a second press after a click; returns true if it does.
    fn needs_second_press(&mut self, action: Action, ctx: &mut UiContext) -> bool {
        let changes = [
            (Action::BrowseRewind, "rewind to here"),
            (Action::BrowseEdit, "rewind and edit it"),
            (Action::BrowseFork, "fork here"),
        ];
        let is_clicked = std::mem::take(&mut self.is_clicked);
        let change = changes.iter().find(|(change, _)| *change == action);
        let Some((_, what)) = change.filter(|_| is_clicked) else {
            return false;
        };
        ctx.toast(format!("Press again to {what}. Esc back to the input"));
        true
    }

    fn ask(&mut self, purpose: BrowsePrompt, title: &str, text: &str) {
        self.prompt = Some((purpose, LinePrompt::new(title, text)));
    }
}

impl Layer for Browse {
    fn bindings(&self, ctx: &UiContext) -> Vec<keys::KeyMode> {
        let mut modes = ctx.question_modes();
        modes.push(keys::KeyMode::Browse);
        modes
    }

    fn key(&mut self, key: KeyPress, ctx: &mut UiContext) -> Handled {
        let Some((purpose, prompt)) = &mut self.prompt else {
            return Handled::No;
        };
        let purpose = *purpose;
        match prompt.key(key, ctx) {
            PromptOutcome::Open => return Handled::Yes,
            PromptOutcome::Cancelled => {}
            PromptOutcome::Entered(text) => match purpose {
                BrowsePrompt::Find => self.find(text, ctx),
                // A mark is always the newest row.
                BrowsePrompt::Label => ctx.command(format!("/mark {text}").trim_end().to_owned()),
            },
        }
        self.prompt = None;
        Handled::Yes
    }

    fn act(&mut self, action: Action, ctx: &mut UiContext) -> Handled {
        self.seek = None;
        self.pages = MOST_PAGES;
        if self.needs_second_press(action, ctx) {
            return Handled::Yes;
        }
        match action {
            Action::BrowseUp => self.seek(Seek::Event, ctx),
            Action::BrowseDown => self.go_down(is_event, ctx),
            Action::BrowseMessageUp => self.seek(Seek::Message, ctx),
            Action::BrowseMessageDown => self.go_down(is_message, ctx),
            Action::BrowseFirst => self.seek(Seek::First, ctx),
            Action::BrowseLast => self.go_last(ctx),
            Action::BrowseUnfold => self.unfold(ctx),
            Action::BrowseUnfoldAll => {
                ctx.with_pane(|pane, _| pane.scrollback.toggle_all());
                self.reveal(ctx);
            }
            Action::BrowseFind => {
                let text = self.find.clone();
                self.ask(BrowsePrompt::Find, "find:", &text);
            }
            Action::BrowseFindNext => self.seek(Seek::Text, ctx),
            Action::BrowseFindPrevious => self.find_below(ctx),
            Action::BrowseCopy => self.copy_event(false, ctx),
            Action::BrowseCopyMarkdown => self.copy_event(true, ctx),
            Action::BrowseRewind => self.rewind_here(ctx),
            Action::BrowseEdit => self.edit_here(ctx),
            Action::BrowseFork => self.fork_here(ctx),
            Action::BrowseMark => {
                let title = "label of the mark (optional):";
                self.ask(BrowsePrompt::Label, title, "");
            }
            Action::BrowsePager => {
                let text = self.row(ctx).map(|row| event::all_text(&row));
                ctx.effects.extend(text.map(TerminalAction::Page));
            }
            Action::BrowseLeave => leave(ctx),
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn paste(&mut self, text: &str, _ctx: &mut UiContext) -> Handled {
        let prompt = self.prompt.as_mut();
        Handled::from(prompt.map(|(_, prompt)| prompt.paste(text)).is_some())
    }

    fn mouse(&mut self, mouse: MouseEvent, ctx: &mut UiContext) -> Handled {
        if let Some(id) = mouse::act(mouse, ctx) {
            ctx.toast = None;
            (self.seek, self.is_clicked) = (None, true);
            ctx.with_pane(|pane, eye| pane.scrollback.hold(eye));
            self.move_to(id, ctx);
        }
        Handled::Yes
    }

    fn draw(&mut self, area: Area, ctx: &mut UiContext, grid: &mut Grid) -> Area {
        let row = ctx.rows - 1;
        grid.fill(row, Tone::Text);
        grid.line(row, 0, &self.status_line(ctx));
        grid.cursor = None;
        area
    }

    fn draw_over(&mut self, ctx: &mut UiContext, grid: &mut Grid) {
        self.draw_marks(ctx, grid);
        if let Some((_, prompt)) = &mut self.prompt {
            prompt.draw(grid, ctx.rows - 1, ctx.columns);
        }
    }

    fn tick(&mut self, ctx: &mut UiContext) {
        if let Some(seek) = self.seek {
            self.seek(seek, ctx);
        }
    }

    fn next_tick(&self, ctx: &UiContext) -> Option<Instant> {
        self.seek.map(|_| ctx.now)
    }
}

/// Scrolls to the live rows, which the cursor cannot reach.
fn go_to_end(ctx: &mut UiContext) {
    ctx.with_pane(|pane, eye| {
        pane.scrollback.look_at_end();
        pane.scrollback.hold(eye);
    });
}

/// Returns the usage row after a response, which belongs to it; else the row itself.
fn with_its_cost(row: RowRef, ctx: &UiContext) -> RowRef {
    let entries = ctx.pane().map(|pane| pane.shown().view.entries().iter());
    let after = entries.into_iter().flatten();
    let mut after = after.skip_while(|entry| entry.at() != row).skip(1);
    let next = after.next().filter(|next| next.kind() == Some(Kind::Usage));
    next.map_or(row, Entry::at)
}

/// Runs a command and returns to the input.
fn run(line: String, ctx: &mut UiContext) {
    ctx.command(line);
    ctx.close();
    ctx.with_pane(|pane, _| pane.scrollback.look_at_end());
}

fn leave(ctx: &mut UiContext) {
    ctx.close();
    if ctx.return_to_hits() {
        return;
    }
    ctx.with_pane(|pane, eye| pane.scrollback.let_go(eye));
}

pub(super) fn row_of(item: &ScrollbackItem) -> Option<&Row> {
    match &item.what {
        ItemContent::Row { row, .. } => Some(row),
        ItemContent::Turn(_) | ItemContent::Context { .. } => None,
    }
}

/// Reports whether the cursor can be on an item.
fn is_event(item: &ScrollbackItem) -> bool {
    row_of(item).is_some()
}

/// Reports whether an item is a message of the user.
fn is_message(item: &ScrollbackItem) -> bool {
    row_of(item).is_some_and(|row| row.kind.read_as() == Some(Kind::User))
}

/// Returns the newest row that a rewind hid, if the item is a rewind.
pub(super) fn left_by(item: &ScrollbackItem) -> Option<RowRef> {
    let row = row_of(item).filter(|row| row.kind.read_as() == Some(Kind::Rewind))?;
    let rewind: RewindData = data::read(row.data.as_deref());
    rewind.from.filter(|_| matches!(item.id, Id::Row(_)))
}

fn is_in(item: &ScrollbackItem, needle: &Needle) -> bool {
    row_of(item).is_some_and(|row| needle.is_in(&event::all_text(row)))
}
