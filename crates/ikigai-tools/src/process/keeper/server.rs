//! The keeper itself: starts one process, holds its input and output, and reports its end.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::setsid;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, sleep, sleep_until, timeout};

use super::job::KeeperJob;
use super::output_copy::OutputCopy;
use super::output_log::OutputLog;
use super::protocol::{KeeperConnection, KeeperReply, KeeperRequest, ProcessEnd, StopCause};
use super::{SOCKET, exit_file};
use crate::TemporaryDirectory;
use crate::process::{OutputPump, Pipes, REAPING, Running};

/// Size of one read: the default capacity of a pipe.
const CHUNK_BYTES: usize = 64 * 1024;

/// Most chunks read from the pipe after all writers should be gone.
const MOST_LAST_CHUNKS: usize = 64;

/// Most bytes of input that the process has not read yet.
const MOST_INPUT_BYTES: usize = 1024 * 1024;

/// Minimum interval between two reports to one follower.
const REPORT_PAUSE: Duration = Duration::from_millis(50);

/// Longest wait for connections to take the end before the keeper exits.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Runs as a keeper: the listening socket is standard input. Blocks until the process has ended.
///
/// If a call waits for the process, standard error is a pipe to that call.
pub fn keep() -> io::Result<()> {
    // Signals of ikigai's terminal do not reach another session.
    let _ = setsid();
    let listener = io::stdin().as_fd().try_clone_to_owned()?;
    let listener = std::os::unix::net::UnixListener::from(listener);
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async { serve(UnixListener::from_std(listener)?).await })
}

/// State of the process, as connections report it.
#[derive(Clone, Debug, Default)]
struct KeeperState {
    printed: u64,
    end: Option<ProcessEnd>,
}

/// Order of a connection to the loop that watches the process.
enum KeeperOrder {
    Send {
        text: String,
        closes: bool,
        reply: oneshot::Sender<Result<(), String>>,
    },
    Stop(StopCause),
}

async fn serve(listener: UnixListener) -> io::Result<()> {
    let (stream, _) = listener.accept().await?;
    let mut first = KeeperConnection::new(stream);
    // ikigai died before it had sent the job: nothing was started.
    let Some(KeeperRequest::Start(job)) = first.receive().await? else {
        return Ok(());
    };
    let directory = job.directory();
    let is_foreground = job.is_foreground();
    let state = watch::Sender::new(KeeperState::default());
    let end = match KeptProcess::start(*job, state.clone()).await {
        Ok(process) => {
            let (orders, received) = mpsc::channel(16);
            let mut connections = JoinSet::new();
            // The client may be gone.
            let _ = first.send(&KeeperReply::Done).await;
            drop(first);
            let served = serve_connections(&listener, &state, orders, &mut connections);
            let end = tokio::select! {
                end = process.watch(received) => end,
                never = served => match never {},
            };
            // The call that waits takes the end from its connection.
            finish(&directory, &end, !is_foreground)?;
            state.send_modify(|state| state.end = Some(end));
            drop(listener);
            let taken = async { while connections.join_next().await.is_some() {} };
            let _ = timeout(LAST_WORDS, taken).await;
            return Ok(());
        }
        Err(error) => ProcessEnd {
            failure: Some(format!("cannot start the command: {error}")),
            at: now(),
            ..ProcessEnd::default()
        },
    };
    finish(&directory, &end, !is_foreground)?;
    let reason = end.failure.unwrap_or_default();
    first.send(&KeeperReply::Failed { reason }).await
}

/// Stores the end and removes the socket.
fn finish(directory: &Path, end: &ProcessEnd, is_durable: bool) -> io::Result<()> {
    let written = exit_file::write(directory, end, is_durable);
    let _ = fs::remove_file(directory.join(SOCKET));
    written
}

/// Answers connections, for ever.
async fn serve_connections(
    listener: &UnixListener,
    state: &watch::Sender<KeeperState>,
    orders: mpsc::Sender<KeeperOrder>,
    connections: &mut JoinSet<()>,
) -> std::convert::Infallible {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(converse(stream, state.subscribe(), orders.clone()));
            }
            // No descriptors are left; some connection will end.
            Err(_) => sleep(REPORT_PAUSE).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Carries out the request of one connection.
