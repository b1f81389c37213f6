use std::time::Duration;

use super::*;

fn checkouts(workdir: &Path) -> Vec<String> {
    let relative = |path: PathBuf| path.strip_prefix(workdir).unwrap().display().to_string();
    let mut found: Vec<String> = nested_repositories(workdir)
        .into_iter()
        .map(|nested| match nested {
            NestedRepository::Checkout(path) => relative(path),
            NestedRepository::Bare(path) => format!("bare {}", relative(path)),
            NestedRepository::Settings(path) => format!("settings {}", relative(path)),
        })
        .collect();
    found.sort();
    found
}

/// Returns true if the next search reads no directory.
fn is_cached(workdir: &Path) -> bool {
    fn all(directory: &Directory) -> bool {
        directory.stamp.is_some() && directory.subdirectories.iter().all(all)
    }
    let cache = CACHE.lock().unwrap();
    cache.iter().any(|tree| tree.path == workdir && all(tree))
}

/// Waits until a change of these directories gets another time stamp.
fn settle(directories: &[&Path]) {
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    for directory in directories {
        while DirectoryStamp::before_listing(directory).is_none() {
            assert!(std::time::Instant::now() < deadline, "{directory:?}");
            std::thread::yield_now();
        }
    }
}

#[test]
fn repositories_that_come_and_go_after_a_search_are_seen_by_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let workdir = directory.path();
    let (a, b) = (workdir.join("a"), workdir.join("a/b"));
    fs::create_dir_all(&b).unwrap();
    settle(&[workdir, &a, &b]);
    assert_eq!(checkouts(workdir), [""; 0]);
    assert!(is_cached(workdir));

    fs::write(b.join(".git"), "gitdir: elsewhere").unwrap();
    assert_eq!(checkouts(workdir), ["a/b"]);

    for part in ["HEAD", "objects", "refs"] {
        fs::create_dir(a.join(part)).unwrap();
    }
    assert_eq!(checkouts(workdir), ["a/b", "bare a"]);

    fs::remove_file(b.join(".git")).unwrap();
    fs::remove_dir(a.join("refs")).unwrap();
    fs::create_dir_all(workdir.join("c/d/.git")).unwrap();
    assert_eq!(checkouts(workdir), ["c/d"]);

    fs::create_dir(b.join(".Claude")).unwrap();
    fs::create_dir_all(workdir.join("node_modules/x/.vscode")).unwrap();
    fs::create_dir(workdir.join("c/d/.vscode")).unwrap();
    assert_eq!(checkouts(workdir), ["c/d", "settings a/b"]);
}

#[test]
fn a_directory_that_took_the_place_of_another_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let workdir = directory.path();
    let (old, new) = (workdir.join("old"), workdir.join("new"));
    fs::create_dir_all(&old).unwrap();
    fs::create_dir_all(new.join(".git")).unwrap();
    settle(&[workdir, &old, &new]);
    assert_eq!(checkouts(workdir), ["new"]);

    fs::rename(&old, workdir.join("away")).unwrap();
    fs::rename(&new, &old).unwrap();

    assert_eq!(checkouts(workdir), ["old"]);
}
