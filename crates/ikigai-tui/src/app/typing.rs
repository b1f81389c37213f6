//! Typing into the input: completion, recall of sent messages, and search in them.

use std::path::{Path, PathBuf};

use ikigai_engine::UserRequest;
use ikigai_engine::commands::Candidate;

use super::input_layer::InputLayer;
use super::{EngineRequest, LoadRequest, Pane, UiContext};
use crate::complete::{NamesToComplete, ROWS, TIGHT_ROWS};
use crate::input::{EditCommand, HistorySearch};
use crate::keys::Action;
use crate::line::{TextLine, TextSpan};
use crate::look::{Look, Tone};
use crate::text::{clean, cut};

/// Entries in a page of the completion list.
const LIST_PAGE: isize = 8;

impl InputLayer {
    /// Inserts typed text.
    pub(super) fn type_text(&mut self, text: &str, ctx: &mut UiContext) {
        if let Some(search) = &mut self.search {
            return search.insert(text, &self.history);
        }
        let Some(pane) = ctx.current_mut() else {
            return;
        };
        let editor = &mut pane.editor;
        let is_as_put_back = pane.put_back.as_ref() == Some(&editor.text());
        if text == "/" && is_as_put_back && editor.cursor() == editor.shown().len() {
            editor.clear();
        }
        if !editor.insert(text) {
            ctx.warn("text too large");
        }
        self.typed(ctx);
    }

    /// Edits the input, or recalls a sent message at its edges.
    pub(super) fn edit(&mut self, edit: EditCommand, ctx: &mut UiContext) {
        ctx.typed_at = Some(ctx.now);
        if let Some(search) = &mut self.search {
            search.apply(edit, &self.history);
            return;
        }
        let Some(pane) = ctx.current_mut() else {
            return;
        };
        let before = pane.editor.shown().len();
        let was_done = pane.editor.apply(edit);
        let (text, cursor) = (pane.editor.shown(), pane.editor.cursor());
        if was_done && text.len() == before {
            pane.completion.follow_cursor(text, cursor);
            return;
        }
        match edit {
            EditCommand::Up if !was_done => self.go_up(ctx),
            EditCommand::Down if !was_done => self.recall(RecallDirection::Newer, ctx),
            _ => self.typed(ctx),
        }
    }

    /// Updates the completion after the text changed.
    pub(super) fn typed(&mut self, ctx: &mut UiContext) {
        ctx.armed = None;
        let names = ctx.roster.all().map(|(_, known)| &known.branch.agent);
        let agents = names.map(|agent| candidate(&agent.name)).collect();
        let Some(pane) = ctx.panes.get_mut(&ctx.current) else {
            return;
        };
        let (text, cursor) = (pane.editor.shown().to_owned(), pane.editor.cursor());
        if text.starts_with('/') {
            let context = &mut pane.completion.context;
            context.agents = agents;
            context.models.clone_from(&self.names.models);
            context.tools.clone_from(&self.names.tools);
            context.callables.clone_from(&self.names.callables);
            let state = &pane.agent.state;
            let marks = state.marks().rev().filter_map(|(_, label)| label);
            context.marks = marks.map(candidate).collect();
            let pins = state.settings().pins.iter().flatten();
            let workdir = state.settings().workdir.as_deref().map(Path::new);
            // As `/pin` lists them.
            let pins = pins.filter(|pin| pin.off != Some(true));
            let pins = pins.filter_map(|pin| {
                let path = Path::new(pin.path.as_deref()?);
                let below = workdir.and_then(|workdir| path.strip_prefix(workdir).ok());
                below.unwrap_or(path).to_str()
            });
            context.pins = pins.map(candidate).collect();
        }
        pane.completion.follow_edit(&text, cursor);
        if let Some(typed) = pane.completion.wants_directory(&text, cursor) {
            let workdir = pane.agent.state.settings().workdir.clone();
            let directory = directory_of(&typed, workdir.as_deref(), ctx.options.home.as_deref());
            ctx.effects
                .push(LoadRequest::Directory { typed, directory });
        }
    }

