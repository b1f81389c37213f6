//! Names of tools, now, in older logs and in other programs.

/// Name of the to-do list.
pub const TODO: &str = "todo";

/// Names of older logs and other programs, which models use by habit, and ours.
///
/// Sorted. No other tool may have one of them.
const OTHER_NAMES: [(&str, &str); 12] = [
    ("Bash", "bash"),
    ("Edit", "file_edit"),
    ("Glob", "glob"),
    ("Grep", "grep"),
    ("MultiEdit", "file_edit"),
    ("Read", "file_read"),
    ("Skill", "skill"),
    ("TodoWrite", TODO),
    ("WebFetch", "web_fetch"),
    ("WebSearch", "web_search"),
    ("Write", "file_write"),
    ("list", TODO),
];

/// Returns our name of a tool that older logs or other programs call differently.
pub fn current_name(name: &str) -> &str {
    let found = OTHER_NAMES.iter().find(|(other, _)| *other == name);
    found.map_or(name, |(_, ours)| ours)
}

/// Returns the names that external tools may not have, because they mean ours.
pub(crate) fn other_names() -> impl Iterator<Item = String> {
    OTHER_NAMES.iter().map(|(other, _)| (*other).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    #[test]
    fn other_names_mean_our_tools() {
        for (other, ours) in OTHER_NAMES {
            assert_eq!(current_name(other), ours);
            assert!(builtin::facts(ours).is_some(), "{ours}");
        }
        assert_eq!(current_name("bash"), "bash");
        assert_eq!(current_name("BASH"), "BASH");
    }
}
