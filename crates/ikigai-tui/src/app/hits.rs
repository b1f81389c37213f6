//! Hits of a search: the list, and navigation to each and back.

use ikigai_core::{AgentId, Micros, RowRef};
use ikigai_engine::search::{Named, SearchCursor, SearchResults};
use ikigai_engine::since;

use super::browse::Browse;
use super::{EngineRequest, LoadRequest, Picker, PickerAction, PickerEntry, UiContext};
use crate::scrollback::Id;

/// The entry that reads more.
const MORE: &str = "more …";

/// Events to have below the screen before the user scrolls to them.
const ITEMS_AHEAD: usize = 20;

/// Hits of one search.
#[derive(Clone, Debug)]
pub struct Hits {
    /// The search as it was typed.
    pub typed: String,
    /// The agent to which Esc returns.
    pub from: AgentId,
    /// Time of the search.
    pub now: Micros,
    /// Hits and notes.
    pub found: SearchResults,
}

/// Hits of the newest search, and the one that is on the screen.
#[derive(Clone, Debug)]
pub(super) struct Visited {
    hits: Hits,
    /// The hit to mark in the list.
    marked: Option<RowRef>,
    /// True while a hit is on the screen.
    is_away: bool,
}

impl Hits {
    /// Prepends earlier hits.
    fn after(mut self, earlier: &Self) -> Self {
        let mut all = earlier.found.hits.clone();
        all.append(&mut self.found.hits);
        self.found.hits = all;
        self
    }
}

impl UiContext {
    pub(super) fn search_log(&mut self, typed: &str) {
        self.visited = None;
        self.effects.push(LoadRequest::Search {
            typed: typed.to_owned(),
            after: None,
        });
    }

    /// Keeps hits of a search; returns a picker of them.
    pub(super) fn keep_hits(&mut self, hits: Hits, is_more: bool) -> Option<Picker> {
        let earlier = self.visited.take().filter(|_| is_more);
        let marked = hits.found.hits.first().map(|named| named.hit.at);
        let hits = match &earlier {
            Some(earlier) => hits.after(&earlier.hits),
            None => hits,
        };
        if hits.found.hits.is_empty() {
            self.toast("No match");
            return None;
        }
        self.toast = None;
        self.visited = Some(Visited {
            hits,
            marked,
            is_away: false,
        });
        self.hits_picker()
    }

    /// Returns the picker of the newest hits.
    pub(super) fn hits_picker(&self) -> Option<Picker> {
        let visited = self.visited.as_ref()?;
        Some(picker(&visited.hits, visited.marked))
    }

    /// Goes to the row of a hit.
    pub(super) fn go_to_hit(&mut self, row: RowRef) {
        if let Some(visited) = &mut self.visited {
            visited.marked = Some(row);
        }
        self.effects.push(LoadRequest::RowInContext(row));
    }

    /// Reads further hits.
    pub(super) fn more_hits(&mut self, after: SearchCursor) {
        let typed = self.visited.as_ref().map(|it| it.hits.typed.clone());
        self.effects.extend(typed.map(|typed| LoadRequest::Search {
            typed,
            after: Some(after),
        }));
    }

    /// Opens browse mode at a row that the pane shows by now.
    pub(super) fn arrive(&mut self, row: RowRef) {
        let mut found = String::new();
        if let Some(visited) = &mut self.visited {
            visited.is_away = true;
            let hit = visited.hits.found.hits.iter().find(|it| it.hit.at == row);
            found = hit.map(word).unwrap_or_default();
        }
        // Some rows are not drawn: move the cursor to the last one before it.
        let items = self.pane().map_or(&[][..], |pane| pane.scrollback.items());
        let is_before = |id: &Id| {
            id.row()
                .is_some_and(|it| it.agent == row.agent && it.seq <= row.seq)
        };
        let mut ids = items.iter().map(|item| item.id);
        let nearest = ids.rfind(is_before);
        Browse::open_at_match(self, nearest, found);
        if self.pane().is_some_and(super::Pane::is_left) {
            self.toast("Not in context any more (cleared or rewound)");
        }
    }

    /// Returns from a hit to the list of hits; `false` if there is none.
    pub(super) fn return_to_hits(&mut self) -> bool {
        let Some(visited) = self.visited.as_mut().filter(|it| it.is_away) else {
            return false;
        };
        visited.is_away = false;
        let from = visited.hits.from;
        if from != self.current {
            self.effects.push(EngineRequest::Show(from));
        }
        self.effects.push(LoadRequest::SearchHits);
        true
    }

    /// Returns the current pane to the end of its history.
    pub(super) fn return_to_end(&mut self) {
        if let Some(pane) = self.current_mut() {
            pane.come_back();
        }
        if let Some(visited) = &mut self.visited {
            visited.is_away = false;
        }
    }

    /// Reads newer rows if few are left below the screen.
    pub(super) fn want_newer(&mut self) {
        let is_wanted = self.with_pane(|pane, eye| {
            let is_wanted = pane.has_newer() && pane.scrollback.ends_within(ITEMS_AHEAD, eye);
            if is_wanted {
                // New rows below must not move the viewport.
                pane.scrollback.hold(eye);
            }
            is_wanted
        });
        if is_wanted == Some(true) {
            self.effects.push(LoadRequest::NewerRows);
        }
    }
}

/// Returns the first matching word of a hit.
fn word(named: &Named) -> String {
    let snippet = &named.hit.snippet;
    let mark = snippet.marks.first().cloned();
    let word = mark.and_then(|mark| snippet.text.get(mark));
    word.unwrap_or_default().to_owned()
}

fn picker(hits: &Hits, marked: Option<RowRef>) -> Picker {
    let found = &hits.found;
    let mut entries: Vec<PickerEntry> = found.hits.iter().map(|named| entry(hits, named)).collect();
    let more = found.next.map(PickerAction::MoreHits);
    entries.extend(more.map(|more| PickerEntry::new(MORE, "", more)));
    let marked = found.hits.iter().find(|named| Some(named.hit.at) == marked);
    let marked = marked.map(|named| named.reference(Some(hits.from)));
    let mut title = format!("Results: {}", hits.typed.trim());
    for note in &found.notes {
        title.push_str(" · ");
        title.push_str(note);
    }
    Picker::new(title, entries, marked.as_deref())
}

fn entry(hits: &Hits, named: &Named) -> PickerEntry {
    let hit = &named.hit;
    let ago = since(hit.created_at, hits.now);
    let before = format!("{ago:>8}  {:<11}  ", hit.kind.name());
    let moved = |mark: &std::ops::Range<usize>| mark.start + before.len()..mark.end + before.len();
    PickerEntry {
        text: named.reference(Some(hits.from)),
        marks: hit.snippet.marks.iter().map(moved).collect(),
        about: before.clone() + &hit.snippet.text,
        action: PickerAction::GoTo(hit.at),
    }
}
