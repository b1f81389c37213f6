//! Imports of `CLAUDE.md`: files that its text names as `@path`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ikigai_tools::Place;

use super::{Document, leaves_project};
use crate::EngineReader;

/// Most levels of files that import others.
const MOST_LEVELS: usize = 5;

/// Most imported files.
const MOST_FILES: usize = 20;

/// Most bytes of a file with its imports.
const MOST_BYTES: usize = 256 * 1024;

/// Adds the files that a `CLAUDE.md` imports to the end of its text.
///
/// Files that do not exist, lead out of the project or are no texts stay plain words: `@name` is
/// often no path.
pub(super) async fn with_imports(
    engine: &EngineReader,
    place: &Place,
    document: Document,
) -> Document {
    if !document.path.ends_with("CLAUDE.md") {
        return document;
    }
    let mut text = String::from_utf8_lossy(&document.bytes).into_owned();
    let mut known = BTreeSet::from([document.path.clone()]);
    let mut waiting = vec![(document.path.clone(), text.clone(), 1)];
    while let Some((importer, content, level)) = waiting.pop() {
        let directory = importer.parent().unwrap_or(Path::new("/"));
        let mut found = Vec::new();
        for name in imports(&content) {
            let path = directory.join(name);
            if known.len() > MOST_FILES || !known.insert(path.clone()) {
                continue;
            }
            if let Some(imported) = read(engine, place, path).await {
                found.push((name, imported));
            }
        }
        for (name, imported) in &found {
            let content = String::from_utf8_lossy(&imported.bytes);
            if text.len() + content.len() <= MOST_BYTES {
                let importer = file_name(&importer);
                let _ = write!(text, "\n\n# Imported by {importer}: @{name}\n\n{content}");
            }
        }
        for (_, imported) in found.into_iter().rev() {
            if level < MOST_LEVELS {
                let content = String::from_utf8_lossy(&imported.bytes).into_owned();
                waiting.push((imported.path, content, level + 1));
            }
        }
    }
    Document {
        bytes: text.into_bytes(),
        ..document
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Reads an imported file, if it is a text file of the project.
async fn read(engine: &EngineReader, place: &Place, path: PathBuf) -> Option<Document> {
    let name = path.to_str()?.to_owned();
    let root = place.workdir.clone();
    let is_inside = move || !leaves_project(&path) && is_in_project(&path, &root);
    let is_inside = tokio::task::spawn_blocking(is_inside)
        .await
        .unwrap_or(false);
    if !is_inside {
        return None;
    }
    Document::read(engine, place, &name).await.ok()
}

/// Returns true if a file is in the repository of a directory, or below the directory.
#[expect(clippy::disallowed_methods, reason = "runs on a blocking thread")]
fn is_in_project(path: &Path, workdir: &Path) -> bool {
    let root = workdir
        .ancestors()
        .find(|ancestor| ancestor.join(".git").exists())
        .unwrap_or(workdir);
    match (path.canonicalize(), root.canonicalize()) {
        (Ok(path), Ok(root)) => path.is_file() && path.starts_with(root),
        _ => false,
    }
}

/// Returns the words behind `@` outside of code.
fn imports(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
            continue;
        }
        if is_code {
            continue;
        }
        // Every second part is between backticks.
        for prose in line.split('`').step_by(2) {
            let words = prose.split_whitespace();
            let names = words.filter_map(|word| word.strip_prefix('@'));
            let names = names.map(|name| name.trim_end_matches(['.', ',', ';', ':', ')']));
            found.extend(names.filter(|name| !name.is_empty()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_words_outside_of_code() {
        let text = "See @docs/style.md, and `@not/this`.\n```\n@nor/this\n```\n- @AGENTS.md\nmail me@x.org";

        assert_eq!(imports(text), ["docs/style.md", "AGENTS.md"]);
    }

    #[test]
    fn files_outside_of_the_project_are_no_imports() {
        let directory = tempfile::tempdir().unwrap();
        let project = directory.path().join("project");
        std::fs::create_dir_all(project.join(".git")).unwrap();
        std::fs::create_dir_all(project.join("docs")).unwrap();
        std::fs::write(project.join("docs/a.md"), "a").unwrap();
        std::fs::write(directory.path().join("secret"), "b").unwrap();

        assert!(is_in_project(
            &project.join("docs/a.md"),
            &project.join("docs")
        ));
        assert!(!is_in_project(&project.join("../secret"), &project));
    }
}
