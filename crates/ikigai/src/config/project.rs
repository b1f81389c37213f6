//! Check of the keys in a project's file against the table of keys.

use std::ops::Range;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use toml::de::{DeTable, DeValue};

use super::table::{KEYS, Key, Project};

/// Key of a project's file, with its line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PlacedKey {
    /// Key as it is in the file, sections included.
    pub(crate) path: String,
    pub(crate) line: usize,
}

/// Fails at the first key that a project may not set; returns the ignored keys.
///
/// Unknown keys and wrong values are left to the parser of the file.
pub(crate) fn check(text: &str, file: &Path) -> Result<Vec<PlacedKey>> {
    let Ok(table) = DeTable::parse(text) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    collect(table.get_ref(), &mut Vec::new(), &mut found);
    let mut ignored = Vec::new();
    for (key, path, span) in found {
        let before = text.get(..span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        match key.project {
            Project::Refused => bail!(
                "`{}`, line {line}: a project cannot set `{path}`\nhint: set it in your own config{}",
                file.display(),
                own_file()
            ),
            Project::Ignored => ignored.push(PlacedKey { path, line }),
            Project::Replaces | Project::Adds | Project::Lowers | Project::Narrows => {}
        }
    }
    Ok(ignored)
}

/// Returns the keys of a project's file that override the user's.
pub(crate) fn trusted_keys(text: &str) -> Vec<String> {
    let Ok(table) = DeTable::parse(text) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    collect(table.get_ref(), &mut Vec::new(), &mut found);
    let overriding = found
        .into_iter()
        .filter(|(key, ..)| key.project == Project::Replaces);
    overriding.map(|(_, path, _)| path).collect()
}

fn own_file() -> String {
    let home = super::home().map(|home| super::user_file(&home));
    home.map(|file| format!(", `{}`", file.display()))
        .unwrap_or_default()
}

/// Collects the known keys of a table, sorted by path.
fn collect(
    table: &DeTable<'_>,
    path: &mut Vec<String>,
    found: &mut Vec<(&'static Key, String, Range<usize>)>,
) {
    for (name, value) in table {
        path.push(name.get_ref().to_string());
        if let Some(key) = KEYS.iter().find(|key| is_at(key, path)) {
            found.push((key, path.join("."), name.span()));
        } else if let DeValue::Table(section) = value.get_ref() {
            collect(section, path, found);
        }
        path.pop();
    }
}

fn is_at(key: &Key, path: &[String]) -> bool {
    let parts: Vec<_> = key.path.split('.').collect();
    let is_same = |(part, name): (&&str, &String)| *part == "*" || *part == name;
    parts.len() == path.len() && parts.iter().zip(path).all(is_same)
}

/// Lowers a limit to the project's; an unset limit is taken from the project.
pub(super) fn lower(own: Option<u64>, theirs: Option<u64>) -> Option<u64> {
    match (own, theirs) {
        (Some(own), Some(theirs)) => Some(own.min(theirs)),
        (own, theirs) => own.or(theirs),
    }
}

/// Returns the error for an invalid file, with the line.
pub(super) fn unreadable(file: &Path, text: &str, error: &toml::de::Error) -> anyhow::Error {
    let line = error.span().map_or_else(String::new, |span| {
        let before = text.get(..span.start).unwrap_or_default();
        format!(", line {}", before.matches('\n').count() + 1)
    });
    let reason = error.message().replace('\n', ", ");
    anyhow!("invalid config `{}`{line}: {reason}", file.display())
}
