//! Client of keepers: starts them, and sends them requests.

use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::net::UnixStream;
use tokio::process::Command;

use super::super::spawn::close_inherited;
use super::job::{KeeperJob, KeptJob};
use super::protocol::{KeeperConnection, KeeperReply, KeeperRequest, ProcessEnd, StopCause};
use super::{SOCKET, exit_file};

/// Variables that a keeper gets; all others may hold keys.
const PASSED: &[&str] = &["TMPDIR", "IKIGAI_TEST_NO_USERNS"];

/// Program that runs as a keeper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeeperProgram {
    /// Executable.
    pub program: PathBuf,
    /// Arguments that make it call [`super::keep`].
    pub arguments: Vec<OsString>,
}

impl KeeperProgram {
    /// Returns the running program itself, even if its file was replaced since its start.
    pub fn this(arguments: impl IntoIterator<Item = OsString>) -> io::Result<Self> {
        let program = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            std::env::current_exe()?
        };
        Ok(Self {
            program,
            arguments: arguments.into_iter().collect(),
        })
    }
}

/// State of a kept process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptState {
    /// Its keeper answers.
    Running,
    /// It has ended.
    Ended(ProcessEnd),
    /// Its keeper is dead and left no exit status.
    Gone,
}

/// Starts a process with its keeper, whose files are in `directory`.
///
/// An error is a message for the model and the user; then no process runs.
pub async fn start(keeper: &KeeperProgram, directory: &Path, job: KeptJob) -> Result<(), String> {
    let connection = start_keeper(keeper, directory, Stdio::null()).await;
    let connection = connection.map_err(|error| describe(&error))?;
    start_job(connection, directory, job).await
}

fn describe(error: &io::Error) -> String {
    format!("cannot start a background process: {error}")
}

/// Starts a keeper that has no process yet; `errors` becomes its standard error.
pub(super) async fn start_keeper(
    keeper: &KeeperProgram,
    directory: &Path,
    errors: Stdio,
) -> io::Result<KeeperConnection> {
    let listener = {
        let directory = directory.to_owned();
        let listen = tokio::task::spawn_blocking(move || listen(&directory)).await;
        listen.map_err(io::Error::other)??
    };
    // Before the keeper lives, so that no other connection is the first one.
    let stream = connect(directory).await?;
    let mut command = Command::new(&keeper.program);
    command
        .args(&keeper.arguments)
        .env_clear()
        .envs(
            PASSED
                .iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        )
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stdout(Stdio::null())
        .stderr(errors);
    // A lock or a pipe of the program that started ikigai must not live as long as the process.
    close_inherited(&mut command);
    // The runtime reaps it if it ends while ikigai lives.
    drop(command.spawn()?);
    // It holds our ends of the socket and of the pipe.
    drop(command);
    Ok(KeeperConnection::new(stream))
}

/// Lets a new keeper start its process.
///
/// An error is a message for the model and the user; then no process runs.
pub(super) async fn start_job(
    mut connection: KeeperConnection,
    directory: &Path,
    job: KeptJob,
) -> Result<(), String> {
    let failed = |error: io::Error| describe(&error);
    let request = KeeperRequest::Start(Box::new(KeeperJob::new(job, directory)));
    connection.send(&request).await.map_err(failed)?;
    match connection.receive().await.map_err(failed)? {
        Some(KeeperReply::Done) => Ok(()),
        Some(KeeperReply::Failed { reason }) => Err(reason),
        _ => Err("cannot start a background process: its keeper died".to_owned()),
    }
}

/// Creates the directory of a process, and listens on its socket. Blocks.
fn listen(directory: &Path) -> io::Result<UnixListener> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    let (_open, path) = short_path(directory)?;
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

async fn connect(directory: &Path) -> io::Result<UnixStream> {
    let (_open, path) = short_path(directory)?;
    UnixStream::connect(path).await
}

