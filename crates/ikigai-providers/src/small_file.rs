//! Small files of settings: read with a size limit, and only if they are regular files.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file; none if it does not exist.
///
/// Pipes, terminals and devices are refused, without blocking.
#[expect(
    clippy::disallowed_methods,
    reason = "opens a small regular file without waiting"
)]
pub fn open(path: &Path) -> io::Result<Option<File>> {
    let no_wait = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = match OpenOptions::new()
        .read(true)
        .custom_flags(no_wait)
        .open(path)
    {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if file.metadata()?.is_file() {
        Ok(Some(file))
    } else {
        Err(io::Error::other("not a regular file"))
    }
}

/// Reads a whole file of at most `most` bytes.
pub fn read(file: &mut File, most: u64) -> io::Result<String> {
    let mut text = String::new();
    let read = file.take(most + 1).read_to_string(&mut text)?;
    if read as u64 > most {
        return Err(io::Error::other(format!("larger than {} KB", most >> 10)));
    }
    Ok(text)
}
