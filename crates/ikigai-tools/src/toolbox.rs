//! All tools of an agent: built-in and external ones.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::Tool;
use crate::external::{self, Broken, Cache, ToolSearch};
use crate::process::ChildEnvironment;
use crate::tool_names::other_names;
use crate::trust::{ProjectTrust, Trust, TrustKind, TrustState};

/// Timeout for a tool's schema, because the start of ikigai waits for it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Directories and files for external tools.
#[derive(Clone, Debug)]
pub struct Places {
    /// Directory of system-wide tools.
    pub system: PathBuf,
    /// Directory of the user's tools, if there is one.
    pub user: Option<PathBuf>,
    /// Cache file of tools' schemas; without it every process asks the tools again.
    pub cache: Option<PathBuf>,
    /// Decisions about projects that bring tools.
    pub trust: Trust,
    /// Paths that tools may not read while they print their schema.
    pub hidden: Arc<[PathBuf]>,
}

impl Places {
    /// Directory of system-wide tools.
    pub const SYSTEM: &str = "/usr/lib/ikigai/tools";

    /// Returns the usual places, from the user's configuration and cache directories.
    pub fn usual(configuration: Option<&Path>, cache: Option<&Path>, trust: Trust) -> Self {
        Self {
            system: PathBuf::from(Self::SYSTEM),
            user: configuration.map(|directory| directory.join("tools")),
            cache: cache.map(|directory| directory.join("tools.json")),
            trust,
            hidden: Arc::from([]),
        }
    }
}

/// Built-in tools, and the search for external ones.
pub struct Toolbox {
    built_in: Vec<Arc<dyn Tool>>,
    places: Places,
    environment: ChildEnvironment,
    patience: Duration,
    /// Cache of schemas; none before the first search.
    cache: Mutex<Option<Cache>>,
}

/// Tools available in a working directory.
#[derive(Default)]
pub struct ToolInventory {
    /// Tools, sorted by name.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Files that look like tools but cannot be used, by path.
    pub broken: Vec<Broken>,
}

impl Toolbox {
    /// Creates a toolbox of these tools and external ones from these places.
    ///
    /// External tools get this environment.
    pub fn new(
        built_in: Vec<Arc<dyn Tool>>,
        places: Places,
        environment: ChildEnvironment,
    ) -> Self {
        Self {
            built_in,
            places,
            environment,
            patience: PATIENCE,
            cache: Mutex::new(None),
        }
    }

    /// Sets the timeout for tools' schemas; the default is a second.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Finds the tools for an agent that works in `workdir`.
    ///
    /// Reads directories at every call, so that changes show; runs an executable only if its file
    /// is new or changed.
    pub async fn look(&self, workdir: &Path) -> ToolInventory {
        // The spec has the schema, which is computed at each call.
        let name = |tool: Arc<dyn Tool>| (tool.spec().name, tool);
        let mut tools: Vec<_> = self.built_in.iter().cloned().map(name).collect();
        let project = self.project_tools(workdir).await;
        let tools_of = |is_wanted: fn(TrustState) -> bool| {
            let items = project.items.iter();
            let wanted = items.filter(|item| is_wanted(item.state));
            wanted.map(|item| item.path.clone()).collect()
        };
        let search = ToolSearch {
            directories: [Some(self.places.system.clone()), self.places.user.clone()]
                .into_iter()
                .flatten()
                .collect(),
            project: tools_of(|state| state == TrustState::Trusted),
            untrusted: tools_of(|state| state != TrustState::Trusted),
            taken: tools
                .iter()
                .map(|(name, _)| name.clone())
                .chain(other_names())
                .collect(),
            environment: self.environment.clone(),
            hidden: self.places.hidden.clone(),
            patience: self.patience,
        };
        // Most users have no external tools, and need no thread to search for them.
        let found = if search.has_directories() {
            let mut cache = self.load_cache().await;
            let found = external::look(search, &mut cache).await;
            if found.has_news {
                self.remember(cache).await;
            }
            found
        } else {
            external::DiscoveredTools::default()
        };
        let others = found.tools.into_iter();
        tools.extend(others.map(|tool| name(Arc::new(tool))));
        tools.sort_by(|(one, _), (other, _)| one.cmp(other));
        ToolInventory {
            tools: tools.into_iter().map(|(_, tool)| tool).collect(),
            broken: found.broken,
        }
    }

    /// Returns the tools for an agent that works in `workdir`, sorted by name.
    pub async fn tools(&self, workdir: &Path) -> Vec<Arc<dyn Tool>> {
        self.look(workdir).await.tools
    }

    /// Returns files that look like tools but cannot be used, with the reason.
    pub async fn broken(&self, workdir: &Path) -> Vec<Broken> {
        self.look(workdir).await.broken
    }

    /// Returns the tools of the project around a working directory.
    async fn project_tools(&self, workdir: &Path) -> ProjectTrust {
        let (trust, workdir) = (self.places.trust.clone(), workdir.to_owned());
        let read = move || trust.items_of(&workdir, &[TrustKind::Tool]);
        let read = tokio::task::spawn_blocking(read).await;
        read.unwrap_or_default()
    }

    async fn load_cache(&self) -> Cache {
        let kept = self
            .cache
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(cache) = kept {
            return cache;
        }
        let path = self.places.cache.clone();
        let load = move || path.map(|path| Cache::load(&path)).unwrap_or_default();
        let cache = tokio::task::spawn_blocking(load).await.unwrap_or_default();
        self.keep(cache.clone());
        cache
    }

    async fn remember(&self, mut cache: Cache) {
        self.keep(cache.clone());
        if let Some(path) = self.places.cache.clone() {
            // If the cache cannot be saved, the tools are asked again.
            let save = move || cache.save(&path);
            let _ = tokio::task::spawn_blocking(save).await;
        }
    }

    fn keep(&self, cache: Cache) {
        *self.cache.lock().unwrap_or_else(PoisonError::into_inner) = Some(cache);
    }
}
