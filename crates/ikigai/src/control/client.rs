//! Client of other programs' control sockets.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use ikigai_engine::{Engine, ProcessRecord};
use ikigai_tui::driver::{NeighbourAnswer, Neighbours};
use ikigai_tui::protocol::{ControlAnswer, ControlRequest};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::socket_path;
use super::store_requests::ask_through_store;
use crate::identity;
use crate::keepers::this_host;

/// Longest line that is read; larger than the largest screen.
const LONGEST_LINE: u64 = 64 << 20;

/// Time for an answer. The other program may have to stop a turn first.
const PATIENCE: Duration = Duration::from_secs(8);

/// Request that was sent; the answer is read line by line.
pub(crate) struct ControlClient {
    stream: BufReader<UnixStream>,
}

impl ControlClient {
    /// Sends a request to a socket.
    pub(crate) async fn ask(socket: &Path, request: &ControlRequest) -> Result<Self> {
        let named = || format!("cannot connect to `{}`", socket.display());
        let mut stream = UnixStream::connect(socket).await.with_context(named)?;
        let mut line = serde_json::to_string(request)?;
        line.push('\n');
        stream
            .write_all(line.as_bytes())
            .await
            .with_context(named)?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Reads the next line of the answer; none at its end.
    pub(crate) async fn line(&mut self) -> Result<Option<String>> {
        let mut line = String::new();
        let mut limited = (&mut self.stream).take(LONGEST_LINE);
        let count = limited.read_line(&mut line).await;
        let count = count.context("cannot read the answer")?;
        if count == 0 {
            return Ok(None);
        }
        if line.pop() != Some('\n') {
            bail!("the connection closed in the middle of an answer");
        }
        Ok(Some(line))
    }
}

/// Sends a request to a socket and reads the answer.
pub(crate) async fn ask(socket: &Path, request: &ControlRequest) -> Result<ControlAnswer> {
    let line = ControlClient::ask(socket, request).await?.line().await?;
    let line = line.context("no answer")?;
    serde_json::from_str(&line).context("invalid answer")
}

/// Other programs of this user on this machine.
pub(crate) struct Clients {
    directory: PathBuf,
    engine: Engine,
}

impl Clients {
    /// Uses the socket directory of this program, and the store for processes of other machines.
    pub(crate) fn here(engine: Engine) -> Result<Self> {
        Ok(Self {
            directory: socket_path::directory()?,
            engine,
        })
    }

    /// Sends a request to a process of another machine through the store.
    async fn ask_elsewhere(
        &self,
        whom: &ProcessRecord,
        request: &ControlRequest,
    ) -> Result<ControlAnswer, String> {
        let named = match request {
            ControlRequest::Interrupt { agent }
            | ControlRequest::Release { agent }
            | ControlRequest::Approve { agent, .. } => agent.as_deref(),
            _ => None,
        };
        let holder = format!("pid {} on {}", whom.pid, whom.host);
        let Some(agent) = named.and_then(|agent| agent.parse().ok()) else {
            return Err(format!("{holder} is another machine"));
        };
        ask_through_store(&self.engine, agent, request, &holder).await
    }
}

/// Returns true if a process is on this machine.
fn is_here(whom: &ProcessRecord) -> bool {
    match whom.machine {
        Some(machine) => machine == identity::machine(),
        None => this_host() == whom.host,
    }
}

impl Neighbours for Clients {
    fn ask<'a>(&'a self, whom: &'a ProcessRecord, request: ControlRequest) -> NeighbourAnswer<'a> {
        Box::pin(async move {
            if !is_here(whom) {
                return self.ask_elsewhere(whom, &request).await;
            }
            let safe = socket_path::check(&self.directory);
            safe.map_err(|error| format!("{error:#}"))?;
            let socket = socket_path::socket_of(&self.directory, whom.pid);
            match timeout(PATIENCE, ask(&socket, &request)).await {
                Ok(answered) => answered.map_err(|error| format!("{error:#}")),
                Err(_) => Err(format!("pid {} does not answer", whom.pid)),
            }
        })
    }
}
