//! Words of typed lines.

/// Returns the first word of a command line and the rest; none for other lines.
pub(crate) fn command_word(line: &str) -> Option<(&str, &str)> {
    let after = line.strip_prefix('/')?;
    let end = after.find(char::is_whitespace).unwrap_or(after.len());
    let (name, rest) = after.split_at(end);
    is_command_name(name).then_some((name, rest))
}

/// Returns true if a word can be the name of a command, a skill included.
pub(crate) fn is_command_name(word: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
    word.starts_with(|first: char| first.is_ascii_alphabetic()) && word.chars().all(is_letter)
}

/// Splits a text into words.
pub(crate) fn words(text: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut left = text;
    while let Some((word, after)) = next_word(left)? {
        found.push(word);
        left = after;
    }
    Ok(found)
}

/// Splits off the first word and the space behind it.
/// Single quotes keep everything, double quotes everything but backslashes, and a backslash keeps
/// the character after it.
pub(crate) fn next_word(text: &str) -> Result<Option<(String, &str)>, String> {
    let text = text.trim_start();
    if text.is_empty() {
        return Ok(None);
    }
    let mut word = String::new();
    let mut quote = None;
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None | Some('"'), '\\') => match characters.next() {
                Some((_, kept)) => word.push(kept),
                None => return Err("nothing follows the last backslash".to_owned()),
            },
            (None, c) if c.is_whitespace() => return Ok(Some((word, text[at..].trim_start()))),
            (_, c) => word.push(c),
        }
    }
    match quote {
        Some(open) => Err(format!("missing closing {open}")),
        None => Ok(Some((word, ""))),
    }
}
