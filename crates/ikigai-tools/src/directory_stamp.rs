//! Stamps of directories, which show that a cached listing is current.
//!
//! Adding, removing or renaming an entry sets the change time of its directory, which no process
//! can set itself. The time has the resolution of a clock tick, so a listing is cached only if the
//! directory had not changed for a while when it was read, and only on file systems that use this
//! machine's clock.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Identity and change time of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirectoryStamp {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl DirectoryStamp {
    /// Reads the stamp of a directory; none for other files, including links.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        let metadata = fs::symlink_metadata(directory).ok()?;
        metadata.is_dir().then(|| Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    /// Returns the stamp for a listing; call it before reading the entries.
    ///
    /// Returns none if a later change could leave the stamp as it is.
    pub(crate) fn before_listing(directory: &Path) -> Option<Self> {
        let stamp = Self::read(directory)?;
        (stamp.is_settled(SystemTime::now()) && has_own_clock(directory)).then_some(stamp)
    }

    /// Returns true if a later change will get another time.
    fn is_settled(self, now: SystemTime) -> bool {
        /// More than the slowest timer tick.
        const TICK: Duration = Duration::from_millis(20);
        /// Some file systems store whole or even seconds.
        const COARSE_TICK: Duration = Duration::from_secs(3);
        let (seconds, nanoseconds) = self.changed;
        let tick = if nanoseconds == 0 { COARSE_TICK } else { TICK };
        let since_epoch = Duration::new(
            u64::try_from(seconds).unwrap_or(u64::MAX / 2),
            u32::try_from(nanoseconds).unwrap_or(0),
        );
        let changed = SystemTime::UNIX_EPOCH.checked_add(since_epoch + tick);
        changed.is_some_and(|changed| changed < now)
    }
}

/// Returns true if a file system takes its times from this machine's clock.
#[cfg(target_os = "linux")]
fn has_own_clock(directory: &Path) -> bool {
    /// ext2 to ext4, XFS, Btrfs, tmpfs, overlay, F2FS, ZFS, bcachefs.
    const LOCAL: [i64; 8] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0x0102_1994,
        0x794c_7630,
        0xf2f5_2010,
        0x2fc1_2fc1,
        0xca45_1a4e,
    ];
    rustix::fs::statfs(directory).is_ok_and(|found| LOCAL.contains(&found.f_type))
}

#[cfg(not(target_os = "linux"))]
fn has_own_clock(_directory: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests;