async fn converse(
    stream: UnixStream,
    state: watch::Receiver<KeeperState>,
    orders: mpsc::Sender<KeeperOrder>,
) {
    let mut connection = KeeperConnection::new(stream);
    let Ok(Some(request)) = connection.receive().await else {
        return;
    };
    match request {
        KeeperRequest::Start(_) => {
            let reason = "the keeper has a process already".to_owned();
            let _ = connection.send(&KeeperReply::Failed { reason }).await;
        }
        KeeperRequest::Send { text, closes } => {
            let (reply, answer) = oneshot::channel();
            let order = KeeperOrder::Send {
                text,
                closes,
                reply,
            };
            let _ = orders.send(order).await;
            let reply = match answer.await {
                Ok(Ok(())) => KeeperReply::Done,
                Ok(Err(reason)) => KeeperReply::Failed { reason },
                Err(_) => return,
            };
            let _ = connection.send(&reply).await;
        }
        KeeperRequest::Stop { reason } => {
            let _ = orders.send(KeeperOrder::Stop(reason)).await;
            report(&mut connection, state, false).await;
        }
        KeeperRequest::Follow => report(&mut connection, state, true).await,
        KeeperRequest::Await => report(&mut connection, state, false).await,
    }
}

/// Reports the end of the process, and until then perhaps the growth of its output.
async fn report(
    connection: &mut KeeperConnection,
    mut state: watch::Receiver<KeeperState>,
    with_output: bool,
) {
    loop {
        let seen = state.borrow_and_update().clone();
        let reply = match seen.end {
            Some(end) => {
                let _ = connection.send(&KeeperReply::Ended(end)).await;
                return;
            }
            None if with_output => {
                let bytes = seen.printed;
                connection.send(&KeeperReply::Size { bytes }).await
            }
            None => Ok(()),
        };
        if reply.is_err() || state.changed().await.is_err() {
            return;
        }
        if state.borrow().end.is_none() {
            let ended = state.wait_for(|state| state.end.is_some());
            let _ = timeout(REPORT_PAUSE, ended).await;
        }
    }
}

/// The process with its pipes.
struct KeptProcess {
    running: Running,
    streams: KeptStreams,
    deadline: Instant,
    /// Removed when the process has ended.
    temporary: TemporaryDirectory,
}

impl KeptProcess {
    async fn start(job: KeeperJob, state: watch::Sender<KeeperState>) -> io::Result<Self> {
        let temporary = TemporaryDirectory::default();
        let path = temporary.path().filter(|_| job.has_temporary());
        let log = OutputLog::create(&job.directory())?;
        let is_foreground = job.is_foreground();
        let copy = is_foreground.then(OutputCopy::to_errors).transpose()?;
        let job = job.into_job(path);
        let deadline = Instant::now() + job.deadline;
        let launch = move || Running::launch(job, !is_foreground);
        let (running, pipes) = tokio::task::spawn_blocking(launch)
            .await
            .map_err(io::Error::other)??;
        Ok(Self {
            running,
            streams: KeptStreams::new(pipes, log, state, copy),
            deadline,
            temporary,
        })
    }

    /// Watches the process until it and all its descendants have ended.
    async fn watch(mut self, mut orders: mpsc::Receiver<KeeperOrder>) -> ProcessEnd {
        let ended = self.wait(&mut orders).await;
        let Self {
            mut running,
            mut streams,
            temporary,
            ..
        } = self;
        let (status, stopped, left_behind) = match ended {
            Ok(status) => {
                let left_behind = running.end_what_is_left(&mut streams).await;
                (Some(status), None, left_behind)
            }
            Err(reason) => {
                let status = running.end_everything(&mut streams).await;
                (status, Some(reason), 0)
            }
        };
        streams.finish().await;
        let remark = running.conclude().await;
        drop(temporary);
        ProcessEnd {
            exit: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
            stopped,
            at: now(),
            printed: streams.log.size(),
            warning: remark,
            failure: None,
            left_behind,
            refused: running.refusals.all(),
        }
    }

    /// Waits for the end of the main process, or for a reason to end it.
    async fn wait(
        &mut self,
        orders: &mut mpsc::Receiver<KeeperOrder>,
    ) -> Result<std::process::ExitStatus, StopCause> {
        let mut reaping = tokio::time::interval_at(Instant::now() + REAPING, REAPING);
        reaping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                Some(order) = orders.recv() => match order {
                    KeeperOrder::Stop(reason) => return Err(reason),
                    KeeperOrder::Send { text, closes, reply } => {
                        let _ = reply.send(self.streams.queue(text, closes));
                    }
                },
                () = sleep_until(self.deadline) => return Err(StopCause::Deadline),
                status = self.running.wait_main() => match status {
                    Ok(status) => return Ok(status),
                    // It cannot be watched, so it must not go on.
                    Err(_) => return Err(StopCause::Request),
                },
                _ = reaping.tick() => self.running.reap(),
                () = self.streams.pump() => {}
            }
        }
    }
}

