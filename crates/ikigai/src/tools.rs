//! Tools of agents, and their restrictions.

use std::borrow::Cow;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ikigai_engine::{Blank, Probe, Safety, Tools};
use ikigai_providers::registry::Registry;
use ikigai_store::BoxFuture;
use ikigai_tools::builtin::skill::SkillTool;
use ikigai_tools::builtin::web_fetch::{WebFetch, WebLimits};
use ikigai_tools::builtin::web_search::{BRAVE_URL, WebSearch};
use ikigai_tools::extensions::{ExtensionPlaces, Extensions};
use ikigai_tools::mcp::{
    McpDefinition, McpPlaces, McpServerSettings, McpServers, McpStatus, ProjectServers,
};
use ikigai_tools::permission::Sandbox;
use ikigai_tools::process::ChildEnvironment;
use ikigai_tools::toolbox::{Places, Toolbox};
use ikigai_tools::trust::{Trust, TrustItem, TrustKind};
use ikigai_tools::{Tool, builtin, sandbox};
use secrecy::{ExposeSecret, SecretString};

use crate::config::{self, Work};
use crate::package_caches::package_caches;
use crate::secret_paths::secret_paths;
use crate::store_location::{self, StoreLocation};
use crate::trust::trust;

/// Replacement of a secret.
const BLANKED: &[u8] = b"[blanked]";

/// Shortest secret; shorter values would match everywhere.
const SHORTEST_SECRET_BYTES: usize = 8;

/// Variable with the key of `web_search`.
const SEARCH_KEY: &str = "BRAVE_API_KEY";

/// Built-in and external tools, those of MCP servers, and extensions.
pub(crate) struct AllTools {
    pub(crate) toolbox: Toolbox,
    pub(crate) servers: Arc<McpServers>,
    extensions: ExtensionPlaces,
    /// Offered where there are skills.
    skill: Arc<dyn Tool>,
}

impl Tools for AllTools {
    fn offer<'a>(&'a self, workdir: &'a Path) -> BoxFuture<'a, Vec<Arc<dyn Tool>>> {
        Box::pin(async move {
            let mut tools = self.toolbox.tools(workdir).await;
            let extensions = self.extensions(workdir).await;
            if extensions.skills.iter().any(|skill| skill.is_for_model) {
                tools.push(self.skill.clone());
            }
            tools.extend(self.servers.tools(workdir).await);
            tools
        })
    }

    fn start_servers<'a>(&'a self, workdir: &'a Path) -> BoxFuture<'a, ()> {
        Box::pin(self.servers.start(workdir))
    }

    fn settle_servers<'a>(&'a self, workdir: &'a Path) -> BoxFuture<'a, ()> {
        Box::pin(self.servers.settle(workdir))
    }

    fn servers<'a>(&'a self, workdir: &'a Path) -> BoxFuture<'a, Vec<McpStatus>> {
        Box::pin(self.servers.status(workdir))
    }

    fn extensions<'a>(&'a self, workdir: &'a Path) -> BoxFuture<'a, Arc<Extensions>> {
        Box::pin(async move {
            let (places, workdir) = (self.extensions.clone(), workdir.to_owned());
            let load = tokio::task::spawn_blocking(move || places.load(&workdir));
            Arc::new(load.await.unwrap_or_default())
        })
    }
}

/// Creates the built-in tools, the search for external ones, and the MCP servers.
pub(crate) fn all(registry: &Registry, work: &Work, hidden: Arc<[PathBuf]>) -> AllTools {
    let environment = withholding(registry).keeping(work.sandbox.pass_env());
    let mut built_in = builtin::all(environment.clone());
    built_in.push(Arc::new(WebFetch::new(WebLimits {
        allow_private: work.web.may_fetch_private(),
        ..WebLimits::default()
    })));
    if let Some(server) = work.web.searxng() {
        built_in.push(Arc::new(WebSearch::searxng(server)));
    } else if let Some(key) = search_key() {
        built_in.push(Arc::new(WebSearch::new(key, BRAVE_URL)));
    }
    let cache = config::cache_home();
    let places = Places {
        hidden: hidden.clone(),
        ..Places::usual(config::home().as_deref(), cache.as_deref(), trust())
    };
    let extensions = ExtensionPlaces {
        home: home(),
        configuration: config::home(),
        trust: trust(),
    };
    AllTools {
        servers: mcp_servers(work, &environment, hidden, cache.as_deref()),
        toolbox: Toolbox::new(built_in, places, environment),
        skill: Arc::new(SkillTool::new(extensions.clone())),
        extensions,
    }
}

