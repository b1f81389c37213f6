//! TCP on the loopback interface, and sockets with paths, for commands without network.
//!
//! A command may listen on loopback addresses and connect to ports on which it listens itself, or
//! that the user's configuration names. Sockets with paths follow the same rule
//! ([`super::unix_sockets`]). The addresses of `bind` and `connect` are in memory that
//! other threads of the command can change, so the supervisor copies an address once, judges it, and
//! carries the call out on a duplicate of the caller's socket. The kernel never continues them.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ikigai_core::data::RefusalKind;
use landlock::RulesetCreated;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketType, ipproto, sockopt};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::LoopbackReach;
use super::unix_sockets::{self, CallerPlace};
use crate::output::visible;

/// Bytes of the longest address that is judged (`sockaddr_un`).
const LONGEST_ADDRESS_BYTES: usize = 110;

/// State of a listening socket in `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// Call on a socket, with its arguments in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SocketCall {
    number: libc::c_long,
    arguments: [u64; 6],
}

impl SocketCall {
    /// Calls that the supervisor carries out.
    pub(super) const NUMBERS: [libc::c_long; 3] =
        [libc::SYS_bind, libc::SYS_connect, libc::SYS_listen];

    /// Returns a call that the supervisor carries out; none for others.
    pub(super) fn of(number: libc::c_int, arguments: [u64; 6]) -> Option<Self> {
        let number = libc::c_long::from(number);
        let is_known = Self::NUMBERS.contains(&number);
        is_known.then_some(Self { number, arguments })
    }

    fn descriptor(&self) -> Result<i32, Errno> {
        // The kernel reads the lower half.
        let low = u32::try_from(self.arguments[0] & u64::from(u32::MAX)).unwrap_or_default();
        Some(low.cast_signed())
            .filter(|number| *number >= 0)
            .ok_or(Errno::BADF)
    }
}

/// Sockets of one command.
pub(super) struct Loopback {
    /// Inodes of its listening sockets, and of known ones of other commands of its agent.
    listening: Mutex<HashSet<u64>>,
    /// Addresses of other programs that it may connect to.
    reach: LoopbackReach,
    /// Its rules for files.
    files: RulesetCreated,
}

impl Loopback {
    /// Creates the state of a command that may also connect to the addresses of `reach`.
    pub(super) fn new(reach: LoopbackReach, files: RulesetCreated) -> Self {
        Self {
            listening: Mutex::default(),
            reach,
            files,
        }
    }

    /// Carries out a call of thread `caller`; `is_valid` returns false once the caller is gone.
    pub(super) fn carry_out(
        &self,
        caller: i32,
        call: &SocketCall,
        is_valid: impl Fn() -> bool,
    ) -> Result<(), Errno> {
        let address = match call.number {
            libc::SYS_listen => None,
            _ => Some(read_address(caller, call)?),
        };
        let place = match &address {
            Some(Address::Path(_)) => Some(CallerPlace::of(caller)?),
            _ => None,
        };
        let socket = duplicate(caller, call.descriptor()?)?;
        // The number of a caller that ended may belong to another process by now.
        if !is_valid() {
            return Err(Errno::SRCH);
        }
        if is_unix_stream(&socket)? {
            return match (call.number, &address, place) {
                (libc::SYS_bind, Some(Address::Path(path)), Some(place)) => {
                    unix_sockets::bind(&socket, path, &place, &self.files)
                }
                (libc::SYS_connect, Some(Address::Path(path)), Some(place)) => {
                    self.connect_path(&socket, path, &place)
                }
                (libc::SYS_listen, None, _) => {
                    unix_sockets::check_path(&socket)?;
                    self.listen_on(&socket, call.arguments[1])
                }
                _ => Err(Errno::INVAL),
            };
        }
        check_socket(&socket)?;
        match (call.number, address) {
            (libc::SYS_bind, Some(Address::Ip(address))) => bind(&socket, address),
            (libc::SYS_connect, Some(Address::Ip(address))) => self.connect(&socket, address),
            (libc::SYS_connect, Some(Address::None)) => net::connect_unspec(&socket),
            (libc::SYS_listen, None) => self.listen(&socket, call.arguments[1]),
            _ => Err(Errno::AFNOSUPPORT),
        }
    }

    /// Listens on a loopback address; a socket without an address gets one.
    fn listen(&self, socket: &OwnedFd, backlog: u64) -> Result<(), Errno> {
        let own = SocketAddr::try_from(net::getsockname(socket)?)?;
        if !canonical(own.ip()).is_loopback() {
            if own.port() != 0 {
                return Err(Errno::ACCESS);
            }
            bind(socket, own)?;
        }
        self.listen_on(socket, backlog)
    }