/// Pipes of the process: input that is queued, and output that goes to the log.
struct KeptStreams {
    input: Option<Sender>,
    queued: VecDeque<u8>,
    /// The input is closed once the queue is empty.
    closes: bool,
    output: Option<Receiver>,
    buffer: Vec<u8>,
    log: OutputLog,
    state: watch::Sender<KeeperState>,
    /// For the call that waits for the process, as long as it does.
    copy: Option<OutputCopy>,
}

impl KeptStreams {
    fn new(
        pipes: Pipes,
        log: OutputLog,
        state: watch::Sender<KeeperState>,
        copy: Option<OutputCopy>,
    ) -> Self {
        Self {
            input: pipes.input,
            queued: VecDeque::new(),
            closes: false,
            output: Some(pipes.output),
            buffer: vec![0; CHUNK_BYTES],
            log,
            state,
            copy,
        }
    }

    fn queue(&mut self, text: String, closes: bool) -> Result<(), String> {
        if self.input.is_none() || self.closes {
            return Err("its standard input is closed".to_owned());
        }
        if self.queued.len() + text.len() > MOST_INPUT_BYTES {
            return Err("it does not read its standard input".to_owned());
        }
        self.queued.extend(text.into_bytes());
        self.closes = closes;
        if closes && self.queued.is_empty() {
            self.input = None;
        }
        Ok(())
    }

    fn write(&mut self) {
        let Some(input) = &self.input else {
            return;
        };
        let (front, _) = self.queued.as_slices();
        match input.try_write(front) {
            Ok(written) => drop(self.queued.drain(..written)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            // The process closed its input; that is not an error.
            Err(_) => {
                self.queued.clear();
                self.input = None;
            }
        }
        if self.closes && self.queued.is_empty() {
            self.input = None;
        }
    }

    /// Reads a chunk if one is available.
    fn read(&mut self) -> bool {
        let Some(output) = &self.output else {
            return false;
        };
        let read = match output.try_read(&mut self.buffer) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(_) => 0,
        };
        if read == 0 {
            self.output = None;
            return false;
        }
        let came = self.buffer.get(..read).unwrap_or_default();
        // A full disk loses output, but must not stop the process.
        let _ = self.log.append(came);
        if let Some(copy) = &mut self.copy {
            copy.pending.extend(came);
        }
        self.write_copy();
        let printed = self.log.size();
        self.state.send_modify(|state| state.printed = printed);
        true
    }

    /// Gives the waiting call what fits into its pipe; forgets a call that waits no longer.
    fn write_copy(&mut self) {
        if let Some(copy) = &mut self.copy
            && !copy.write()
        {
            self.copy = None;
        }
    }

    fn is_call_behind(&self) -> bool {
        self.copy.as_ref().is_some_and(OutputCopy::is_behind)
    }

    /// Drains the pipe without waiting for more, and gives the waiting call the rest.
    async fn finish(&mut self) {
        for _ in 0..MOST_LAST_CHUNKS {
            if !self.read() {
                break;
            }
        }
        let write = async {
            while self.is_call_behind() {
                writable(self.copy.as_ref().map(|copy| &copy.pipe)).await;
                self.write_copy();
            }
        };
        let _ = timeout(LAST_WORDS, write).await;
        self.copy = None;
    }
}

impl OutputPump for KeptStreams {
    fn is_open(&self) -> bool {
        self.output.is_some()
    }

    async fn pump(&mut self) {
        let has_input = !self.queued.is_empty();
        let is_behind = self.is_call_behind();
        let copy = self.copy.as_ref().map(|copy| &copy.pipe);
        tokio::select! {
            () = writable(self.input.as_ref().filter(|_| has_input)) => self.write(),
            // A process that prints faster than its call reads waits, as on any pipe.
            () = writable(copy.filter(|_| is_behind)) => self.write_copy(),
            () = readable(self.output.as_ref().filter(|_| !is_behind)) => {
                self.read();
            }
        }
    }
}

async fn writable(input: Option<&Sender>) {
    match input {
        // An error shows again at the write.
        Some(input) => drop(input.writable().await),
        None => std::future::pending().await,
    }
}

async fn readable(output: Option<&Receiver>) {
    match output {
        Some(output) => drop(output.readable().await),
        None => std::future::pending().await,
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_micros()).unwrap_or(i64::MAX)
}