/// Returns a path of the socket that is short enough for an address, and the directory it needs.
fn short_path(directory: &Path) -> io::Result<(File, PathBuf)> {
    let open = File::open(directory)?;
    let path = if cfg!(target_os = "linux") {
        PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()))
    } else {
        directory.to_owned()
    };
    Ok((open, path.join(SOCKET)))
}

/// Returns the state of a process.
pub async fn look(directory: &Path) -> KeptState {
    match connect(directory).await {
        Ok(_) => KeptState::Running,
        // It writes the file before it closes the socket.
        Err(_) => end_of(directory).await,
    }
}

/// Returns the state of a process whose keeper does not answer.
async fn end_of(directory: &Path) -> KeptState {
    let directory = directory.to_owned();
    let read = tokio::task::spawn_blocking(move || exit_file::read(&directory)).await;
    match read {
        Ok(Some(end)) => KeptState::Ended(end),
        Ok(None) | Err(_) => KeptState::Gone,
    }
}

/// Writes to the standard input of a process, then perhaps closes it.
pub async fn send(directory: &Path, text: String, closes: bool) -> Result<(), String> {
    let request = KeeperRequest::Send { text, closes };
    match ask(directory, &request).await {
        Ok(Some(KeeperReply::Done)) => Ok(()),
        Ok(Some(KeeperReply::Failed { reason })) => Err(reason),
        _ => Err("the process has ended".to_owned()),
    }
}

/// Ends a process with all its descendants, and returns its state then.
pub async fn stop(directory: &Path, reason: StopCause) -> KeptState {
    match ask(directory, &KeeperRequest::Stop { reason }).await {
        Ok(Some(KeeperReply::Ended(end))) => KeptState::Ended(end),
        _ => end_of(directory).await,
    }
}

/// Waits for the end of a process.
pub(super) async fn wait_for_end(directory: &Path) -> KeptState {
    match ask(directory, &KeeperRequest::Await).await {
        Ok(Some(KeeperReply::Ended(end))) => KeptState::Ended(end),
        _ => end_of(directory).await,
    }
}

/// Asks a keeper to end its process, and does not wait.
pub(super) fn request_stop(directory: &Path) -> io::Result<()> {
    let (_open, path) = short_path(directory)?;
    let mut stream = std::os::unix::net::UnixStream::connect(path)?;
    let reason = StopCause::Request;
    let mut line = serde_json::to_vec(&KeeperRequest::Stop { reason })?;
    line.push(b'\n');
    stream.write_all(&line)
}

async fn ask(directory: &Path, request: &KeeperRequest) -> io::Result<Option<KeeperReply>> {
    let mut connection = KeeperConnection::new(connect(directory).await?);
    connection.send(request).await?;
    connection.receive().await
}

/// Subscription to the output and the end of a process.
pub struct OutputFollower {
    directory: PathBuf,
    connection: Option<KeeperConnection>,
}

/// News of a followed process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputNews {
    /// It has printed this number of bytes.
    Printed(u64),
    /// It runs no longer.
    Over(KeptState),
}

impl OutputFollower {
    /// Follows a process.
    pub async fn new(directory: &Path) -> Self {
        let connection = async {
            let mut connection = KeeperConnection::new(connect(directory).await?);
            connection.send(&KeeperRequest::Follow).await?;
            io::Result::Ok(connection)
        };
        Self {
            directory: directory.to_owned(),
            connection: connection.await.ok(),
        }
    }

    /// Waits for news. Once the process is over, it is over at every call.
    ///
    /// Not safe to cancel: a part of a message may be lost. Poll the same future to its end.
    pub async fn next(&mut self) -> OutputNews {
        if let Some(connection) = &mut self.connection {
            match connection.receive().await {
                Ok(Some(KeeperReply::Size { bytes })) => return OutputNews::Printed(bytes),
                Ok(Some(KeeperReply::Ended(end))) => {
                    return OutputNews::Over(KeptState::Ended(end));
                }
                Ok(Some(KeeperReply::Done | KeeperReply::Failed { .. }) | None) | Err(_) => {}
            }
        }
        self.connection = None;
        OutputNews::Over(end_of(&self.directory).await)
    }
}
