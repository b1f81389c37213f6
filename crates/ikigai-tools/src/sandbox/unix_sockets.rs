//! Sockets with paths for commands without network.
//!
//! A command may bind where it may create files, and connect to sockets on which it listens itself.
//! A path says nothing about the program behind it: `/tmp` holds sockets of tmux, X11 and key agents,
//! and any of them can be renamed or linked into the working directory. So a target is opened once,
//! and the kernel says which sockets are bound to that very file.

use std::collections::HashSet;
use std::ffi::CStr;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

use landlock::{RulesetCreated, RulesetStatus};
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    self, AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

/// Size of the buffer for answers of the kernel, which sends at most this much at a time.
const ANSWER_BYTES: usize = 32 * 1024;

/// Request for sockets of one family (`SOCK_DIAG_BY_FAMILY`).
const BY_FAMILY: u16 = 20;

/// Flags of a request for all entries (`NLM_F_REQUEST | NLM_F_DUMP`).
const ALL_ENTRIES: u16 = 0x301;

/// Type of the last answer (`NLMSG_DONE`).
const DONE: u16 = 3;

/// Sockets that listen (`1 << TCP_LISTEN`).
const LISTENING: u32 = 1 << 10;

/// Request for the files that sockets are bound to (`UDIAG_SHOW_VFS`).
const WITH_FILES: u32 = 2;

/// Type of an answer's attribute with the file (`UNIX_DIAG_VFS`).
const FILE: u16 = 1;

/// Bytes of a header in an answer.
const HEADER_BYTES: usize = 16;

/// Bytes of a socket's description before its attributes.
const SOCKET_BYTES: usize = 16;

/// Place in the file system from which a caller sees paths.
pub(super) struct CallerPlace {
    directory: OwnedFd,
    mask: Mode,
}

impl CallerPlace {
    /// Reads the working directory and the file mode mask of a thread.
    pub(super) fn of(caller: i32) -> Result<Self, Errno> {
        let directory = rustix::fs::open(
            format!("/proc/{caller}/cwd"),
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let status =
            fs::read_to_string(format!("/proc/{caller}/status")).map_err(|_| Errno::SRCH)?;
        let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        let mask = mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok());
        Ok(Self {
            directory,
            mask: Mode::from_raw_mode(mask.unwrap_or(0o077)),
        })
    }

    /// Finds the file of a path, and holds it.
    pub(super) fn find(&self, path: &CStr) -> Result<SocketFile, Errno> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, path, flags, Mode::empty())?;
        let status = rustix::fs::fstat(&file)?;
        Ok(SocketFile { file, status })
    }
}

/// File of a socket, held so that its number belongs to no other file.
pub(super) struct SocketFile {
    file: OwnedFd,
    status: Stat,
}

impl SocketFile {
    /// Allows connections to a file on which only `own` sockets listen.
    pub(super) fn judge(
        &self,
        listening: &[PathListener],
        own: &HashSet<u64>,
    ) -> Result<(), Errno> {
        if FileType::from_raw_mode(self.status.st_mode) != FileType::Socket {
            return Err(Errno::CONNREFUSED);
        }
        // The kernel says only the lower half of a number. More candidates than the file has are
        // safe, since all of them must be own ones.
        let here = |it: &&PathListener| u64::from(it.file) == self.status.st_ino & 0xffff_ffff;
        let listeners: Vec<_> = listening.iter().filter(here).collect();
        if listeners.is_empty() {
            return Err(Errno::CONNREFUSED);
        }
        let is_own = |it: &&PathListener| own.contains(&u64::from(it.socket));
        let is_here = |it: &&PathListener| it.is_on(self.status.st_dev);
        if listeners.iter().all(is_own) && listeners.iter().any(is_here) {
            Ok(())
        } else {
            Err(Errno::ACCESS)
        }
    }

    /// Connects to the held file, wherever its path leads by now.
    pub(super) fn connect(&self, socket: &OwnedFd) -> Result<(), Errno> {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        net::connect(socket, &SocketAddrUnix::new(path)?)
    }
}

