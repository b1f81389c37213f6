//! Landlock rules of a sandbox.
//!
//! Landlock grants a right on a file, or on a directory with everything below, and cannot take a
//! part back. So the directories above a hidden path are granted entry by entry. Entries created
//! there later are not granted.

use std::fs;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};

use super::ruleset_cache::{self, RulesetKey, RulesetPaths};
use crate::paths::{follow, follow_all};

/// Newest Landlock version in use; an older kernel enforces fewer rights.
const NEWEST: ABI = ABI::V7;

const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{Execute | ReadFile});

/// Rights that files have; the others are rights of directories.
const OF_FILES: BitFlags<AccessFs> =
    make_bitflags!(AccessFs::{Execute | ReadFile | WriteFile | Truncate | IoctlDev});

/// Devices that are plain streams. Others, such as disks and terminals, are not granted.
const DEVICES: &[&str] = &[
    "/dev/full",
    "/dev/null",
    "/dev/random",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
];

/// Directories of the kernel, which a writable directory above them does not make writable.
const KERNEL: &[&str] = &["/dev", "/proc", "/sys"];

/// Returns the rules: read all but `hidden` and devices, write below `write`.
///
/// Directories can be listed everywhere; signals reach only processes in the sandbox. An external
/// tool is a `program` that may be in a hidden directory: it can still read and execute the files
/// of its directory.
pub(super) fn ruleset(
    write: &[PathBuf],
    hidden: &[PathBuf],
    program: &Path,
) -> Result<RulesetCreated, RulesetError> {
    let directory = program.parent().filter(|_| program.is_absolute());
    let key = RulesetKey {
        write: write.iter().map(|directory| real(directory)).collect(),
        hidden: follow_all(hidden),
        program: directory.map(real),
    };
    ruleset_cache::get(key, build)
}

fn build(key: &RulesetKey) -> Result<(RulesetCreated, RulesetPaths), RulesetError> {
    let all = AccessFs::from_all(NEWEST);
    let mut grants = FileGrants {
        ruleset: Ruleset::default()
            .handle_access(all)?
            .scope(Scope::from_all(NEWEST))?
            .create()?,
        hidden: key.hidden.clone(),
        paths: RulesetPaths::default(),
    };
    grants.add(Path::new("/"), AccessFs::ReadDir.into())?;
    for device in DEVICES {
        grants.add(
            Path::new(device),
            make_bitflags!(AccessFs::{ReadFile | WriteFile | IoctlDev}),
        )?;
    }
    // A process that could create a device could read the raw disk.
    let write_rights = all & !make_bitflags!(AccessFs::{MakeBlock | MakeChar | IoctlDev});
    for directory in &key.write {
        let count = grants.hidden.len();
        let above = KERNEL.iter().map(PathBuf::from);
        grants
            .hidden
            .extend(above.filter(|kernel| kernel.starts_with(directory)));
        grants.add_around(directory, write_rights)?;
        grants.hidden.truncate(count);
    }
    grants.hidden.push(PathBuf::from("/dev"));
    grants.add_around(Path::new("/"), READ)?;
    if let Some(directory) = &key.program {
        grants
            .hidden
            .retain(|hidden| !directory.starts_with(hidden));
        grants.add_around(directory, READ)?;
    }
    Ok((grants.ruleset, grants.paths))
}

struct FileGrants {
    ruleset: RulesetCreated,
    hidden: Vec<PathBuf>,
    paths: RulesetPaths,
}

impl FileGrants {
    /// Grants a file or directory, except for hidden paths below it.
    fn add_around(&mut self, path: &Path, rights: BitFlags<AccessFs>) -> Result<(), RulesetError> {
        if self.hidden.iter().any(|hidden| path.starts_with(hidden)) {
            return Ok(());
        }
        if !self.hidden.iter().any(|hidden| hidden.starts_with(path)) {
            return self.add(path, rights);
        }
        self.paths.add_listed(path);
        let Ok(entries) = fs::read_dir(path) else {
            return Ok(());
        };
        for entry in entries.flatten() {
            // A link needs no grant: the rules apply to its target.
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                self.add_around(&entry.path(), rights)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &Path, rights: BitFlags<AccessFs>) -> Result<(), RulesetError> {
        self.paths.add_granted(path);
        // A missing or inaccessible path needs no grant.
        let Ok(file) = PathFd::new(path) else {
            return Ok(());
        };
        let is_directory = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
        let rights = if is_directory {
            rights
        } else {
            rights & OF_FILES
        };
        if !rights.is_empty() {
            (&mut self.ruleset).add_rule(PathBeneath::new(file, rights))?;
        }
        Ok(())
    }
}

/// Resolves the links of a path; a loop of links stays as it is.
pub(super) fn real(path: &Path) -> PathBuf {
    follow(path).unwrap_or_else(|| path.to_path_buf())
}
