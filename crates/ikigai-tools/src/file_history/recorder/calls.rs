//! System calls that can change files, and the paths that they name.

use std::path::PathBuf;

use super::resolve::{CallerMemory, LastLink};

/// Flags with which opening a file can change it.
const CHANGING: i32 = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;

/// A call that can change files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileCall {
    number: libc::c_long,
    names: NamedPaths,
    stops: FilterStop,
}

/// Condition under which the filter stops a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilterStop {
    Always,
    /// If the flags in this argument can change a file.
    WithFlags(u8),
}

/// Arguments that name files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NamedPaths {
    /// Path in an argument.
    Path(usize, LastLink),
    /// Directory and path.
    PathAt(usize, LastLink),
    /// Directory, path, and flags whose `AT_SYMLINK_NOFOLLOW` counts.
    PathWithFlags(usize, usize),
    /// Path and flags of `open`, after a directory if the first number is 1.
    Open(usize, usize),
    /// Directory, path and a structure with flags.
    OpenStructure,
    /// Two paths.
    Two(usize, usize),
    /// Two directories with paths.
    TwoAt,
    /// Directories and paths of a file and its new name; paths alone if the first number is 0.
    Link(usize, usize),
    /// Directory and path of a new link.
    NewAt(usize),
    Descriptor,
}

use LastLink::{Followed, Kept};
use NamedPaths::{
    Descriptor, Link, NewAt, Open, OpenStructure, Path, PathAt, PathWithFlags, Two, TwoAt,
};

const fn call(number: libc::c_long, names: NamedPaths) -> FileCall {
    FileCall {
        number,
        names,
        stops: FilterStop::Always,
    }
}

const fn opening(number: libc::c_long, names: NamedPaths, flags: u8) -> FileCall {
    FileCall {
        number,
        names,
        stops: FilterStop::WithFlags(flags),
    }
}

/// Calls that can change files. Writing needs an open file, so that `write` and the like pass.
pub(crate) const FILE_CALLS: &[FileCall] = &[
    opening(libc::SYS_openat, Open(1, 2), 2),
    call(libc::SYS_openat2, OpenStructure),
    call(libc::SYS_truncate, Path(0, Followed)),
    call(libc::SYS_renameat, TwoAt),
    call(libc::SYS_renameat2, TwoAt),
    call(libc::SYS_unlinkat, PathAt(0, Kept)),
    call(libc::SYS_mkdirat, PathAt(0, Kept)),
    call(libc::SYS_mknodat, PathAt(0, Kept)),
    call(libc::SYS_linkat, Link(1, 3)),
    call(libc::SYS_symlinkat, NewAt(1)),
    call(libc::SYS_fchmod, Descriptor),
    call(libc::SYS_fchmodat, PathAt(0, Followed)),
    call(libc::SYS_fchmodat2, PathWithFlags(0, 3)),
    call(libc::SYS_fchown, Descriptor),
    call(libc::SYS_fchownat, PathWithFlags(0, 4)),
    call(libc::SYS_utimensat, PathWithFlags(0, 3)),
    call(libc::SYS_setxattr, Path(0, Followed)),
    call(libc::SYS_lsetxattr, Path(0, Kept)),
    call(libc::SYS_fsetxattr, Descriptor),
    call(libc::SYS_removexattr, Path(0, Followed)),
    call(libc::SYS_lremovexattr, Path(0, Kept)),
    call(libc::SYS_fremovexattr, Descriptor),
    #[cfg(target_arch = "x86_64")]
    opening(libc::SYS_open, Open(0, 1), 1),
    #[cfg(target_arch = "x86_64")]
    call(libc::SYS_creat, Path(0, Followed)),
    #[cfg(target_arch = "x86_64")]
    call(libc::SYS_rename, Two(0, 1)),
    #[cfg(target_arch = "x86_64")]
    call(libc::SYS_unlink, Path(0, Kept)),
    #[cfg(target_arch = "x86_64")]
    call(libc::SYS_rmdir, Path(0, Kept)),
    #[cfg(target_arch = "x86_64")]
    call(libc::SYS_mkdir, Path(0, Kept)),
    #[cfg(target_arch = "x86_64")]
    call(libc::SYS_mknod, Path(0, Kept)),
    #[cfg(target_arch = "x86_64")]
    call(libc::SYS_link, Link(0, 1)),
    #[cfg(target_arch = "x86_64")]
    call(libc::SYS_symlink, Path(1, Kept)),
    #[cfg(target_arch = "x86_64")]
    call(libc::SYS_chmod, Path(0, Followed)),
    #[cfg(target_arch = "x86_64")]
    call(libc::SYS_chown, Path(0, Followed)),
    #[cfg(target_arch = "x86_64")]
    call(libc::SYS_lchown, Path(0, Kept)),
    #[cfg(target_arch = "x86_64")]
    call(libc::SYS_utime, Path(0, Followed)),
    #[cfg(target_arch = "x86_64")]
    call(libc::SYS_utimes, Path(0, Followed)),
    #[cfg(target_arch = "x86_64")]
    call(libc::SYS_futimesat, PathAt(0, Followed)),
];

