//! Files that only their owner may read, written whole or not at all.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Replaces a file atomically; creates its directory. Blocks.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let draft = directory.join(name);
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

/// Reads a file of limited size; refuses one that other users own, can read or could have written.
pub(crate) fn read(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(
            (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK)
                .bits()
                .cast_signed(),
        )
        .open(path)?;
    let about = file.metadata()?;
    let is_own = about.uid() == rustix::process::geteuid().as_raw();
    if !is_own || !about.is_file() || about.mode() & 0o077 != 0 {
        return Err(io::Error::other("other users can access the file"));
    }
    if about.len() > most_bytes {
        return Err(io::Error::other("the file is too large"));
    }
    let mut bytes = Vec::new();
    file.take(most_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_that_others_can_access_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state/list");

        write(&path, b"mine").unwrap();

        assert_eq!(read(&path, 100).unwrap(), b"mine");
        assert!(read(&path, 3).is_err(), "too large");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(read(&path, 100).is_err(), "readable by a group");
    }
}
