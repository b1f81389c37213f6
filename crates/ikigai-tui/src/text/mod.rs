//! Text on a screen: what of it must not reach a terminal, and where its rows end.

#[cfg(test)]
mod tests;
mod wrap;

pub use ikigai_core::spelling::{clean, clean_line, one_line};
pub use wrap::{WrapPosition, WrappedRows, cut, wrap, wrap_some};

/// First characters of a text on one line, with `…` where more follows.
pub fn beginning(text: &str, most_chars: usize) -> String {
    let line = one_line(text);
    match line.char_indices().nth(most_chars) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.into_owned(),
    }
}