impl FileCall {
    /// Returns a call by its number, if it can change files.
    pub(crate) fn of(number: libc::c_int) -> Option<Self> {
        let number = libc::c_long::from(number);
        FILE_CALLS
            .iter()
            .find(|call| call.number == number)
            .copied()
    }

    pub(crate) fn number(self) -> libc::c_long {
        self.number
    }

    pub(crate) fn stops(self) -> FilterStop {
        self.stops
    }

    /// Returns the flags of which each stops a call that opens a file.
    pub(crate) fn changing_flags() -> impl Iterator<Item = u64> {
        [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT, libc::O_TRUNC]
            .into_iter()
            .map(|flag| u64::from(flag.unsigned_abs()))
    }

    /// Returns true if the call creates a directory.
    pub(super) fn makes_directory(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self.number == libc::SYS_mkdir {
            return true;
        }
        self.number == libc::SYS_mkdirat
    }

    /// Returns the new owner and group that the call sets; [`u32::MAX`] leaves one as it is.
    pub(super) fn new_owner(self, arguments: [u64; 6]) -> Option<(u32, u32)> {
        #[cfg(target_arch = "x86_64")]
        let by_path = [libc::SYS_chown, libc::SYS_lchown].contains(&self.number);
        #[cfg(not(target_arch = "x86_64"))]
        let by_path = false;
        let first = match self.number {
            libc::SYS_fchown => 1,
            libc::SYS_fchownat => 2,
            _ if by_path => 1,
            _ => return None,
        };
        let id = |index: usize| Some(low(arguments.get(index).copied()?).cast_unsigned());
        Some((id(first)?, id(first + 1)?))
    }
}

/// Returns the paths that a call changes; true for one that may be a directory that moves.
///
/// None if the memory of the caller cannot be read.
pub(super) fn targets(
    caller: i32,
    call: FileCall,
    arguments: [u64; 6],
) -> Option<Vec<(PathBuf, bool)>> {
    let memory = CallerMemory::open(caller)?;
    Some(find_targets(&memory, call, arguments).unwrap_or_default())
}

fn find_targets(
    memory: &CallerMemory,
    call: FileCall,
    arguments: [u64; 6],
) -> Option<Vec<(PathBuf, bool)>> {
    let at = |index: usize| arguments.get(index).copied();
    let one = |path: Option<PathBuf>| path.map(|path| vec![(path, false)]);
    match call.names {
        Path(path, last) => one(memory.resolve(None, at(path)?, last)),
        PathAt(directory, last) => one(memory.resolve(at(directory), at(directory + 1)?, last)),
        NewAt(directory) => one(memory.resolve(at(directory), at(directory + 1)?, Kept)),
        PathWithFlags(directory, flags) => {
            let flags = low(at(flags)?);
            let path = at(directory + 1)?;
            let last = if flags & libc::AT_SYMLINK_NOFOLLOW == 0 {
                Followed
            } else {
                Kept
            };
            let named = if path == 0 {
                None
            } else {
                memory.resolve(at(directory), path, last)
            };
            // No path, or an empty one, means the descriptor.
            one(named.or_else(|| memory.of_descriptor(at(directory)?)))
        }
        Open(path, flags) => {
            let directory = path.checked_sub(1).and_then(at);
            one(memory.resolve(directory, at(path)?, last_of(low(at(flags)?))))
        }
        OpenStructure => {
            let flags = low(memory.number(at(2)?)?);
            if flags & CHANGING == 0 {
                return None;
            }
            one(memory.resolve(at(0), at(1)?, last_of(flags)))
        }
        Link(from, to) => {
            let directory = |path: usize| path.checked_sub(1).filter(|_| from > 0).and_then(at);
            let old = memory.resolve(directory(from), at(from)?, Kept)?;
            let new = memory.resolve(directory(to), at(to)?, Kept)?;
            Some(vec![(old, false), (new, false)])
        }
        Two(from, to) => {
            let from = memory.resolve(None, at(from)?, Kept)?;
            let to = memory.resolve(None, at(to)?, Kept)?;
            Some(vec![(from, true), (to, true)])
        }
        TwoAt => {
            let from = memory.resolve(at(0), at(1)?, Kept)?;
            let to = memory.resolve(at(2), at(3)?, Kept)?;
            Some(vec![(from, true), (to, true)])
        }
        Descriptor => one(memory.of_descriptor(at(0)?)),
    }
}

/// Returns the handling of a link by the flags of `open`.
fn last_of(flags: i32) -> LastLink {
    let creates_new = libc::O_CREAT | libc::O_EXCL;
    if flags & libc::O_NOFOLLOW != 0 || flags & creates_new == creates_new {
        Kept
    } else {
        Followed
    }
}

fn low(argument: u64) -> i32 {
    let low = u32::try_from(argument & u64::from(u32::MAX)).unwrap_or_default();
    low.cast_signed()
}
