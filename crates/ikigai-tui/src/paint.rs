//! Drawing: a grid of cells, and a painter that updates a terminal with few bytes.

mod cell;
mod grid;
mod painter;
mod pen;
mod row;
mod scroll;
mod theme;

pub use cell::GridCell;
pub use grid::{Grid, StyledRun};
pub use painter::Painter;
pub use theme::{CellStyle, Colour, Theme};
