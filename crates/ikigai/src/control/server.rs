//! Server of the control socket.
//!
//! No client can delay the program or another client: each has a task, bounded time and a bounded
//! request.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use ikigai_core::{AgentId, PageQuery, Seq, Span};
use ikigai_engine::Engine;
use ikigai_tui::control::{PendingRequest, RequestOutcome};
use ikigai_tui::protocol::{ControlAnswer, ControlRequest};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::socket_path;
use crate::output::{json_line, json_of};

const LONGEST_REQUEST: usize = 1 << 20;

/// Time for a client to send its request, and to read its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Most bytes discarded of an overlong request, so that its client gets the error.
const LONGEST_REST: usize = 64 << 20;

/// Most clients at a time.
const MOST_CLIENTS: usize = 256;

/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time for clients to read their answers when the program ends.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Rows read at a time.
const PAGE_ROWS: usize = 256;

/// Listening socket. Dropping it removes the file.
pub(crate) struct ControlServer {
    path: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    listening: Option<JoinHandle<()>>,
}

/// Input of a client.
enum ClientRequest {
    Request(ControlRequest),
    /// Invalid request, with the reason.
    Wrong(String),
    /// The client is gone.
    Nothing,
}

impl ControlServer {
    /// Listens at this process's socket and forwards requests. Call it within a runtime.
    pub(crate) fn start(orders: mpsc::Sender<PendingRequest>, engine: Engine) -> Result<Self> {
        let directory = socket_path::directory()?;
        socket_path::prepare(&directory)?;
        // Removes sockets of dead processes.
        socket_path::instances(&directory);
        let path = socket_path::socket_of(&directory, std::process::id());
        let listener = bind(&path)
            .with_context(|| format!("cannot listen at the socket `{}`", path.display()))?;
        let (stop, stopped) = oneshot::channel();
        let listening = tokio::spawn(listen(listener, orders, engine, stopped));
        Ok(Self {
            path,
            stop: Some(stop),
            listening: Some(listening),
        })
    }

    /// Returns the path of the socket.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Stops listening; clients still receive pending answers.
    pub(crate) async fn end(mut self) {
        // The receiver is gone if the task panicked.
        let _ = self.stop.take().map(|stop| stop.send(()));
        if let Some(listening) = self.listening.take() {
            let _ = listening.await;
        }
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        // Another process may have removed it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Creates a socket that only its owner can use.
///
/// It gets its name only after it listens, so that other processes can recognize stale ones.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let early = path.with_extension("new");
    match fs::remove_file(&early) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&early)?;
    fs::set_permissions(&early, fs::Permissions::from_mode(0o600))?;
    fs::rename(&early, path)?;
    Ok(listener)
}

async fn listen(
    listener: UnixListener,
    orders: mpsc::Sender<PendingRequest>,
    engine: Engine,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            Some(_) = clients.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let is_full = clients.len() >= MOST_CLIENTS;
                    clients.spawn(serve_client(stream, orders.clone(), engine.clone(), is_full));
                }
                // Too many open files; some will be closed.
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
        }
    }
    drop(listener);
    let answered = async { while clients.join_next().await.is_some() {} };
    let _ = timeout(LAST_WORDS, answered).await;
}

/// Serves one client.
async fn serve_client(
    mut stream: UnixStream,
    orders: mpsc::Sender<PendingRequest>,
    engine: Engine,
    is_full: bool,
) {
    let Ok(peer) = stream.peer_cred() else {
        return;
    };
    if peer.uid() != rustix::process::geteuid().as_raw() {
        return;
    }
    if is_full {
        return send_answer(
            &mut stream,
            &ControlAnswer::error("too many clients at once"),
        )
        .await;
    }
    let received = match timeout(PATIENCE, read_request(&mut stream)).await {
        Ok(Ok(received)) => received,
        Ok(Err(_)) => return,
        Err(_) => ClientRequest::Wrong("the request took too long".to_owned()),
    };
    let request = match received {
        ClientRequest::Request(request) => request,
        ClientRequest::Wrong(reason) => {
            return send_answer(&mut stream, &ControlAnswer::error(reason)).await;
        }
        ClientRequest::Nothing => return,
    };
    let (reply, replied) = oneshot::channel();
    let order = PendingRequest {
        request,
        peer: peer.pid(),
        reply,
    };
    let sent = timeout(PATIENCE, orders.send(order)).await;
    let replied = match sent {
        Ok(Ok(())) => replied.await.ok(),
        Ok(Err(_)) => None,
        Err(_) => Some(RequestOutcome::Answer(ControlAnswer::error(
            "ikigai is too busy; try again",
        ))),
    };
    match replied {
        Some(RequestOutcome::Answer(answer)) => send_answer(&mut stream, &answer).await,
        Some(RequestOutcome::Events {
            agent,
            after,
            follow,
        }) => tell_events(&mut stream, &engine, agent, after, follow).await,
        None => send_answer(&mut stream, &ControlAnswer::error("ikigai is exiting")).await,
    }
}

