//! The way back: files are put into a recorded state, one at a time.

use std::fs::{File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ikigai_core::data::{FileKind, FileVersion};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use super::link_groups::{LinkPlan, place_in_order, plan_links};
use super::state::{
    FileSighting, is_one_file, look, look_below_links, open_for_rights, set_attributes,
};
use crate::anchored_file::{AnchoredFile, MissingDirectories};
use crate::files;

/// Size limit of a file that is compared with a recorded state.
const MOST_COMPARED_BYTES: u64 = super::MOST_CONTENT_BYTES;

/// Path that is to be put into an earlier state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreStep {
    /// Absolute path, without links.
    pub path: PathBuf,
    /// State in which it is expected.
    pub expected: FileVersion,
    /// State into which it is put.
    pub target: FileVersion,
    /// True in a directory that git ignores: its contents do not count, and are removed with it.
    pub is_ignored: bool,
    /// Its hard links, which [`in_order`] decides about.
    pub links: LinkPlan,
}

/// Present state of a path, compared with a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStanding {
    /// It is as expected.
    AsExpected,
    /// It is in the wanted state.
    AsWanted,
    /// It is in this other state.
    Changed(Box<FileVersion>),
    /// It cannot be read, for this reason.
    Unreadable(String),
}

/// Compares a path with a step. Blocks.
pub fn standing(step: &RestoreStep) -> PathStanding {
    let found = if step.expected.is_absent() {
        look_below_links(&step.path, MOST_COMPARED_BYTES)
    } else {
        look(&step.path, MOST_COMPARED_BYTES)
    };
    let found = match found {
        Ok(found) => found.version,
        Err(error) => return PathStanding::Unreadable(describe(&error)),
    };
    if step.is_ignored && step.target.is_absent() {
        return if found.is_absent() {
            PathStanding::AsWanted
        } else {
            PathStanding::AsExpected
        };
    }
    if step.target.is_like(&step.expected) && found.mtime_ns != step.expected.mtime_ns {
        // Only the time is to be restored, and it has changed since.
        PathStanding::AsWanted
    } else if is_in_state(&found, &step.expected) {
        PathStanding::AsExpected
    } else if is_in_state(&found, &step.target) {
        PathStanding::AsWanted
    } else {
        PathStanding::Changed(Box::new(found))
    }
}

/// Compares a path with a recorded state. Without a hash the time of a file decides.
fn is_in_state(found: &FileVersion, state: &FileVersion) -> bool {
    if state.kind() == Some(FileKind::File) && state.hash.is_none() {
        return found.kind() == Some(FileKind::File) && found.mtime_ns == state.mtime_ns;
    }
    found.is_like(state)
}

/// Returns the present state of a path, with its content if it is kept. Blocks.
pub fn present(path: &Path) -> (FileVersion, Option<Vec<u8>>) {
    look(path, super::MOST_CONTENT_BYTES).map_or_else(
        |_| (FileVersion::absent(), None),
        |found| (found.version, found.content),
    )
}

/// Sorts steps from above, directories before their files, and decides about their hard links.
///
/// Removals and times go the other way.
pub fn in_order(mut steps: Vec<RestoreStep>) -> Vec<RestoreStep> {
    steps.sort_by_cached_key(|step| place_in_order(&step.path));
    plan_links(&mut steps);
    steps
}

/// Removes a path that is to be absent, or to have another type.
///
/// Call it for all steps, from below, before the first of them is restored. Blocks.
pub fn remove_left(step: &RestoreStep) -> Result<(), String> {
    let removed = || -> io::Result<()> {
        let found = look_below_links(&step.path, 0)?.version;
        if found.is_absent() || found.kind() == step.target.kind() {
            return Ok(());
        }
        keeping_time(&step.path, || remove(step, &found))
    };
    removed().map_err(|error| describe(&error))
}

/// Puts a path into the wanted state. Blocks.
///
/// `content` is that of the wanted state, if it has one.
pub fn restore(step: &RestoreStep, content: Option<&[u8]>) -> Result<(), String> {
    let RestoreStep { path, target, .. } = step;
    let restored = || -> io::Result<()> {
        let found = if target.is_absent() {
            look_below_links(path, 0)?
        } else {
            look(path, MOST_COMPARED_BYTES)?
        };
        match target.kind() {
            None if found.version.is_absent() => Ok(()),
            None => remove(step, &found.version),
            Some(FileKind::Directory) => make_directory(step, &found),
            Some(FileKind::Link) => make_link(step, &found),
            Some(FileKind::Fifo) => make_fifo(step, &found),
            Some(FileKind::File) => make_file(step, &found, content),
        }
    };
    keeping_time(path, restored).map_err(|error| describe(&error))
}

