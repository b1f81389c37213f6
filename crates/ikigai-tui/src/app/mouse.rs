//! The mouse: the wheel scrolls, a drag selects text.

use super::draw::Eye;
use super::{App, Mode, Wish};
use crate::key::{Deed, Mouse};
use crate::scrollback::{Place, Selection};

/// How many rows the wheel moves.
const WHEEL_ROWS: isize = 3;

impl App {
    /// Does what the mouse means.
    pub(super) fn mouse(&mut self, mouse: Mouse) {
        if self.board().is_some() {
            match mouse.deed {
                Deed::WheelUp => self.wheel_board(-1),
                Deed::WheelDown => self.wheel_board(1),
                Deed::Release => self.click_board(mouse.row),
                Deed::Press | Deed::Drag => {}
            }
            return;
        }
        match mouse.deed {
            Deed::WheelUp if self.scroll_question(-WHEEL_ROWS) => {}
            Deed::WheelDown if self.scroll_question(WHEEL_ROWS) => {}
            Deed::WheelUp if self.wheel_picker(-1) => {}
            Deed::WheelDown if self.wheel_picker(1) => {}
            Deed::Press if self.click_picker(mouse.row) => {}
            Deed::WheelUp => self.scroll(-WHEEL_ROWS),
            Deed::WheelDown => self.scroll(WHEEL_ROWS),
            Deed::Press => {
                self.selection = self.place_at(mouse).map(|place| Selection {
                    from: place,
                    to: place,
                });
                let listed = mouse.row.checked_sub(self.list_row);
                if let Some(row) = listed.filter(|_| mouse.row + 1 < self.rows) {
                    self.click_entry(usize::from(row));
                } else if mouse.row >= self.input_row
                    && let Some(pane) = self.panes.get_mut(&self.current)
                {
                    let row = usize::from(mouse.row - self.input_row);
                    pane.editor
                        .click(row, usize::from(mouse.column.saturating_sub(2)));
                }
            }
            Deed::Drag => {
                let place = self.place_at(mouse);
                if let (Some(selection), Some(place)) = (&mut self.selection, place) {
                    selection.to = place;
                }
            }
            Deed::Release => {
                let is_point = self
                    .selection
                    .is_some_and(|selection| selection.from == selection.to);
                if is_point {
                    self.click();
                } else if self.selection.is_some() {
                    self.copy_selection();
                }
            }
        }
    }

    /// Scrolls by so many rows, and reads more above when that is all.
    pub(super) fn scroll(&mut self, rows: isize) {
        let Some(mut pane) = self.panes.remove(&self.current) else {
            return;
        };
        let eye = Eye::new(self, self.current);
        let is_top = pane.scrollback.scroll(rows, &eye);
        if is_top && !pane.is_complete {
            self.wishes.push(Wish::ReadOlder);
        }
        self.panes.insert(self.current, pane);
        if rows > 0 {
            self.want_newer();
        }
    }

    /// A click on an event is the beginning of browsing.
    fn click(&mut self) {
        let clicked = self.selection.take().map(|selection| selection.from.id);
        let browses = matches!(self.mode, Mode::Input | Mode::Browse(_));
        if let Some(id) = clicked.filter(|id| id.row().is_some() && browses) {
            self.browse(Some(id));
        }
    }

    fn place_at(&self, mouse: Mouse) -> Option<Place> {
        let visible = self.visible.get(usize::from(mouse.row))?;
        Some(Place {
            id: visible.id?,
            row: visible.row,
            column: usize::from(mouse.column),
        })
    }

    /// Copies what is selected.
    pub(super) fn copy_selection(&mut self) {
        let (Some(selection), Some(pane)) = (self.selection, self.panes.get(&self.current)) else {
            return;
        };
        let places = |id| pane.scrollback.place(id);
        let rows = self.visible.iter().filter_map(|visible| {
            let (from, to) = selection.columns(visible, &places)?;
            Some((visible.line()?, from, to))
        });
        let text = crate::scrollback::joined(rows);
        if text.is_empty() {
            return;
        }
        let count = text.chars().count();
        self.say(format!(
            "copied {count} characters · Shift-drag for the terminal's own selection"
        ));
        self.wishes.push(Wish::Copy(text));
    }
}
