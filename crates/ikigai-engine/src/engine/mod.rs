//! The engine: finds, creates and opens agents, and reads them without their lease.

mod toolset;
mod workspaces;

pub use workspaces::is_agent_here;

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ikigai_core::project::ContextLimits;
use ikigai_core::settings::ModelChoice;
use ikigai_core::{AgentId, Budget, Micros, Settings, Target};
use ikigai_providers::{Models, Offer, TypedKey};
use ikigai_store::{AgentRecord, Log, ReadLog, SessionRecord};
use ikigai_tools::permission::Sandbox;
use tokio::sync::OnceCell;

use crate::EngineError;
use crate::environment::Environment;
use crate::frontend::UserRequest;
use crate::hub::{Hub, Observer};
use crate::limits::{AgentLimits, FileChoice, Limits, Resume};
use crate::message_counts::MessageCounts;
use crate::process_watch::{Keepers, ProcessWatch};
use crate::tools::{Safety, Tools, Toolset};

/// All agents of one store. Reads through its [`EngineReader`].
#[derive(Clone)]
pub struct Engine {
    reader: EngineReader,
    /// Writes to the store. Only the ledger uses it.
    log: Arc<dyn Log>,
    /// Shares of the budget at which conversations are shortened.
    context_limits: ContextLimits,
    limits: Limits,
    crowd: AgentLimits,
    /// Model of children that explore; none for that of their parent.
    explore_model: Option<String>,
    /// Handling at start of turns that stopped in the middle.
    resume: Resume,
}

/// The part of an engine that reads: it has no log to write to.
#[derive(Clone)]
pub struct EngineReader {
    store: Arc<dyn ReadLog>,
    environment: Arc<dyn Environment>,
    models: Arc<dyn Models>,
    /// Window limit of the user, below the model's.
    window_tokens: Option<u64>,
    tools: Arc<dyn Tools>,
    safety: Safety,
    /// Corrected windows by provider and model. The servers' windows are smaller than described.
    smaller_windows: Arc<Mutex<HashMap<(String, String), u64>>>,
    /// Message counts of paths.
    counted: Arc<MessageCounts>,
    /// Sandbox of this machine, once it is known.
    confines: Arc<OnceCell<Sandbox>>,
    /// Agents of this process.
    hub: Arc<Hub>,
    /// Keepers of background processes; none if there can be no such processes.
    keepers: Option<Keepers>,
    /// Background processes of this process's agents.
    processes: Arc<ProcessWatch>,
    /// Directory of the workspace in which the program was started, if any.
    directory: Option<Arc<str>>,
    /// Extent of rewinds without an option.
    file_choice: FileChoice,
}

impl Deref for Engine {
    type Target = EngineReader;

    fn deref(&self) -> &EngineReader {
        &self.reader
    }
}

impl Engine {
    /// Creates an engine over a store.
    pub fn new(
        store: Arc<dyn Log>,
        environment: Arc<dyn Environment>,
        models: Arc<dyn Models>,
    ) -> Self {
        Self {
            reader: EngineReader {
                store: store.clone(),
                environment,
                models,
                window_tokens: None,
                tools: Arc::new(Vec::new()),
                safety: Safety::default(),
                smaller_windows: Arc::default(),
                counted: Arc::default(),
                confines: Arc::default(),
                hub: Arc::new(Hub::new(AgentLimits::default().requests)),
                keepers: None,
                processes: Arc::default(),
                directory: None,
                file_choice: FileChoice::default(),
            },
            log: store,
            context_limits: ContextLimits {
                summarise_above: None,
                ..ContextLimits::default()
            },
            limits: Limits::default(),
            crowd: AgentLimits::default(),
            explore_model: None,
            resume: Resume::default(),
        }
    }

    /// Sets the tools of agents, and their restrictions.
    #[must_use]
    pub fn with_tools(mut self, tools: Arc<dyn Tools>, safety: Safety) -> Self {
        self.reader.tools = tools;
        self.reader.safety = safety;
        self
    }

    /// Lets agents start background processes.
    #[must_use]
    pub fn with_keepers(mut self, keepers: Option<Keepers>) -> Self {
        self.reader.keepers = keepers;
        self
    }