    /// Listens, and records the socket as one of the command.
    fn listen_on(&self, socket: &OwnedFd, backlog: u64) -> Result<(), Errno> {
        let backlog = i32::try_from(backlog & u64::from(u32::MAX)).unwrap_or(i32::MAX);
        net::listen(socket, backlog)?;
        let inode = rustix::fs::fstat(socket)?.st_ino;
        self.own_sockets().insert(inode);
        Ok(())
    }

    fn connect(&self, socket: &OwnedFd, address: SocketAddr) -> Result<(), Errno> {
        let address = loopback_of(socket, address);
        if let Err(error) = self.judge(address) {
            if error == Errno::ACCESS {
                let address = SocketAddr::new(canonical(address.ip()), address.port());
                let refusals = &self.reach.refusals;
                refusals.add(RefusalKind::Connection, &address.to_string());
            }
            return Err(error);
        }
        net::connect(socket, &address)
    }

    fn connect_path(
        &self,
        socket: &OwnedFd,
        path: &CStr,
        place: &CallerPlace,
    ) -> Result<(), Errno> {
        let target = place.find(path)?;
        let listening = unix_sockets::listening()?;
        let own = self.own_sockets();
        let verdict = target.judge(&listening, &own);
        drop(own);
        if verdict == Err(Errno::ACCESS) {
            let name = visible(path.to_bytes());
            self.reach.refusals.add(RefusalKind::Connection, &name);
        }
        verdict?;
        target.connect(socket)
    }

    fn own_sockets(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn judge(&self, address: SocketAddr) -> Result<(), Errno> {
        let ip = canonical(address.ip());
        if self.reach.proxy == Some(SocketAddr::new(ip, address.port())) {
            return Ok(());
        }
        if !ip.is_loopback() {
            return Err(Errno::ACCESS);
        }
        if self.reach.ports.contains(&address.port()) {
            return Ok(());
        }
        self.judge_listener(address, &read_sockets())
    }

    /// Allows connections to sockets of this command and of others of its agent; refuses those of
    /// other programs.
    fn judge_listener(
        &self,
        address: SocketAddr,
        listening: &[ListeningSocket],
    ) -> Result<(), Errno> {
        let ip = canonical(address.ip());
        // The kernel prefers a socket with the exact address to one that listens on all.
        let is_target = |socket: &&ListeningSocket| {
            socket.port == address.port() && (socket.ip == ip || socket.ip.is_unspecified())
        };
        let targets: Vec<_> = listening.iter().filter(is_target).collect();
        if targets.is_empty() {
            return Err(Errno::CONNREFUSED);
        }
        let are_own = |own: &HashSet<u64>| {
            let mut targets = targets.iter();
            targets.all(|socket| socket.ip == ip && own.contains(&socket.inode))
        };
        if are_own(&self.own_sockets()) {
            return Ok(());
        }
        let found = self.reach.sockets.as_ref().map(|look_up| look_up());
        let found = found.unwrap_or_default();
        let mut own = self.own_sockets();
        let inodes = targets.iter().map(|socket| socket.inode);
        // A socket keeps its number, so the next connection needs no lookup.
        own.extend(inodes.filter(|inode| found.contains(inode)));
        if are_own(&own) {
            Ok(())
        } else {
            Err(Errno::ACCESS)
        }
    }
}

/// Address of a call.
enum Address {
    Ip(SocketAddr),
    /// Path of a socket.
    Path(CString),
    /// No address (`AF_UNSPEC`): ends a connection.
    None,
}

/// Copies the address of a call from the memory of its caller.
fn read_address(caller: i32, call: &SocketCall) -> Result<Address, Errno> {
    let length = usize::try_from(call.arguments[2]).unwrap_or(usize::MAX);
    let length = length.min(LONGEST_ADDRESS_BYTES);
    let mut bytes = [0_u8; LONGEST_ADDRESS_BYTES];
    let memory = File::open(format!("/proc/{caller}/mem")).map_err(|_| Errno::PERM)?;
    memory
        .read_exact_at(&mut bytes[..length], call.arguments[1])
        .map_err(|_| Errno::FAULT)?;
    parse_address(&bytes[..length])
}

fn parse_address(bytes: &[u8]) -> Result<Address, Errno> {
    let (family, rest) = bytes.split_first_chunk::<2>().ok_or(Errno::INVAL)?;
    let family = i32::from(u16::from_ne_bytes(*family));
    if family == libc::AF_UNSPEC {
        return Ok(Address::None);
    }
    if family == libc::AF_UNIX {
        let length = rest.iter().position(|byte| *byte == 0);
        let path = rest.get(..length.unwrap_or(rest.len())).unwrap_or_default();
        // Abstract names have no permissions, and without a path the kernel makes one up.
        if path.is_empty() {
            return Err(Errno::PERM);
        }
        let path = CString::new(path).map_err(|_| Errno::INVAL)?;
        return Ok(Address::Path(path));
    }
    let (port, rest) = rest.split_first_chunk::<2>().ok_or(Errno::INVAL)?;
    let port = u16::from_be_bytes(*port);
    match family {
        libc::AF_INET => {
            let ip = rest.first_chunk::<4>().ok_or(Errno::INVAL)?;
            Ok(Address::Ip((Ipv4Addr::from(*ip), port).into()))
        }
        libc::AF_INET6 => {
            // Four bytes of flow information precede the address.
            let ip = rest.get(4..).and_then(|rest| rest.first_chunk::<16>());
            let ip = ip.ok_or(Errno::INVAL)?;
            Ok(Address::Ip((Ipv6Addr::from(*ip), port).into()))
        }
        _ => Err(Errno::AFNOSUPPORT),
    }
}

/// Duplicates a descriptor of the process that a thread belongs to.
fn duplicate(thread: i32, descriptor: i32) -> Result<OwnedFd, Errno> {
    let process = super::listener::process_of(thread)
        .and_then(Pid::from_raw)
        .ok_or(Errno::SRCH)?;
    let process = pidfd_open(process, PidfdFlags::empty())?;
    pidfd_getfd(process, descriptor, PidfdGetfdFlags::empty())
}

/// Returns true for stream sockets of this machine, whose addresses are paths.
fn is_unix_stream(socket: &OwnedFd) -> Result<bool, Errno> {
    Ok(sockopt::socket_domain(socket)? == AddressFamily::UNIX
        && sockopt::socket_type(socket)? == SocketType::STREAM)
}

/// Accepts TCP sockets over IP only.
fn check_socket(socket: &OwnedFd) -> Result<(), Errno> {
    let family = sockopt::socket_domain(socket)?;
    let is_ip = family == AddressFamily::INET || family == AddressFamily::INET6;
    let is_stream = sockopt::socket_type(socket)? == SocketType::STREAM;
    let is_tcp = sockopt::socket_protocol(socket)? == Some(ipproto::TCP);
    if is_ip && is_stream && is_tcp {
        Ok(())
    } else {
        Err(Errno::PERM)
    }
}

/// Binds to a loopback address; all addresses become the loopback one.
fn bind(socket: &OwnedFd, address: SocketAddr) -> Result<(), Errno> {
    let address = loopback_of(socket, address);
    if !canonical(address.ip()).is_loopback() {
        return Err(Errno::ACCESS);
    }
    net::bind(socket, &address)
}

/// Returns the loopback address if an address means all of them, in the form of the socket.
fn loopback_of(socket: &OwnedFd, address: SocketAddr) -> SocketAddr {
    if !canonical(address.ip()).is_unspecified() {
        return address;
    }
    let ip = match address.ip() {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        // A socket for both versions is reached by most programs through version 4.
        IpAddr::V6(_) if !sockopt::ipv6_v6only(socket).unwrap_or(true) => {
            IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped())
        }
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
    };
    SocketAddr::new(ip, address.port())
}

