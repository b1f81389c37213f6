//! Typing: what follows from each change of the input, completion, and what was typed before.

use std::path::{Path, PathBuf};

use ikigai_engine::commands::Candidate;

use super::{App, Pane, Wish};
use crate::complete::{ROWS, TIGHT_ROWS};
use crate::input::{Edit, Search};
use crate::keys::Action;
use crate::line::{Line, Span};
use crate::look::{Look, Role};
use crate::text::{clean, cut};

/// How far a page of the list is.
const LIST_PAGE: isize = 8;

impl App {
    /// Puts typed text in.
    pub(super) fn type_text(&mut self, text: &str) {
        if let Some(search) = &mut self.search {
            return search.insert(text, &self.history);
        }
        let Some(pane) = self.panes.get_mut(&self.current) else {
            return;
        };
        let editor = &mut pane.editor;
        let is_as_put_back = pane.put_back.as_ref() == Some(&editor.text());
        if text == "/" && is_as_put_back && editor.cursor() == editor.shown().len() {
            editor.clear();
        }
        if !editor.insert(text) {
            self.say("⚠ the text is too large");
        }
        self.typed();
    }

    /// Changes the input, or goes into the history at its edges.
    pub(super) fn edit(&mut self, edit: Edit) {
        self.typed_at = Some(self.now);
        if let Some(search) = &mut self.search {
            search.apply(edit, &self.history);
            return;
        }
        let Some(pane) = self.panes.get_mut(&self.current) else {
            return;
        };
        let before = pane.editor.shown().len();
        let was_done = pane.editor.apply(edit);
        let (text, cursor) = (pane.editor.shown(), pane.editor.cursor());
        if was_done && text.len() == before {
            pane.completion.moved(text, cursor);
            return;
        }
        match edit {
            Edit::Up if !was_done => self.go_up(),
            Edit::Down if !was_done => self.recall(Way::Newer),
            _ => self.typed(),
        }
    }

    /// What was typed has changed.
    pub(super) fn typed(&mut self) {
        self.forget_armed();
        let names = self.roster.all().map(|(_, known)| &known.branch.agent);
        let agents = names.map(|agent| candidate(&agent.name)).collect();
        let Some(pane) = self.panes.get_mut(&self.current) else {
            return;
        };
        let (text, cursor) = (pane.editor.shown().to_owned(), pane.editor.cursor());
        if text.starts_with('/') {
            let context = &mut pane.completion.context;
            context.agents = agents;
            context.models.clone_from(&self.models);
            context.tools.clone_from(&self.tools);
            let state = &pane.agent.state;
            let marks = state.marks().rev().filter_map(|(_, label)| label);
            context.marks = marks.map(candidate).collect();
            let pins = state.settings().pins.iter().flatten();
            let workdir = state.settings().workdir.as_deref().map(Path::new);
            // As `/pin` lists them.
            let pins = pins.filter_map(|pin| {
                let path = Path::new(pin.path.as_deref()?);
                let below = workdir.and_then(|workdir| path.strip_prefix(workdir).ok());
                below.unwrap_or(path).to_str()
            });
            context.pins = pins.map(candidate).collect();
        }
        pane.completion.edited(&text, cursor);
        if let Some(typed) = pane.completion.wants_directory(&text, cursor) {
            let workdir = pane.agent.state.settings().workdir.clone();
            let directory = directory_of(&typed, workdir.as_deref(), self.around.home.as_deref());
            self.wishes.push(Wish::List { typed, directory });
        }
    }

    /// Takes in what is in a directory that was typed.
    pub fn set_listing(&mut self, typed: &str, files: Vec<(String, bool)>) {
        if let Some(pane) = self.panes.get_mut(&self.current) {
            pane.completion.listed(typed, files);
            let (text, cursor) = (pane.editor.shown().to_owned(), pane.editor.cursor());
            pane.completion.edited(&text, cursor);
        }
    }

    /// Takes in what can be chosen by name.
    pub fn set_choices(&mut self, models: Vec<Candidate>, tools: Vec<Candidate>) {
        self.models = models;
        self.tools = tools;
    }

    /// Takes in what was sent before this screen was there, the newest last.
    pub fn set_history(&mut self, sent: Vec<String>) {
        self.history.older(sent);
        if let Some(search) = &mut self.search {
            search.insert("", &self.history);
        }
        let before = std::mem::replace(&mut self.known_past, Past::Read);
        if before == Past::Recalled {
            self.recall(Way::Older);
        }
    }

    /// Shows what can stand at the cursor.
    pub(super) fn complete(&mut self) {
        self.typed();
        let Some(pane) = self.panes.get_mut(&self.current) else {
            return;
        };
        let (text, cursor) = (pane.editor.shown().to_owned(), pane.editor.cursor());
        pane.completion.ask(&text, cursor);
    }

    /// Does what a key means for the list or for a search; says whether it means something there.
    pub(super) fn act_in_list(&mut self, action: Action) -> bool {
        match action {
            Action::ListUp => self.mark(-1),
            Action::ListDown => self.mark(1),
            Action::ListPageUp => self.mark(-LIST_PAGE),
            Action::ListPageDown => self.mark(LIST_PAGE),
            Action::ListTake => self.take_entry(),
            Action::ListEnter => self.enter_list(),
            Action::SearchOlder => {
                self.search.as_mut().map(Search::older);
            }
            Action::SearchNewer => {
                self.search.as_mut().map(Search::newer);
            }
            Action::SearchTake => self.take_found(),
            Action::SearchLeave => self.search = None,
            _ => return false,
        }
        true
    }