/// Changes a path, and keeps the time of the directory above it.
///
/// A step of that directory sets its time later; without one the time did not change.
fn keeping_time(path: &Path, change: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let Some(parent) = path.parent() else {
        return change();
    };
    let before = look(parent, 0).map(|found| found.version);
    change()?;
    if let Ok(before) = before
        && before.kind() == Some(FileKind::Directory)
        && let Ok(file) = AnchoredFile::open(parent, MissingDirectories::Fail)
    {
        // The time matters less than the content.
        let _ = set_time(&file, &before);
    }
    Ok(())
}

/// Sets the time of a restored directory, after everything in it is restored. Blocks.
pub fn set_times(step: &RestoreStep) -> Result<(), String> {
    if step.target.kind() != Some(FileKind::Directory) {
        return Ok(());
    }
    let set = || -> io::Result<()> {
        let file = AnchoredFile::open(&step.path, MissingDirectories::Fail)?;
        set_time(&file, &step.target)
    };
    set().map_err(|error| describe(&error))
}

fn describe(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(code) if code == Errno::LOOP.raw_os_error() => {
            "its path leads through a symbolic link".to_owned()
        }
        Some(code) if code == Errno::NOTEMPTY.raw_os_error() => {
            "the directory has other files".to_owned()
        }
        _ => error.to_string(),
    }
}

fn remove(step: &RestoreStep, found: &FileVersion) -> io::Result<()> {
    let file = AnchoredFile::open(&step.path, MissingDirectories::Fail)?;
    if found.kind() != Some(FileKind::Directory) {
        return file.remove();
    }
    match rustix::fs::unlinkat(file.directory(), file.name(), AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::EXIST) if step.is_ignored => {
            std::fs::remove_dir_all(&step.path)
        }
        removed => Ok(removed?),
    }
}

fn make_directory(step: &RestoreStep, found: &FileSighting) -> io::Result<()> {
    let file = AnchoredFile::open(&step.path, MissingDirectories::Create)?;
    if found.version.is_absent() {
        rustix::fs::mkdirat(file.directory(), file.name(), Mode::from_raw_mode(0o700))?;
    }
    set_rights(&file, &step.target, &found.version)
}

fn make_link(step: &RestoreStep, found: &FileSighting) -> io::Result<()> {
    let target = step.target.link.as_deref().ok_or(Errno::INVAL)?;
    let file = AnchoredFile::open(&step.path, MissingDirectories::Create)?;
    if found.version.link != step.target.link {
        let draft = temporary(&file, |draft| {
            Ok(rustix::fs::symlinkat(
                target,
                draft.directory(),
                draft.name(),
            )?)
        })?;
        draft.put(&file)?;
    }
    set_time(&file, &step.target)
}

fn make_fifo(step: &RestoreStep, found: &FileSighting) -> io::Result<()> {
    let file = AnchoredFile::open(&step.path, MissingDirectories::Create)?;
    if found.version.is_absent() {
        let mode = Mode::from_raw_mode(step.target.mode.unwrap_or(0o600));
        rustix::fs::mknodat(file.directory(), file.name(), FileType::Fifo, mode, 0)?;
    }
    set_time(&file, &step.target)
}

