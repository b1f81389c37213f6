//! The scrollback of one agent: rows laid out once per width, and only when visible.
//!
//! Rows above the screen are laid out when the user scrolls to them, so unread history costs
//! nothing. The viewport is anchored to a row of an item: text that arrives below and pages that
//! are read above never move it.

mod items;
mod reports;
mod select;

use std::collections::HashMap;
use std::rc::Rc;

use ikigai_core::{AgentState, View};

pub use items::{ExtraRows, Id, ItemContent, ScrollbackItem};
pub use select::{Selection, TextPosition, join_rows};

use crate::line::TextLine;

/// Number of laid-out items cached in addition to the visible ones.
const KEPT_BLOCKS: usize = 400;

/// Most rows counted below the screen.
const MOST_COUNTED: usize = 9_999;

/// Renderer of items.
pub trait ItemRenderer {
    /// Renders the rows of an item, without the blank row after it.
    /// `unfolded` requests all rows.
    fn lay_out(&self, item: &ScrollbackItem, unfolded: bool) -> Vec<TextLine>;

    /// Returns a number that changes when items must be rendered again.
    fn generation(&self) -> u64;

    /// Returns true if a blank row follows each item.
    fn is_airy(&self) -> bool;
}

/// Position of the viewport.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Viewport {
    /// The end; follows new rows.
    End,
    /// From this row of this item.
    From(Id, usize),
}

/// Visible row of the scrollback.
#[derive(Clone, Debug)]
pub struct Visible {
    /// Its item.
    pub id: Option<Id>,
    /// Row of the item.
    pub row: usize,
    block: Rc<Vec<TextLine>>,
}

impl Visible {
    /// Returns its line; none if it is blank.
    pub fn line(&self) -> Option<&TextLine> {
        self.block.get(self.row)
    }
}

/// Items of one agent and their laid-out rows.
pub struct Scrollback {
    items: Vec<ScrollbackItem>,
    places: HashMap<Id, usize>,
    blocks: HashMap<Id, Rc<Vec<TextLine>>>,
    unfolded: HashMap<Id, bool>,
    all_unfolded: bool,
    generation: u64,
    look: Viewport,
    /// Last seen item, and its number of rows, when the viewport left the end.
    left_at: Option<(Id, usize)>,
    live: Rc<Vec<TextLine>>,
    height: usize,
}

impl Default for Scrollback {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            places: HashMap::new(),
            blocks: HashMap::new(),
            unfolded: HashMap::new(),
            all_unfolded: false,
            generation: 0,
            look: Viewport::End,
            left_at: None,
            live: Rc::default(),
            height: 0,
        }
    }
}

impl Scrollback {
    /// Sets the items: an agent's path, and hidden rows to show.
    pub fn set(&mut self, state: &AgentState, view: &View, beside: Option<ExtraRows<'_>>) {
        self.items = items::items(state, view, beside);
        let places = self.items.iter().enumerate();
        self.places = places.map(|(index, item)| (item.id, index)).collect();
        // The usage of a turn changes while it runs.
        for item in self.items.iter().rev().take(3) {
            if !matches!(item.what, ItemContent::Row { report: None, .. }) {
                self.blocks.remove(&item.id);
            }
        }
        if let Viewport::From(id, _) = self.look
            && self.place(id).is_none()
        {
            self.look = Viewport::End;
        }
    }

    /// Returns all items, oldest first.
    pub fn items(&self) -> &[ScrollbackItem] {
        &self.items
    }

    /// Returns the item of this id.
    pub fn item(&self, id: Id) -> Option<&ScrollbackItem> {
        self.items.get(*self.places.get(&id)?)
    }

    /// Returns the index of an item.
    pub fn place(&self, id: Id) -> Option<usize> {
        match id {
            Id::Live => Some(self.items.len()),
            id => self.places.get(&id).copied(),
        }
    }

