//! Report on a database server: facts that matter for durability and sharing.

use std::time::Duration;

/// Findings of an examination of a database server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerReport {
    /// Version as the server writes it.
    pub version: String,
    /// Privileges that the program needs and lacks: `INSERT on messages`.
    pub missing_rights: Vec<String>,
    /// The server accepts no writes.
    pub is_read_only: bool,
    /// Settings by which it may lose confirmed commits: `fsync`, `synchronous_commit`.
    pub unsafe_settings: Vec<String>,
    /// Open connections, and their limit.
    pub connections: (u64, u64),
    /// Round-trip time of a query.
    pub round_trip: Duration,
    /// Microseconds by which the server's clock is ahead of this machine's.
    pub clock_ahead: i64,
    /// Delay of a notification; `None` if it did not arrive.
    pub notified: Option<Duration>,
    /// The connection is encrypted, or does not leave the machine.
    pub is_private: bool,
}
