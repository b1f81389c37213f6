//! Names of agents: `[a-z0-9][a-z0-9-]{0,31}`, and never `parent`.

/// Largest length of a name.
const LONGEST: usize = 32;

/// Name for the caller's parent; no agent can have it.
pub const PARENT: &str = "parent";

/// Names of the other speakers in a conversation; a message from an agent of such a name deceives.
const SPEAKERS: &[&str] = &[
    "assistant",
    "developer",
    "ikigai",
    "system",
    "tool",
    "user",
    "you",
];

/// Returns true if a name means another speaker of the conversation, which no model may choose.
pub fn is_speaker(name: &str) -> bool {
    SPEAKERS.contains(&name)
}

/// Returns true if the text is a valid agent name.
pub fn is_valid_name(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=LONGEST).contains(&name.len())
        && !name.starts_with('-')
        && name.bytes().all(legal)
        && name != PARENT
}

/// Makes a valid name out of any text.
pub fn name_from(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c.to_ascii_lowercase());
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
        if name.len() == LONGEST {
            break;
        }
    }
    let name = name.trim_end_matches('-');
    if is_valid_name(name) {
        name.to_owned()
    } else {
        "agent".to_owned()
    }
}

/// Returns the first of `name`, `name-2`, `name-3` … that is not taken.
pub fn free_name(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut number = 1_u64;
    let mut candidate = name.to_owned();
    while taken(&candidate) {
        number += 1;
        let suffix = format!("-{number}");
        let room = LONGEST - suffix.len();
        let stem: String = name.chars().take(room).collect();
        candidate = format!("{}{suffix}", stem.trim_end_matches('-'));
    }
    candidate
}

/// Returns the common prefix of all names that [`free_name`] may try.
///
/// It leaves room for a suffix of eight characters, which no real number exceeds.
pub fn stem(name: &str) -> &str {
    let room = LONGEST - 8;
    let beginning = name.char_indices().nth(room);
    let beginning = beginning.map_or(name, |(end, _)| &name[..end]);
    beginning.trim_end_matches('-')
}
