//! All servers that agents of this process can use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ikigai_core::counts::counted;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::list_cache::ListCache;
use super::search::{McpCall, McpSearch};
use super::server::{McpPhase, McpServer};
use super::settings::McpServerSettings;
use super::tool::McpTool;
use crate::Tool;
use crate::process::ChildEnvironment;

/// Longest wait of a first request for servers whose tools are unknown.
const FIRST_WAIT: Duration = Duration::from_secs(5);

/// Restrictions and files of servers.
#[derive(Clone, Debug, Default)]
pub struct McpPlaces {
    /// Environment of local servers.
    pub environment: ChildEnvironment,
    /// File of known tools; without it every process asks the servers.
    pub cache: Option<PathBuf>,
    /// False if no process is confined.
    pub sandbox: bool,
    /// Paths that servers may not read.
    pub hidden: Arc<[PathBuf]>,
    /// Paths that they may write besides the working directory.
    pub writable: Vec<PathBuf>,
    /// Caches of package managers, which start many servers.
    pub caches: Vec<PathBuf>,
}

/// Servers of a project, each with its name: those that the user trusts, and broken definitions
/// with the reason.
pub type ProjectServers = Vec<(String, Result<McpServerSettings, String>)>;

/// Reads the servers of the project around a directory. Blocks.
pub type ProjectServersReader = Arc<dyn Fn(&Path) -> ProjectServers + Send + Sync>;

/// Servers of the configuration and of projects, one process per working directory.
pub struct McpServers {
    settings: Vec<McpServerSettings>,
    broken: Vec<(String, String)>,
    projects: Option<ProjectServersReader>,
    /// Servers of projects as last read.
    read_projects: Mutex<BTreeMap<PathBuf, Arc<ProjectServers>>>,
    places: Arc<McpPlaces>,
    lists: Arc<ListCache>,
    servers: Mutex<BTreeMap<(PathBuf, String), Arc<McpServer>>>,
    /// Directory whose servers are started before a call needs them.
    first: OnceLock<PathBuf>,
}

/// State of a server, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpStatus {
    /// Name in the configuration.
    pub name: String,
    /// Program or address, without secrets.
    pub way: String,
    /// Phase.
    pub phase: McpStatusPhase,
    /// Names under which models call its tools.
    pub tools: Vec<String>,
    /// Tools that cannot be offered, with the reason.
    pub refused: Vec<(String, String)>,
    /// Last lines of its standard error.
    pub errors: Vec<String>,
}

/// Phase of a server, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpStatusPhase {
    /// Switched off in the configuration.
    Disabled,
    /// Not started yet.
    Idle,
    /// Starting.
    Starting,
    /// Connected.
    Ready,
    /// Failed, for this reason.
    Failed(String),
}

impl McpStatus {
    /// Returns a sign for the phase.
    pub fn symbol(&self) -> &'static str {
        match self.phase {
            McpStatusPhase::Ready => "●",
            McpStatusPhase::Idle | McpStatusPhase::Starting => "○",
            McpStatusPhase::Disabled => " ",
            McpStatusPhase::Failed(_) => "✗",
        }
    }

    /// Describes the phase and the number of tools on one line.
    pub fn describe_phase(&self) -> String {
        let tools = counted(self.tools.len(), "tool");
        match &self.phase {
            McpStatusPhase::Ready => format!("connected · {tools}"),
            McpStatusPhase::Idle if self.tools.is_empty() => "not started".to_owned(),
            McpStatusPhase::Idle => format!("not started · {tools} known"),
            McpStatusPhase::Starting if self.tools.is_empty() => "starting".to_owned(),
            McpStatusPhase::Starting => format!("starting · {tools} known"),
            McpStatusPhase::Disabled => "disabled".to_owned(),
            McpStatusPhase::Failed(reason) => format!("failed: {reason}"),
        }
    }
}

impl McpServers {
    /// Creates the servers without starting any; `broken` have no valid definition.
    pub fn new(
        settings: Vec<McpServerSettings>,
        broken: Vec<(String, String)>,
        places: McpPlaces,
        projects: Option<ProjectServersReader>,
    ) -> Arc<Self> {
        Arc::new(Self {
            settings,
            broken,
            projects,
            read_projects: Mutex::default(),
            lists: Arc::new(ListCache::new(places.cache.clone())),
            places: Arc::new(places),
            servers: Mutex::default(),
            first: OnceLock::new(),
        })
    }

    /// Returns the tools that are known without waiting, and the fixed ones, for an agent in this
    /// directory.
    pub async fn tools(self: &Arc<Self>, workdir: &Path) -> Vec<Arc<dyn Tool>> {
        if self.enabled(workdir).is_empty() {
            return Vec::new();
        }
        let mut tools = self.tools_of_servers(workdir).await;
        tools.push(Arc::new(McpSearch(self.clone())));
        tools.push(Arc::new(McpCall));
        tools
    }

    /// Returns the tools of servers that are known without waiting.
    pub(super) async fn tools_of_servers(&self, workdir: &Path) -> Vec<Arc<dyn Tool>> {
        let mut tools = Vec::new();
        for server in self.enabled(workdir) {
            if let Some(offered) = server.known_tools().await {
                tools.extend(McpTool::all(&server, &offered));
            }
        }
        tools
    }

