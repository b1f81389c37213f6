//! Servers on loopback that a command may connect to, by their kind.

use crate::LoopbackServer;

/// Returns the ports in a list of servers.
pub(super) fn ports_of(servers: &[LoopbackServer]) -> Vec<u16> {
    let ports = servers.iter().filter_map(|server| match server {
        LoopbackServer::Port(port) => Some(*port),
        LoopbackServer::Run(_) => None,
    });
    ports.collect()
}

/// Returns the cookies in a list of servers.
pub(super) fn runs_of(servers: &[LoopbackServer]) -> Vec<String> {
    let runs = servers.iter().filter_map(|server| match server {
        LoopbackServer::Run(cookie) => Some(cookie.clone()),
        LoopbackServer::Port(_) => None,
    });
    runs.collect()
}