    /// Sets models, tools, and the user's commands and skills for completion.
    pub(super) fn set_choices(&mut self, names: NamesToComplete) {
        self.names = names;
    }

    /// Sets messages of earlier runs, the newest last.
    pub(super) fn set_history(&mut self, sent: Vec<String>, ctx: &mut UiContext) {
        self.history.older(sent);
        if let Some(search) = &mut self.search {
            search.insert("", &self.history);
        }
        let before = std::mem::replace(&mut self.loaded, SentHistory::Loaded);
        if before == SentHistory::Recalled {
            self.recall(RecallDirection::Older, ctx);
        }
    }

    /// Opens the completion list.
    pub(super) fn complete(&mut self, ctx: &mut UiContext) {
        self.typed(ctx);
        let Some(pane) = ctx.current_mut() else {
            return;
        };
        let (text, cursor) = (pane.editor.shown().to_owned(), pane.editor.cursor());
        pane.completion.ask(&text, cursor);
    }

    /// Handles a key of the completion list or the search; returns false for other keys.
    pub(super) fn act_in_list(&mut self, action: Action, ctx: &mut UiContext) -> bool {
        match action {
            Action::ListUp => move_mark(-1, ctx),
            Action::ListDown => move_mark(1, ctx),
            Action::ListPageUp => move_mark(-LIST_PAGE, ctx),
            Action::ListPageDown => move_mark(LIST_PAGE, ctx),
            Action::ListTake => self.take_entry(ctx),
            Action::ListEnter => self.enter_list(ctx),
            Action::SearchOlder => {
                self.search.as_mut().map(HistorySearch::older);
            }
            Action::SearchNewer => {
                self.search.as_mut().map(HistorySearch::newer);
            }
            Action::SearchTake => self.take_match(ctx),
            Action::SearchLeave => self.search = None,
            _ => return false,
        }
        true
    }

    fn take_entry(&mut self, ctx: &mut UiContext) {
        let Some(pane) = ctx.current_mut() else {
            return;
        };
        let (text, cursor) = (pane.editor.shown().to_owned(), pane.editor.cursor());
        if let Some(taken) = pane.completion.take(&text, cursor) {
            pane.editor.replace(taken.part, &taken.text);
            self.typed(ctx);
        }
    }

    /// Sends a complete line, else takes the selected entry.
    fn enter_list(&mut self, ctx: &mut UiContext) {
        let takes = ctx.pane().is_some_and(|pane| {
            let (text, cursor) = (pane.editor.shown(), pane.editor.cursor());
            pane.completion.takes_enter(text, cursor)
        });
        if takes {
            self.take_entry(ctx);
        } else {
            self.send(ctx);
        }
    }

    /// Takes the entry in a row of the completion list.
    pub(super) fn click_entry(&mut self, row: usize, ctx: &mut UiContext) {
        let pane = ctx.current_mut();
        if pane.is_some_and(|pane| pane.completion.click(row)) {
            self.take_entry(ctx);
        }
    }

    /// Closes the search or the completion list; returns false if none was open.
    pub(super) fn close_list(&mut self, ctx: &mut UiContext) -> bool {
        if self.search.take().is_some() {
            return true;
        }
        let pane = ctx.current_mut();
        pane.is_some_and(|pane| pane.completion.close())
    }

    /// Returns the rows of the completion list.
    pub(super) fn completion_lines(&self, pane: &mut Pane, ctx: &UiContext) -> Vec<TextLine> {
        if self.search.is_some() {
            return Vec::new();
        }
        let rows = if ctx.is_tight() { TIGHT_ROWS } else { ROWS };
        pane.completion.lines(ctx.columns, rows)
    }

    /// Opens the search in sent messages.
    pub(super) fn search_history(&mut self, ctx: &mut UiContext) {
        self.load_history(ctx);
        self.search = Some(HistorySearch::new(&self.history));
    }

    fn take_match(&mut self, ctx: &mut UiContext) {
        let Some(search) = self.search.take() else {
            return;
        };
        if let Some((text, _)) = search.found(&self.history)
            && let Some(pane) = ctx.current_mut()
        {
            pane.editor.set(text);
        }
    }

