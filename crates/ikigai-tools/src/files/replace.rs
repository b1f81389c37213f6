//! Atomic replacement of a file's content.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

use super::{FileError, Stamp, check_kind};
use crate::anchored_file::{AnchoredFile, MissingDirectories};

/// Replaces a file, or creates it and the directories above it.
///
/// `real` is a path that had no links when it was resolved. `seen` is the state that was read: a
/// file in another state is left alone. Readers find the old bytes or the new ones, even after a
/// power loss; only a file with several hard links is overwritten in place, because replacing one
/// name would separate it from the others. Mode and, if allowed, owner are kept; extended
/// attributes are kept only in place.
pub(crate) fn replace(real: &Path, bytes: &[u8], seen: Option<Stamp>) -> Result<(), FileError> {
    let missing = match seen {
        Some(_) => MissingDirectories::Fail,
        None => MissingDirectories::Create,
    };
    let file = AnchoredFile::open(real, missing).map_err(|error| match cannot_write(error) {
        FileError::Io { source, .. } if seen.is_some() && source.kind() == ErrorKind::NotFound => {
            FileError::Changed
        }
        FileError::Io { source, .. } => FileError::Io {
            failure: "written, because its directory cannot be made",
            source,
        },
        other => other,
    })?;
    let old = current(&file)?;
    if let Some(old) = &old {
        // Renaming ignores these bits, and root needs none, but they show the owner's intent.
        if old.mode() & 0o222 == 0 {
            return Err(FileError::ReadOnly(old.mode() & 0o7777));
        }
        file.check_writable().map_err(cannot_write)?;
    }
    let draft = TemporaryFile::make(&file).map_err(cannot_write)?;
    draft.fill(bytes, old.as_ref()).map_err(cannot_write)?;
    if current(&file)?.as_ref().map(Stamp::of) != seen {
        return Err(FileError::Changed);
    }
    if old.is_some_and(|old| old.nlink() > 1) {
        // The draft stays until then: after a crash it has the new content.
        return overwrite(&file, bytes, seen);
    }
    draft.put(&file).map_err(cannot_write)
}

fn cannot_write(source: io::Error) -> FileError {
    match FileError::of("written")(source) {
        // The file need not exist, so something else is missing.
        FileError::Missing => FileError::Io {
            failure: "written",
            source: Errno::NOENT.into(),
        },
        other => other,
    }
}

/// Overwrites a file in place, so that all its names keep one content.
fn overwrite(file: &AnchoredFile, bytes: &[u8], seen: Option<Stamp>) -> Result<(), FileError> {
    let opened = file.open_file(OFlags::WRONLY, Mode::empty());
    let mut opened = opened.map_err(cannot_write)?;
    let metadata = opened.metadata().map_err(cannot_write)?;
    if seen != Some(Stamp::of(&metadata)) {
        return Err(FileError::Changed);
    }
    reserve(&opened, bytes.len() as u64).map_err(cannot_write)?;
    opened.write_all(bytes).map_err(cannot_write)?;
    let length = bytes.len() as u64;
    opened.set_len(length).map_err(cannot_write)?;
    opened.sync_all().map_err(cannot_write)
}

/// Reserves disk space before the first byte is overwritten.
fn reserve(file: &File, length: u64) -> io::Result<()> {
    if length == 0 {
        return Ok(());
    }
    match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, length) {
        Err(error @ (Errno::NOSPC | Errno::DQUOT)) => Err(error.into()),
        // Other file systems cannot reserve space.
        _ => Ok(()),
    }
}

fn current(file: &AnchoredFile) -> Result<Option<Metadata>, FileError> {
    match file.metadata() {
        Ok(metadata) => {
            check_kind(metadata.file_type())?;
            Ok(Some(metadata))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot_write(error)),
    }
}

/// New content in a temporary file of the same directory; removed if not put in place.
struct TemporaryFile {
    at: AnchoredFile,
    file: File,
}

impl TemporaryFile {
    fn make(beside: &AnchoredFile) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let at = beside.sibling(format!(".ikigai-{}-{number}.tmp", process::id()))?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
            match at.open_file(flags, Mode::from_raw_mode(0o666)) {
                Ok(file) => return Ok(Self { at, file }),
                // Left by a killed process with the same number.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn fill(&self, bytes: &[u8], old: Option<&Metadata>) -> io::Result<()> {
        (&self.file).write_all(bytes)?;
        if let Some(old) = old {
            let ours = self.file.metadata()?;
            if (ours.uid(), ours.gid()) != (old.uid(), old.gid()) {
                // Only root may give files away; other users become the owner, as with any editor
                // that replaces files.
                let _ = std::os::unix::fs::fchown(&self.file, Some(old.uid()), Some(old.gid()));
            }
            // After the owner, because changing the owner clears special bits.
            let mode = Permissions::from_mode(old.mode() & 0o7777);
            self.file.set_permissions(mode)?;
        }
        self.file.sync_all()
    }

    fn put(self, file: &AnchoredFile) -> io::Result<()> {
        self.at.rename_over(file)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // After the rename this name is free.
        let _ = self.at.remove();
    }
}
