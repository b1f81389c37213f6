//! All tools that there are for an agent: built-in ones, and those that are found.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::Tool;
use crate::external::{self, Allowed, Broken, Cache, Search};
use crate::process::Environment;

/// How long a tool may take to say what it is: whoever starts ikigai waits for it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where external tools are, and what is remembered of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Tools of everybody on this machine.
    pub system: PathBuf,
    /// Tools of the user, if there is such a place.
    pub user: Option<PathBuf>,
    /// The file in which is kept what tools said of themselves; without it they are asked anew by
    /// every process.
    pub cache: Option<PathBuf>,
    /// The directory in which is kept which projects may bring tools; without it none may.
    pub allowed: Option<PathBuf>,
    /// What tools may not read while they say what they are.
    pub hidden: Arc<[PathBuf]>,
}

impl Places {
    /// Where tools of everybody are.
    pub const SYSTEM: &str = "/usr/lib/ikigai/tools";

    /// The usual places, from the user's directories of configuration, state and caches.
    pub fn usual(configuration: Option<&Path>, state: Option<&Path>, cache: Option<&Path>) -> Self {
        Self {
            system: PathBuf::from(Self::SYSTEM),
            user: configuration.map(|directory| directory.join("tools")),
            cache: cache.map(|directory| directory.join("tools.json")),
            allowed: state.map(|directory| directory.join("allowed-tools")),
            hidden: Arc::from([]),
        }
    }
}

/// All tools that there are.
pub struct Toolbox {
    built_in: Vec<Arc<dyn Tool>>,
    places: Places,
    environment: Environment,
    patience: Duration,
    /// What is remembered; none as long as nobody looked.
    cache: Mutex<Option<Cache>>,
}

/// What there is in a working directory.
#[derive(Default)]
pub struct Found {
    /// The tools, by their names in alphabetical order.
    pub tools: Vec<Arc<dyn Tool>>,
    /// What looks like a tool and is none, by path.
    pub broken: Vec<Broken>,
}

impl Toolbox {
    /// Holds the built-in tools and finds others in these places. External tools get this
    /// environment.
    pub fn new(built_in: Vec<Arc<dyn Tool>>, places: Places, environment: Environment) -> Self {
        Self {
            built_in,
            places,
            environment,
            patience: PATIENCE,
            cache: Mutex::new(None),
        }
    }

    /// Gives tools another time than a second to say what they are.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// What there is for an agent that works in `workdir`. Directories are read at every call, so
    /// that changes show; an executable is run only when its file is not the one that is known.
    pub async fn look(&self, workdir: &Path) -> Found {
        // A name comes with its schema, which is made anew each time it is asked for.
        let name = |tool: Arc<dyn Tool>| (tool.spec().name, tool);
        let mut tools: Vec<_> = self.built_in.iter().cloned().map(name).collect();
        let search = Search {
            directories: [Some(self.places.system.clone()), self.places.user.clone()]
                .into_iter()
                .flatten()
                .collect(),
            workdir: workdir.to_path_buf(),
            taken: tools.iter().map(|(name, _)| name.clone()).collect(),
            allowed: Allowed::new(self.places.allowed.clone()),
            environment: self.environment.clone(),
            hidden: self.places.hidden.clone(),
            patience: self.patience,
        };
        // Most people have none, and need no thread to look for them.
        let found = if search.has_directories() {
            let mut cache = self.remembered().await;
            let found = external::look(search, &mut cache).await;
            if found.has_news {
                self.remember(cache).await;
            }
            found
        } else {
            external::Found::default()
        };
        let others = found.tools.into_iter();
        tools.extend(others.map(|tool| name(Arc::new(tool))));
        tools.sort_by(|(one, _), (other, _)| one.cmp(other));
        Found {
            tools: tools.into_iter().map(|(_, tool)| tool).collect(),
            broken: found.broken,
        }
    }

    /// The tools for an agent that works in `workdir`, by their names in alphabetical order.
    pub async fn tools(&self, workdir: &Path) -> Vec<Arc<dyn Tool>> {
        self.look(workdir).await.tools
    }

    /// What looks like a tool and is none, with the reason.
    pub async fn broken(&self, workdir: &Path) -> Vec<Broken> {
        self.look(workdir).await.broken
    }

    /// Lets the project with this directory of tools bring them, from here on.
    pub fn allow(&self, tools: &Path) -> io::Result<()> {
        Allowed::new(self.places.allowed.clone()).allow(tools)
    }

    async fn remembered(&self) -> Cache {
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
            // What cannot be remembered is found out again.
            let save = move || cache.save(&path);
            let _ = tokio::task::spawn_blocking(save).await;
        }
    }

    fn keep(&self, cache: Cache) {
        *self.cache.lock().unwrap_or_else(PoisonError::into_inner) = Some(cache);
    }
}
