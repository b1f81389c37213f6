//! Text on a screen: what of it must not reach a terminal, and where its rows end.

#[cfg(test)]
mod tests;
mod wrap;

pub use ikigai_core::spelling::{clean, clean_line, one_line};
pub use wrap::{Place, Rows, cut, wrap, wrap_some};
