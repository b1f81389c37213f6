//! Drawing: a grid of cells that says what is to be seen, and a painter that makes a terminal show
//! it with as few bytes as it takes.

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
