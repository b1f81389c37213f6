//! Requests to a keeper and its replies: one line of JSON each.

use std::io;

use ikigai_core::data::SandboxRefusal;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::job::KeeperJob;

/// Longest line: a job with its environment, or text for the input.
const MOST_LINE_BYTES: u64 = 16 * 1024 * 1024;

/// Request of a connection.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum KeeperRequest {
    /// Starts the process; only the first connection may.
    Start(Box<KeeperJob>),
    /// Writes to its standard input, then perhaps closes it.
    Send { text: String, closes: bool },
    /// Ends it with all descendants.
    Stop { reason: StopCause },
    /// Reports the size of its output whenever it grows, and its end.
    Follow,
    /// Reports its end.
    Await,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum KeeperReply {
    /// The request was carried out.
    Done,
    /// It was not, for this reason.
    Failed {
        reason: String,
    },
    /// Bytes that the process has printed.
    Size {
        bytes: u64,
    },
    Ended(ProcessEnd),
}

/// Reason for which a keeper ends its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    /// A request.
    Request,
    /// The time limit.
    Deadline,
    /// Its owner was killed.
    OwnerKilled,
}

/// End of a kept process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEnd {
    /// Exit code, if it exited.
    pub exit: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// Reason for which the keeper ended it; none if it ended by itself.
    pub stopped: Option<StopCause>,
    /// Time in microseconds since 1970.
    pub at: i64,
    /// Bytes that it printed.
    pub printed: u64,
    /// Remark: it ran without a sandbox, or changes were reverted.
    pub warning: Option<String>,
    /// Reason for which it could not be started.
    pub failure: Option<String>,
    /// Number of its descendants that were ended after it.
    #[serde(default)]
    pub left_behind: usize,
    /// Accesses that the sandbox refused.
    #[serde(default)]
    pub refused: Vec<SandboxRefusal>,
}

impl ProcessEnd {
    /// Describes the exit status. Example: `exit 1`.
    pub fn describe(&self) -> String {
        if let Some(reason) = &self.failure {
            return reason.clone();
        }
        let status = match (self.exit, self.signal) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("killed by signal {signal}"),
            (None, None) => "ended".to_owned(),
        };
        match self.stopped {
            None => status,
            Some(StopCause::Request) => "stopped".to_owned(),
            Some(StopCause::Deadline) => "stopped at its time limit".to_owned(),
            Some(StopCause::OwnerKilled) => "stopped with its agent".to_owned(),
        }
    }
}

/// Connection between a keeper and a client.
pub(super) struct KeeperConnection {
    stream: BufReader<UnixStream>,
}

impl KeeperConnection {
    pub(super) fn new(stream: UnixStream) -> Self {
        let stream = BufReader::new(stream);
        Self { stream }
    }

    /// Sends one line.
    pub(super) async fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.stream.write_all(&line).await
    }

    /// Receives one line; none if the other side is gone. An incomplete line counts as none.
    pub(super) async fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let mut line = Vec::new();
        let mut bounded = (&mut self.stream).take(MOST_LINE_BYTES);
        bounded.read_until(b'\n', &mut line).await?;
        if !line.ends_with(b"\n") {
            return Ok(None);
        }
        Ok(Some(serde_json::from_slice(&line)?))
    }
}
