//! Browse mode: a cursor that goes over whole events, and what can be done with the one it is on.

use ikigai_core::data::{self, RewindData};
use ikigai_core::view::Entry;
use ikigai_core::{Kind, Row, RowRef};
use ikigai_engine::Intent;

use super::draw::Eye;
use super::needle::Needle;
use super::prompt::Purpose;
use super::{App, Mode, Pane, Wish, event};
use crate::keys::Action;
use crate::scrollback::{Id, Item, What, joined};

/// How many pages are read for one key before the user is asked whether to look further.
const MOST_PAGES: usize = 50;

/// How many rewinds `/history` unfolds.
const MOST_UNFOLDED: usize = 8;

/// See the module.
pub(super) struct Browse {
    /// The event that the cursor is on.
    pub(super) cursor: Id,
    /// What is looked for.
    pub(super) find: String,
    /// What older pages are read for.
    pub(super) seek: Option<Seek>,
    /// How many more may be read for it.
    pages: usize,
    /// A click opened it, so that letters may be meant for the input.
    is_clicked: bool,
}

/// What is looked for above what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seek {
    /// The event above.
    Event,
    /// The message of the user above.
    Message,
    /// The text that is looked for.
    Text,
    /// The same for the first time: if it is not above, it may be below.
    NewText,
    /// The first event.
    First,
}

impl App {
    /// Opens browse mode, at an event or at the last.
    pub(super) fn browse(&mut self, at: Option<Id>) {
        let is_clicked = at.is_some();
        let items = self.pane().map_or(&[][..], |pane| pane.scrollback.items());
        let last = || items.iter().rev().find(|item| is_event(item));
        let Some(cursor) = at.or_else(|| last().map(|item| item.id)) else {
            return self.say("there is nothing to browse yet");
        };
        let find = match &mut self.mode {
            Mode::Browse(browse) => std::mem::take(&mut browse.find),
            _ => String::new(),
        };
        self.mode = Mode::Browse(Browse {
            cursor,
            find,
            seek: None,
            pages: 0,
            is_clicked,
        });
        self.selection = None;
        self.said = None;
        self.asked.wait();
        self.with_pane(|pane, eye| pane.scrollback.hold(eye));
        self.reveal();
    }

    /// Opens browse mode at an event, with what was found in it.
    pub(super) fn browse_for(&mut self, at: Option<Id>, found: String) {
        self.browse(at);
        if let Mode::Browse(browse) = &mut self.mode {
            browse.is_clicked = false;
            browse.find = found;
        }
        if let Some(cursor) = self.cursor() {
            self.show_found(cursor);
        }
    }

    /// Opens browse mode with what rewinds left unfolded.
    pub(super) fn browse_all(&mut self) {
        self.browse(None);
        let rewinds = self.pane().map_or_else(Vec::new, |pane| {
            let items = pane.scrollback.items().iter().rev();
            let rewinds = items.filter_map(|item| left_by(item).map(|_| item.id.row()));
            let folded = rewinds.flatten().filter(|row| !pane.shows_left(*row));
            folded.take(MOST_UNFOLDED).collect()
        });
        self.wishes
            .extend(rewinds.into_iter().map(Wish::ToggleLeft));
    }

    /// Does what a key means in browse mode; says whether it means something there.
    pub(super) fn act_in_browse(&mut self, action: Action) -> bool {
        let Mode::Browse(browse) = &mut self.mode else {
            return false;
        };
        browse.seek = None;
        browse.pages = MOST_PAGES;
        let changes = [
            (Action::BrowseRewind, "goes back to here"),
            (Action::BrowseEdit, "goes back, to edit it"),
            (Action::BrowseFork, "forks here"),
        ];
        let is_clicked = std::mem::take(&mut browse.is_clicked);
        if let Some((_, what)) = changes.iter().find(|(change, _)| *change == action)
            && is_clicked
        {
            self.say(format!("again {what} · Esc back to the input"));
            return true;
        }
        match action {
            Action::BrowseUp => self.seek(Seek::Event),
            Action::BrowseDown => self.go_down(is_event),
            Action::BrowseMessageUp => self.seek(Seek::Message),
            Action::BrowseMessageDown => self.go_down(is_message),
            Action::BrowseFirst => self.seek(Seek::First),
            Action::BrowseLast => self.go_last(),
            Action::BrowseUnfold => self.unfold(),
            Action::BrowseUnfoldAll => {
                self.with_pane(|pane, _| pane.scrollback.toggle_all());
                self.reveal();
            }
            Action::BrowseFind => {
                let text = browse_find(&self.mode).to_owned();
                self.prompt(Purpose::Find, "find", &text);
            }
            Action::BrowseFindNext => self.seek(Seek::Text),
            Action::BrowseFindPrevious => self.find_below(),
            Action::BrowseCopy => self.copy_event(false),
            Action::BrowseCopyMarkdown => self.copy_event(true),
            Action::BrowseRewind => self.rewind_here(),
            Action::BrowseEdit => self.edit_here(),
            Action::BrowseFork => self.fork_here(),
            Action::BrowseMark => {
                let title = "mark the end of the conversation, label (none needed)";
                self.prompt(Purpose::Label, title, "");
            }
            Action::BrowsePager => {
                let text = self.current_row().map(|row| event::all_text(&row));
                self.wishes.extend(text.map(Wish::Page));
            }
            Action::BrowseLeave => self.leave_browse(),
            _ => return false,
        }
        true
    }

