//! One server: started when needed, watched, restarted with growing pauses.

mod session;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use self::session::Session;
use super::McpPlaces;
use super::connection::{ListedTool, McpConnection, McpFailure, McpRevision, ToolAnswer};
use super::error_tail::ErrorTail;
use super::list_cache::{CachedList, ListCache, key_of};
use super::names::spec_of;
use super::settings::McpServerSettings;
use ikigai_core::project::ToolSpec;

/// Pause after the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Longest pause between two starts.
const LONGEST_PAUSE: Duration = Duration::from_mins(2);

/// Starts that fail in a row before ikigai waits for a call.
const MOST_ATTEMPTS: u32 = 5;

/// Time after which a running server counts as working, so that pauses begin anew.
const STEADY: Duration = Duration::from_mins(1);

/// Longest wait for the reason of an end that a call saw first.
const REASON: Duration = Duration::from_secs(1);

/// Longest wait for a sign of life after a call without an answer.
const PROBE: Duration = Duration::from_secs(5);

/// Most tools of one server.
const MOST_TOOLS: usize = 500;

/// Server with its state.
pub(crate) struct McpServer {
    pub(crate) settings: McpServerSettings,
    workdir: PathBuf,
    places: Arc<McpPlaces>,
    lists: Arc<ListCache>,
    key: String,
    state: watch::Sender<McpState>,
    /// A call wants the server now.
    wake: Notify,
    /// It does not answer, and has to be started again.
    restart: Notify,
    tail: ErrorTail,
    /// The cache was read.
    is_cache_read: AtomicBool,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// State of a server.
#[derive(Clone, Default)]
pub(crate) struct McpState {
    pub(crate) phase: McpPhase,
    /// Its tools, from itself or from the cache.
    pub(crate) tools: Option<Arc<OfferedTools>>,
    /// Reason why it ended or did not start last; none once it runs.
    pub(crate) last_failure: Option<String>,
    /// Number of starts that failed.
    failures: u64,
}

/// Phase of a server.
#[derive(Clone, Default)]
pub(crate) enum McpPhase {
    /// Not started: nothing needed it yet.
    #[default]
    Idle,
    Starting,
    Ready(Arc<dyn McpConnection>),
    Failed(String),
}

/// Tools of a server that models can be offered.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct OfferedTools {
    pub(crate) tools: Vec<OfferedTool>,
    /// Tools that cannot be offered, with the reason.
    pub(crate) refused: Vec<(String, String)>,
}

/// Tool of a server that models can be offered.
#[derive(Debug, PartialEq)]
pub(crate) struct OfferedTool {
    /// Name that the server knows.
    pub(crate) name: String,
    pub(crate) spec: ToolSpec,
    pub(crate) is_reading: bool,
}

impl McpServer {
    pub(crate) fn new(
        settings: McpServerSettings,
        workdir: PathBuf,
        places: Arc<McpPlaces>,
        lists: Arc<ListCache>,
    ) -> Self {
        Self {
            key: key_of(&settings.name, &settings.describe()),
            settings,
            workdir,
            places,
            lists,
            state: watch::Sender::new(McpState::default()),
            wake: Notify::new(),
            restart: Notify::new(),
            tail: ErrorTail::default(),
            is_cache_read: AtomicBool::new(false),
            task: Mutex::default(),
        }
    }

    /// Returns the present state.
    pub(crate) fn state(&self) -> McpState {
        self.state.borrow().clone()
    }

    /// Returns the last lines that it printed to standard error.
    pub(crate) fn errors(&self) -> Vec<String> {
        self.tail.lines()
    }

    /// Returns its tools, as far as they are known without waiting for it.
    pub(crate) async fn known_tools(&self) -> Option<Arc<OfferedTools>> {
        if self.state.borrow().tools.is_none() && !self.is_cache_read.swap(true, Ordering::Relaxed)
        {
            let cached = self.lists.get(&self.key).await;
            if let Some(cached) = cached {
                let tools = self.offer(&cached.tools());
                self.state.send_if_modified(|state| {
                    let is_news = state.tools.is_none();
                    state.tools.get_or_insert(tools);
                    is_news
                });
            }
        }
        self.state.borrow().tools.clone()
    }

