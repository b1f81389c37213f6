//! Private namespaces of a sandbox: System V objects, and mounts that make directories read-only.
//!
//! Root enters them directly; other users enter a user namespace first, in which their user and
//! group keep their numbers and all others appear as `nobody`. If neither works, the sandbox goes
//! without them: changing System V objects is refused then, and protected directories are checked
//! after the call.

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags, openat};
use rustix::process::{DumpableBehavior, dumpable_behavior, set_dumpable_behavior};
use rustix::thread::{CapabilitySet, capabilities};

/// Variable by which tests force the way without namespaces.
const WITHOUT: &str = "IKIGAI_TEST_NO_USERNS";

/// Set once a child could enter a user namespace but not set it up.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// Namespaces that a child enters.
#[derive(Debug)]
pub(super) struct Namespaces {
    /// Lines of the user and group maps; none for root, which needs no user namespace.
    maps: Option<(Vec<u8>, Vec<u8>)>,
    read_only: Vec<CString>,
    /// Hidden paths; read-only, so that not even their rights and times change.
    sealed: Vec<CString>,
}

/// Outcome of entering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entered {
    Private(Mounts),
    /// The kernel does not allow it; nothing changed.
    Shared,
}

/// Read-only mounts of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mounts {
    /// All directories are mounted read-only.
    Complete,
    /// Some are not, so that they must be checked after the command.
    Incomplete,
}

impl Namespaces {
    /// Prepares namespaces in which directories are read-only, and hidden paths sealed.
    ///
    /// Returns none if namespaces are known not to work.
    pub(super) fn prepare(read_only: &[PathBuf], hidden: &[PathBuf]) -> Option<Self> {
        if BROKEN.load(Ordering::Relaxed) || std::env::var_os(WITHOUT).is_some() {
            return None;
        }
        let ours = capabilities(None).ok()?;
        let maps = if ours.effective.contains(CapabilitySet::SYS_ADMIN) {
            None
        } else {
            let user = rustix::process::geteuid();
            let group = rustix::process::getegid();
            // Root in a container without this right could no longer become another user.
            if user.is_root() {
                return None;
            }
            let line = |number: u32| format!("{number} {number} 1").into_bytes();
            Some((line(user.as_raw()), line(group.as_raw())))
        };
        let spelled = |path: &PathBuf| CString::new(path.as_os_str().as_bytes()).ok();
        let read_only = read_only.iter().filter_map(spelled).collect();
        let existing = hidden.iter().filter(|path| path.exists());
        let sealed = existing.filter_map(spelled).collect();
        Some(Self {
            maps,
            read_only,
            sealed,
        })
    }

    /// Remembers that namespaces cannot be set up here; false if that was known.
    pub(super) fn give_up() -> bool {
        !BROKEN.swap(true, Ordering::Relaxed)
    }

    /// Enters them. A forked child calls this: it makes system calls and neither allocates nor locks.
    ///
    /// An error means that the process is in a namespace that could not be set up, so that it must
    /// not go on.
    pub(super) fn enter(&self) -> io::Result<Entered> {
        if BROKEN.load(Ordering::Relaxed) {
            return Ok(Entered::Shared);
        }
        let wanted = libc::CLONE_NEWNS | libc::CLONE_NEWIPC;
        match &self.maps {
            None => {
                if system::unshare(wanted).is_err() {
                    return Ok(Entered::Shared);
                }
            }
            Some((users, groups)) => {
                if system::unshare(wanted | libc::CLONE_NEWUSER).is_err() {
                    return Ok(Entered::Shared);
                }
                write_maps(users, groups)?;
            }
        }
        // Mounts made here stay here. If a security module forbids this, directories are only
        // checked after the call.
        let mut mounts = Mounts::Complete;
        if system::stop_propagation().is_ok() {
            for path in &self.read_only {
                if system::mount_read_only(path).is_err() {
                    mounts = Mounts::Incomplete;
                }
            }
            // Landlock keeps their contents safe if this fails.
            for path in &self.sealed {
                let _ = system::mount_read_only(path);
            }
        } else {
            mounts = Mounts::Incomplete;
        }
        Ok(Entered::Private(mounts))
    }
}

/// Maps the own user and group to themselves.
///
/// The map files belong to root while this process is not dumpable, so it is dumpable while they
/// are opened.
fn write_maps(users: &[u8], groups: &[u8]) -> io::Result<()> {
    let before = dumpable_behavior()?;
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    let open = |path: &CStr| {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        openat(rustix::fs::CWD, path, flags, Mode::empty())
    };
    let (deny, user_map, group_map) = (
        open(c"/proc/self/setgroups"),
        open(c"/proc/self/uid_map"),
        open(c"/proc/self/gid_map"),
    );
    set_dumpable_behavior(before)?;
    rustix::io::write(&deny?, b"deny")?;
    rustix::io::write(&user_map?, users)?;
    rustix::io::write(&group_map?, groups)?;
    Ok(())
}

#[expect(
    unsafe_code,
    reason = "the standard library offers no namespaces or mounts"
)]
mod system {
    use super::{CStr, io};

    /// Layout of the kernel's `mount_attr`.
    #[repr(C)]
    struct MountAttributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }

    const READ_ONLY: u64 = 1;

    pub(super) fn unshare(flags: libc::c_int) -> io::Result<()> {
        // SAFETY: takes a number. The caller is a forked child with one thread and no guarantees
        // about namespaces to keep.
        check(unsafe { libc::unshare(flags) })
    }

    /// Keeps mounts of this namespace from appearing in others.
    pub(super) fn stop_propagation() -> io::Result<()> {
        // SAFETY: all pointers are constant strings or null, as the kernel allows here.
        check(unsafe {
            libc::mount(
                c"none".as_ptr(),
                c"/".as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_SLAVE,
                std::ptr::null(),
            )
        })
    }

    /// Mounts a file or directory over itself, read-only with all that is mounted below.
    pub(super) fn mount_read_only(path: &CStr) -> io::Result<()> {
        // SAFETY: `path` is a live string, the other pointers are null, as the kernel allows here.
        check(unsafe {
            libc::mount(
                path.as_ptr(),
                path.as_ptr(),
                std::ptr::null(),
                libc::MS_BIND | libc::MS_REC,
                std::ptr::null(),
            )
        })?;
        let attributes = MountAttributes {
            set: READ_ONLY,
            clear: 0,
            propagation: 0,
            user_namespace: 0,
        };
        // SAFETY: `path` is a live string and the kernel reads as many bytes as are given.
        let result = unsafe {
            libc::syscall(
                libc::SYS_mount_setattr,
                libc::AT_FDCWD,
                path.as_ptr(),
                libc::AT_RECURSIVE,
                &raw const attributes,
                size_of::<MountAttributes>(),
            )
        };
        check(libc::c_int::try_from(result).unwrap_or(-1))
    }

    fn check(result: libc::c_int) -> io::Result<()> {
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}
