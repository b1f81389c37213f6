//! One run of a server: its process or address, and the open connection.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use secrecy::ExposeSecret;
use tokio::task::JoinHandle;
use tokio::time::{interval, sleep, timeout};

use super::McpServer;
use crate::mcp::connection::{McpChanges, McpConnection, McpFailure, McpRevision};
use crate::mcp::library;
use crate::mcp::line_filter::{copy_errors, copy_messages};
use crate::mcp::settings::{McpLaunch, McpProcess};
use crate::output::MOST_KEPT_BYTES;
use crate::process::Errors;
use crate::process::{Job, ServerProcess, describe_exit, own_cookie};
use crate::sandbox;

/// Size of the buffer between filter and library.
const BUFFER_BYTES: usize = 64 * 1024;

/// Longest wait for the exit status of a server that closed its output.
const EXIT: Duration = Duration::from_secs(1);

/// Shortest time between two lists of a server that reports changes.
const LIST_PAUSE: Duration = Duration::from_secs(1);

/// Interval of looking whether a remote server is gone.
const REMOTE_LOOK: Duration = Duration::from_secs(2);

/// Running server.
pub(super) struct Session {
    pub(super) connection: Arc<dyn McpConnection>,
    changes: McpChanges,
    child: Option<ServerChild>,
}

/// Process of a local server.
struct ServerChild {
    process: ServerProcess,
    copier: JoinHandle<Result<(), String>>,
    errors: JoinHandle<()>,
}

/// Reason why a server did not start.
pub(super) struct StartFailure {
    pub(super) reason: String,
    /// True if the server itself ended or refused, so that another revision may help.
    pub(super) is_refusal: bool,
}

impl StartFailure {
    fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            is_refusal: false,
        }
    }
}

impl Session {
    /// Starts the server, opens the connection and lists its tools.
    pub(super) async fn start(
        server: &Arc<McpServer>,
        revision: Option<McpRevision>,
    ) -> Result<Self, StartFailure> {
        let limit = server.settings.startup_timeout;
        match &server.settings.launch {
            McpLaunch::Process(process) => {
                let mut child = None;
                let started = start_process(server, process, revision, &mut child);
                let mut failure = match timeout(limit, started).await {
                    Ok(Ok(session)) => {
                        return Ok(Self { child, ..session });
                    }
                    Ok(Err(failure)) => failure,
                    Err(_) => {
                        StartFailure::new(format!("it did not answer within {} s", limit.as_secs()))
                    }
                };
                if let Some(child) = child {
                    child.end().await;
                    failure.reason = with_last_line(server, failure.reason);
                }
                Err(failure)
            }
            McpLaunch::Http(address) => {
                let changes = McpChanges::default();
                let opened = async {
                    let connection =
                        library::connect_http(address, revision, changes.clone()).await?;
                    server.list(&connection).await?;
                    Ok(connection)
                };
                match timeout(limit, opened).await {
                    Ok(Ok(connection)) => Ok(Self {
                        connection,
                        changes,
                        child: None,
                    }),
                    Ok(Err(McpFailure::Closed)) => Err(StartFailure::new("it is not reachable")),
                    Ok(Err(failure)) => Err(StartFailure {
                        reason: failure.to_string(),
                        is_refusal: matches!(failure, McpFailure::Protocol(_)),
                    }),
                    Err(_) => Err(StartFailure::new(format!(
                        "it did not answer within {} s",
                        limit.as_secs()
                    ))),
                }
            }
        }
    }

    /// Waits for the end of the server, and keeps its list of tools current.
    pub(super) async fn watch(mut self, server: &McpServer) -> String {
        let changed = self.changes.tools.clone();
        let reason = loop {
            tokio::select! {
                biased;
                reason = self.end() => break reason,
                () = server.restart.notified() => break "it did not answer".to_owned(),
                () = changed.notified() => {
                    let listed = timeout(server.settings.tool_timeout, server.list(&self.connection));
                    if !matches!(listed.await, Ok(Ok(()))) {
                        server.tail.note("ikigai: the changed list of tools could not be read");
                    }
                    sleep(LIST_PAUSE).await;
                }
            }
        };
        self.connection.close();
        if let Some(child) = self.child.take() {
            child.end().await;
        }
        with_last_line(server, reason)
    }