    /// Returns the row of the search, in place of the input.
    pub(super) fn search_line(&self, columns: u16) -> Option<TextLine> {
        let search = self.search.as_ref()?;
        let place = search.place();
        let count = place.map_or_else(|| "(no match)".to_owned(), |(at, of)| format!("{at}/{of}"));
        let sought = search.sought().shown();
        let mut line = TextLine::new(vec![
            TextSpan::new(format!("search {count}: "), Tone::Faint),
            TextSpan::new(clean(sought), Look::of(Tone::Match).with(Look::BOLD)),
        ]);
        if let Some((text, part)) = search.found(&self.history) {
            let first = text.lines().next().unwrap_or_default();
            let part = part.start.min(first.len())..part.end.min(first.len());
            line.spans.push(TextSpan::new("  ", Tone::Text));
            let pieces = [
                (first.get(..part.start), Tone::Text),
                (first.get(part.clone()), Tone::Match),
                (first.get(part.end..), Tone::Text),
            ];
            for (piece, role) in pieces {
                let piece = piece.unwrap_or_default();
                line.spans.push(TextSpan::new(clean(piece), role));
            }
        }
        Some(cut(&line, columns, "…"))
    }

    /// Takes a queued message back, else recalls a sent one.
    fn go_up(&mut self, ctx: &mut UiContext) {
        let live = ctx.roster.live(ctx.current);
        let queued = live.and_then(|live| live.queued.last());
        if let Some((mail, _)) = queued.filter(|_| ctx.input_is_empty()) {
            let take_back = UserRequest::TakeBack(*mail);
            ctx.effects
                .push(EngineRequest::Send(ctx.current, take_back));
        } else if !ctx.input_is_empty() || !ctx.take_back_pending() {
            self.recall(RecallDirection::Older, ctx);
        }
    }

    /// Puts an older or newer sent message into the input.
    pub(super) fn recall(&mut self, direction: RecallDirection, ctx: &mut UiContext) {
        self.load_history(ctx);
        if self.loaded == SentHistory::Requested && direction == RecallDirection::Older {
            self.loaded = SentHistory::Recalled;
        }
        if self.loaded != SentHistory::Loaded {
            return;
        }
        let Some(pane) = ctx.current_mut() else {
            return;
        };
        match direction {
            RecallDirection::Older => self.history.previous(&mut pane.editor),
            RecallDirection::Newer => self.history.next(&mut pane.editor),
        };
    }

    /// Requests messages of earlier runs, once.
    fn load_history(&mut self, ctx: &mut UiContext) {
        if self.loaded == SentHistory::Unread {
            self.loaded = SentHistory::Requested;
            ctx.effects.push(LoadRequest::SentMessages);
        }
    }
}

impl UiContext {
    /// Takes the entries of a directory that was typed.
    pub(super) fn set_listing(&mut self, typed: &str, files: Vec<(String, bool)>) {
        if let Some(pane) = self.current_mut() {
            pane.completion.set_listing(typed, files);
            let (text, cursor) = (pane.editor.shown().to_owned(), pane.editor.cursor());
            pane.completion.follow_edit(&text, cursor);
        }
    }
}

fn move_mark(by: isize, ctx: &mut UiContext) {
    if let Some(pane) = ctx.current_mut() {
        pane.completion.mark(by);
    }
}

/// State of the messages that were sent in earlier runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SentHistory {
    #[default]
    Unread,
    Requested,
    /// Requested, and recalled when loaded.
    Recalled,
    Loaded,
}

/// Direction in the sent messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecallDirection {
    Older,
    Newer,
}

fn candidate(text: impl Into<String>) -> Candidate {
    Candidate::new(text, "")
}

/// Returns the path of a directory that was typed.
fn directory_of(typed: &str, workdir: Option<&str>, home: Option<&str>) -> PathBuf {
    let rest = typed.strip_prefix("~/");
    match (rest, home) {
        (Some(rest), Some(home)) => Path::new(home).join(rest),
        _ => Path::new(workdir.unwrap_or(".")).join(typed),
    }
}