    /// Replaces the unstored rows below all items.
    pub fn set_live(&mut self, lines: Vec<TextLine>) {
        if lines.is_empty()
            && let Viewport::From(Id::Live, row) = self.look
        {
            // The live rows have become an item: the newest answer.
            let said = self.items.iter().rev().find(|item| item.is_said());
            self.look = said.map_or(Viewport::End, |item| Viewport::From(item.id, row));
        }
        self.live = Rc::new(lines);
    }

    /// Returns true if the viewport is at the end.
    pub fn is_at_end(&self) -> bool {
        self.look == Viewport::End
    }

    /// Moves the viewport to the end.
    pub fn look_at_end(&mut self) {
        self.look = Viewport::End;
        self.left_at = None;
    }

    /// Unfolds or folds an item.
    pub fn toggle(&mut self, id: Id) {
        let unfolded = self.is_unfolded(id);
        self.unfolded.insert(id, !unfolded);
        self.blocks.remove(&id);
    }

    /// Unfolds or folds all items.
    pub fn toggle_all(&mut self) {
        self.unfold_all(!self.all_unfolded);
    }

    /// Unfolds or folds all items, as given.
    pub fn unfold_all(&mut self, unfolded: bool) {
        self.all_unfolded = unfolded;
        self.unfolded.clear();
        self.blocks.clear();
    }

    fn is_unfolded(&self, id: Id) -> bool {
        *self.unfolded.get(&id).unwrap_or(&self.all_unfolded)
    }

    /// Returns the visible rows, from top to bottom, at most `height`.
    pub fn visible(&mut self, height: usize, layout: &dyn ItemRenderer) -> Vec<Visible> {
        self.height = height;
        if self.generation != layout.generation() {
            self.generation = layout.generation();
            self.blocks.clear();
        }
        let rows = match self.look {
            Viewport::End => self.rows_before_end(height, layout),
            Viewport::From(id, row) => {
                let rows = self.rows_from(id, row, height, layout);
                if rows.len() < height {
                    // Fewer rows below than fit: show the end.
                    self.look_at_end();
                    self.rows_before_end(height, layout)
                } else {
                    rows
                }
            }
        };
        self.drop_far_blocks(&rows);
        rows
    }

    /// Scrolls by a number of rows, up if negative. Returns true if the top is reached.
    pub fn scroll(&mut self, by: isize, layout: &dyn ItemRenderer) -> bool {
        let top = self.visible(self.height, layout).into_iter().next();
        let Some(top) = top else { return true };
        let index = top.id.and_then(|id| self.place(id)).unwrap_or(0);
        let rows = by.unsigned_abs();
        if by < 0 {
            if self.is_at_end() {
                self.remember_end(layout);
            }
            return self.look_above(index, top.row, rows, layout);
        }
        self.look_below(index, top.row, rows, layout);
        false
    }

    /// Moves the viewport a number of rows above a place. Returns true if there are fewer.
    fn look_above(
        &mut self,
        mut index: usize,
        mut row: usize,
        rows: usize,
        layout: &dyn ItemRenderer,
    ) -> bool {
        while rows > row {
            let Some(above) = index.checked_sub(1) else {
                self.look_from(0, 0);
                return true;
            };
            index = above;
            row += self.height_of(index, layout);
        }
        self.look_from(index, row - rows);
        false
    }

    fn look_below(&mut self, index: usize, row: usize, rows: usize, layout: &dyn ItemRenderer) {
        let (mut index, mut at) = (index, row + rows);
        while index <= self.items.len() {
            let height = self.height_of(index, layout);
            if at < height {
                self.look_from(index, at);
                return;
            }
            at -= height;
            index += 1;
        }
        self.look_at_end();
    }

    /// Scrolls to an item if it is off the screen. Shows all of it if it fits.
    pub fn reveal(&mut self, id: Id, layout: &dyn ItemRenderer) {
        let Some(index) = self.place(id) else {
            return;
        };
        if self.height == 0 {
            // Nothing was drawn yet.
            return self.look_from(index, 0);
        }
        let rows = self.visible(self.height, layout);
        let on_screen = rows.iter().filter(|row| row.id == Some(id)).count();
        let wanted = self.height_of(index, layout);
        if on_screen >= wanted.min(self.height) {
            return;
        }
        if self.is_at_end() {
            self.remember_end(layout);
        }
        let first = rows.iter().find_map(|row| row.id);
        let first = first.and_then(|id| self.place(id));
        if first.is_some_and(|first| index > first) && wanted <= self.height {
            // It is further down: its last row becomes the screen's last.
            self.look_above(index, 0, self.height - wanted, layout);
        } else {
            self.look_from(index, 0);
        }
    }

