//! State of a path: type, content, rights, times, attributes.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use ikigai_core::data::{FileKind, FileVersion};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::anchored_file::{AnchoredFile, MissingDirectories};
use crate::files;

/// Largest name list and value of extended attributes.
const MOST_ATTRIBUTE_BYTES: usize = 64 * 1024;

/// Prefixes of the extended attributes that are kept. The kernel makes the others.
const KEPT_ATTRIBUTES: &[&str] = &["user.", "system.posix_acl_", "security.capability"];

/// A path as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileSighting {
    /// Its state.
    pub(crate) version: FileVersion,
    /// Content of a regular file, if it is kept.
    pub(crate) content: Option<Vec<u8>>,
    /// Reason why the content is not kept.
    pub(crate) missed: Option<String>,
    /// Number of names of the file.
    pub(crate) names: u64,
    /// Device and inode.
    pub(crate) id: (u64, u64),
}

impl FileSighting {
    /// Returns the sighting of a path without a file.
    pub(crate) fn nothing() -> Self {
        Self {
            version: FileVersion::absent(),
            content: None,
            missed: None,
            names: 0,
            id: (0, 0),
        }
    }
}

/// Looks at a path that leads through no link; keeps contents up to a size. Blocks.
pub(crate) fn look(real: &Path, most_bytes: u64) -> io::Result<FileSighting> {
    let found = AnchoredFile::open(real, MissingDirectories::Fail).and_then(|file| {
        let metadata = file.metadata()?;
        Ok((file, metadata))
    });
    let (file, metadata) = match found {
        Ok(found) => found,
        Err(error) if is_missing(&error) => return Ok(FileSighting::nothing()),
        Err(error) => return Err(error),
    };
    let mut sighting = FileSighting {
        version: FileVersion {
            mode: Some(metadata.mode() & 0o7777),
            mtime_ns: Some(modified(&metadata)),
            ..FileVersion::default()
        },
        content: None,
        missed: None,
        names: metadata.nlink(),
        id: (metadata.dev(), metadata.ino()),
    };
    let kind = metadata.file_type();
    let version = &mut sighting.version;
    if kind.is_file() {
        version.kind = Some(FileKind::File);
        version.xattrs = attributes(&file);
        read_content(&file, &metadata, most_bytes, &mut sighting)?;
    } else if kind.is_dir() {
        version.kind = Some(FileKind::Directory);
        version.xattrs = attributes(&file);
    } else if kind.is_symlink() {
        version.kind = Some(FileKind::Link);
        // Links have no rights.
        version.mode = None;
        match file.read_link()?.to_str() {
            Some(target) => version.link = Some(target.to_owned()),
            None => sighting.missed = Some("the target of the link is not UTF-8".to_owned()),
        }
    } else if kind.is_fifo() {
        version.kind = Some(FileKind::Fifo);
    } else {
        sighting.missed = Some("sockets and devices are not restored".to_owned());
    }
    Ok(sighting)
}

/// Looks at a path; below a symbolic link there is nothing.
pub(crate) fn look_below_links(real: &Path, most_bytes: u64) -> io::Result<FileSighting> {
    match look(real, most_bytes) {
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            Ok(FileSighting::nothing())
        }
        found => found,
    }
}

fn is_missing(error: &io::Error) -> bool {
    [Errno::NOENT, Errno::NOTDIR]
        .iter()
        .any(|missing| error.raw_os_error() == Some(missing.raw_os_error()))
}

fn modified(metadata: &Metadata) -> i64 {
    let seconds = metadata.mtime().saturating_mul(1_000_000_000);
    seconds.saturating_add(metadata.mtime_nsec())
}

/// Reads the content, or notes why it is not kept.
fn read_content(
    file: &AnchoredFile,
    metadata: &Metadata,
    most_bytes: u64,
    sighting: &mut FileSighting,
) -> io::Result<()> {
    let large = || format!("larger than {}", files::size(most_bytes));
    if metadata.len() > most_bytes {
        sighting.missed = Some(large());
        return Ok(());
    }
    let opened = match file.open_file(OFlags::RDONLY, Mode::empty()) {
        Ok(opened) => opened,
        Err(error) => {
            sighting.missed = Some(format!("cannot be read: {error}"));
            return Ok(());
        }
    };
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    opened.take(most_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        sighting.missed = Some(large());
        return Ok(());
    }
    sighting.version.hash = Some(files::sha256_hex(&bytes));
    sighting.content = Some(bytes);
    Ok(())
}

/// Reads the extended attributes that are kept; none if there are none.
#[cfg(target_os = "linux")]
fn attributes(file: &AnchoredFile) -> Option<BTreeMap<String, String>> {
    let path = file.path_by_descriptor();
    let mut names = vec![0_u8; MOST_ATTRIBUTE_BYTES];
    let length = rustix::fs::llistxattr(&path, &mut names[..]).ok()?;
    if length == 0 {
        return None;
    }
    let names = names.get(..length)?.split(|byte| *byte == 0);
    let mut found = BTreeMap::new();
    for name in names {
        let Ok(name) = std::str::from_utf8(name) else {
            continue;
        };
        if !KEPT_ATTRIBUTES
            .iter()
            .any(|prefix| name.starts_with(prefix))
        {
            continue;
        }
        let mut value = vec![0_u8; MOST_ATTRIBUTE_BYTES];
        if let Ok(length) = rustix::fs::lgetxattr(&path, name, &mut value[..]) {
            let value = value.get(..length).unwrap_or_default();
            found.insert(name.to_owned(), files::hex(value));
        }
    }
    (!found.is_empty()).then_some(found)
}

#[cfg(not(target_os = "linux"))]
fn attributes(_file: &AnchoredFile) -> Option<BTreeMap<String, String>> {
    None
}

/// Sets the kept extended attributes of a file to these, and removes others.
#[cfg(target_os = "linux")]
pub(super) fn set_attributes(
    file: &AnchoredFile,
    wanted: Option<&BTreeMap<String, String>>,
) -> io::Result<()> {
    use rustix::fs::XattrFlags;

    let path = file.path_by_descriptor();
    let found = attributes(file).unwrap_or_default();
    let nothing = BTreeMap::new();
    let wanted = wanted.unwrap_or(&nothing);
    for name in found.keys().filter(|name| !wanted.contains_key(*name)) {
        rustix::fs::lremovexattr(&path, name.as_str())?;
    }
    for (name, value) in wanted {
        if found.get(name) != Some(value) {
            let value = from_hex(value).ok_or(Errno::INVAL)?;
            rustix::fs::lsetxattr(&path, name.as_str(), &value, XattrFlags::empty())?;
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn set_attributes(
    _file: &AnchoredFile,
    _wanted: Option<&BTreeMap<String, String>>,
) -> io::Result<()> {
    Ok(())
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    let byte = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    digits.map(byte).collect()
}

/// Opens a file for the change of its metadata alone; fails for links.
pub(super) fn open_for_rights(file: &AnchoredFile) -> io::Result<File> {
    file.open_file(OFlags::RDONLY, Mode::empty())
}

/// Returns true if two paths name one file.
pub(super) fn is_one_file(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| {
        let file = AnchoredFile::open(path, MissingDirectories::Fail).ok()?;
        let metadata = file.metadata().ok()?;
        Some((metadata.dev(), metadata.ino()))
    };
    id(one).is_some_and(|found| Some(found) == id(other))
}