    /// Goes on with what older pages are read for.
    pub(super) fn seek_on(&mut self) {
        if let Mode::Browse(Browse {
            seek: Some(seek), ..
        }) = &self.mode
        {
            self.seek(*seek);
        }
    }

    /// Whether older pages are read for something.
    pub(super) fn is_seeking(&self) -> bool {
        matches!(&self.mode, Mode::Browse(Browse { seek: Some(_), .. }))
    }

    /// Goes to what is looked for above, reading older pages if it is not among what was read.
    fn seek(&mut self, seek: Seek) {
        if seek == Seek::Event && self.scroll_within(-1) {
            return;
        }
        let Mode::Browse(browse) = &self.mode else {
            return;
        };
        let pages = browse.pages;
        let Some(pane) = self.pane() else { return };
        let is_complete = pane.is_complete;
        let find = Needle::new(&browse.find);
        if matches!(seek, Seek::Text | Seek::NewText) && find.is_nothing() {
            return self.say("nothing is looked for · / finds");
        }
        let items = pane.scrollback.items();
        let place = pane.scrollback.place(browse.cursor).unwrap_or(0);
        let above = items.get(..place).unwrap_or_default();
        let found = match seek {
            Seek::Event => above.iter().rev().find(|item| is_event(item)),
            Seek::Message => above.iter().rev().find(|item| is_message(item)),
            Seek::Text | Seek::NewText => above.iter().rev().find(|item| is_in(item, &find)),
            Seek::First => items.iter().find(|item| is_event(item)),
        };
        let found = found.map(|item| item.id);
        if let Some(id) = found {
            self.set_cursor(id);
            match seek {
                Seek::Text | Seek::NewText => self.show_found(id),
                Seek::Event => {
                    self.with_pane(|pane, eye| pane.scrollback.reveal_end(id, eye));
                }
                Seek::Message | Seek::First => self.reveal(),
            }
        }
        let is_there = found.is_some() && (seek != Seek::First || is_complete);
        let reads_on = !is_there && !is_complete && pages > 0;
        let seeks = reads_on.then_some(seek);
        if let Mode::Browse(browse) = &mut self.mode {
            browse.seek = seeks;
            browse.pages = pages.saturating_sub(usize::from(reads_on));
        }
        if reads_on {
            self.wishes.push(Wish::ReadOlder);
        } else if !is_there && is_complete && seek == Seek::NewText {
            self.find_below();
        } else if !is_there {
            self.say(match (seek, is_complete) {
                (Seek::Event | Seek::First, true) => "this is the first event",
                (Seek::Message, true) => "there is no message of yours above",
                (Seek::Text | Seek::NewText, true) => "not found above · N looks below",
                (_, false) => "not found so far · once more looks further",
            });
        }
    }

    fn go_down(&mut self, is_wanted: impl Fn(&Item) -> bool) {
        if self.scroll_within(1) {
            return;
        }
        let found = self.below().find(|item| is_wanted(item));
        match found.map(|item| item.id) {
            Some(id) => self.move_to(id),
            None => self.go_to_end(),
        }
        self.want_newer();
    }