    /// Sets what rewinds take back, if no option says it.
    #[must_use]
    pub fn with_file_choice(mut self, choice: FileChoice) -> Self {
        self.reader.file_choice = choice;
        self
    }

    /// Sets the limits of a turn.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Limits requests to this number of tokens.
    #[must_use]
    pub fn with_window_tokens(mut self, tokens: Option<u64>) -> Self {
        self.reader.window_tokens = tokens;
        self
    }

    /// Sets the share of the budget, in percent, above which conversations are summarised.
    #[must_use]
    pub fn with_summaries_at(mut self, percent: Option<u64>) -> Self {
        self.context_limits.summarise_above = percent;
        self
    }

    /// Sets the shares of the budget at which conversations are shortened.
    #[must_use]
    pub fn with_context_limits(mut self, limits: ContextLimits) -> Self {
        self.context_limits = limits;
        self
    }

    /// Sets the handling of stopped turns at start.
    #[must_use]
    pub fn with_resume(mut self, resume: Resume) -> Self {
        self.resume = resume;
        self
    }

    /// Sets the limits on families of agents.
    #[must_use]
    pub fn with_crowd(mut self, crowd: AgentLimits) -> Self {
        self.crowd = crowd;
        self.reader.hub = Arc::new(Hub::new(crowd.requests));
        self
    }

    /// Sets the directory of the workspace in which names are looked up first.
    #[must_use]
    pub fn with_directory(mut self, directory: &str) -> Self {
        self.reader.directory = Some(directory.into());
        self
    }

    /// Sets the model of children that explore.
    #[must_use]
    pub fn with_explore_model(mut self, model: Option<String>) -> Self {
        self.explore_model = model;
        self
    }

    /// Sets the observer of agents without a front end, and whether it answers their questions.
    pub fn observe(&self, observer: Observer, answers: bool) {
        self.hub.set_front(observer, answers);
    }

    /// Enables commands that need a screen.
    pub fn set_screen(&self) {
        self.hub.set_screen();
    }

    /// Enables commands that need a terminal for the user's editor.
    pub fn set_editor(&self) {
        self.hub.set_editor();
    }

    /// Takes a key that the user typed, for the `/key` that follows.
    pub fn set_typed_key(&self, provider: &str, key: TypedKey) {
        self.hub.set_typed_key(provider, key);
    }

    /// Sends a request to an agent of this process without a front end. Returns `false` if there is
    /// none.
    pub fn send_request(&self, agent: AgentId, request: UserRequest) -> bool {
        self.hub.deliver(agent, request)
    }

    /// Sends a request from a separate thread, waiting for room in the queue.
    /// So an answer is never lost. Not for use inside the runtime.
    pub fn tell_waiting(&self, agent: AgentId, request: UserRequest) -> bool {
        let ear = self.hub.ear_of(agent);
        ear.is_some_and(|ear| ear.blocking_send(request).is_ok())
    }

    /// Returns the log, for writing. Only the ledger calls this.
    pub(crate) fn log(&self) -> &dyn Log {
        &*self.log
    }

    pub(crate) fn context_limits(&self) -> ContextLimits {
        self.context_limits
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    pub(crate) fn explore_model(&self) -> Option<&str> {
        self.explore_model.as_deref()
    }

    pub(crate) fn crowd(&self) -> AgentLimits {
        self.crowd
    }

    pub(crate) fn resume(&self) -> Resume {
        self.resume
    }
}

/// Returns what rewinds take back, if no option says it.
pub(crate) fn file_choice_of(reader: &EngineReader) -> FileChoice {
    reader.file_choice
}

impl EngineReader {
    /// Finds a model server on this machine: its name, and a model as typed.
    pub async fn find_local(&self) -> Option<(&'static str, String)> {
        self.models.find_local().await
    }

    /// Returns all agents, oldest first.
    pub async fn agents(&self) -> Result<Vec<AgentRecord>, EngineError> {
        Ok(self.store.agents(None).await?)
    }

    /// Returns all sessions, oldest first.
    pub async fn sessions(&self) -> Result<Vec<SessionRecord>, EngineError> {
        Ok(self.store.sessions().await?)
    }

