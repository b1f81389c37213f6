//! Text on a screen: what of it must not reach a terminal, and where its rows end.

mod clean;
#[cfg(test)]
mod tests;
mod wrap;

pub use clean::{clean, clean_line};
pub use wrap::{Place, Rows, cut, wrap, wrap_some};