/// Binds a socket to the caller's path, with the caller's rights on files.
///
/// The socket keeps the path as the caller wrote it. The kernel resolves it again, so the thread that
/// binds is in the command's sandbox: it can create nothing that the command could not.
pub(super) fn bind(
    socket: &OwnedFd,
    path: &CStr,
    place: &CallerPlace,
    files: &RulesetCreated,
) -> Result<(), Errno> {
    let address = SocketAddrUnix::new(path)?;
    let files = files.try_clone().map_err(|_| Errno::MFILE)?;
    let bind = || {
        unshare_directory()?;
        rustix::process::fchdir(&place.directory)?;
        rustix::process::umask(place.mask);
        let status = files.restrict_self().map_err(|_| Errno::PERM)?;
        if status.ruleset == RulesetStatus::NotEnforced {
            return Err(Errno::PERM);
        }
        net::bind(socket, &address)
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("sandbox bind".to_owned());
        let thread = thread.spawn_scoped(scope, bind).map_err(|_| Errno::AGAIN)?;
        thread.join().unwrap_or(Err(Errno::PERM))
    })
}

/// Refuses sockets that are bound to no path.
pub(super) fn check_path(socket: &OwnedFd) -> Result<(), Errno> {
    let own = SocketAddrUnix::try_from(net::getsockname(socket)?)?;
    own.path().map(|_| ()).ok_or(Errno::INVAL)
}

/// Gives this thread a working directory and a file mode mask that no other thread shares.
#[expect(unsafe_code, reason = "`unshare` can break other promises of threads")]
fn unshare_directory() -> Result<(), Errno> {
    // SAFETY: only the working directory, the root and the mask become this thread's, which ends
    // soon. Descriptors stay shared.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FS) }
}

/// A socket that listens, with the file that it is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathListener {
    socket: u32,
    file: u32,
    device: u32,
}

impl PathListener {
    /// Returns true if its file is on this device.
    fn is_on(&self, device: u64) -> bool {
        // The kernel's form of the number.
        let (major, minor) = (self.device >> 20, self.device & 0xf_ffff);
        (rustix::fs::major(device), rustix::fs::minor(device)) == (major, minor)
    }
}

/// Asks the kernel for all listening sockets that are bound to a file.
pub(super) fn listening() -> Result<Vec<PathListener>, Errno> {
    let socket = net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    let kernel = SocketAddrNetlink::new(0, 0);
    net::sendto(&socket, &request(), SendFlags::empty(), &kernel)?;
    let mut listening = Vec::new();
    let mut answers = vec![0; ANSWER_BYTES];
    loop {
        let (length, _) = net::recv(&socket, &mut answers[..], RecvFlags::empty())?;
        let answers = answers.get(..length).unwrap_or_default();
        if read_answers(answers, &mut listening)? {
            return Ok(listening);
        }
    }
}

/// Returns the request for [`listening`].
fn request() -> Vec<u8> {
    let family = [libc::AF_UNIX.unsigned_abs().to_le_bytes()[0], 0, 0, 0];
    let words = [LISTENING, 0, WITH_FILES, u32::MAX, u32::MAX];
    let body = [&family[..], &words.map(u32::to_ne_bytes).concat()].concat();
    let length = u32::try_from(HEADER_BYTES + body.len()).unwrap_or_default();
    [
        &length.to_ne_bytes()[..],
        &BY_FAMILY.to_ne_bytes(),
        &ALL_ENTRIES.to_ne_bytes(),
        // Sequence number and port.
        &[0; 8],
        &body,
    ]
    .concat()
}

/// Reads a packet of answers; returns true after the last one.
fn read_answers(mut packet: &[u8], listening: &mut Vec<PathListener>) -> Result<bool, Errno> {
    while let (Some(length), Some(kind)) = (word(packet, 0), half(packet, 4)) {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let answer = packet.get(HEADER_BYTES..length).ok_or(Errno::BADMSG)?;
        match kind {
            DONE => return Ok(true),
            BY_FAMILY => listening.extend(read_listener(answer)),
            _ => return Err(Errno::NOTSUP),
        }
        packet = packet.get(aligned(length)..).unwrap_or_default();
    }
    Ok(false)
}

fn read_listener(answer: &[u8]) -> Option<PathListener> {
    let socket = word(answer, 4)?;
    let mut attributes = answer.get(SOCKET_BYTES..)?;
    while let (Some(length), Some(kind)) = (half(attributes, 0), half(attributes, 2)) {
        let length = usize::from(length);
        let value = attributes.get(4..length)?;
        if kind == FILE {
            return Some(PathListener {
                socket,
                file: word(value, 0)?,
                device: word(value, 4)?,
            });
        }
        attributes = attributes.get(aligned(length)..).unwrap_or_default();
    }
    None
}

/// Returns a length with the padding after it.
fn aligned(length: usize) -> usize {
    length.saturating_add(3) & !3
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_ne_bytes(*bytes))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests;
