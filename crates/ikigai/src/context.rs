//! Wiring of store, engine and runtime.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use ikigai_core::PersonName;
use ikigai_engine::{Engine, Environment, System};
use ikigai_providers::registry::{Random, Registry, Variables};
use ikigai_providers::transport::{Client, Deadlines};
use ikigai_store::{AgentRecord, ProcessRecord};
use ikigai_tools::remove_abandoned_directories;
use ikigai_tui::terminal::exit_time_left;
use tokio::runtime::Runtime;

use crate::config::{self, Config};
use crate::diagnostics;
use crate::identity;
use crate::keepers::{keepers, this_host};
use crate::machine::Machine;
use crate::runtime::runtime;
use crate::store::{AnyStore, StoreUse};
use crate::store_location::{self, Here, StoreLocation};
use crate::tools;
use crate::trust::trusts_settings;

/// Part of the time for leaving reserved for the steps after the store is closed.
const EXIT_MARGIN: Duration = Duration::from_millis(200);

/// Returns the record of this process, under which it takes leases.
pub(crate) fn this_process(person: Option<PersonName>) -> ProcessRecord {
    ProcessRecord {
        id: System.draw_process(),
        host: this_host(),
        pid: std::process::id(),
        started: System.now(),
        machine: Some(identity::machine()),
        person,
    }
}

/// Runtime, engine, registry and store of a command.
pub(crate) struct ProgramContext {
    /// Taken on drop.
    runtime: Option<Runtime>,
    /// Engine of all agents.
    pub(crate) engine: Engine,
    /// Providers and models.
    pub(crate) registry: Arc<Registry>,
    /// Open store.
    pub(crate) store: AnyStore,
    pub(crate) place: StoreLocation,
}

/// Reads the configuration of the user and of the project.
pub(crate) fn configuration() -> Result<Config> {
    let here = Here::find()?;
    let project = Path::new(&here.session);
    Config::read(config::home().as_deref(), project, || {
        trusts_settings(project)
    })
}

/// Like [`configuration`]; `--no-sandbox` turns the sandbox off.
pub(crate) fn configuration_for(no_sandbox: bool) -> Result<Config> {
    let config = configuration()?;
    Ok(if no_sandbox {
        config.without_sandbox()
    } else {
        config
    })
}

/// Builds the registry of providers and models from the configuration.
pub(crate) fn registry(config: &Config) -> Result<Registry> {
    let variables: Variables = Arc::new(|name: &str| std::env::var(name).ok());
    let random: Random = Arc::new(|| {
        let bytes = System.random();
        bytes
            .iter()
            .take(8)
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    });
    let credentials = config::home().map(|home| home.join("credentials"));
    let client = Client::new(Deadlines::DEFAULT).trusting(config.ca_file());
    let registry = Registry::new(variables, client, random)
        .with_credentials(credentials)
        .with_configuration(config.providers(), config.models()?)
        .with_first(config.model.clone());
    diagnostics::hide(|| registry.known_keys());
    Ok(registry)
}

impl ProgramContext {
    /// Opens the store, creating it if it is missing.
    pub(crate) fn open(db: Option<String>) -> Result<Self> {
        Self::open_with(db, &configuration()?)
    }

    /// Opens the store for a command that only reads.
    pub(crate) fn open_reading(db: Option<String>) -> Result<Self> {
        let config = configuration()?;
        let place = store_location::database(db, config.store.as_deref())?;
        Self::open_for(&place, &config, StoreUse::Reading)
    }

    /// Like [`Self::open`], with a configuration that was read already.
    pub(crate) fn open_with(db: Option<String>, config: &Config) -> Result<Self> {
        let place = store_location::database(db, config.store.as_deref())?;
        Self::open_at(&place, config)
    }

    pub(crate) fn open_at(place: &StoreLocation, config: &Config) -> Result<Self> {
        Self::open_for(place, config, StoreUse::Work)
    }

    /// Opens the store at a location, for reading or for all uses.
    pub(crate) fn open_for(
        place: &StoreLocation,
        config: &Config,
        store_use: StoreUse,
    ) -> Result<Self> {
        if store_use == StoreUse::Work {
            // It may take a while, and nothing depends on it.
            let thread = std::thread::Builder::new().name("temporary files".to_owned());
            let _ = thread.spawn(remove_abandoned_directories);
        }
        let person = identity::person(place, config);
        let store = AnyStore::open(place, this_process(person.clone()), store_use)?;
        let registry = Arc::new(registry(config)?);
        let safety = tools::safety(place, &registry, &config.work());
        let tools = tools::all(&registry, &config.work(), safety.hidden.clone());
        let tools = Arc::new(tools);
        let window = window_tokens()?.or(config.budget_tokens);
        let machine = Machine::of(person);
        let engine = Engine::new(store.log(), Arc::new(machine), registry.clone())
            .with_window_tokens(window)
            .with_context_limits(config.context_limits()?)
            .with_tools(tools.clone(), safety)
            .with_limits(config.work().limits.limits())
            .with_crowd(config.work().agents.crowd())
            .with_directory(&Here::find()?.session)
            .with_explore_model(config.work().agents.explore_model.clone())
            .with_keepers(keepers(&config.work()))
            .with_file_choice(config.file_choice())
            .with_resume(config.resume());
        Ok(Self {
            runtime: Some(runtime()?),
            engine,
            registry,
            store,
            place: place.clone(),
        })
    }

    /// Runs a future to its end, with all tasks, on this thread.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        #[expect(clippy::expect_used, reason = "only `drop` takes the runtime")]
        let runtime = self.runtime.as_ref().expect("a context has a runtime");
        runtime.block_on(future)
    }

    /// Finds an agent by name, or the one last used in this directory.
    pub(crate) fn find(&self, name: Option<&str>) -> Result<Option<AgentRecord>> {
        self.block_on(async {
            match name {
                Some(name) => Ok(Some(self.engine.find(name).await?)),
                None => Ok(self.engine.latest(&Here::find()?.session).await?),
            }
        })
    }
}

impl Drop for ProgramContext {
    fn drop(&mut self) {
        // Dropping a runtime waits for blocking calls, such as a name lookup without an answer.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        self.store
            .close_within(exit_time_left().saturating_sub(EXIT_MARGIN));
    }
}

/// Returns the user's limit of a request's size.
fn window_tokens() -> Result<Option<u64>> {
    const NAME: &str = "IKIGAI_SLIDING_CONTEXT_TOKENS";
    let Some(value) = std::env::var(NAME).ok().filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let tokens = value
        .parse()
        .with_context(|| format!("{NAME} is `{value}`, not a number"))?;
    Ok(Some(tokens))
}