    fn go_last(&mut self) {
        self.with_pane(|pane, _| pane.come_back());
        let items = self.pane().map_or(&[][..], |pane| pane.scrollback.items());
        let last = items.iter().rev().find(|item| is_event(item));
        if let Some(id) = last.map(|item| item.id) {
            self.move_to(id);
        }
        self.go_to_end();
    }

    /// What is not stored yet has no cursor, but can be looked at.
    fn go_to_end(&mut self) {
        self.with_pane(|pane, eye| {
            pane.scrollback.look_at_end();
            pane.scrollback.hold(eye);
        });
    }

    fn below(&self) -> impl Iterator<Item = &Item> + '_ {
        let pane = self.pane().zip(self.cursor());
        let items = pane.map_or(&[][..], |(pane, cursor)| {
            let next = pane.scrollback.place(cursor).map_or(0, |place| place + 1);
            pane.scrollback.items().get(next..).unwrap_or_default()
        });
        items.iter()
    }

    /// Scrolls if more of the event lies beyond the edge of the screen.
    fn scroll_within(&mut self, direction: isize) -> bool {
        let Some(cursor) = self.cursor() else {
            return false;
        };
        let half = isize::try_from(self.rows / 2).unwrap_or(1).max(1);
        self.with_pane(|pane, eye| {
            let hidden = pane.scrollback.hidden_rows(cursor, eye);
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

    fn cursor(&self) -> Option<Id> {
        match &self.mode {
            Mode::Browse(browse) => Some(browse.cursor),
            _ => None,
        }
    }

    fn move_to(&mut self, id: Id) {
        self.set_cursor(id);
        self.reveal();
    }

    fn set_cursor(&mut self, id: Id) {
        if let Mode::Browse(browse) = &mut self.mode {
            browse.cursor = id;
        }
    }

    fn reveal(&mut self) {
        if let Some(cursor) = self.cursor() {
            self.with_pane(|pane, eye| pane.scrollback.reveal(cursor, eye));
        }
    }

    /// Does something with what is shown and how it is laid out.
    pub(super) fn with_pane<T>(
        &mut self,
        what: impl FnOnce(&mut Pane, &Eye<'_>) -> T,
    ) -> Option<T> {
        let mut pane = self.panes.remove(&self.current)?;
        let done = what(&mut pane, &Eye::new(self, self.current));
        self.panes.insert(self.current, pane);
        Some(done)
    }

    /// Unfolds the event, or folds it. A rewind shows what it left.
    fn unfold(&mut self) {
        let Some(cursor) = self.cursor() else { return };
        let item = self.pane().and_then(|pane| pane.scrollback.item(cursor));
        if let (Id::Row(row), Some(_)) = (cursor, item.and_then(left_by)) {
            self.wishes.push(Wish::ToggleLeft(row));
        } else {
            self.with_pane(|pane, _| pane.scrollback.toggle(cursor));
            self.reveal();
        }
    }

    /// Looks for text: above first, because what is looked for is past.
    pub(super) fn find(&mut self, text: String) {
        let Mode::Browse(browse) = &mut self.mode else {
            return;
        };
        browse.find = text;
        browse.pages = MOST_PAGES;
        let needle = Needle::new(&browse.find);
        if needle.is_nothing() {
            return;
        }
        let cursor = browse.cursor;
        let here = self.pane().and_then(|pane| pane.scrollback.item(cursor));
        if here.is_some_and(|item| is_in(item, &needle)) {
            return self.show_found(cursor);
        }
        self.seek(Seek::NewText);
    }

    fn find_below(&mut self) {
        let needle = Needle::new(browse_find(&self.mode));
        if needle.is_nothing() {
            return self.say("nothing is looked for · / finds");
        }
        let found = self.below().find(|item| is_in(item, &needle));
        match found.map(|item| item.id) {
            Some(id) => {
                self.move_to(id);
                self.show_found(id);
            }
            None => self.say("not found below"),
        }
    }

    /// Unfolds an event if what was found in it is folded away, and scrolls to it.
    fn show_found(&mut self, id: Id) {
        let needle = Needle::new(browse_find(&self.mode));
        self.with_pane(|pane, eye| {
            let mut lines = pane.scrollback.lines(id, eye);
            let all = joined(lines.iter().map(|line| (line, 0, usize::MAX)));
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

    fn current_row(&self) -> Option<Row> {
        let item = self.pane()?.scrollback.item(self.cursor()?)?;
        row_of(item).cloned()
    }

    fn copy_event(&mut self, as_markdown: bool) {
        let Some(row) = self.current_row() else {
            return;
        };
        let text = if as_markdown {
            event::markdown(&row)
        } else {
            event::text(&row)
        };
        if text.is_empty() {
            return self.say("there is no text in it");
        }
        let count = text.chars().count();
        let how = if as_markdown { " as Markdown" } else { "" };
        self.say(format!("copied {count} characters{how}"));
        self.wishes.push(Wish::Copy(text));
    }

    /// How a row is typed.
    pub(super) fn row_name(&self, row: RowRef) -> String {
        if row.agent == self.current {
            return format!("#{}", row.seq);
        }
        let name = self.name_of(row.agent);
        let name = name.unwrap_or_else(|| row.agent.to_string());
        format!("#{name}.{}", row.seq)
    }

    fn rewind_here(&mut self) {
        let Some(row) = self.current_row() else {
            return;
        };
        // Whoever stands on a rewind wants to go to where it came from.
        let rewind: RewindData = data::read(row.data.as_deref());
        let is_rewind = row.kind.read_as() == Some(Kind::Rewind);
        let target = rewind.from.filter(|_| is_rewind);
        let target = target.unwrap_or_else(|| self.with_its_cost(row.at));
        self.command(format!("/rewind {}", self.row_name(target)));
    }

    /// The row that tells what a response cost, if it follows: it is not seen, and belongs to it.
    fn with_its_cost(&self, row: RowRef) -> RowRef {
        let entries = self.pane().map(|pane| pane.shown().view.entries().iter());
        let after = entries.into_iter().flatten();
        let mut after = after.skip_while(|entry| entry.at() != row).skip(1);
        let next = after.next().filter(|next| next.kind() == Some(Kind::Usage));
        next.map_or(row, Entry::at)
    }

    fn edit_here(&mut self) {
        let Some(row) = self.current_row() else {
            return;
        };
        if row.kind.read_as() == Some(Kind::User) {
            self.command(format!("/rewind {}", self.row_name(row.at)));
        } else {
            self.say("only a message can be edited · [ goes to the one above");
        }
    }

    fn fork_here(&mut self) {
        if let Some(row) = self.current_row() {
            let at = self.row_name(self.with_its_cost(row.at));
            self.command(format!("/fork --at {at} --go"));
        }
    }

    /// Sets a mark, which is always the newest row.
    pub(super) fn set_mark(&mut self, label: &str) {
        let line = format!("/mark {label}");
        let line = Intent::Command(line.trim_end().to_owned());
        self.wishes.push(Wish::Say(self.current, line));
    }

    /// Has the agent that is shown carry out a command, and goes back to the input.
    fn command(&mut self, line: String) {
        self.wishes
            .push(Wish::Say(self.current, Intent::Command(line)));
        self.mode = Mode::Input;
        self.with_pane(|pane, _| pane.scrollback.look_at_end());
    }

    fn leave_browse(&mut self) {
        self.mode = Mode::Input;
        if self.return_to_hits() {
            return;
        }
        self.with_pane(|pane, eye| pane.scrollback.let_go(eye));
    }
}

fn browse_find(mode: &Mode) -> &str {
    match mode {
        Mode::Browse(browse) => &browse.find,
        _ => "",
    }
}

pub(super) fn row_of(item: &Item) -> Option<&Row> {
    match &item.what {
        What::Row { row, .. } => Some(row),
        What::Turn(_) | What::Context => None,
    }
}

/// Whether the cursor can be on it.
fn is_event(item: &Item) -> bool {
    row_of(item).is_some()
}

/// Whether it is a message of the user.
fn is_message(item: &Item) -> bool {
    row_of(item).is_some_and(|row| row.kind.read_as() == Some(Kind::User))
}

/// The newest of the rows that a rewind left, if the item is a rewind.
pub(super) fn left_by(item: &Item) -> Option<RowRef> {
    let row = row_of(item).filter(|row| row.kind.read_as() == Some(Kind::Rewind))?;
    let rewind: RewindData = data::read(row.data.as_deref());
    rewind.from.filter(|_| matches!(item.id, Id::Row(_)))
}

fn is_in(item: &Item, needle: &Needle) -> bool {
    row_of(item).is_some_and(|row| needle.is_in(&event::all_text(row)))
}