    /// Scrolls to an item; of one that does not fit, to its end.
    pub fn reveal_end(&mut self, id: Id, layout: &dyn ItemRenderer) {
        let count = self.lines(id, layout).len();
        if count <= self.height {
            return self.reveal(id, layout);
        }
        let is_seen = self
            .hidden_rows(id, layout)
            .is_some_and(|(_, below)| below == 0);
        if let Some(&index) = self.places.get(&id).filter(|_| !is_seen) {
            self.hold(layout);
            self.look_from(index, count - self.height);
        }
    }

    /// Scrolls to a row of an item.
    pub fn reveal_row(&mut self, id: Id, row: usize, layout: &dyn ItemRenderer) {
        let rows = self.visible(self.height, layout);
        if rows
            .iter()
            .any(|seen| seen.id == Some(id) && seen.row == row)
        {
            return;
        }
        if let Some(&index) = self.places.get(&id) {
            self.hold(layout);
            self.look_above(index, row, self.height / 2, layout);
        }
    }

    /// Returns true if at most a number of items lie below the viewport.
    pub fn ends_within(&mut self, items: usize, layout: &dyn ItemRenderer) -> bool {
        let rows = self.visible(self.height, layout);
        let last = rows.last().and_then(|row| row.id);
        let place = last.and_then(|id| self.place(id));
        place.is_none_or(|place| place + items >= self.items.len())
    }

    /// Stops following the end: new rows below do not scroll the viewport.
    pub fn hold(&mut self, layout: &dyn ItemRenderer) {
        if !self.is_at_end() {
            return;
        }
        let rows = self.visible(self.height, layout);
        let Some((id, row)) = rows.first().and_then(|top| Some((top.id?, top.row))) else {
            return;
        };
        self.remember_end(layout);
        self.look = Viewport::From(id, row);
    }

    /// Follows the end again if the viewport shows the last row.
    pub fn let_go(&mut self, layout: &dyn ItemRenderer) {
        let bottom = |rows: &[Visible]| rows.last().map(|row| (row.id, row.row));
        let here = self.visible(self.height, layout);
        let end = self.rows_before_end(self.height, layout);
        if bottom(&here) == bottom(&end) {
            self.look_at_end();
        }
    }

    /// Counts an item's rows above and below the screen; none if off the screen.
    pub fn hidden_rows(&mut self, id: Id, layout: &dyn ItemRenderer) -> Option<(usize, usize)> {
        let rows = self.visible(self.height, layout);
        let mut own = rows.iter().filter(|row| row.id == Some(id));
        let first = own.next()?.row;
        let last = own.next_back().map_or(first, |row| row.row);
        let count = self.block(*self.places.get(&id)?, layout).len();
        Some((first, count.saturating_sub(last + 1)))
    }

    /// Returns the rows of an item in its current state, folded or not.
    pub fn lines(&mut self, id: Id, layout: &dyn ItemRenderer) -> Rc<Vec<TextLine>> {
        match self.places.get(&id) {
            Some(&index) => self.block(index, layout),
            None => Rc::default(),
        }
    }

    /// Counts the rows added since the viewport left the end.
    pub fn new_rows(&mut self, layout: &dyn ItemRenderer) -> usize {
        let Some((id, seen)) = self.left_at else {
            return 0;
        };
        let Some(from) = self.place(id) else {
            return 0;
        };
        let mut count = self.height_of(from, layout).saturating_sub(seen);
        for index in from + 1..=self.items.len() {
            count = (count + self.height_of(index, layout)).min(MOST_COUNTED);
        }
        count
    }

