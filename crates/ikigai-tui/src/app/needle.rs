//! Search text: it ignores case unless it has a capital letter.

use crate::width::width;

/// Text to find.
pub(super) struct Needle {
    text: String,
    is_exact: bool,
}

impl Needle {
    /// Looks for a text.
    pub(super) fn new(text: &str) -> Self {
        let is_exact = text.chars().any(char::is_uppercase);
        let text = if is_exact {
            text.to_owned()
        } else {
            text.to_lowercase()
        };
        Self { text, is_exact }
    }

    /// Reports whether it is empty.
    pub(super) fn is_nothing(&self) -> bool {
        self.text.is_empty()
    }

    /// Reports whether a text contains it.
    pub(super) fn is_in(&self, text: &str) -> bool {
        if self.is_exact {
            text.contains(&self.text)
        } else {
            text.to_lowercase().contains(&self.text)
        }
    }

    /// Returns the columns of its matches in a line.
    pub(super) fn columns(&self, line: &str) -> Vec<(u16, u16)> {
        if self.is_nothing() {
            return Vec::new();
        }
        let folded = if self.is_exact {
            line.to_owned()
        } else {
            line.to_lowercase()
        };
        // Columns would be wrong if letters change their length with their case.
        if folded.len() != line.len() {
            return Vec::new();
        }
        let places = folded.match_indices(&self.text);
        let column = |at: usize| u16::try_from(width(line.get(..at)?)).ok();
        let columns =
            places.filter_map(|(at, found)| Some((column(at)?, column(at + found.len())?)));
        columns.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Needle;

    #[test]
    fn case_counts_only_if_a_capital_letter_is_looked_for() {
        let cases = [
            ("needle", "a Needle", true),
            ("Needle", "a needle", false),
            ("Needle", "a Needle", true),
            ("ß", "GROSS", false),
        ];

        for (needle, text, is_there) in cases {
            assert_eq!(Needle::new(needle).is_in(text), is_there, "{needle} {text}");
        }
    }

    #[test]
    fn columns_are_cells_not_letters() {
        assert_eq!(Needle::new("ab").columns("日本 ab Ab"), [(5, 7), (8, 10)]);
        assert_eq!(Needle::new("").columns("ab"), []);
        // Lower case is longer than upper case here.
        assert_eq!(Needle::new("x").columns("İx"), []);
    }
}
