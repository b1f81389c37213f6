//! Instruction files of a project: `AGENTS.override.md`, else `AGENTS.md`, else `CLAUDE.md` of a
//! directory.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ikigai_core::settings::Pin;

/// Names of instruction files; the first that a directory has counts.
const NAMES: [&str; 3] = ["AGENTS.override.md", "AGENTS.md", "CLAUDE.md"];

/// Directory with packages of others, whose files are no instructions for this project.
const PACKAGES: &str = "node_modules";

/// Limit of pins up to which instruction files are added.
const MOST_PINS: usize = 32;

/// Returns true if a path has the name of an instruction file.
pub(crate) fn is_instruction_file(path: &Path) -> bool {
    NAMES.iter().any(|name| path.ends_with(name))
}

/// Returns the instruction files of a directory and its ancestors, the most general first. Ends at
/// the root of a repository or the user's home.
#[expect(clippy::disallowed_methods, reason = "runs on a blocking thread")]
pub(crate) fn instruction_files(workdir: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for directory in workdir.ancestors() {
        // Anyone can put files into a world-writable directory, so they are no instructions.
        if directory != workdir && is_open_to_all(directory) {
            break;
        }
        found.extend(file_of(directory));
        if directory.join(".git").exists() || Some(directory) == home {
            break;
        }
    }
    found.reverse();
    found
}

/// Returns the instruction files between the project of a working directory and a directory in it
/// whose files were touched, the most general first.
///
/// The project is the repository, or the working directory itself. Repositories and packages inside
/// of it belong to others.
#[expect(clippy::disallowed_methods, reason = "runs on a blocking thread")]
pub(crate) fn nested_instruction_files(workdir: &Path, touched: &Path) -> Vec<PathBuf> {
    let root = workdir
        .ancestors()
        .find(|ancestor| ancestor.join(".git").exists())
        .unwrap_or(workdir);
    let mut found = Vec::new();
    for directory in touched.ancestors() {
        if directory == root {
            found.reverse();
            return found;
        }
        let is_foreign = directory.join(".git").exists()
            || directory.file_name() == Some(OsStr::new(PACKAGES))
            || is_open_to_all(directory);
        if is_foreign || directory == Path::new("/") {
            return Vec::new();
        }
        if !workdir.starts_with(directory) {
            found.extend(file_of(directory));
        }
    }
    Vec::new()
}

/// Adds pins for files that have none; a deeper file follows those of the directories above it.
pub(crate) fn add_pins(pins: &mut Vec<Pin>, files: &[PathBuf]) {
    for file in files {
        let Some(path) = file.to_str() else { continue };
        let is_known = pins.iter().any(|pin| pin.path.as_deref() == Some(path));
        if is_known || pins.len() >= MOST_PINS {
            continue;
        }
        let directory = file.parent().unwrap_or(file);
        let is_deeper = |pin: &Pin| {
            let pinned = pin.path.as_deref().map(Path::new);
            let pinned = pinned.filter(|pinned| is_instruction_file(pinned));
            let above = pinned.and_then(Path::parent);
            above.is_some_and(|above| above != directory && above.starts_with(directory))
        };
        let at = pins.iter().position(is_deeper).unwrap_or(pins.len());
        let pin = Pin {
            path: Some(path.to_owned()),
            ..Pin::default()
        };
        pins.insert(at, pin);
    }
}

#[expect(clippy::disallowed_methods, reason = "runs on a blocking thread")]
fn file_of(directory: &Path) -> Option<PathBuf> {
    let mut files = NAMES.iter().map(|name| directory.join(name));
    files.find(|file| file.is_file())
}

#[expect(clippy::disallowed_methods, reason = "runs on a blocking thread")]
fn is_open_to_all(directory: &Path) -> bool {
    let mode = fs::metadata(directory).map(|found| found.permissions().mode());
    mode.is_ok_and(|mode| mode & 0o002 != 0)
}
