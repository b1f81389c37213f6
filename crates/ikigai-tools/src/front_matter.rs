//! Front matter of Markdown files: the lines between `---` at the start.
//!
//! A lenient reader of the YAML that people write there: plain, quoted and folded texts, lists in
//! both forms, and nested keys as `metadata.version`. A line that fits no form is skipped, because
//! one wrong line should not cost a skill; `description: Use it: always` is read as it is meant.

use std::collections::BTreeMap;

/// Most lines of front matter.
const MOST_LINES: usize = 400;

/// Keys and values of a front matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontMatter {
    values: BTreeMap<String, Vec<String>>,
}

impl FrontMatter {
    /// Splits a file into its front matter and its body.
    ///
    /// A file without front matter, or with one that is never closed, is all body.
    pub fn split(text: &str) -> (Self, &str) {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let Some(rest) = after_fence(text) else {
            return (Self::default(), text);
        };
        let mut lines = Vec::new();
        let mut left = rest;
        while lines.len() < MOST_LINES && !left.is_empty() {
            if let Some(body) = after_fence(left) {
                return (Self::parse(&lines), body.trim_start_matches(['\n', '\r']));
            }
            let (line, after) = left.split_once('\n').unwrap_or((left, ""));
            lines.push(line.trim_end_matches('\r'));
            left = after;
        }
        // The last line can be the fence, without a line end.
        (Self::default(), text)
    }

    /// Returns the text of a key; the entries of a list are joined by commas.
    pub fn text(&self, key: &str) -> Option<String> {
        let values = self.values.get(key)?;
        Some(values.join(", ")).filter(|text| !text.is_empty())
    }

    /// Returns the entries of a key: a list, or a text split at commas outside of brackets.
    pub fn list(&self, key: &str) -> Option<Vec<String>> {
        let values = self.values.get(key)?;
        Some(match values.as_slice() {
            [one] => split_list(one),
            many => many.to_vec(),
        })
    }

    /// Returns the value of a yes-or-no key.
    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.text(key)?.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" => Some(false),
            _ => None,
        }
    }

    /// Returns the keys, sorted.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    fn parse(lines: &[&str]) -> Self {
        let mut found = Self::default();
        // Open keys with their indentation.
        let mut parents: Vec<(usize, String)> = Vec::new();
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            at += 1;
            let content = line.trim_start();
            let depth = line.len() - content.len();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            if let Some(entry) = content
                .strip_prefix("- ")
                .or((content == "-").then_some(""))
            {
                let holder = parents.iter().rev().find(|(indent, _)| *indent <= depth);
                if let Some((_, key)) = holder {
                    found.add(key.clone(), unquote(entry));
                }
                continue;
            }
            let Some((key, value)) = key_and_value(content) else {
                continue;
            };
            parents.retain(|(indent, _)| *indent < depth);
            let path = match parents.last() {
                Some((_, parent)) => format!("{parent}.{key}"),
                None => key.to_owned(),
            };
            parents.push((depth, path.clone()));
            match value.chars().next() {
                Some('|' | '>') if is_block_sign(value) => {
                    let (text, used) = block(&lines[at..], depth, value.starts_with('|'));
                    at += used;
                    found.add(path, text);
                }
                Some('[') if value.ends_with(']') => {
                    let entries = &value[1..value.len() - 1];
                    found.values.entry(path.clone()).or_default();
                    for entry in split_list(entries) {
                        found.add(path.clone(), unquote(&entry));
                    }
                }
                Some(_) => {
                    let (text, used) = continued(value, &lines[at..], depth);
                    at += used;
                    found.add(path, text);
                }
                // A list, nested keys, or nothing follows.
                None => {}
            }
        }
        found
    }

    fn add(&mut self, key: String, value: String) {
        self.values.entry(key).or_default().push(value);
    }
}

/// Returns the text after a line of `---`.
fn after_fence(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("---")?;
    let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
    line.trim().is_empty().then_some(after)
}

