//! Output of a kept process: files of bounded size, named by the position of their first byte.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Size at which a new segment begins. The last two are kept.
const SEGMENT_BYTES: u64 = 4 * 1024 * 1024;

/// Prefix of the names of segments.
const PREFIX: &str = "output.";

/// Attempts to read segments that the keeper removes meanwhile.
const ATTEMPTS: usize = 4;

/// Keeper's side: appends output.
#[derive(Debug)]
pub(super) struct OutputLog {
    directory: PathBuf,
    /// Position of the first byte of the segment before, if it is kept.
    before: Option<u64>,
    /// Position of the first byte of the newest segment.
    base: u64,
    segment: File,
    /// Number of all bytes.
    size: u64,
}

impl OutputLog {
    pub(super) fn create(directory: &Path) -> io::Result<Self> {
        Ok(Self {
            directory: directory.to_owned(),
            before: None,
            base: 0,
            segment: create(directory, 0)?,
            size: 0,
        })
    }

    /// Returns the number of all bytes so far, removed ones included.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Appends output. After an error, such as a full disk, the bytes count as printed.
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.write(bytes);
        self.size += bytes.len() as u64;
        written
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.size - self.base >= SEGMENT_BYTES {
            let next = create(&self.directory, self.size)?;
            if let Some(oldest) = self.before.replace(self.base) {
                // A segment that cannot be removed goes with the directory.
                let _ = fs::remove_file(path_of(&self.directory, oldest));
            }
            self.segment = next;
            self.base = self.size;
        }
        // A failed write leaves a gap: positions stay those of the process's output.
        self.segment.seek(SeekFrom::Start(self.size - self.base))?;
        self.segment.write_all(bytes)
    }
}

fn path_of(directory: &Path, base: u64) -> PathBuf {
    directory.join(format!("{PREFIX}{base}"))
}

fn create(directory: &Path, base: u64) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path_of(directory, base))
}

/// Part of the output of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputPart {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Position of the first of them in the whole output.
    pub from: u64,
    /// Position after the last of them.
    pub to: u64,
    /// Number of all bytes printed so far.
    pub size: u64,
}

/// Reads output from a position on, at most `most` bytes; more are left out at the beginning.
///
/// Positions that are no longer kept are left out, too. Blocks.
pub fn read_output(directory: &Path, from: u64, most: usize) -> io::Result<OutputPart> {
    let mut attempt = 1;
    loop {
        match try_read(directory, from, most as u64) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && attempt < ATTEMPTS => {
                attempt += 1;
            }
            read => return read,
        }
    }
}

fn try_read(directory: &Path, from: u64, most: u64) -> io::Result<OutputPart> {
    let bases = fs::read_dir(directory)?.filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.strip_prefix(PREFIX)?.parse::<u64>().ok()
    });
    let mut segments = Vec::new();
    for base in bases {
        let length = fs::metadata(path_of(directory, base))?.len();
        segments.push((base, length));
    }
    segments.sort_unstable();
    let size = segments.last().map_or(0, |(base, length)| base + length);
    let oldest = segments.first().map_or(0, |(base, _)| *base);
    let from = from.min(size).max(oldest).max(size.saturating_sub(most));
    let mut part = OutputPart {
        from,
        to: from,
        size,
        ..OutputPart::default()
    };
    for (base, length) in segments {
        let end = base + length;
        if part.to < base || part.to >= end {
            continue;
        }
        let mut file = File::open(path_of(directory, base))?;
        file.seek(SeekFrom::Start(part.to - base))?;
        let read = file.take(end - part.to).read_to_end(&mut part.bytes)?;
        part.to += read as u64;
    }
    Ok(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn new_output_is_read_from_a_position_on() {
        let home = tempfile::tempdir().unwrap();
        let mut log = OutputLog::create(home.path()).unwrap();
        log.append(b"one\n").unwrap();
        log.append(b"two\n").unwrap();

        let all = read_output(home.path(), 0, 99).unwrap();
        assert_eq!((&*all.bytes, all.from, all.to), (&b"one\ntwo\n"[..], 0, 8));
        let new = read_output(home.path(), 4, 99).unwrap();
        assert_eq!((&*new.bytes, new.from), (&b"two\n"[..], 4));
        let none = read_output(home.path(), 8, 99).unwrap();
        assert_eq!((none.bytes.len(), none.from, none.size), (0, 8, 8));
        let newest = read_output(home.path(), 0, 3).unwrap();
        assert_eq!((&*newest.bytes, newest.from), (&b"wo\n"[..], 5));
        // A position beyond the end, from another life of the process.
        assert_eq!(read_output(home.path(), 99, 99).unwrap().from, 8);
    }

    #[test]
    fn old_output_is_removed_and_positions_stay() {
        let home = tempfile::tempdir().unwrap();
        let mut log = OutputLog::create(home.path()).unwrap();
        let chunk = vec![b'x'; 1024 * 1024];
        for _ in 0..21 {
            log.append(&chunk).unwrap();
        }
        log.append(b"end").unwrap();

        assert_eq!(segments(home.path()), 2);
        let size = 21 * 1024 * 1024 + 3;
        assert_eq!(log.size(), size);
        let kept = read_output(home.path(), 0, usize::MAX).unwrap();
        assert_eq!((kept.to, kept.size), (size, size));
        assert_eq!(kept.from, size - kept.bytes.len() as u64);
        assert!(kept.bytes.len() as u64 >= SEGMENT_BYTES);
        assert!(kept.bytes.len() as u64 <= 2 * SEGMENT_BYTES + 1024 * 1024);
        assert!(kept.bytes.ends_with(b"xend"));
        // A read across both segments.
        let middle = read_output(home.path(), size - 3 * 1024 * 1024, usize::MAX).unwrap();
        assert_eq!(middle.bytes.len(), 3 * 1024 * 1024);
    }
}
