//! Text for the screen: cleaning, cutting and wrapping.

#[cfg(test)]
mod tests;
mod wrap;

pub use ikigai_core::spelling::{clean, clean_line, one_line};
pub use wrap::{WrapPosition, WrappedRows, cut, wrap, wrap_some};

/// Returns the first characters of a text on one line, with `…` if more follows.
pub fn beginning(text: &str, most_chars: usize) -> String {
    let line = one_line(text);
    match line.char_indices().nth(most_chars) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.into_owned(),
    }
}