    /// Returns all models with a known name.
    pub fn offers(&self) -> Vec<Offer> {
        self.models.offers()
    }

    /// Returns the current time of the environment.
    pub fn now(&self) -> Micros {
        self.environment.now()
    }

    /// Returns the log, for reading.
    pub fn reader(&self) -> &dyn ReadLog {
        &*self.store
    }

    /// Returns the log, for tasks that read it on their own.
    pub(crate) fn shared_reader(&self) -> &Arc<dyn ReadLog> {
        &self.store
    }

    pub(crate) fn environment(&self) -> &dyn Environment {
        &*self.environment
    }

    pub(crate) fn models(&self) -> &Arc<dyn Models> {
        &self.models
    }

    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    pub(crate) fn safety(&self) -> &Safety {
        &self.safety
    }

    pub(crate) fn counted(&self) -> &MessageCounts {
        &self.counted
    }

    pub(crate) fn keepers(&self) -> Option<&Keepers> {
        self.keepers.as_ref()
    }

    pub(crate) fn processes(&self) -> &Arc<ProcessWatch> {
        &self.processes
    }

    /// Finds the living root of a directory's sessions that was used last. Children are addressed
    /// by name.
    pub async fn latest(&self, directory: &str) -> Result<Option<AgentRecord>, EngineError> {
        let mut latest: Option<AgentRecord> = None;
        for session in self.sessions_of(directory).await? {
            for agent in self.store.living_roots(session.id).await? {
                let newer = latest
                    .as_ref()
                    .is_none_or(|last| agent.touched_at >= last.touched_at);
                if newer {
                    latest = Some(agent);
                }
            }
        }
        Ok(latest)
    }

    /// Returns the model under these settings.
    pub(crate) fn choice(&self, settings: &Settings) -> Result<ModelChoice, EngineError> {
        match &settings.model {
            Some(choice) => Ok(choice.clone()),
            None => Ok(self.models.first_choice()?),
        }
    }

    /// Requests the window of an unknown model from the server, with a short timeout.
    pub(crate) async fn look_up_window(&self, settings: &Settings) -> Result<(), EngineError> {
        let choice = self.choice(settings)?;
        self.models.learn_window(&choice).await;
        Ok(())
    }

    /// Returns the budget of requests under these settings, of a model with `window` tokens.
    pub(crate) fn budget(&self, settings: &Settings, choice: &ModelChoice, window: u64) -> Budget {
        let cap = settings.budget_tokens.or(self.window_tokens);
        let known = self.windows().get(&key_of(choice)).copied();
        Budget::new(known.map_or(window, |known| known.min(window)), cap)
    }

    /// Returns true if a refusal showed that a model's window is smaller than assumed.
    pub(crate) fn is_corrected(&self, choice: &ModelChoice) -> bool {
        let corrected = self.windows().get(&key_of(choice)).copied();
        corrected.is_some_and(|corrected| corrected < self.models.window_tokens(choice))
    }

    /// Records that a model's window is at most this number of tokens.
    pub(crate) fn correct_window(&self, choice: &ModelChoice, tokens: u64) {
        self.windows().insert(key_of(choice), tokens);
    }

    fn windows(&self) -> MutexGuard<'_, HashMap<(String, String), u64>> {
        let windows = self.smaller_windows.lock();
        windows.unwrap_or_else(PoisonError::into_inner)
    }
}

fn key_of(choice: &ModelChoice) -> (String, String) {
    let ModelChoice {
        provider, model, ..
    } = choice.clone();
    (provider.unwrap_or_default(), model.unwrap_or_default())
}

/// Returns the target of requests: model and tools.
pub(crate) fn target_of(choice: &ModelChoice, tools: &Toolset) -> Target {
    Target {
        tools: tools.offer(),
        ..model_of(choice)
    }
}

/// Returns the target without tools, for naming the model of an answer.
pub(crate) fn model_of(choice: &ModelChoice) -> Target {
    Target {
        provider: choice.provider.clone().unwrap_or_default(),
        model: choice.model.clone().unwrap_or_default(),
        ..Target::default()
    }
}
