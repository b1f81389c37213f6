//! Hints: keys and their effects, fitted into a row.

use crate::line::{TextLine, TextSpan};
use crate::look::Look;
use crate::text::cut;
use crate::width::width;

/// Separator of two keys.
const BETWEEN: &str = " · ";

/// Keys, from the most to the least useful.
pub(super) struct Hints<'a> {
    /// Separator before the first key.
    pub(super) gap: &'a str,
    /// Keys that a narrow row omits, the last first.
    pub(super) keys: &'a [&'a str],
    /// Key that is always there, at the end.
    pub(super) way_out: &'a str,
    /// Look of the keys.
    pub(super) look: Look,
}

impl Hints<'_> {
    /// Fits a line and key hints into a row. Omits hints from the last on, then cuts the line.
    pub(super) fn after(&self, line_before: &TextLine, columns: u16) -> TextLine {
        let whole = usize::from(columns).saturating_sub(width(self.gap));
        let room = whole.saturating_sub(width(&line_before.text()));
        let mut shown = [self.keys, &[self.way_out]].concat();
        while shown.len() > 1 && width(&shown.join(BETWEEN)) > room {
            shown.remove(shown.len() - 2);
        }
        let keys = shown.join(BETWEEN);
        let most = whole.saturating_sub(width(&keys));
        let mut line = cut(line_before, u16::try_from(most).unwrap_or(columns), "…");
        let keys = format!("{}{keys}", self.gap);
        line.spans.push(TextSpan::new(keys, self.look));
        cut(&line, columns, "…")
    }
}

#[cfg(test)]
mod tests {
    use super::Hints;
    use crate::line::TextLine;
    use crate::look::{Look, Tone};

    #[test]
    fn the_way_out_is_seen_in_whatever_columns_there_are() {
        let hints = Hints {
            gap: "  ",
            keys: &["Enter go", "s mail", "f fork"],
            way_out: "Esc back",
            look: Look::of(Tone::Status),
        };
        let at = |columns| {
            hints
                .after(&TextLine::of(" #41", Tone::Text), columns)
                .text()
        };

        assert_eq!(at(80), " #41  Enter go · s mail · f fork · Esc back");
        assert_eq!(at(43), " #41  Enter go · s mail · f fork · Esc back");
        assert_eq!(at(42), " #41  Enter go · s mail · Esc back");
        assert_eq!(at(25), " #41  Enter go · Esc back");
        assert_eq!(at(24), " #41  Esc back");
        assert_eq!(at(12), " …  Esc back");
        assert_eq!(at(7), "  Esc …");
    }
}