/// Creates the MCP servers of the configuration; starts none.
fn mcp_servers(
    work: &Work,
    environment: &ChildEnvironment,
    hidden: Arc<[PathBuf]>,
    cache: Option<&Path>,
) -> Arc<McpServers> {
    let home = home();
    let (settings, broken) = resolve_mcp(work, environment);
    let places = McpPlaces {
        environment: environment.clone(),
        cache: cache.map(|directory| directory.join("mcp-tools.json")),
        sandbox: work.sandbox.is_enabled(),
        hidden,
        writable: work.sandbox.writable(home.as_deref()),
        caches: package_caches(home.as_deref(), |name| env::var_os(name)),
    };
    let (trust, environment) = (trust(), environment.clone());
    let projects = move |workdir: &Path| trusted_mcp(&trust, &environment, workdir);
    McpServers::new(settings, broken, places, Some(Arc::new(projects)))
}

/// Returns the servers in the `.mcp.json` of a project, as far as the user trusts them. Blocks.
fn trusted_mcp(trust: &Trust, environment: &ChildEnvironment, workdir: &Path) -> ProjectServers {
    let found = trust.items_of(workdir, &[TrustKind::McpServer]);
    let resolve = |item: &TrustItem| {
        let definition = serde_json::from_str::<McpDefinition>(&item.content);
        let definition = definition.map_err(|error| error.to_string())?;
        // A project cannot lift the sandbox of its servers.
        let definition = McpDefinition {
            sandbox: None,
            writable: Vec::new(),
            ..definition
        };
        let lookup = |name: &str| variable_of(environment, name);
        definition.resolve(&item.name, &lookup, home().as_deref())
    };
    let trusted = found.trusted(TrustKind::McpServer);
    trusted
        .map(|item| (item.name.clone(), resolve(item)))
        .collect()
}

/// Returns a variable of ikigai's environment that a server may get.
fn variable_of(environment: &ChildEnvironment, name: &str) -> Result<Option<String>, String> {
    if environment.withholds(name) {
        return Err(format!("`{name}` is a key of ikigai, which no server gets"));
    }
    Ok(env::var(name).ok())
}

/// Checks the definitions of MCP servers; returns valid ones, and the others with the reason.
fn resolve_mcp(
    work: &Work,
    environment: &ChildEnvironment,
) -> (Vec<McpServerSettings>, Vec<(String, String)>) {
    let lookup = |name: &str| variable_of(environment, name);
    let (mut settings, mut broken) = (Vec::new(), Vec::new());
    for (name, definition) in &work.mcp {
        let unknown = definition.unknown.keys().next();
        let resolved = match unknown {
            Some(key) => Err(format!("unknown key `{key}`")),
            None => definition.resolve(name, &lookup, home().as_deref()),
        };
        match resolved {
            Ok(server) => settings.push(server),
            Err(reason) => broken.push((name.clone(), reason)),
        }
    }
    (settings, broken)
}

/// Returns an environment without ikigai's keys.
fn withholding(registry: &Registry) -> ChildEnvironment {
    ChildEnvironment::default()
        .withholding(registry.secret_variables())
        .withholding([SEARCH_KEY.to_owned()])
        .withholding(store_location::secret_variable())
}

/// Returns the key of `web_search`; without it the tool is not offered.
fn search_key() -> Option<SecretString> {
    let key = env::var(SEARCH_KEY).ok()?;
    Some(SecretString::from(key.trim())).filter(|key| !key.expose_secret().is_empty())
}

/// Returns the restrictions of tools: store, keys and other private files.
pub(crate) fn safety(store: &StoreLocation, registry: &Arc<Registry>, work: &Work) -> Safety {
    let probe: Probe = Arc::new(|| {
        if sandbox::in_force().makes_reading_safe() {
            Sandbox::InForce
        } else {
            Sandbox::Missing
        }
    });
    Safety {
        hidden: hidden_paths(store, work).into(),
        sandbox: work.sandbox.is_enabled().then_some(probe),
        network: work.sandbox.has_network(),
        hosts: work.sandbox.hosts().into(),
        writable: work.sandbox.writable(home().as_deref()),
        caches: caches(work),
        worktrees: worktrees(),
        loopback_ports: work.sandbox.loopback_ports().into(),
        allow: work.permissions.allow(),
        refuse: work.permissions.refuse(),
        blank: blank(registry.clone(), store, work.clone()),
        shell: withholding(registry).for_the_user(),
    }
}

