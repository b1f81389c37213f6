//! Log file of bounded size that only its owner can read.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Size at which a new file is started.
const MOST_BYTES: u64 = 8 << 20;

/// Number of older files: `log.1`, then `log.2`.
const OLDER: u32 = 2;

/// File with its older parts. Several processes may write it: each line is one append.
pub(super) struct RotatingFile {
    path: PathBuf,
    file: File,
    most_bytes: u64,
}

impl RotatingFile {
    /// Opens the file; creates it and its directory if they are missing.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        if let Some(directory) = path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)?;
            fs::set_permissions(directory, Permissions::from_mode(0o700))?;
        }
        Ok(Self {
            file: append_to(&path)?,
            path,
            most_bytes: MOST_BYTES,
        })
    }

    /// Writes a line.
    pub(super) fn write(&mut self, line: &str) -> io::Result<()> {
        if self.file.metadata()?.len() >= self.most_bytes {
            self.begin_anew()?;
        }
        self.file.write_all(line.as_bytes())
    }

    /// Starts a new file, or uses one that another process has started.
    fn begin_anew(&mut self) -> io::Result<()> {
        let is_long = fs::metadata(&self.path).is_ok_and(|now| now.len() >= self.most_bytes);
        if is_long {
            for number in (1..OLDER).rev() {
                // The older file may not exist yet.
                let _ = fs::rename(self.older(number), self.older(number + 1));
            }
            fs::rename(&self.path, self.older(1))?;
        }
        self.file = append_to(&self.path)?;
        Ok(())
    }

    fn older(&self, number: u32) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    // Do not follow a link or block on a pipe of this name.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(i32::try_from(flags.bits()).unwrap_or(0))
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn only_the_owner_can_read_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("state/ikigai/log");

        RotatingFile::open(path.clone()).unwrap();
        assert_eq!([mode(path.parent().unwrap()), mode(&path)], [0o700, 0o600]);

        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        RotatingFile::open(path.clone()).unwrap();
        assert_eq!(mode(&path), 0o600, "also one that was there");
    }

    #[test]
    fn it_does_not_grow_without_end() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("log");
        let mut files: Vec<_> = (0..2)
            .map(|_| RotatingFile::open(path.clone()).unwrap())
            .collect();
        for file in &mut files {
            file.most_bytes = 10;
        }

        for number in 0..10 {
            files[number % 2]
                .write(&format!("line {number}\n"))
                .unwrap();
        }

        let read = |name: &str| fs::read_to_string(home.path().join(name)).unwrap();
        assert_eq!(read("log"), "line 8\nline 9\n");
        assert_eq!(read("log.1"), "line 6\nline 7\n");
        assert_eq!(read("log.2"), "line 4\nline 5\n");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("log");
        fs::write(home.path().join("precious"), "").unwrap();
        std::os::unix::fs::symlink(home.path().join("precious"), &path).unwrap();

        assert!(RotatingFile::open(path).is_err());
    }
}
