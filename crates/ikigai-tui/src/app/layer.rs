//! Layers: the elements of the screen that take keys, drawn one over the other.
//!
//! [`App`](super::App) offers each key, paste and mouse event to the topmost layer first. A layer
//! never touches the stack: it queues a [`LayerChange`], which `App` applies after the event.

use std::any::Any;
use std::time::Instant;

use super::UiContext;
use crate::key::{KeyPress, MouseEvent};
use crate::keys::{self, Action};
use crate::paint::Grid;

/// Screen element that can take keys: input, question, picker, board, browse, overlay.
pub(super) trait Layer: Any {
    /// Returns the key modes for lookup, first to last.
    fn bindings(&self, ctx: &UiContext) -> Vec<keys::KeyMode>;

    /// Takes a key before it is looked up, for layers with a text field.
    fn key(&mut self, _key: KeyPress, _ctx: &mut UiContext) -> Handled {
        Handled::No
    }

    /// Executes a bound action.
    fn act(&mut self, _action: Action, _ctx: &mut UiContext) -> Handled {
        Handled::No
    }

    /// Takes an unbound character; by default it is dropped.
    fn text(&mut self, _text: &str, _ctx: &mut UiContext) -> Handled {
        Handled::Yes
    }

    /// Takes pasted text; `No` closes the layer and pastes into the input.
    fn paste(&mut self, _text: &str, _ctx: &mut UiContext) -> Handled {
        Handled::No
    }

    /// Takes a mouse event; `No` passes it on to the layer below.
    fn mouse(&mut self, _mouse: MouseEvent, _ctx: &mut UiContext) -> Handled {
        Handled::No
    }

    /// Draws at the bottom of an area; returns the rows left above.
    fn draw(&mut self, area: Area, _ctx: &mut UiContext, _grid: &mut Grid) -> Area {
        area
    }

    /// Draws over the conversation, once that is drawn.
    fn draw_over(&mut self, _ctx: &mut UiContext, _grid: &mut Grid) {}

    /// Reports whether the layer hides the input and everything below it.
    fn covers_input(&self) -> bool {
        false
    }

    /// Continues work that takes several steps.
    fn tick(&mut self, _ctx: &mut UiContext) {}

    /// Returns the time at which the layer changes without input.
    fn next_tick(&self, _ctx: &UiContext) -> Option<Instant> {
        None
    }

    /// Follows a change of the tree, of agents at work or of the layers above.
    fn refresh(&mut self, _ctx: &mut UiContext) {}
}

/// Outcome of offering an event to a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handled {
    Yes,
    /// The layer has no use for the event.
    No,
}

impl From<bool> for Handled {
    fn from(is_handled: bool) -> Self {
        if is_handled { Self::Yes } else { Self::No }
    }
}

/// Change of the stack of layers.
pub(super) enum LayerChange {
    /// Replaces all layers above the input.
    Open(Box<dyn Layer>),
    /// Closes the topmost layer.
    Close,
    /// Closes all layers and gives the keys to the question.
    OpenQuestion,
}

/// Part of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) row: u16,
    pub(super) rows: u16,
    pub(super) column: u16,
    pub(super) columns: u16,
}

impl Area {
    /// Returns the row below the last one.
    pub(super) fn bottom(self) -> u16 {
        self.row + self.rows
    }

    /// Returns the area above a row.
    pub(super) fn above(self, row: u16) -> Self {
        Self {
            rows: row.saturating_sub(self.row),
            ..self
        }
    }
}