    /// Starts the servers of a directory in the background.
    ///
    /// In another directory than the first, those with known tools start with their first call.
    pub async fn start(&self, workdir: &Path) {
        self.read_project(workdir).await;
        let is_first = self.first.get_or_init(|| workdir.to_path_buf()) == workdir;
        for server in self.enabled(workdir) {
            if is_first || server.known_tools().await.is_none() {
                server.start();
            }
        }
    }

    /// Starts the servers whose tools are unknown, and waits a moment for them.
    ///
    /// For required ones it waits as long as their start may take. The others start with a call.
    pub async fn settle(&self, workdir: &Path) {
        self.read_project(workdir).await;
        let mut waits = JoinSet::new();
        for server in self.enabled(workdir) {
            if server.known_tools().await.is_none() {
                server.start();
                let limit = if server.settings.required {
                    server.settings.startup_timeout
                } else {
                    FIRST_WAIT.min(server.settings.startup_timeout)
                };
                waits.spawn(async move {
                    let _ = timeout(limit, server.settled()).await;
                });
            }
        }
        while waits.join_next().await.is_some() {}
    }

    /// Starts the servers, and waits until each is ready or has failed.
    pub async fn connect(&self, workdir: &Path) {
        self.start(workdir).await;
        for server in self.enabled(workdir) {
            server.settled().await;
        }
    }

    /// Returns the states of all servers for a directory.
    pub async fn status(&self, workdir: &Path) -> Vec<McpStatus> {
        let mut all = Vec::new();
        for settings in &self.all_settings(workdir) {
            let mut status = McpStatus {
                name: settings.name.clone(),
                way: settings.describe(),
                phase: McpStatusPhase::Disabled,
                tools: Vec::new(),
                refused: Vec::new(),
                errors: Vec::new(),
            };
            if settings.enabled {
                let server = self.server(settings, workdir);
                if let Some(offered) = server.known_tools().await {
                    let names = offered.tools.iter().map(|tool| tool.spec.name.clone());
                    status.tools = names.collect();
                    status.refused.clone_from(&offered.refused);
                }
                status.errors = server.errors();
                let state = server.state();
                status.phase = match state.phase {
                    McpPhase::Idle => McpStatusPhase::Idle,
                    McpPhase::Starting => match state.last_failure {
                        Some(reason) => McpStatusPhase::Failed(reason),
                        None => McpStatusPhase::Starting,
                    },
                    McpPhase::Ready(_) => McpStatusPhase::Ready,
                    McpPhase::Failed(reason) => McpStatusPhase::Failed(reason),
                };
            }
            all.push(status);
        }
        let project = self.project_servers(workdir);
        let theirs = project.iter().filter_map(|(name, server)| match server {
            Ok(_) => None,
            Err(reason) => Some((name, reason)),
        });
        let own = self.broken.iter().map(|(name, reason)| (name, reason));
        let broken = own.chain(theirs).map(|(name, reason)| McpStatus {
            name: name.clone(),
            way: String::new(),
            phase: McpStatusPhase::Failed(reason.clone()),
            tools: Vec::new(),
            refused: Vec::new(),
            errors: Vec::new(),
        });
        all.extend(broken);
        all
    }

    fn enabled(&self, workdir: &Path) -> Vec<Arc<McpServer>> {
        let all = self.all_settings(workdir);
        let enabled = all.iter().filter(|settings| settings.enabled);
        enabled
            .map(|settings| self.server(settings, workdir))
            .collect()
    }

    /// Returns the servers for a directory; the user's own definition of a name wins.
    fn all_settings(&self, workdir: &Path) -> Vec<McpServerSettings> {
        let project = self.project_servers(workdir);
        let theirs = project
            .iter()
            .filter_map(|(_, server)| server.as_ref().ok());
        let is_own = |name: &str| self.settings.iter().any(|own| own.name == name);
        let theirs = theirs.filter(|server| !is_own(&server.name));
        self.settings.iter().chain(theirs).cloned().collect()
    }

    fn project_servers(&self, workdir: &Path) -> Arc<ProjectServers> {
        let read = self.read_projects.lock();
        let read = read.unwrap_or_else(PoisonError::into_inner);
        read.get(workdir).cloned().unwrap_or_default()
    }

    /// Reads which servers of the project the user trusts.
    async fn read_project(&self, workdir: &Path) {
        let Some(reader) = self.projects.clone() else {
            return;
        };
        let directory = workdir.to_path_buf();
        let found = tokio::task::spawn_blocking(move || reader(&directory)).await;
        let mut read = self
            .read_projects
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        read.insert(workdir.to_path_buf(), Arc::new(found.unwrap_or_default()));
    }

    fn server(&self, settings: &McpServerSettings, workdir: &Path) -> Arc<McpServer> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (workdir.to_path_buf(), settings.name.clone());
        let make = || {
            let (places, lists) = (self.places.clone(), self.lists.clone());
            Arc::new(McpServer::new(
                settings.clone(),
                workdir.to_path_buf(),
                places,
                lists,
            ))
        };
        let known = servers.get(&key);
        if let Some(known) = known.filter(|known| known.settings.is_same_way(settings)) {
            return known.clone();
        }
        let server = make();
        // The definition of a project changed, and was trusted again.
        if let Some(before) = servers.insert(key, server.clone()) {
            before.stop();
        }
        server
    }
}

impl Drop for McpServers {
    fn drop(&mut self) {
        let servers = self
            .servers
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        for server in servers.values() {
            server.stop();
        }
    }
}
