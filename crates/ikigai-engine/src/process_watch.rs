//! Watch over the background processes of this process's agents: output, matching lines, ends.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use ikigai_core::AgentId;
use ikigai_store::{JobRecord, RunId};
use ikigai_tools::background::{LineSearch, compile};
use ikigai_tools::output::visible;
use ikigai_tools::process::keeper::{
    KeeperProgram, KeptState, OutputFollower, OutputNews, OutputPart, read_output,
};
use tokio::task::AbortHandle;

use crate::frontend::{AgentJob, UserRequest};
use crate::hub::Hub;

/// Most bytes that are searched at a time; of a flood the rest is skipped.
const SEARCHED_BYTES: usize = 1024 * 1024;

/// Bytes at the end of the output in which the last line is looked for.
const TAIL_BYTES: usize = 4096;

/// Longest last line for front ends, in characters.
const LINE_CHARS: usize = 200;

/// Keepers of background processes on this machine.
#[derive(Clone, Debug)]
pub struct Keepers {
    /// Program that keeps a process.
    pub program: KeeperProgram,
    /// Directory for the files of all processes.
    pub directory: PathBuf,
    /// Time after which a process is stopped.
    pub time_limit: Duration,
    /// Name of this machine.
    pub host: String,
}

/// Background process as front ends list it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedProcess {
    /// Its owner.
    pub agent: AgentId,
    /// Its number among the processes of the owner.
    pub number: u64,
    /// Its command line.
    pub command: String,
    /// Last line with text that it printed, shortened; empty if there is none.
    pub last_line: String,
}

/// The watched processes of this process's agents.
#[derive(Default)]
pub(crate) struct ProcessWatch {
    watched: Mutex<HashMap<RunId, WatchedProcess>>,
}

struct WatchedProcess {
    job: JobRecord,
    task: AbortHandle,
    last_line: String,
    news: ProcessNews,
}

/// Facts about a process that are not in its owner's log yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessNews {
    /// Its end, or the death of its keeper.
    pub(crate) end: Option<KeptState>,
    /// Line that matches its pattern.
    pub(crate) matched: Option<String>,
}

impl ProcessNews {
    fn is_empty(&self) -> bool {
        self.end.is_none() && self.matched.is_none()
    }
}

impl ProcessWatch {
    fn watch_wait(&self) -> MutexGuard<'_, HashMap<RunId, WatchedProcess>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches a process, unless it is watched already.
    pub(crate) fn watch(self: &Arc<Self>, hub: &Arc<Hub>, job: JobRecord) {
        let mut watched = self.watch_wait();
        if watched.contains_key(&job.id) {
            return;
        }
        let (watch, hub) = (Arc::downgrade(self), Arc::downgrade(hub));
        let task = tokio::spawn(follow(watch, hub, job.clone())).abort_handle();
        let process = WatchedProcess {
            task,
            last_line: String::new(),
            news: ProcessNews::default(),
            job,
        };
        watched.insert(process.job.id, process);
    }

    /// Returns true if a process is watched.
    pub(crate) fn watches(&self, job: RunId) -> bool {
        self.watch_wait().contains_key(&job)
    }

    /// Ends the watch of a process whose end is about to be stored; false if none watches it.
    ///
    /// So an end is stored once, by the first who sees it.
    pub(crate) fn claim_end(&self, job: RunId) -> Option<JobRecord> {
        let process = self.watch_wait().remove(&job)?;
        process.task.abort();
        Some(process.job)
    }

    /// Returns the processes of an agent with news.
    pub(crate) fn news(&self, agent: AgentId) -> Vec<(JobRecord, ProcessNews)> {
        let watched = self.watch_wait();
        let own = watched
            .values()
            .filter(|process| process.job.agent == agent);
        let mut news: Vec<_> = own
            .filter(|process| !process.news.is_empty())
            .map(|process| (process.job.clone(), process.news.clone()))
            .collect();
        news.sort_by_key(|(job, _)| job.number);
        news
    }

    /// Removes news that are stored by now.
    pub(crate) fn drop_news(&self, job: RunId) {
        let mut watched = self.watch_wait();
        let Some(process) = watched.get_mut(&job) else {
            return;
        };
        process.job.pattern = None;
        process.news.matched = None;
        if process.news.end.is_some() {
            watched.remove(&job);
        }
    }

