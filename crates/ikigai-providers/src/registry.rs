//! Registry of models: the demo model, built-in providers, and configured ones.

mod key_entry;
mod model_info;
mod model_limits;
mod model_names;
mod preview;
mod remote_model;
mod served_window;
mod window_shapes;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ikigai_core::project::Scale;
use ikigai_core::settings::ModelChoice;
use secrecy::SecretString;

use self::remote_model::{KeySource, Reachable, RemoteModel};
use self::served_window::WindowLookups;
use crate::catalogue::{Catalogue, Level, ModelName, ModelSpec};
use crate::credentials::{self, CredentialsError};
use crate::demo::{DEMO, Demo};
use crate::dialect::{Dialect, Quirks};
use crate::key_command::KeyCommand;
use crate::presets::{COMPATIBLE, PRESETS, full_base, preset};
use crate::transport::{Client, Deadlines};
use crate::{
    BoxFuture, Described, KeyError, Model, Models, NoModel, Offer, StoredKey, TypedKey, dialects,
};

/// Configuration of a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderConfig {
    /// Base URL.
    pub base_url: Option<String>,
    /// Name of its dialect.
    pub dialect: Option<String>,
    /// Variable that holds its key.
    pub key_env: Option<String>,
    /// Command that prints its key.
    pub key_command: Option<String>,
    /// Additional headers of every request.
    pub headers: BTreeMap<String, String>,
    /// Time limit of connecting.
    pub connect: Option<Duration>,
    /// Time limit until the head of the response.
    pub first_byte: Option<Duration>,
    /// Longest silence between two pieces of a response.
    pub idle: Option<Duration>,
    /// File of additional trusted certificates.
    pub ca_file: Option<PathBuf>,
    /// True to send call ids of nine letters and digits.
    pub short_call_ids: Option<bool>,
    /// True to send alternating user and assistant messages.
    pub alternating_roles: Option<bool>,
}

impl ProviderConfig {
    fn deadlines(&self) -> Deadlines {
        let usual = Deadlines::DEFAULT;
        Deadlines {
            connect: self.connect.unwrap_or(usual.connect),
            first_byte: self.first_byte.unwrap_or(usual.first_byte),
            idle: self.idle.unwrap_or(usual.idle),
            ..usual
        }
    }

    /// Returns the client that this provider needs; `usual` if it needs nothing else.
    fn client(&self, usual: &Client) -> Client {
        let mut client = usual.clone();
        if self.deadlines() != Deadlines::DEFAULT {
            client = client.with_deadlines(self.deadlines());
        }
        if self.ca_file.is_some() {
            client = client.trusting(self.ca_file.clone());
        }
        client
    }

    fn quirks(&self, usual: Quirks) -> Quirks {
        let short_call_ids = self.short_call_ids.unwrap_or(usual.short_call_ids);
        let alternating_roles = self.alternating_roles.unwrap_or(usual.alternating_roles);
        Quirks {
            short_call_ids,
            alternating_roles,
            ..usual
        }
    }
}

/// Reads a variable of the environment.
pub type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Draws a random number, for the pauses before a request is sent again.
pub type Random = Arc<dyn Fn() -> u64 + Send + Sync>;

/// All providers and models.
pub struct Registry {
    corrections: Vec<ModelSpec>,
    configured: BTreeMap<String, ProviderConfig>,
    credentials: Option<PathBuf>,
    variables: Variables,
    first: Option<String>,
    client: Client,
    /// Clients of configured providers, which may need separate connections.
    clients: BTreeMap<String, Client>,
    random: Random,
    /// Commands that print keys, each run at most once.
    key_commands: BTreeMap<String, Arc<KeyCommand>>,
    /// Keys that were typed since the program started.
    typed: Mutex<Vec<SecretString>>,
    /// Lookups of windows at servers.
    lookups: WindowLookups,
}

impl Registry {
    /// Makes a registry of the built-in providers, with keys from `variables`.
    pub fn new(variables: Variables, client: Client, random: Random) -> Self {
        Self {
            corrections: Vec::new(),
            configured: BTreeMap::new(),
            credentials: None,
            variables,
            first: None,
            client,
            clients: BTreeMap::new(),
            random,
            key_commands: BTreeMap::new(),
            typed: Mutex::default(),
            lookups: WindowLookups::default(),
        }
    }

    /// Adds a credentials file.
    #[must_use]
    pub fn with_credentials(mut self, file: Option<PathBuf>) -> Self {
        self.credentials = file;
        self
    }

    /// Adds the configuration of providers and models.
    #[must_use]
    pub fn with_configuration(
        mut self,
        providers: BTreeMap<String, ProviderConfig>,
        models: Vec<ModelSpec>,
    ) -> Self {
        let clients = providers.iter();
        let clients = clients.map(|(name, config)| (name.clone(), config.client(&self.client)));
        self.clients = clients.collect();
        let hidden = secret_variables(&providers);
        let commands = providers.iter().filter_map(|(name, config)| {
            let command = KeyCommand::new(name, config.key_command.as_deref()?, hidden.clone());
            Some((name.clone(), Arc::new(command)))
        });
        self.key_commands = commands.collect();
        self.configured = providers;
        self.corrections = models;
        self
    }

