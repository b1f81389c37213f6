//! Numbers with nouns, for people and models.

use std::fmt::Display;

/// Formats a number with its noun: `1 turn`, `3 turns`, `2 entries`, `2 processes`.
///
/// The plural of the last word is regular.
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    if number == N::from(1) {
        return format!("1 {noun}");
    }
    let hisses = ["s", "x", "ch", "sh"];
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{number} {stem}ies"),
        _ if hisses.iter().any(|end| noun.ends_with(end)) => format!("{number} {noun}es"),
        _ => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn nouns_follow_their_number() {
        let cases = [
            (counted(0_usize, "turn"), "0 turns"),
            (counted(1_u64, "turn"), "1 turn"),
            (counted(2_i64, "turn"), "2 turns"),
            (counted(1, "matching line"), "1 matching line"),
            (counted(3, "matching line"), "3 matching lines"),
            (counted(2, "entry"), "2 entries"),
            (counted(2, "key"), "2 keys"),
            (counted(2, "process"), "2 processes"),
            (counted(2, "match"), "2 matches"),
        ];
        for (text, expected) in cases {
            assert_eq!(text, expected);
        }
    }
}
