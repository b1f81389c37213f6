//! Keepers: small processes that hold the input and output of background processes.
//!
//! A keeper is the program of ikigai itself, in a separate session, so that the process that it
//! keeps outlives ikigai. It gets its listening socket as standard input: the socket exists before
//! the keeper, so a refused connection means that the keeper died or never lived. The first
//! connection brings the [`KeeperJob`]; each later one brings one request.
//!
//! A process has a directory that only the user can read: the socket, the output in bounded
//! segments, and in the end a file with the exit status.

mod client;
mod exit_file;
mod handover;
mod job;
mod output_copy;
mod output_log;
mod protocol;
mod server;

pub use client::{KeeperProgram, KeptState, OutputFollower, OutputNews, look, send, start, stop};
pub use handover::remove;
pub(crate) use handover::{FollowError, FollowedEnd, FollowedJob, run_followed};
pub use job::{KeeperJob, KeptJob};
pub use output_log::{OutputPart, read_output};
pub use protocol::{ProcessEnd, StopCause};
pub use server::keep;

/// Name of the socket in the directory of a process.
const SOCKET: &str = "socket";