    /// Sets the preferred model for new agents: `[provider:]name[/level]`.
    #[must_use]
    pub fn with_first(mut self, name: Option<String>) -> Self {
        self.first = name;
        self
    }

    /// Returns the model table with the configuration's corrections.
    pub fn catalogue(&self) -> Catalogue {
        Catalogue::embedded().with(self.corrections.clone())
    }

    /// Returns true if a provider is configured, local, or has a key.
    pub fn is_reachable(&self, provider: &str) -> bool {
        self.reach(provider).is_ok()
    }

    /// Returns the variables that keys are read from.
    pub fn secret_variables(&self) -> Vec<String> {
        secret_variables(&self.configured)
    }

    /// Returns every key that is known without running a command, for redaction.
    pub fn known_keys(&self) -> Vec<SecretString> {
        let variables = secret_variables(&self.configured);
        let from_variables = variables.iter().filter_map(|name| self.variable(name));
        let from_variables = from_variables.map(|key| SecretString::from(key.trim()));
        let file = self.credentials.as_deref().map(credentials::read_file);
        // Keys of a refused file are not used.
        let from_file = file.and_then(Result::ok).unwrap_or_default();
        from_variables.chain(from_file.into_values()).collect()
    }

    /// Returns the keys that commands have printed or users have typed so far.
    pub fn later_keys(&self) -> Vec<SecretString> {
        let commands = self.key_commands.values();
        let printed = commands.filter_map(|command| command.printed());
        let typed = self.typed.lock().unwrap_or_else(PoisonError::into_inner);
        printed.chain(typed.iter()).cloned().collect()
    }

    /// Returns the settings for a typed model name.
    pub fn choose(&self, typed: &str) -> Result<ModelChoice, NoModel> {
        let name = ModelName::parse(typed);
        let provider = self.provider_of(&name)?;
        let choice = ModelChoice {
            provider: Some(provider),
            model: Some(name.model),
            level: name.level.map(|level| level.word().to_owned()),
        };
        self.resolve(&choice)?;
        Ok(choice)
    }

    /// Returns a provider with all parameters of its requests.
    fn reach(&self, name: &str) -> Result<Reachable, NoModel> {
        let preset = preset(name);
        let configured = self.configured.get(name);
        if preset.is_none() && configured.is_none() {
            return Err(unknown_provider(name));
        }
        let empty = ProviderConfig::default();
        let config = configured.unwrap_or(&empty);
        let dialect = self.dialect_of(name);
        let dialect = dialects::by_name(dialect).ok_or_else(|| NoModel {
            reason: format!("provider `{name}` has the unknown dialect `{dialect}`"),
            advice: "use responses, chat, messages or gemini".to_owned(),
        })?;
        let base = self.base_of(name).ok_or_else(|| NoModel {
            reason: format!("provider `{name}` has no `base_url`"),
            advice: format!("set it under [providers.{name}]"),
        })?;
        let key = self.key(name, config)?;
        let wanted = preset.map_or(&[][..], |preset| preset.keys);
        if key.is_none() && !wanted.is_empty() && config.base_url.is_none() {
            return Err(NoModel {
                reason: format!("there is no key for `{name}`"),
                advice: format!("set {}", wanted.join(" or ")),
            });
        }
        Ok(Reachable {
            name: name.to_owned(),
            base: full_base(dialect.name(), &base),
            quirks: config.quirks(preset.map_or(COMPATIBLE, |preset| preset.quirks)),
            dialect,
            key,
            headers: config.headers.clone(),
        })
    }

    /// Returns the base URL of a provider: from its variable, the configuration or its preset.
    fn base_of(&self, name: &str) -> Option<String> {
        let preset = preset(name);
        let variable = preset.and_then(|preset| preset.base_variable);
        let from_variable = variable.and_then(|variable| self.variable(variable));
        let configured = self.configured.get(name);
        from_variable
            .or_else(|| configured?.base_url.clone())
            .or_else(|| preset.map(|preset| preset.base.to_owned()))
    }

    /// Returns the name of a provider's dialect.
    fn dialect_of(&self, name: &str) -> &str {
        let configured = self.configured.get(name);
        let configured = configured.and_then(|config| config.dialect.as_deref());
        let usual = preset(name).map(|preset| preset.dialect);
        configured.or(usual).unwrap_or("chat")
    }

    fn variable(&self, name: &str) -> Option<String> {
        (self.variables)(name).filter(|value| !value.trim().is_empty())
    }

