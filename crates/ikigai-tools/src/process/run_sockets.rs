//! Ports on loopback that processes of a run listen on.

use std::collections::HashSet;
use std::fs;

use super::family::{Mark, find_living};
use crate::sandbox::listening_sockets;

/// Returns the ports that the processes of these runs listen on, on loopback addresses.
///
/// Reads the descriptors of their processes. Blocks.
pub fn listening_ports(cookies: &[String]) -> Vec<u16> {
    if cookies.is_empty() {
        return Vec::new();
    }
    let mut inodes = HashSet::new();
    for cookie in cookies {
        for pid in find_living(&Mark::new(cookie)) {
            inodes.extend(sockets_of(pid));
        }
    }
    let sockets = listening_sockets();
    let own = sockets
        .into_iter()
        .filter(|(inode, ip, _)| ip.is_loopback() && inodes.contains(inode));
    let mut ports: Vec<u16> = own.map(|(.., port)| port).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Returns the inodes of a process's sockets.
fn sockets_of(pid: i32) -> Vec<u64> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten();
    let links = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let inodes = links.filter_map(|link| {
        let name = link.to_str()?.strip_prefix("socket:[")?;
        name.strip_suffix(']')?.parse().ok()
    });
    inodes.collect()
}