/// Returns the caches that sandboxed processes may fill, with network or with listed hosts.
fn caches(work: &Work) -> Vec<PathBuf> {
    if work.sandbox.has_network() || !work.sandbox.hosts().is_empty() {
        package_caches(home().as_deref(), |name| env::var_os(name))
    } else {
        Vec::new()
    }
}

/// Returns the directory for git worktrees of children. It is not one of the hidden ones.
fn worktrees() -> Option<PathBuf> {
    let named = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let named = named.filter(|path| path.is_absolute());
    let cache = named.or_else(|| Some(home()?.join(".cache")))?;
    Some(cache.join("ikigai-worktrees"))
}

fn home() -> Option<PathBuf> {
    env::home_dir().filter(|home| home.is_absolute())
}

/// Returns the paths that no tool may read or write.
pub(crate) fn hidden_paths(store: &StoreLocation, work: &Work) -> Vec<PathBuf> {
    let home = home();
    let also = work.sandbox.hidden(home.as_deref());
    let workdir = env::current_dir().ok();
    let secret = secret_paths(home.as_deref(), workdir.as_deref(), |name| {
        env::var_os(name)
    });
    let own = config::own_directories();
    secret
        .into_iter()
        .chain(own.all().filter(|path| path.is_absolute()).cloned())
        .chain(store.file().into_iter().flat_map(files_of))
        .chain(also)
        .collect()
}

/// Returns the store's file and its companion files.
pub(crate) fn files_of(store: &Path) -> [PathBuf; 5] {
    let beside = |suffix: &str| {
        let mut name = store.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    ["", "-wal", "-shm", "-notify", "-locks"].map(beside)
}

/// Returns the secrets in the settings of MCP servers.
fn mcp_secrets(registry: &Registry, work: &Work) -> Vec<SecretString> {
    let environment = withholding(registry);
    let (mut settings, _) = resolve_mcp(work, &environment);
    if let Ok(workdir) = env::current_dir() {
        let project = trusted_mcp(&trust(), &environment, &workdir);
        settings.extend(project.into_iter().filter_map(|(_, server)| server.ok()));
    }
    let secrets = settings.iter().flat_map(McpServerSettings::secrets);
    let bare = secrets.map(|secret| {
        // An answer may quote a token without its scheme.
        let token = secret.expose_secret().trim_start_matches("Bearer ");
        SecretString::from(token)
    });
    bare.collect()
}

/// Returns a function that blanks known keys, which it looks up on first use.
fn blank(registry: Arc<Registry>, store: &StoreLocation, work: Work) -> Blank {
    let password = store.password().cloned();
    let keys: OnceLock<Vec<SecretString>> = OnceLock::new();
    Arc::new(move |bytes| {
        let keys = keys.get_or_init(|| {
            let known = registry.known_keys().into_iter();
            let known = known.chain(search_key()).chain(password.clone());
            known.chain(mcp_secrets(&registry, &work)).collect()
        });
        let mut blanked = Cow::Borrowed(bytes);
        // Keys from commands or typed input become known later.
        for key in keys.iter().chain(&registry.later_keys()) {
            let key = key.expose_secret().as_bytes();
            if key.len() >= SHORTEST_SECRET_BYTES
                && let Some(without) = without(&blanked, key)
            {
                blanked = Cow::Owned(without);
            }
        }
        blanked
    })
}

/// Returns the bytes with `key` blanked; none if it does not occur.
fn without(bytes: &[u8], key: &[u8]) -> Option<Vec<u8>> {
    let mut found = memchr::memmem::find_iter(bytes, key).peekable();
    found.peek()?;
    let mut blanked = Vec::with_capacity(bytes.len());
    let mut from = 0;
    for at in found {
        blanked.extend_from_slice(&bytes[from..at]);
        blanked.extend_from_slice(BLANKED);
        from = at + key.len();
    }
    blanked.extend_from_slice(&bytes[from..]);
    Some(blanked)
}

#[cfg(test)]
mod tests {
    use super::without;

    #[test]
    fn a_key_is_blanked_wherever_it_stands() {
        let cases: [(&[u8], Option<&[u8]>); 4] = [
            (b"nothing here", None),
            (b"sk-secret-1", Some(b"[blanked]")),
            (
                b"a sk-secret-1\xffsk-secret-1 b",
                Some(b"a [blanked]\xff[blanked] b"),
            ),
            (b"sk-secret-", None),
        ];

        for (bytes, expected) in cases {
            assert_eq!(without(bytes, b"sk-secret-1").as_deref(), expected);
        }
    }
}
