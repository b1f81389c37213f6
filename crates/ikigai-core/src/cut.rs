//! Cuts long texts.

/// Shortens a text over `limit` bytes to head and tail, with a note between them.
pub(crate) fn cut_middle(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(limit / 2);
    let tail = text.ceil_char_boundary(text.len() - limit / 2);
    let missing = tail - head;
    let (head, tail) = (&text[..head], &text[tail..]);
    format!("{head}\n[{missing} bytes are left out to fit the window]\n{tail}")
}