    fn mark(&mut self, by: isize) {
        if let Some(pane) = self.panes.get_mut(&self.current) {
            pane.completion.mark(by);
        }
    }

    fn take_entry(&mut self) {
        let Some(pane) = self.panes.get_mut(&self.current) else {
            return;
        };
        let (text, cursor) = (pane.editor.shown().to_owned(), pane.editor.cursor());
        if let Some(taken) = pane.completion.take(&text, cursor) {
            pane.editor.replace(taken.part, &taken.text);
            self.typed();
        }
    }

    /// Runs the line as typed if it is complete, else takes the marked entry.
    fn enter_list(&mut self) {
        let takes = self.pane().is_some_and(|pane| {
            let (text, cursor) = (pane.editor.shown(), pane.editor.cursor());
            pane.completion.takes_enter(text, cursor)
        });
        if takes {
            self.take_entry();
        } else {
            self.send();
        }
    }

    /// Marks the entry in a row of the list and takes it.
    pub(super) fn click_entry(&mut self, row: usize) {
        let pane = self.panes.get_mut(&self.current);
        if pane.is_some_and(|pane| pane.completion.click(row)) {
            self.take_entry();
        }
    }

    /// Closes the list or the search; says whether one was open.
    pub(super) fn close_list(&mut self) -> bool {
        if self.search.take().is_some() {
            return true;
        }
        let pane = self.panes.get_mut(&self.current);
        pane.is_some_and(|pane| pane.completion.close())
    }

    /// What can stand at the cursor, as rows.
    pub(super) fn completion_lines(&self, pane: &mut Pane) -> Vec<Line> {
        if self.search.is_some() {
            return Vec::new();
        }
        let rows = if self.is_tight() { TIGHT_ROWS } else { ROWS };
        pane.completion.lines(self.columns, rows)
    }

    /// Begins to search what was sent before.
    pub(super) fn search_history(&mut self) {
        self.want_history();
        self.search = Some(Search::new(&self.history));
    }

    fn take_found(&mut self) {
        let Some(search) = self.search.take() else {
            return;
        };
        let found = search.found(&self.history);
        if let Some((text, _)) = found
            && let Some(pane) = self.panes.get_mut(&self.current)
        {
            pane.editor.set(text);
        }
    }

    /// What is sought and found, in place of the input.
    pub(super) fn search_line(&self) -> Option<Line> {
        let search = self.search.as_ref()?;
        let place = search.place();
        let count = place.map_or_else(|| "none".to_owned(), |(at, of)| format!("{at}/{of}"));
        let sought = search.sought().shown();
        let mut line = Line::new(vec![
            Span::new(format!("search {count}: "), Role::Faint),
            Span::new(clean(sought), Look::of(Role::Match).with(Look::BOLD)),
        ]);
        if let Some((text, part)) = search.found(&self.history) {
            let first = text.lines().next().unwrap_or_default();
            let part = part.start.min(first.len())..part.end.min(first.len());
            line.spans.push(Span::new("  ", Role::Text));
            let pieces = [
                (first.get(..part.start), Role::Text),
                (first.get(part.clone()), Role::Match),
                (first.get(part.end..), Role::Text),
            ];
            for (piece, role) in pieces {
                let piece = piece.unwrap_or_default();
                line.spans.push(Span::new(clean(piece), role));
            }
        }
        Some(cut(&line, self.columns, "…"))
    }

    /// Up in the first row: a message that waits comes back, else what was sent before.
    fn go_up(&mut self) {
        let live = self.roster.live(self.current);
        let queued = live.and_then(|live| live.queued.last());
        if let Some((mail, _)) = queued.filter(|_| self.input_is_empty()) {
            let take_back = ikigai_engine::Intent::TakeBack(*mail);
            self.wishes.push(Wish::Say(self.current, take_back));
        } else if !self.input_is_empty() || !self.take_back_pending() {
            self.recall(Way::Older);
        }
    }

    /// Puts what was sent before, or after, into the input.
    pub(super) fn recall(&mut self, way: Way) {
        self.want_history();
        if self.known_past == Past::Wanted && way == Way::Older {
            self.known_past = Past::Recalled;
        }
        if self.known_past != Past::Read {
            return;
        }
        let Some(pane) = self.panes.get_mut(&self.current) else {
            return;
        };
        match way {
            Way::Older => self.history.previous(&mut pane.editor),
            Way::Newer => self.history.next(&mut pane.editor),
        };
    }

    /// What was sent in former runs is read when somebody first looks for it.
    fn want_history(&mut self) {
        if self.known_past == Past::Unread {
            self.known_past = Past::Wanted;
            self.wishes.push(Wish::ReadHistory);
        }
    }
}

/// How much is known of what was sent in former runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Past {
    /// Nobody has asked for it.
    #[default]
    Unread,
    /// It is being read.
    Wanted,
    /// It is being read, and gone into then.
    Recalled,
    /// All that is kept.
    Read,
}

/// Where in the history one goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Older,
    Newer,
}

fn candidate(text: impl Into<String>) -> Candidate {
    Candidate::new(text, "")
}

/// Where a directory is that was typed.
fn directory_of(typed: &str, workdir: Option<&str>, home: Option<&str>) -> PathBuf {
    let rest = typed.strip_prefix("~/");
    match (rest, home) {
        (Some(rest), Some(home)) => Path::new(home).join(rest),
        _ => Path::new(workdir.unwrap_or(".")).join(typed),
    }
}
