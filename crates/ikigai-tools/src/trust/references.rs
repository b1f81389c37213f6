//! Project files that a command line names, so that trust covers their content too.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::files;

/// Most files of one definition.
const MOST_FILES: usize = 16;

/// Names of the project's root in command lines.
const ROOT_NAMES: [&str; 4] = [
    "${CLAUDE_PROJECT_DIR}",
    "$CLAUDE_PROJECT_DIR",
    "${IKIGAI_PROJECT_DIR}",
    "$IKIGAI_PROJECT_DIR",
];

/// Returns a line for each project file that a definition names: its path and its hash.
///
/// A file that is too large to be hashed counts with its size.
pub(super) fn referenced_files(definition: &Value, root: &Path) -> String {
    let mut words = Vec::new();
    collect(definition, &mut words);
    let mut found: Vec<PathBuf> = Vec::new();
    for word in words {
        if found.len() < MOST_FILES
            && let Some(path) = project_file(&word, root)
            && !found.contains(&path)
        {
            found.push(path);
        }
    }
    found.sort();
    let lines = found.iter().map(|path| {
        let hash = match files::find(path) {
            Ok(files::FileSnapshot::Whole { bytes, .. }) => files::sha256_hex(&bytes),
            Ok(files::FileSnapshot::Large { bytes, .. }) => format!("{bytes} bytes"),
            Ok(files::FileSnapshot::Nothing) | Err(_) => "unreadable".to_owned(),
        };
        let path = path.strip_prefix(root).unwrap_or(path);
        format!("{}\0{hash}\n", path.display())
    });
    lines.collect()
}

/// Collects the words of all texts.
fn collect(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            words.push(text.clone());
            words.extend(text.split_whitespace().map(str::to_owned));
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, words)),
        Value::Object(values) => values.values().for_each(|value| collect(value, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the regular file below the root that a word names.
fn project_file(word: &str, root: &Path) -> Option<PathBuf> {
    let mut word = word.replace(['"', '\''], "");
    word = word.trim_end_matches([';', '&', '|', ')']).to_owned();
    for name in ROOT_NAMES {
        if let Some(rest) = word.strip_prefix(name) {
            word = rest.trim_start_matches('/').to_owned();
        }
    }
    let path = root.join(&word).canonicalize().ok()?;
    (path.starts_with(root) && path.is_file()).then_some(path)
}
