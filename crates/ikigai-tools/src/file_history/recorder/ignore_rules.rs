//! Directories that git ignores, such as those of builds.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Directories that are ignored by their names, because projects without git have them, too.
const USUAL: &[&str] = &[
    "node_modules",
    "__pycache__",
    ".venv",
    ".tox",
    ".mypy_cache",
];

/// Ignored directories below some roots; each is looked up once.
#[derive(Debug)]
pub(super) struct IgnoredDirectories {
    roots: Vec<PathBuf>,
    rules: HashMap<PathBuf, Gitignore>,
    known: HashMap<PathBuf, bool>,
}

impl IgnoredDirectories {
    pub(super) fn new(roots: Vec<PathBuf>) -> Self {
        Self {
            roots,
            rules: HashMap::new(),
            known: HashMap::new(),
        }
    }

    pub(super) fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Returns true for a root and everything below it.
    pub(super) fn is_below_root(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
    }

    /// Returns the topmost ignored directory of a path, which may be the path itself.
    pub(super) fn top(&mut self, path: &Path, is_directory: bool) -> Option<PathBuf> {
        let root = self.roots.iter().find(|root| path.starts_with(root))?;
        let root = root.clone();
        let mut directories: Vec<&Path> = path
            .ancestors()
            .skip(usize::from(!is_directory))
            .take_while(|directory| *directory != root)
            .collect();
        directories.reverse();
        let top = directories
            .into_iter()
            .find(|directory| self.is_ignored(directory, &root));
        top.map(Path::to_owned)
    }

    /// Returns true if rules above a directory ignore it.
    fn is_ignored(&mut self, directory: &Path, root: &Path) -> bool {
        if let Some(known) = self.known.get(directory) {
            return *known;
        }
        let name = directory.file_name().and_then(|name| name.to_str());
        let mut is_ignored = name.is_some_and(|name| USUAL.contains(&name));
        // Git's own files are never ignored.
        if name != Some(".git") && !is_ignored {
            let above = directory.ancestors().skip(1);
            let above = above.take_while(|above| above.starts_with(root));
            for above in above {
                let rules = self.rules.entry(above.to_owned());
                let rules = rules.or_insert_with(|| rules_in(above));
                match rules.matched(directory, true) {
                    Match::None => {}
                    Match::Ignore(_) => {
                        is_ignored = true;
                        break;
                    }
                    Match::Whitelist(_) => break,
                }
            }
        }
        self.known.insert(directory.to_owned(), is_ignored);
        is_ignored
    }
}

/// Reads the rules in one directory.
fn rules_in(directory: &Path) -> Gitignore {
    let mut builder = GitignoreBuilder::new(directory);
    // Bad lines are skipped, as git does.
    let _ = builder.add(directory.join(".gitignore"));
    let exclude = directory.join(".git/info/exclude");
    if exclude.is_file() {
        let _ = builder.add(exclude);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