    /// Returns the source of a provider's key: its variables, its command, or the file. Runs
    /// nothing.
    fn key(&self, name: &str, config: &ProviderConfig) -> Result<Option<KeySource>, NoModel> {
        let usual = preset(name).map_or(&[][..], |preset| preset.keys);
        let mut variables = config
            .key_env
            .as_deref()
            .into_iter()
            .chain(usual.iter().copied());
        let from_variable = variables.find_map(|variable| self.variable(variable));
        if let Some(key) = from_variable {
            return Ok(Some(KeySource::Known(SecretString::from(key.trim()))));
        }
        let no_model = |error: CredentialsError| NoModel {
            reason: error.to_string(),
            advice: error.advice(),
        };
        if let Some(command) = self.key_commands.get(name) {
            return Ok(Some(KeySource::Command(Arc::clone(command))));
        }
        let Some(file) = &self.credentials else {
            return Ok(None);
        };
        let mut keys = credentials::read_file(file).map_err(no_model)?;
        Ok(keys.remove(name).map(KeySource::Known))
    }
}

/// Returns every variable that may hold a key: child processes do not inherit them.
fn secret_variables(configured: &BTreeMap<String, ProviderConfig>) -> Vec<String> {
    let usual = PRESETS.iter().flat_map(|preset| preset.keys);
    let named = configured
        .values()
        .filter_map(|config| config.key_env.clone());
    usual.map(|name| (*name).to_owned()).chain(named).collect()
}

fn unknown_provider(name: &str) -> NoModel {
    let known: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
    NoModel {
        reason: format!("there is no provider `{name}`"),
        advice: format!(
            "use {DEMO}, {}, or set base_url in [providers.{name}]",
            known.join(", ")
        ),
    }
}

impl Models for Registry {
    fn describe(&self, choice: &ModelChoice) -> Described {
        self.describe(choice)
    }

    fn take_key<'a>(
        &'a self,
        provider: &'a str,
        key: &'a TypedKey,
    ) -> BoxFuture<'a, Result<StoredKey, KeyError>> {
        Box::pin(self.take_typed(provider, key))
    }

    fn find_local(&self) -> BoxFuture<'_, Option<(&'static str, String)>> {
        Box::pin(self.find_server())
    }

    fn offers(&self) -> Vec<Offer> {
        self.offer()
    }

    fn first_choice(&self) -> Result<ModelChoice, NoModel> {
        if let Some(name) = &self.first {
            return self.choose(name);
        }
        let catalogue = self.catalogue();
        for preset in PRESETS.iter().filter(|preset| !preset.keys.is_empty()) {
            let config = self
                .configured
                .get(preset.name)
                .cloned()
                .unwrap_or_default();
            if self.key(preset.name, &config)?.is_none() {
                continue;
            }
            let mut models = catalogue.models().iter();
            if let Some(spec) = models.find(|spec| spec.provider == preset.name && spec.tools) {
                return Ok(ModelChoice {
                    provider: Some(spec.provider.clone()),
                    model: Some(spec.id.clone()),
                    level: None,
                });
            }
        }
        Ok(Demo::choice())
    }

    fn choose(&self, typed: &str) -> Result<ModelChoice, NoModel> {
        Registry::choose(self, typed)
    }

    fn window_tokens(&self, choice: &ModelChoice) -> u64 {
        let provider = choice.provider.as_deref().unwrap_or(DEMO);
        if provider == DEMO {
            return Model::window_tokens(&Demo);
        }
        let name = choice.model.as_deref().unwrap_or_default();
        let catalogue = self.catalogue();
        self.request_tokens(provider, name, catalogue.find(Some(provider), name))
    }

    fn learn_window<'a>(&'a self, choice: &'a ModelChoice) -> BoxFuture<'a, ()> {
        Box::pin(self.look_up_window(choice))
    }

    fn token_scale(&self, choice: &ModelChoice) -> Scale {
        let provider = choice.provider.as_deref().unwrap_or(DEMO);
        let dialect = dialects::by_name(self.dialect_of(provider));
        dialect.map_or_else(Scale::default, Dialect::token_scale)
    }

    fn resolve(&self, choice: &ModelChoice) -> Result<Arc<dyn Model>, NoModel> {
        let provider = choice.provider.as_deref().unwrap_or(DEMO);
        if provider == DEMO {
            return Ok(Arc::new(Demo));
        }
        let reachable = self.reach(provider)?;
        let name = choice.model.clone().unwrap_or_default();
        if name.is_empty() {
            return Err(model_names::unknown_model("", &[]));
        }
        let spec = self.catalogue().find(Some(provider), &name).cloned();
        let level: Option<Level> = choice.level.as_deref().and_then(|level| level.parse().ok());
        let thinking = level
            .zip(spec.as_ref())
            .and_then(|(level, spec)| spec.thinking_value(level));
        Ok(Arc::new(RemoteModel {
            level: thinking.as_ref().map(|(level, _)| *level),
            thinking: thinking.map(|(_, value)| value),
            limits: self.limits(provider, &name, spec.as_ref(), reachable.dialect),
            reachable,
            name,
            spec,
            client: self.clients.get(provider).unwrap_or(&self.client).clone(),
            random: Arc::clone(&self.random),
        }))
    }
}