/// Returns an address of version 4 that is written in version 6 as what it is.
fn canonical(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}

/// A listening TCP socket of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ListeningSocket {
    ip: IpAddr,
    port: u16,
    inode: u64,
}

/// Returns the listening TCP sockets of this machine.
fn read_sockets() -> Vec<ListeningSocket> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let tables = tables.map(|table| fs::read_to_string(table).unwrap_or_default());
    let lines = tables.iter().flat_map(|table| table.lines().skip(1));
    lines.filter_map(parse_socket).collect()
}

/// Parses a line of `/proc/net/tcp`; none for sockets that do not listen.
fn parse_socket(line: &str) -> Option<ListeningSocket> {
    let mut fields = line.split_whitespace().skip(1);
    let (ip, port) = fields.next()?.split_once(':')?;
    if fields.nth(1)? != LISTENING {
        return None;
    }
    // Words of four bytes in the order of this machine.
    let words = ip.as_bytes().chunks(8).map(|word| {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        Some(word.to_ne_bytes())
    });
    let bytes: Vec<u8> = words.collect::<Option<Vec<_>>>()?.concat();
    let ip = match *bytes.as_slice() {
        [a, b, c, d] => IpAddr::from([a, b, c, d]),
        ref bytes => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
    };
    Some(ListeningSocket {
        ip: canonical(ip),
        port: u16::from_str_radix(port, 16).ok()?,
        // Queues, timer, retransmits, user and timeout precede the inode.
        inode: fields.nth(5)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests;
