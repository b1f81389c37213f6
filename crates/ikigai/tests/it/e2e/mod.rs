//! End-to-end tests as data: every file of `tests/e2e` is one session.
//!
//! A session drives the built program over its control socket, with a separate model server.
//! `docs/testing.md` describes the format.

mod judge;
mod play;
pub(crate) mod program;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;

/// Number of concurrent sessions; most of them wait most of the time.
const AT_ONCE: usize = 4;

/// Only files with this in their names are played.
const ONLY: &str = "IKIGAI_E2E";

#[test]
fn every_session_of_the_end_to_end_tests_goes_as_written() {
    let files = files();
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());

    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = run(file);
                    let name = file.file_stem().unwrap().to_string_lossy();
                    let word = if outcome.is_ok() { "ok" } else { "FAILED" };
                    // Not captured, so that the result of each file is printed.
                    let _ = writeln!(io::stdout(), "e2e {name} ... {word}");
                    if let Err(reason) = outcome {
                        failed.lock().unwrap().push(format!("{name}: {reason}"));
                    }
                }
            });
        }
    });

    let failed = failed.into_inner().unwrap();
    assert!(!files.is_empty(), "there is no file");
    assert!(
        failed.is_empty(),
        "{} of {} failed\n\n{}",
        failed.len(),
        files.len(),
        failed.join("\n\n")
    );
}

#[test]
fn there_are_at_least_forty_sessions_each_with_its_own_name() {
    let mut names: Vec<String> = all_files()
        .iter()
        .map(|file| {
            let test: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
            test["name"].as_str().unwrap().to_owned()
        })
        .collect();
    let count = names.len();
    names.sort();
    names.dedup();

    assert_eq!(names.len(), count);
    assert!(count >= 40, "{count}");
}

fn run(file: &Path) -> Result<(), String> {
    let file = fs::read(file).map_err(|error| error.to_string())?;
    let test: Value = serde_json::from_slice(&file).map_err(|error| error.to_string())?;
    play::play(&test)
}

fn files() -> Vec<PathBuf> {
    let only = std::env::var(ONLY).unwrap_or_default();
    let mut files = all_files();
    files.retain(|file| file.to_string_lossy().contains(&only));
    files
}

fn all_files() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e");
    let entries = fs::read_dir(directory).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "json")
    });
    files.sort();
    files
}