/// Reads one line, or the input up to its end.
async fn read_request(stream: &mut UnixStream) -> io::Result<ClientRequest> {
    let mut line = Vec::new();
    let mut part = vec![0; 16 * 1024];
    loop {
        let count = stream.read(&mut part).await?;
        let came = part.get(..count).unwrap_or_default();
        let end = memchr::memchr(b'\n', came);
        line.extend_from_slice(came.get(..end.unwrap_or(count)).unwrap_or_default());
        if line.len() > LONGEST_REQUEST {
            if end.is_none() {
                skip_line(stream, &mut part).await?;
            }
            let reason = format!("the request is longer than {LONGEST_REQUEST} bytes");
            return Ok(ClientRequest::Wrong(reason));
        }
        if end.is_some() || count == 0 {
            break;
        }
    }
    if line.is_empty() {
        return Ok(ClientRequest::Nothing);
    }
    Ok(match serde_json::from_slice(&line) {
        Ok(request) => ClientRequest::Request(request),
        Err(error) => ClientRequest::Wrong(format!("invalid request: {error}")),
    })
}

async fn skip_line(stream: &mut UnixStream, part: &mut [u8]) -> io::Result<()> {
    let mut skipped = 0;
    while skipped < LONGEST_REST {
        let count = stream.read(part).await?;
        let came = part.get(..count).unwrap_or_default();
        if count == 0 || memchr::memchr(b'\n', came).is_some() {
            break;
        }
        skipped += count;
    }
    Ok(())
}

async fn send_answer(stream: &mut UnixStream, answer: &ControlAnswer) {
    // A client that is gone or does not read does not matter.
    let _ = send(stream, &answer.to_line()).await;
}

async fn send(stream: &mut UnixStream, text: &str) -> io::Result<()> {
    let sent = timeout(PATIENCE, stream.write_all(text.as_bytes())).await;
    sent.map_err(io::Error::other)?
}

async fn tell_events(
    stream: &mut UnixStream,
    engine: &Engine,
    agent: AgentId,
    after: Seq,
    follow: bool,
) {
    let outcome = if follow {
        follow_events(stream, engine, agent, after).await
    } else {
        stored_events(stream, engine, agent, after).await
    };
    if let Err(reason) = outcome {
        send_answer(stream, &ControlAnswer::error(format!("{reason:#}"))).await;
    }
}

async fn stored_events(
    stream: &mut UnixStream,
    engine: &Engine,
    agent: AgentId,
    mut after: Seq,
) -> Result<()> {
    loop {
        let query = PageQuery::oldest(
            Span::new(agent, after.next(), Seq(i64::MAX as u64)),
            PAGE_ROWS,
        );
        let rows = engine.reader().page(query).await?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        after = last.at.seq;
        let lines: String = rows.iter().map(|row| json_line(&json_of(row))).collect();
        send(stream, &lines).await?;
    }
}

/// Sends new rows until the client closes the connection.
async fn follow_events(
    stream: &mut UnixStream,
    engine: &Engine,
    agent: AgentId,
    after: Seq,
) -> Result<()> {
    let mut follow = engine.follow(agent, after)?;
    let mut part = [0; 256];
    loop {
        let rows = tokio::select! {
            rows = follow.next() => rows?,
            read = stream.read(&mut part) => match read {
                Ok(0) | Err(_) => return Ok(()),
                // The client sends more input, which is ignored.
                Ok(_) => continue,
            },
        };
        if rows.is_empty() {
            return Ok(());
        }
        let lines: String = rows.iter().map(|row| json_line(&json_of(row))).collect();
        if send(stream, &lines).await.is_err() {
            return Ok(());
        }
    }
}
