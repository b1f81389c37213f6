//! Paths that models write: made absolute, links resolved, hidden ones refused.

use std::collections::{BTreeMap, VecDeque};
use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Component, Path, PathBuf};

use crate::{BadArguments, Place, files};

/// Most links on one path; more are a loop, as for the kernel.
const MOST_LINKS: usize = 40;

/// Makes a path absolute in an agent's working directory, without `.` and `..`.
///
/// `~/` is the user's home. Does not use the file system: links are not followed and the file need
/// not exist.
pub fn resolve(place: &Place, text: &str) -> PathBuf {
    let home = env::var_os("HOME").map(PathBuf::from);
    let path = match (text.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home,
        (Some(rest), Some(home)) if rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => PathBuf::from(text),
    };
    normal(&place.workdir.join(path))
}

/// Resolves all links of a path; the file need not exist.
///
/// A file in the working directory gets a path below it, as the working directory is written. Reads
/// links, but opens nothing.
///
/// Fails for a loop of links and for hidden paths.
pub fn locate(place: &Place, text: &str) -> Result<Located, BadArguments> {
    if text.contains('\0') {
        let name = text.replace('\0', "␀");
        return Err(BadArguments(format!("`{name}`: no path holds a zero byte")));
    }
    locate_path(place, &resolve(place, text))
}

/// Like [`locate`], for an absolute path.
pub(crate) fn locate_path(place: &Place, path: &Path) -> Result<Located, BadArguments> {
    trace(place, path).map_err(BadArguments)
}

/// File of a call, with every link resolved.
///
/// Permission is decided about these paths, and tools then open `real` without following links. So
/// a call that runs later acts on the approved file, or fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Path for users, rules and rows: below the working directory as that is written.
    pub path: PathBuf,
    /// Path without links.
    pub real: PathBuf,
}

impl Located {
    /// Opens a regular file for reading. Fails if its path leads through a link by now.
    ///
    /// The error is a sentence without its subject.
    pub fn open(&self) -> Result<File, String> {
        let opened = files::open(&self.real).map_err(|error| error.to_string())?;
        Ok(opened.0)
    }
}

/// Returns an error if a located file must not be used any more: links changed, or it is hidden.
pub(crate) fn check(place: &Place, located: &Located) -> Result<(), String> {
    if trace(place, &located.path)? == *located {
        return Ok(());
    }
    let name = display_path(place, &located.path);
    Err(format!(
        "`{name}` became a symbolic link; check where it leads and call again"
    ))
}

/// Formats a path for users, models and patterns: relative if in the working directory.
pub fn display_path(place: &Place, path: &Path) -> String {
    match path.strip_prefix(&place.workdir) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Ok(inside) => inside.to_string_lossy().into_owned(),
        Err(_) => path.to_string_lossy().into_owned(),
    }
}

/// Paths that no tool may read or write, with links resolved.
pub(crate) struct Hidden(Vec<PathBuf>);

impl Hidden {
    pub(crate) fn of(place: &Place) -> Self {
        Self(follow_all(&place.hidden))
    }

    /// Returns true if a path without links is hidden or inside a hidden directory.
    pub(crate) fn covers(&self, real: &Path) -> bool {
        is_process(real) || self.0.iter().any(|hidden| real.starts_with(hidden))
    }
}

/// Returns true for files of processes: their environment and memory hold keys.
fn is_process(real: &Path) -> bool {
    let Ok(inside) = real.strip_prefix("/proc") else {
        return false;
    };
    let first = inside.components().next();
    first.is_some_and(|first| {
        let name = first.as_os_str().as_encoded_bytes();
        name.iter().all(u8::is_ascii_digit)
    })
}

fn trace(place: &Place, path: &Path) -> Result<Located, String> {
    let name = display_path(place, path);
    let real = follow(path).ok_or_else(|| format!("`{name}` is a loop of symbolic links"))?;
    if Hidden::of(place).covers(&real) {
        return Err(format!(
            "`{name}` is off limits for tools: it holds keys or data of ikigai"
        ));
    }
    let path = spell_path(place, &real);
    Ok(Located { path, real })
}

/// Writes a path without links below the working directory, if it is there.
fn spell_path(place: &Place, real: &Path) -> PathBuf {
    let workdir = follow(&place.workdir).unwrap_or_else(|| place.workdir.clone());
    match real.strip_prefix(&workdir) {
        Ok(inside) if inside.as_os_str().is_empty() => place.workdir.clone(),
        Ok(inside) => place.workdir.join(inside),
        Err(_) => real.to_path_buf(),
    }
}

/// Resolves every link of an absolute path; missing parts stay as they are.
///
/// Returns none for a loop of links. `fs::canonicalize` would fail for a link to a missing file,
/// which a write would create.
pub(crate) fn follow(path: &Path) -> Option<PathBuf> {
    let mut real = PathBuf::new();
    let mut rest: VecDeque<OsString> = parts(path);
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            real.pop();
            continue;
        }
        real.push(&part);
        let Ok(target) = real.read_link() else {
            continue;
        };
        links += 1;
        if links > MOST_LINKS {
            return None;
        }
        real.pop();
        for part in parts(&target).into_iter().rev() {
            rest.push_front(part);
        }
    }
    Some(real)
}

/// Resolves the links of many paths, each directory once. A loop of links stays as it is.
pub(crate) fn follow_all(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut parents: BTreeMap<&Path, Option<PathBuf>> = BTreeMap::new();
    let mut followed = Vec::with_capacity(paths.len());
    for path in paths {
        let parent = path.parent().unwrap_or(path);
        let parent = parents.entry(parent).or_insert_with(|| follow(parent));
        let real = match (parent, path.file_name()) {
            (Some(parent), Some(name)) => Some(parent.join(name)),
            _ => None,
        };
        let real = real.filter(|real| real.read_link().is_err());
        let real = real.or_else(|| follow(path));
        followed.push(real.unwrap_or_else(|| path.clone()));
    }
    followed
}

/// Splits a path into parts without `.`. The root part of an absolute path restarts it.
fn parts(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter(|part| !matches!(part, Component::CurDir))
        .map(|part| part.as_os_str().to_owned())
        .collect()
}

/// Resolves `.` and `..` by name alone.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => normal.push(part),
        }
    }
    normal
}