    /// Starts the server in the background, unless it runs or waits for its next start.
    pub(crate) fn start(self: &Arc<Self>) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.is_none() {
            self.set_phase(McpPhase::Starting);
            *task = Some(tokio::spawn(supervise(self.clone())));
        }
    }

    /// Ends the server and everything that it started.
    pub(crate) fn stop(&self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = task.as_ref() {
            task.abort();
        }
    }

    /// Waits until the server is ready or has failed.
    pub(crate) async fn settled(&self) {
        let mut states = self.state.subscribe();
        let is_settled =
            |state: &McpState| matches!(state.phase, McpPhase::Ready(_) | McpPhase::Failed(_));
        let _ = states.wait_for(is_settled).await;
    }

    /// Calls a tool; the error is for the model. Dropping the future cancels the call.
    pub(crate) async fn call(
        self: &Arc<Self>,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<ToolAnswer, String> {
        let name = &self.settings.name;
        let connection = self.connection().await?;
        let limit = self.settings.tool_timeout;
        match timeout(limit, connection.call(tool, arguments)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(McpFailure::Answered(reason))) => Err(reason),
            Ok(Err(McpFailure::Closed)) => {
                let reason = self.reason_of_end(&connection).await;
                Err(format!(
                    "the MCP server `{name}` ended during the call, whose outcome is unknown: {reason}"
                ))
            }
            Ok(Err(other)) => Err(format!("the MCP server `{name}` failed: {other}")),
            Err(_) => {
                self.check_alive(connection);
                Err(format!(
                    "the MCP server `{name}` did not answer within {} s; the call was cancelled",
                    limit.as_secs()
                ))
            }
        }
    }

    /// Returns the open connection; starts the server if it does not run.
    async fn connection(self: &Arc<Self>) -> Result<Arc<dyn McpConnection>, String> {
        self.start();
        let mut states = self.state.subscribe();
        let failures = states.borrow_and_update().failures;
        let mut is_woken = false;
        loop {
            let state = states.borrow_and_update().clone();
            match state.phase {
                McpPhase::Ready(connection) if !connection.is_closed() => return Ok(connection),
                McpPhase::Failed(reason) if state.failures > failures => {
                    return Err(self.describe_failure(&reason));
                }
                McpPhase::Failed(_) if !is_woken => {
                    is_woken = true;
                    self.wake.notify_one();
                }
                McpPhase::Idle | McpPhase::Starting | McpPhase::Ready(_) | McpPhase::Failed(_) => {}
            }
            if states.changed().await.is_err() {
                return Err(format!("the MCP server `{}` is gone", self.settings.name));
            }
        }
    }

    fn describe_failure(&self, reason: &str) -> String {
        let name = &self.settings.name;
        format!("the MCP server `{name}` does not run: {reason}. `/mcp {name}` shows more")
    }

    /// Returns why a connection ended, once that is known.
    async fn reason_of_end(&self, connection: &Arc<dyn McpConnection>) -> String {
        let mut states = self.state.subscribe();
        let is_known = |state: &McpState| match &state.phase {
            McpPhase::Ready(present) => !Arc::ptr_eq(present, connection),
            McpPhase::Idle | McpPhase::Starting | McpPhase::Failed(_) => true,
        };
        match timeout(REASON, states.wait_for(is_known)).await {
            Ok(Ok(state)) => match &state.phase {
                McpPhase::Failed(reason) => reason.clone(),
                _ => "it was started again".to_owned(),
            },
            _ => "the connection ended".to_owned(),
        }
    }

    /// Restarts the server if it does not answer at all.
    fn check_alive(self: &Arc<Self>, connection: Arc<dyn McpConnection>) {
        let server = self.clone();
        tokio::spawn(async move {
            if timeout(PROBE, connection.list_tools(1)).await.is_err() {
                server.restart.notify_one();
            }
        });
    }

    fn set_phase(&self, phase: McpPhase) {
        self.state.send_modify(|state| state.phase = phase);
    }

    /// Checks and cleans the tools that a server lists.
    fn offer(&self, listed: &[ListedTool]) -> Arc<OfferedTools> {
        let mut offered = OfferedTools::default();
        for tool in listed
            .iter()
            .filter(|tool| self.settings.offers(&tool.name))
        {
            let spec = spec_of(&self.settings.name, tool).and_then(|spec| {
                let is_taken = offered.tools.iter().any(|tool| tool.spec.name == spec.name);
                if is_taken {
                    Err("another tool has its name".to_owned())
                } else {
                    Ok(spec)
                }
            });
            match spec {
                Ok(spec) => offered.tools.push(OfferedTool {
                    name: tool.name.clone(),
                    spec,
                    is_reading: tool.is_reading,
                }),
                Err(reason) => offered.refused.push((tool.name.clone(), reason)),
            }
        }
        Arc::new(offered)
    }

    /// Reads the list of tools and publishes it.
    async fn list(&self, connection: &Arc<dyn McpConnection>) -> Result<(), McpFailure> {
        let listed = connection.list_tools(MOST_TOOLS).await?;
        let tools = self.offer(&listed);
        self.state.send_modify(|state| state.tools = Some(tools));
        let list = CachedList::new(connection.revision(), &listed);
        self.lists.put(self.key.clone(), list).await;
        Ok(())
    }
}

/// Keeps a server running until the task is aborted.
async fn supervise(server: Arc<McpServer>) {
    let cached = server.lists.get(&server.key).await;
    let mut revision = cached.map(|cached| cached.revision);
    let mut attempts = 0;
    loop {
        server.set_phase(McpPhase::Starting);
        let reason = match Session::start(&server, revision).await {
            Ok(session) => {
                revision = Some(session.connection.revision());
                server.state.send_modify(|state| {
                    state.last_failure = None;
                    state.phase = McpPhase::Ready(session.connection.clone());
                });
                let began = tokio::time::Instant::now();
                let reason = session.watch(&server).await;
                if began.elapsed() > STEADY {
                    attempts = 0;
                }
                reason
            }
            Err(failure) => {
                let next = next_revision(revision, failure.is_refusal);
                if next != revision {
                    revision = next;
                    if revision == Some(McpRevision::Handshake) {
                        continue;
                    }
                }
                failure.reason
            }
        };
        attempts += 1;
        server.state.send_modify(|state| {
            state.failures += 1;
            state.last_failure = Some(reason.clone());
            state.phase = McpPhase::Failed(reason);
        });
        let pause = FIRST_PAUSE.saturating_mul(1 << (attempts - 1).min(16));
        tokio::select! {
            () = server.wake.notified() => {}
            () = sleep(pause.min(LONGEST_PAUSE)), if attempts < MOST_ATTEMPTS => {}
        }
    }
}

/// Returns the revision to try after a failed start.
///
/// A server of an older revision may end when it is asked in the present one.
fn next_revision(tried: Option<McpRevision>, is_refusal: bool) -> Option<McpRevision> {
    match tried {
        None if is_refusal => Some(McpRevision::Handshake),
        _ => None,
    }
}