fn make_file(step: &RestoreStep, found: &FileSighting, content: Option<&[u8]>) -> io::Result<()> {
    let target = &step.target;
    let file = AnchoredFile::open(&step.path, MissingDirectories::Create)?;
    let is_file = found.version.kind() == Some(FileKind::File);
    let has_content = is_file && found.version.hash.is_some() && found.version.hash == target.hash;
    let is_shared = is_file && found.names > 1;
    let LinkPlan { twins, is_parted } = &step.links;
    let twin = twins.iter().find(|twin| is_unchanged(twin, target));
    let is_linked = is_file && twin.is_some_and(|twin| is_one_file(&step.path, twin));
    if let Some(twin) = twin
        && !is_linked
    {
        let twin = AnchoredFile::open(twin, MissingDirectories::Fail)?;
        let draft = temporary(&file, |draft| {
            let flags = AtFlags::empty();
            Ok(rustix::fs::linkat(
                twin.directory(),
                twin.name(),
                draft.directory(),
                draft.name(),
                flags,
            )?)
        })?;
        draft.put(&file)?;
    } else if !has_content || (is_shared && *is_parted && !is_linked) {
        let content = content.ok_or_else(|| io::Error::other("its old content was not kept"))?;
        // Its other names keep the content of this one.
        if is_shared && !is_parted {
            let mut opened = file.open_file(OFlags::WRONLY, Mode::empty())?;
            opened.write_all(content)?;
            opened.set_len(content.len() as u64)?;
        } else {
            let mut made = None;
            let draft = temporary(&file, |draft| {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
                made = Some(draft.open_file(flags, Mode::from_raw_mode(0o600))?);
                Ok(())
            })?;
            if let Some(made) = &mut made {
                made.write_all(content)?;
                keep_owner(made, &step.path);
            }
            set_rights(&draft.at, target, &FileVersion::absent())?;
            draft.put(&file)?;
        }
    }
    set_rights(&file, target, &found.version)?;
    set_time(&file, target)
}

/// Gives a new file to the owner of the file that it replaces, if this process may.
fn keep_owner(made: &File, path: &Path) {
    use std::os::unix::fs::{MetadataExt, fchown};

    if let (Ok(old), Ok(new)) = (std::fs::symlink_metadata(path), made.metadata())
        && (old.uid(), old.gid()) != (new.uid(), new.gid())
    {
        let _ = fchown(made, Some(old.uid()), Some(old.gid()));
    }
}

/// Returns true if a path has the content of a version.
fn is_unchanged(path: &Path, version: &FileVersion) -> bool {
    let found = look(path, MOST_COMPARED_BYTES);
    found.is_ok_and(|found| {
        found.version.kind() == Some(FileKind::File) && found.version.hash == version.hash
    })
}

/// Sets permissions and attributes, as far as they differ from what was found.
fn set_rights(file: &AnchoredFile, target: &FileVersion, found: &FileVersion) -> io::Result<()> {
    if found.mode != target.mode
        && let Some(mode) = target.mode
    {
        if let Ok(opened) = open_for_rights(file) {
            opened.set_permissions(Permissions::from_mode(mode))?;
        } else {
            // Without the right to read it, by its name.
            let mode = Mode::from_raw_mode(mode);
            rustix::fs::chmodat(file.directory(), file.name(), mode, AtFlags::empty())?;
        }
    }
    if found.xattrs != target.xattrs {
        set_attributes(file, target.xattrs.as_ref())?;
    }
    Ok(())
}

fn set_time(file: &AnchoredFile, target: &FileVersion) -> io::Result<()> {
    let Some(time) = target.mtime_ns else {
        return Ok(());
    };
    let times = Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: time.div_euclid(1_000_000_000),
            tv_nsec: time.rem_euclid(1_000_000_000),
        },
    };
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    rustix::fs::utimensat(file.directory(), file.name(), &times, flags)?;
    Ok(())
}

/// New file beside its place; removed if it is not put there.
struct RestoreDraft {
    at: AnchoredFile,
}

impl RestoreDraft {
    fn put(self, file: &AnchoredFile) -> io::Result<()> {
        let (from, to) = (self.at.directory(), file.directory());
        rustix::fs::renameat(from, self.at.name(), to, file.name())?;
        Ok(())
    }
}

impl Drop for RestoreDraft {
    fn drop(&mut self) {
        // After the rename this name is free, or a second name of the same file.
        let _ = self.at.remove();
    }
}

/// Makes something under a free name beside a file.
fn temporary(
    beside: &AnchoredFile,
    mut make: impl FnMut(&AnchoredFile) -> io::Result<()>,
) -> io::Result<RestoreDraft> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".ikigai-{}-restore-{number}.tmp", std::process::id());
        let at = beside.sibling(name)?;
        match make(&at) {
            Ok(()) => return Ok(RestoreDraft { at }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the hash of a content, as versions name it.
pub fn content_hash(content: &[u8]) -> String {
    files::sha256_hex(content)
}
