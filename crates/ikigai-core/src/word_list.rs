//! Lists of words that are written as one text.

/// Words of a constant text, separated by white space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordList(pub &'static str);

impl WordList {
    /// Returns the words in their order.
    pub fn words(self) -> impl Iterator<Item = &'static str> + Clone {
        self.0.split_ascii_whitespace()
    }

    /// Returns true if `word` is one of the words.
    pub fn contains(self, word: &str) -> bool {
        self.words().any(|one| one == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_whole() {
        let list = WordList(
            "--all --after
             --before",
        );

        assert_eq!(
            list.words().collect::<Vec<_>>(),
            ["--all", "--after", "--before"]
        );
        assert!(list.contains("--before"));
        assert!(!list.contains("--a"), "a part of a word");
        assert!(!list.contains(""));
        assert!(!list.contains("--all --after"), "two words");
    }
}
