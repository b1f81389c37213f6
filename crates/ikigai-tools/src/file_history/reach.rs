//! Directories in which files are restored.

use std::path::{Component, Path, PathBuf};

use crate::Place;
use crate::paths::follow_all;

/// Directories in which files are restored. A log can come from anywhere, and name any path.
pub struct RestoreReach {
    roots: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
}

impl RestoreReach {
    /// Restores below the working directory and these paths, except for hidden files. Blocks.
    pub fn new(place: &Place, writable: &[PathBuf]) -> Self {
        let real = |root: &PathBuf| root.canonicalize().unwrap_or_else(|_| root.clone());
        let roots = [&place.workdir].into_iter().chain(writable);
        Self {
            roots: roots.map(real).collect(),
            hidden: follow_all(&place.hidden),
        }
    }

    /// Returns the working directory without links.
    pub fn place(&self) -> Place {
        Place {
            workdir: self.roots.first().cloned().unwrap_or_default(),
            hidden: self.hidden.clone().into(),
        }
    }

    /// Returns the reason why a path is not restored, if there is one.
    pub fn refuse(&self, path: &Path) -> Option<String> {
        let is_plain = path
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        if !is_plain || !self.roots.iter().any(|root| path.starts_with(root)) {
            return Some("outside the working directory".to_owned());
        }
        let is_hidden = self.hidden.iter().any(|hidden| path.starts_with(hidden));
        is_hidden.then(|| "protected".to_owned())
    }
}
