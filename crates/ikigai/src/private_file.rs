//! Small files in the local state directory that only their owner can access.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Reads a file of `N` bytes; creates it with drawn bytes if it is missing.
///
/// Processes that create it at the same time get the same bytes.
pub(crate) fn load_or_create<const N: usize>(
    path: &Path,
    draw: impl FnOnce() -> Option<[u8; N]>,
) -> io::Result<[u8; N]> {
    match load(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        loaded => return loaded,
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    let bytes = draw().ok_or_else(|| io::Error::other("no random numbers available"))?;
    // A link to a complete file makes it appear atomically, and the first process wins.
    let partial = path.with_extension(format!("{}.partial", std::process::id()));
    let created = create(&partial, &bytes).and_then(|()| match fs::hard_link(&partial, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    });
    let _ = fs::remove_file(&partial);
    created?;
    // The link must survive a power loss, because stored rows depend on the bytes.
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
    load(path)
}

fn create(partial: &Path, bytes: &[u8]) -> io::Result<()> {
    let _ = fs::remove_file(partial);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(partial)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Reads a file that holds no secret; refuses one that others than its owner could have written.
pub(crate) fn load_readable<const N: usize>(path: &Path) -> io::Result<[u8; N]> {
    let file = open(path)?;
    let about = file.metadata()?;
    if !about.is_file() || about.mode() & 0o022 != 0 {
        return Err(io::Error::other("other users can write the file"));
    }
    read(file)
}

/// Reads the file; refuses one that others own, can read or could have written.
fn load<const N: usize>(path: &Path) -> io::Result<[u8; N]> {
    let file = open(path)?;
    let about = file.metadata()?;
    let is_own = about.uid() == rustix::process::geteuid().as_raw();
    if !is_own || !about.is_file() || about.mode() & 0o077 != 0 {
        return Err(io::Error::other("other users can access the file"));
    }
    read(file)
}

/// Opens a file, but not through a link.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

fn read<const N: usize>(file: File) -> io::Result<[u8; N]> {
    let mut bytes = Vec::new();
    file.take(N as u64 + 1).read_to_end(&mut bytes)?;
    let bytes = bytes.try_into();
    bytes.map_err(|_| io::Error::other("the file is damaged"))
}

#[cfg(test)]
mod tests;
