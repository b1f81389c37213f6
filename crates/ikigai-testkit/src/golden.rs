//! Snapshots: expected text in files next to the tests.

use std::path::Path;
use std::{env, fs};

/// Compares text with a file; with `IKIGAI_GOLDEN=write` it writes the file first.
///
/// # Panics
///
/// If the two differ.
pub fn assert_golden(path: &Path, text: &str) {
    if env::var_os("IKIGAI_GOLDEN").is_some_and(|value| value == "write") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let golden = fs::read_to_string(path).unwrap_or_default();
    let name = path.file_name().unwrap_or_default().display();
    assert!(
        text == golden,
        "{name} differs; IKIGAI_GOLDEN=write renews the files\n--- expected\n{golden}\n--- actual\n{text}"
    );
}
