//! Sockets that processes of a run hold.

use std::collections::HashSet;
use std::fs;

use super::family::{Mark, find_living};

/// Returns the inodes of the sockets that the processes of these runs hold.
///
/// Reads the descriptors of their processes. Blocks.
pub(super) fn sockets_of_runs(cookies: &[String]) -> HashSet<u64> {
    let processes = cookies
        .iter()
        .flat_map(|cookie| find_living(&Mark::new(cookie)));
    processes.flat_map(sockets_of).collect()
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