    fn remember_end(&mut self, layout: &dyn ItemRenderer) {
        let Some(last) = self.items.last().map(|item| item.id) else {
            return;
        };
        let index = self.items.len() - 1;
        self.left_at = Some((last, self.height_of(index, layout)));
    }

    fn look_from(&mut self, index: usize, row: usize) {
        if let Some(id) = self.id_at(index) {
            self.look = Viewport::From(id, row);
        }
    }

    /// Returns the item at an index; the unstored rows come after the last one.
    fn id_at(&self, index: usize) -> Option<Id> {
        let live = (index == self.items.len()).then_some(Id::Live);
        self.items.get(index).map(|item| item.id).or(live)
    }

    fn rows_before_end(&mut self, height: usize, layout: &dyn ItemRenderer) -> Vec<Visible> {
        let mut rows = Vec::with_capacity(height + 1);
        let mut index = self.items.len();
        loop {
            self.push_rows(index, layout, &mut rows, true);
            if rows.len() > height || index == 0 {
                break;
            }
            index -= 1;
        }
        rows.truncate(height);
        rows.reverse();
        rows
    }

    fn rows_from(
        &mut self,
        id: Id,
        row: usize,
        height: usize,
        layout: &dyn ItemRenderer,
    ) -> Vec<Visible> {
        let Some(first) = self.place(id) else {
            return Vec::new();
        };
        let mut rows = Vec::with_capacity(height + 1);
        for index in first..=self.items.len() {
            self.push_rows(index, layout, &mut rows, false);
            let skipped = if index == first { row } else { 0 };
            rows.drain(..skipped.min(rows.len()));
            if rows.len() >= height {
                break;
            }
        }
        rows.truncate(height);
        rows
    }

    /// Adds the rows of one item, forwards or backwards.
    fn push_rows(
        &mut self,
        index: usize,
        layout: &dyn ItemRenderer,
        rows: &mut Vec<Visible>,
        backwards: bool,
    ) {
        let height = self.height_of(index, layout);
        let block = self.block(index, layout);
        let id = self.id_at(index);
        let visible = |row| Visible {
            id,
            row,
            block: block.clone(),
        };
        if backwards {
            rows.extend((0..height).rev().map(visible));
        } else {
            rows.extend((0..height).map(visible));
        }
    }

    /// Counts the rows of an item, with the blank one after it.
    fn height_of(&mut self, index: usize, layout: &dyn ItemRenderer) -> usize {
        match self.block(index, layout).len() {
            0 => 0,
            rows => rows + usize::from(layout.is_airy() && !self.is_last(index, layout)),
        }
    }

    /// Returns true if nothing is drawn below an item.
    fn is_last(&mut self, index: usize, layout: &dyn ItemRenderer) -> bool {
        (index + 1..=self.items.len()).all(|below| self.block(below, layout).is_empty())
    }

    /// Returns the rows of an item, or the unstored rows after the last one.
    fn block(&mut self, index: usize, layout: &dyn ItemRenderer) -> Rc<Vec<TextLine>> {
        let Some(item) = self.items.get(index) else {
            return self.live.clone();
        };
        if let Some(block) = self.blocks.get(&item.id) {
            return block.clone();
        }
        let unfolded = self.is_unfolded(item.id);
        let block = Rc::new(layout.lay_out(item, unfolded));
        self.blocks.insert(item.id, block.clone());
        block
    }

    /// Drops layouts far from the screen, so that scrolling does not grow memory.
    fn drop_far_blocks(&mut self, rows: &[Visible]) {
        if self.blocks.len() <= KEPT_BLOCKS {
            return;
        }
        let here = rows.iter().filter_map(|row| row.id);
        let here: Vec<_> = here.filter_map(|id| self.place(id)).collect();
        let (Some(first), Some(last)) = (here.iter().min(), here.iter().max()) else {
            return self.blocks.clear();
        };
        let near = first.saturating_sub(KEPT_BLOCKS / 4)..=last.saturating_add(KEPT_BLOCKS / 4);
        let places = &self.places;
        self.blocks
            .retain(|id, _| places.get(id).is_some_and(|index| near.contains(index)));
    }
}

#[cfg(test)]
mod tests;