/// Splits `key: value`; the key has no spaces.
fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let key = key.trim().trim_matches(['"', '\'']);
    let is_key = !key.is_empty() && !key.contains(char::is_whitespace);
    let is_apart = value.is_empty() || value.starts_with([' ', '\t', '\r']);
    (is_key && is_apart).then(|| (key, without_comment(value.trim())))
}

/// Removes a comment behind a plain value.
fn without_comment(value: &str) -> &str {
    if value.starts_with('#') {
        return "";
    }
    if value.starts_with(['"', '\'']) {
        return value;
    }
    value.split(" #").next().unwrap_or(value).trim_end()
}

fn is_block_sign(value: &str) -> bool {
    let signs = value.get(1..).unwrap_or_default();
    signs
        .chars()
        .all(|sign| matches!(sign, '+' | '-' | '0'..='9'))
}

/// Reads an indented block; returns its text and its number of lines.
fn block(lines: &[&str], depth: usize, keeps_lines: bool) -> (String, usize) {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let is_inside = |line: &&&str| line.trim().is_empty() || indent(line) > depth;
    let inside: Vec<&str> = lines.iter().take_while(is_inside).copied().collect();
    let shallowest = inside.iter().filter(|line| !line.trim().is_empty());
    let shallowest = shallowest.map(|line| indent(line)).min().unwrap_or(0);
    let texts = inside
        .iter()
        .map(|line| line.get(shallowest..).unwrap_or_default().trim_end());
    let joined = if keeps_lines {
        texts.collect::<Vec<_>>().join("\n")
    } else {
        let mut text = String::new();
        for line in texts {
            let gap = match line {
                "" => "\n",
                _ if text.is_empty() || text.ends_with('\n') => "",
                _ => " ",
            };
            text.push_str(gap);
            text.push_str(line);
        }
        text
    };
    (joined.trim().to_owned(), inside.len())
}

/// Reads a value that can go on in deeper lines; returns its text and the number of those lines.
fn continued(value: &str, lines: &[&str], depth: usize) -> (String, usize) {
    let goes_on = |line: &&&str| {
        let content = line.trim_start();
        let is_deeper = line.len() - content.len() > depth;
        let is_open = value.starts_with(['"', '\'']) && !is_closed(value);
        is_deeper
            && !content.is_empty()
            && (is_open || !content.starts_with("- ") && key_and_value(content).is_none())
    };
    let more: Vec<&str> = lines.iter().take_while(goes_on).copied().collect();
    let mut text = value.to_owned();
    for line in &more {
        text.push(' ');
        text.push_str(line.trim());
    }
    (unquote(&text), more.len())
}

fn is_closed(value: &str) -> bool {
    let quote = value.chars().next();
    value.len() > 1 && value.chars().last() == quote
}

/// Removes quotes around a value, and what they escape.
fn unquote(value: &str) -> String {
    let value = value.trim();
    let inner = |quote: char| {
        value
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
    };
    if let Some(text) = inner('\'') {
        return text.replace("''", "'");
    }
    let Some(text) = inner('"') else {
        return value.to_owned();
    };
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        plain.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    plain
}

/// Splits at commas outside of brackets and quotes: `Read, Bash(git add:*, git commit:*)`.
pub fn split_list(text: &str) -> Vec<String> {
    let mut entries = vec![String::new()];
    let (mut depth, mut quote) = (0_usize, None);
    for character in text.chars() {
        match (character, quote) {
            (',', None) if depth == 0 => {
                entries.push(String::new());
                continue;
            }
            ('(' | '[' | '{', None) => depth += 1,
            (')' | ']' | '}', None) => depth = depth.saturating_sub(1),
            ('"' | '\'', None) => quote = Some(character),
            (other, Some(open)) if other == open => quote = None,
            _ => {}
        }
        if let Some(entry) = entries.last_mut() {
            entry.push(character);
        }
    }
    let trimmed = entries.iter().map(|entry| unquote(entry));
    trimmed.filter(|entry| !entry.is_empty()).collect()
}

#[cfg(test)]
mod tests;
