//! Paths as models write them, made absolute.

use std::path::{Component, Path, PathBuf};

use crate::Place;

/// The absolute path that `text` means in an agent's working directory, without `.` and `..`.
/// Nothing is looked up: links are not followed and the file need not exist.
pub fn resolve(place: &Place, text: &str) -> PathBuf {
    let mut absolute = PathBuf::new();
    for part in place.workdir.join(Path::new(text)).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                absolute.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => absolute.push(part),
        }
    }
    absolute
}
