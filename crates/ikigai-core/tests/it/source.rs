//! Reads the program's source, for rules that no value can show.

use std::fs;
use std::path::{Path, PathBuf};

fn crates() -> PathBuf {
    let core = Path::new(env!("CARGO_MANIFEST_DIR"));
    core.parent().unwrap().to_owned()
}

/// Returns path and text of every source file of the workspace, except tests.
///
/// Paths are relative to `crates/`.
pub(crate) fn all_of_the_workspace() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for member in fs::read_dir(crates()).unwrap() {
        collect(&member.unwrap().path().join("src"), &mut found);
    }
    found.sort();
    found
}

fn collect(folder: &Path, found: &mut Vec<(String, String)>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
        if path.is_dir() && !is_test {
            collect(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") && !is_test {
            let name = path.strip_prefix(crates()).unwrap().display().to_string();
            found.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
}

/// Returns the text of a function of the core, from its signature to its closing brace.
pub(crate) fn function(file: &str, signature: &str) -> String {
    let path = crates().join("ikigai-core/src").join(file);
    let text = fs::read_to_string(path).unwrap();
    let start = text.find(signature).expect("the function is there");
    let mut depth = 0_i32;
    for (index, byte) in text.bytes().enumerate().skip(start) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return text[start..=index].to_owned(),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    panic!("`{signature}` has no end");
}

/// Returns true if a line is a catch-all arm of a `match`.
pub(crate) fn is_catch_all(line: &str) -> bool {
    let Some((pattern, _)) = line.split_once("=>") else {
        return false;
    };
    let pattern = pattern.split(" if ").next().unwrap_or_default().trim();
    let binding = |c: char| c.is_ascii_lowercase() || c == '_';
    !pattern.is_empty() && pattern.chars().all(binding)
}

/// Returns true if a text contains an identifier as a whole word.
pub(crate) fn names(text: &str, identifier: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(identifier).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + identifier.len()..].chars().next();
        !before.is_some_and(part_of_word) && !after.is_some_and(part_of_word)
    })
}

/// Returns the text without lines that are comments.
fn without_comments(text: &str) -> String {
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    text.lines().filter(is_code).collect::<Vec<_>>().join("\n")
}

fn is_part_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns true if a text calls a function of a type, or gives the type another name.
pub(crate) fn calls_on(text: &str, name: &str) -> bool {
    let code = without_comments(text);
    code.match_indices(name).any(|(start, _)| {
        let before = code[..start].trim_end();
        let after = code[start + name.len()..].trim_start();
        let is_alias = after.starts_with("as ") || before.ends_with('=') && after.starts_with(';');
        !code[..start].ends_with(is_part_of_word) && (after.starts_with("::") || is_alias)
    })
}

/// Returns true if a text names a function of a module, in an import or by its path.
pub(crate) fn imports(text: &str, module: &str, function: &str) -> bool {
    let code = without_comments(text);
    let path = format!("{module}::");
    code.match_indices(&path).any(|(start, _)| {
        let after = &code[start + path.len()..];
        let named = match after.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or_default(),
            None => after.split([';', '(', ' ', ',']).next().unwrap_or_default(),
        };
        let is_module = !code[..start].ends_with(is_part_of_word);
        is_module && (named == "*" || names(named, function))
    })
}

/// Returns true if a text constructs a value of a type by its fields.
pub(crate) fn constructs(text: &str, name: &str) -> bool {
    let code = without_comments(text);
    code.match_indices(name).any(|(start, _)| {
        let before = &code[..start];
        let after = code[start + name.len()..].trim_start();
        // A declaration, or the type that a function returns.
        let others = ["struct", "enum", "impl", "for", "->"];
        let last = before.split_whitespace().next_back().unwrap_or_default();
        !before.ends_with(is_part_of_word) && after.starts_with('{') && !others.contains(&last)
    })
}