    /// Ends the watch of all processes of an agent that leaves this process.
    pub(crate) fn forget(&self, agent: AgentId) {
        self.watch_wait().retain(|_, process| {
            let stays = process.job.agent != agent;
            if !stays {
                process.task.abort();
            }
            stays
        });
    }

    /// Returns the watched processes that run, by agent and number.
    pub(crate) fn list(&self) -> Vec<ListedProcess> {
        let watched = self.watch_wait();
        let running = watched
            .values()
            .filter(|process| process.news.end.is_none());
        let mut listed: Vec<_> = running
            .map(|process| ListedProcess {
                agent: process.job.agent,
                number: process.job.number,
                command: process.job.command.clone(),
                last_line: process.last_line.clone(),
            })
            .collect();
        listed.sort_by_key(|process| (process.agent, process.number));
        listed
    }

    /// Ends the watch of all processes, and returns them.
    pub(crate) fn take_all(&self) -> Vec<JobRecord> {
        let watched = std::mem::take(&mut *self.watch_wait());
        let jobs = watched.into_values().map(|process| {
            process.task.abort();
            process.job
        });
        jobs.collect()
    }

    /// Returns the watched processes of an agent, in order of their numbers.
    pub(crate) fn running(&self, agent: AgentId) -> Vec<JobRecord> {
        let watched = self.watch_wait();
        let own = watched
            .values()
            .filter(|process| process.job.agent == agent);
        let running = own.filter(|process| process.news.end.is_none());
        let mut jobs: Vec<JobRecord> = running.map(|process| process.job.clone()).collect();
        jobs.sort_by_key(|job| job.number);
        jobs
    }

    /// Returns the last line of a process; none if it is not watched here.
    pub(crate) fn last_line(&self, job: RunId) -> Option<String> {
        let watched = self.watch_wait();
        let line = &watched.get(&job)?.last_line;
        (!line.is_empty()).then(|| line.clone())
    }

    fn update(&self, job: RunId, change: impl FnOnce(&mut WatchedProcess)) {
        if let Some(process) = self.watch_wait().get_mut(&job) {
            change(process);
        }
    }
}

/// Follows one process until its end.
async fn follow(watch: Weak<ProcessWatch>, hub: Weak<Hub>, job: JobRecord) {
    let directory = PathBuf::from(&job.directory);
    let pattern = job.pattern.as_deref();
    let mut search = pattern.and_then(|it| Some(LineSearch::new(compile(it).ok()?, 0)));
    let mut follower = OutputFollower::new(&directory).await;
    loop {
        let news = follower.next().await;
        let end = match news {
            OutputNews::Printed(_) => None,
            OutputNews::Over(state) => Some(state),
        };
        let from = search.as_ref().map(LineSearch::position);
        let part = read(&directory, from).await;
        let found = search.as_mut().and_then(|it| it.find(&part, end.is_some()));
        if found.is_some() {
            search = None;
        }
        let (Some(watch), Some(hub)) = (watch.upgrade(), hub.upgrade()) else {
            return;
        };
        let is_over = end.is_some();
        let is_news = is_over || found.is_some();
        watch.update(job.id, |process| {
            if let Some(line) = last_line(&part) {
                process.last_line = line;
            }
            process.news.end = end;
            if found.is_some() {
                process.news.matched = found;
            }
        });
        if is_news {
            hub.deliver(job.agent, UserRequest::Do(AgentJob::Processes));
        }
        hub.bump();
        if is_over {
            return;
        }
    }
}

/// Reads output from a position on, or only its end.
async fn read(directory: &Path, from: Option<u64>) -> OutputPart {
    let directory = directory.to_owned();
    let read = move || match from {
        Some(from) => read_output(&directory, from, SEARCHED_BYTES),
        None => read_output(&directory, 0, TAIL_BYTES),
    };
    let part = tokio::task::spawn_blocking(read).await;
    part.ok().and_then(Result::ok).unwrap_or_default()
}

/// Returns the last line with text, shortened.
fn last_line(part: &OutputPart) -> Option<String> {
    let mut lines = part.bytes.rsplit(|byte| *byte == b'\n');
    let line = lines.find(|line| !line.trim_ascii().is_empty())?;
    let line = visible(line.get(..TAIL_BYTES.min(line.len())).unwrap_or_default());
    Some(line.chars().take(LINE_CHARS).collect())
}
