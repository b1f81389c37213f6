//! What was looked for in the whole log: the hits as a list, and going from one to its place.

use ikigai_core::{AgentId, Micros, RowRef};
use ikigai_engine::search::{Cursor, Found, Named};
use ikigai_engine::since;

use super::{App, Deed, Entry, Mode, Picker, Wish};
use crate::scrollback::Id;

/// The entry that reads more.
const MORE: &str = "more …";

/// So many events below the screen are to be there before somebody goes to them.
const ITEMS_AHEAD: usize = 20;

/// A search, as far as it was answered.
#[derive(Clone, Debug)]
pub struct Hits {
    /// What was typed.
    pub typed: String,
    /// Who was shown then, where Esc comes back to.
    pub from: AgentId,
    /// When it was asked.
    pub now: Micros,
    /// What was found.
    pub found: Found,
}

/// Hits that were gone to, and how to come back.
#[derive(Clone, Debug)]
pub(super) struct Visited {
    hits: Hits,
    /// The one that was gone to, or is to be marked first.
    marked: Option<RowRef>,
    /// Whether one is there.
    is_away: bool,
}

impl Hits {
    /// With what an earlier answer had before.
    fn after(mut self, earlier: &Self) -> Self {
        let mut all = earlier.found.hits.clone();
        all.append(&mut self.found.hits);
        self.found.hits = all;
        self
    }
}

impl App {
    /// Has the log searched.
    pub(super) fn search_log(&mut self, typed: &str) {
        self.visited = None;
        self.wishes.push(Wish::Search {
            typed: typed.to_owned(),
            after: None,
        });
    }

    /// Shows what was found, unless the user does something else by now.
    pub fn set_hits(&mut self, hits: Hits, is_more: bool) {
        let earlier = self.visited.take().filter(|_| is_more);
        let marked = hits.found.hits.first().map(|named| named.hit.at);
        let hits = match &earlier {
            Some(earlier) => hits.after(&earlier.hits),
            None => hits,
        };
        if hits.found.hits.is_empty() {
            return self.say("nothing was found");
        }
        self.said = None;
        self.list_hits(Visited {
            hits,
            marked,
            is_away: false,
        });
    }

    fn list_hits(&mut self, visited: Visited) {
        let picker = picker(&visited.hits, visited.marked);
        self.visited = Some(visited);
        self.choose(Box::new(picker));
    }

    /// Goes to a row that was found.
    pub(super) fn go_to_hit(&mut self, row: RowRef) {
        if let Some(visited) = &mut self.visited {
            visited.marked = Some(row);
        }
        self.wishes.push(Wish::GoTo(row));
    }

    /// Reads further hits.
    pub(super) fn more_hits(&mut self, after: Cursor) {
        let typed = self.visited.as_ref().map(|it| it.hits.typed.clone());
        self.wishes.extend(typed.map(|typed| Wish::Search {
            typed,
            after: Some(after),
        }));
    }

    /// Marks the row that was gone to; the agent that wrote it is shown around that row.
    pub fn arrive(&mut self, row: RowRef) {
        let mut found = String::new();
        if let Some(visited) = &mut self.visited {
            visited.is_away = true;
            let hit = visited.hits.found.hits.iter().find(|it| it.hit.at == row);
            found = hit.map(word).unwrap_or_default();
        }
        // Some rows are not drawn: then the last before it is meant.
        let items = self.pane().map_or(&[][..], |pane| pane.scrollback.items());
        let is_before = |id: &Id| {
            id.row()
                .is_some_and(|it| it.agent == row.agent && it.seq <= row.seq)
        };
        let mut ids = items.iter().map(|item| item.id);
        let nearest = ids.rfind(is_before);
        self.browse_for(nearest, found);
        if self.pane().is_some_and(super::Pane::is_left) {
            self.say("this is not remembered any more: it was cleared away or gone back from");
        }
    }

    /// Comes back from a row that was gone to, to the list from which it was chosen; says whether
    /// there is one.
    pub(super) fn return_to_hits(&mut self) -> bool {
        let Some(visited) = self.visited.as_mut().filter(|it| it.is_away) else {
            return false;
        };
        visited.is_away = false;
        let from = visited.hits.from;
        if from != self.current {
            self.wishes.push(Wish::Show(from));
        }
        self.wishes.push(Wish::ListHits);
        true
    }

    /// Shows the hits again that were found last.
    pub fn list_hits_again(&mut self) {
        if let Some(visited) = self.visited.take() {
            self.list_hits(visited);
        }
    }

    /// Whoever does not browse any more is at the end of what is remembered again.
    pub(super) fn mind_place(&mut self) {
        if matches!(self.mode, Mode::Browse(_)) {
            return;
        }
        if let Some(pane) = self.panes.get_mut(&self.current) {
            pane.come_back();
        }
        if let Some(visited) = &mut self.visited {
            visited.is_away = false;
        }
    }

    /// Reads more below, if little of what was read lies below the screen.
    pub(super) fn want_newer(&mut self) {
        let is_wanted = self.with_pane(|pane, eye| {
            let is_wanted = pane.has_newer() && pane.scrollback.ends_within(ITEMS_AHEAD, eye);
            if is_wanted {
                // What comes below must not move it.
                pane.scrollback.hold(eye);
            }
            is_wanted
        });
        if is_wanted == Some(true) {
            self.wishes.push(Wish::ReadNewer);
        }
    }
}

/// The word of a hit that was looked for, as it is written there.
fn word(named: &Named) -> String {
    let snippet = &named.hit.snippet;
    let mark = snippet.marks.first().cloned();
    let word = mark.and_then(|mark| snippet.text.get(mark));
    word.unwrap_or_default().to_owned()
}

fn picker(hits: &Hits, marked: Option<RowRef>) -> Picker {
    let found = &hits.found;
    let mut entries: Vec<Entry> = found.hits.iter().map(|named| entry(hits, named)).collect();
    let more = found.next.map(Deed::MoreHits);
    entries.extend(more.map(|more| Entry::new(MORE, "", more)));
    let marked = found.hits.iter().find(|named| Some(named.hit.at) == marked);
    let marked = marked.map(|named| named.reference(Some(hits.from)));
    let mut title = format!("found: {}", hits.typed.trim());
    for note in &found.notes {
        title.push_str(" · ");
        title.push_str(note);
    }
    Picker::new(title, entries, marked.as_deref())
}

fn entry(hits: &Hits, named: &Named) -> Entry {
    let hit = &named.hit;
    let ago = since(hit.created_at, hits.now);
    let before = format!("{ago:>8}  {:<11}  ", hit.kind.name());
    let moved = |mark: &std::ops::Range<usize>| mark.start + before.len()..mark.end + before.len();
    Entry {
        text: named.reference(Some(hits.from)),
        marks: hit.snippet.marks.iter().map(moved).collect(),
        about: before.clone() + &hit.snippet.text,
        deed: Deed::GoTo(hit.at),
    }
}