    /// Waits until the server ends or breaks a limit. Safe to cancel.
    async fn end(&mut self) -> String {
        if let Some(child) = &mut self.child {
            return child.ended().await;
        }
        let mut looks = interval(REMOTE_LOOK);
        while !self.connection.is_closed() {
            looks.tick().await;
        }
        "the connection ended".to_owned()
    }
}

impl ServerChild {
    /// Waits until the process ends, closes its output or floods. Safe to cancel.
    async fn ended(&mut self) -> String {
        tokio::select! {
            biased;
            copied = &mut self.copier => match copied {
                Ok(Err(reason)) => reason,
                _ => match timeout(EXIT, self.process.wait()).await {
                    Ok(status) => describe_end(&status),
                    Err(_) => "it closed its output".to_owned(),
                },
            },
            status = self.process.wait() => describe_end(&status),
        }
    }

    async fn end(self) {
        self.copier.abort();
        self.process.end().await;
        // Everything that it printed last is worth reading.
        // A process outside may hold the pipe; the reader then goes on until that ends.
        let _ = timeout(EXIT, self.errors).await;
    }
}

fn describe_end(status: &io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) if status.code().is_some() => {
            format!("it ended with {}", describe_exit(*status))
        }
        Ok(status) => format!("it was {}", describe_exit(*status)),
        Err(error) => format!("it cannot be watched: {error}"),
    }
}

async fn start_process(
    server: &Arc<McpServer>,
    settings: &McpProcess,
    revision: Option<McpRevision>,
    child: &mut Option<ServerChild>,
) -> Result<Session, StartFailure> {
    let job = job_of(server, settings);
    let (process, pipes) = ServerProcess::start(job)
        .await
        .map_err(|error| StartFailure::new(error.to_string()))?;
    let (ours, theirs) = tokio::io::duplex(BUFFER_BYTES);
    let tail = server.tail.clone();
    let errors = tokio::spawn(async move { copy_errors(pipes.errors, &tail).await });
    let tail = server.tail.clone();
    let copier = tokio::spawn(async move { copy_messages(pipes.output, ours, &tail).await });
    let child = child.insert(ServerChild {
        process,
        copier,
        errors,
    });
    let changes = McpChanges::default();
    let opened = async {
        let connection =
            library::connect_pipes(theirs, pipes.input, revision, changes.clone()).await?;
        server.list(&connection).await?;
        Ok(connection)
    };
    tokio::select! {
        opened = opened => match opened {
            Ok(connection) => Ok(Session { connection, changes, child: None }),
            Err(McpFailure::Closed) => {
                let reason = child.ended().await;
                Err(refusal(reason))
            }
            Err(failure) => Err(refusal(failure.to_string())),
        },
        reason = child.process.wait() => Err(refusal(describe_end(&reason))),
    }
}

fn refusal(reason: String) -> StartFailure {
    StartFailure {
        reason,
        is_refusal: true,
    }
}

/// Adds the last line that a server printed; everything that it printed must have been read.
fn with_last_line(server: &McpServer, reason: String) -> String {
    match server.tail.lines().pop() {
        Some(last) => format!("{reason}: {last}"),
        None => reason,
    }
}

fn job_of(server: &McpServer, settings: &McpProcess) -> Job {
    let places = &server.places;
    let mut variables = places.environment.variables();
    for (name, value) in &settings.variables {
        variables.retain(|(known, _)| known != name.as_str());
        variables.push((name.into(), value.expose_secret().into()));
    }
    let workdir = settings.directory.clone();
    let confinement = if places.sandbox && settings.sandbox {
        sandbox::usual(&server.workdir, settings.network, places.hidden.clone())
            .with_writable(&places.writable)
            .with_writable(&settings.writable)
            .with_caches(&places.caches)
    } else {
        crate::Confinement::None
    };
    Job {
        program: settings.program.clone().into(),
        arguments: settings.arguments.iter().map(Into::into).collect(),
        workdir: workdir.unwrap_or_else(|| server.workdir.clone()),
        variables,
        input: None,
        errors: Errors::Apart,
        most_bytes: MOST_KEPT_BYTES,
        deadline: Duration::MAX,
        cookie: own_cookie("mcp"),
        confinement,
        recording: None,
    }
}
