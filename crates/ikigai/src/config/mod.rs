//! Configuration: the user's file, then the project's, which cannot widen anything.

mod context;
pub(crate) mod network;
mod project;
mod table;
mod work;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use ikigai_core::PersonName;
use ikigai_core::identity::BadPersonName;
use ikigai_core::project::ContextLimits;
use ikigai_engine::{FileChoice, Resume};
use ikigai_providers::catalogue::{Catalogue, ModelName, ModelSpec};
use ikigai_providers::registry::ProviderConfig;
use ikigai_providers::small_file;
use ikigai_tools::mcp::McpDefinition;
use ikigai_tools::protected_paths::OwnDirectories;
use ikigai_tui::screen::{Notify, OnHangUp, StatusReports};
use serde::Deserialize;
use serde::de::DeserializeOwned;

pub(crate) use context::dependent_shares;
pub(crate) use table::{KEYS, Key, Project, help};
pub(crate) use work::Work;

/// Largest configuration file.
const MOST_FILE_BYTES: u64 = 1 << 20;

/// Longest deadline: an hour.
const MOST_SECONDS: u64 = 3600;

/// Merged configuration; later files override earlier ones.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Store, in the form of `--db`.
    pub(crate) store: Option<String>,
    /// Model of new agents: `[provider:]name[/level]`.
    pub(crate) model: Option<String>,
    /// Handling of interrupted turns at start.
    resume: Option<ResumeWord>,
    undo: Option<UndoWord>,
    /// Handling of working agents when the terminal closes.
    on_hangup: Option<HangUpWord>,
    /// Name of the colour theme.
    pub(crate) theme: Option<String>,
    /// Symbol set: `unicode` or `ascii`.
    pub(crate) symbols: Option<String>,
    /// True if the screen uses the mouse.
    pub(crate) mouse: Option<bool>,
    /// Notification of a user who is not looking.
    notify: Option<NotifyWord>,
    /// Condition of status reports to the terminal.
    program_status: Option<StatusWord>,
    /// Key bindings.
    pub(crate) keys: BTreeMap<String, String>,
    /// Token limit of a request.
    pub(crate) budget_tokens: Option<u64>,
    /// Percentage of the budget at which the conversation is summarised; 0: never.
    compact_at: Option<Percent>,
    context: context::ContextSection,
    /// Additional trusted certificates.
    ca_file: Option<AbsolutePath>,
    user: UserSection,
    providers: BTreeMap<String, ProviderSection>,
    models: BTreeMap<String, ModelSection>,
    /// Models section of the project's file.
    #[serde(skip)]
    project_models: BTreeMap<String, ModelSection>,
    permissions: work::PermissionSettings,
    sandbox: work::SandboxSettings,
    web: work::WebSettings,
    limits: work::LimitsSection,
    agents: work::AgentsSection,
    /// MCP servers of the user.
    mcp: BTreeMap<String, McpDefinition>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
struct UserSection {
    name: Option<UserName>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(try_from = "String")]
struct UserName(PersonName);

impl TryFrom<String> for UserName {
    type Error = BadPersonName;

    fn try_from(name: String) -> Result<Self, BadPersonName> {
        name.parse().map(Self)
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum ResumeWord {
    Ask,
    Auto,
    Never,
}

/// `undo`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum UndoWord {
    Ask,
    Conversation,
    Files,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(try_from = "String")]
struct NotifyWord(Notify);

impl TryFrom<String> for NotifyWord {
    type Error = &'static str;

    fn try_from(word: String) -> Result<Self, &'static str> {
        let notify = Notify::from_name(&word).map(Self);
        notify.ok_or("expected `osc9`, `bell`, `off` or `command PROGRAM`")
    }
}

/// `program_status`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum StatusWord {
    Auto,
    On,
    Off,
}

/// `on_hangup`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum HangUpWord {
    Background,
    Pause,
}

/// `[providers.NAME]`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
struct ProviderSection {
    base_url: Option<String>,
    dialect: Option<String>,
    key_env: Option<String>,
    key_command: Option<String>,
    headers: BTreeMap<String, String>,
    connect: Option<Seconds>,
    first_byte: Option<Seconds>,
    idle: Option<Seconds>,
    ca_file: Option<AbsolutePath>,
    short_call_ids: Option<bool>,
    alternating_roles: Option<bool>,
}

/// Deadline. Zero is refused, because no deadline at all would wait for ever.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(try_from = "u64")]
struct Seconds(Duration);

impl TryFrom<u64> for Seconds {
    type Error = String;

    fn try_from(seconds: u64) -> Result<Self, String> {
        if (1..=MOST_SECONDS).contains(&seconds) {
            Ok(Self(Duration::from_secs(seconds)))
        } else {
            Err(format!("expected 1 to {MOST_SECONDS} seconds"))
        }
    }
}

/// Percentage.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(try_from = "u64")]
struct Percent(u64);

impl TryFrom<u64> for Percent {
    type Error = &'static str;

    fn try_from(percent: u64) -> Result<Self, &'static str> {
        if percent <= 100 {
            Ok(Self(percent))
        } else {
            Err("expected 0 to 100 percent")
        }
    }
}

/// Absolute path, which is independent of the working directory.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(try_from = "PathBuf")]
struct AbsolutePath(PathBuf);

impl TryFrom<PathBuf> for AbsolutePath {
    type Error = &'static str;

    fn try_from(path: PathBuf) -> Result<Self, &'static str> {
        if path.is_absolute() {
            Ok(Self(path))
        } else {
            Err("expected an absolute path")
        }
    }
}

/// `[models."provider:name"]`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
struct ModelSection {
    context_window: Option<u64>,
    max_output: Option<u64>,
    images: Option<bool>,
    price_in: Option<f64>,
    price_out: Option<f64>,
    price_cache_read: Option<f64>,
    price_cache_write: Option<f64>,
}

impl Config {
    /// Reads the user's file and the project's.
    ///
    /// Settings that choose how the model is used are taken from the project only if `is_trusted`;
    /// those that restrict always count.
    pub(crate) fn read(
        home: Option<&Path>,
        project: &Path,
        is_trusted: impl FnOnce() -> bool,
    ) -> Result<Self> {
        let user = match home {
            Some(home) => read_file(&user_file(home))?,
            None => Self::default(),
        };
        let file = project_file(project);
        let mut theirs = Self::read_project(&file)?;
        if theirs.chooses() && !is_trusted() {
            theirs.model = None;
            theirs.compact_at = None;
            theirs.context = context::ContextSection::default();
        }
        let work = user.work().narrowed_by(theirs.work());
        let config = Self {
            model: theirs.model.or(user.model),
            budget_tokens: project::lower(user.budget_tokens, theirs.budget_tokens),
            compact_at: theirs.compact_at.or(user.compact_at),
            context: user.context.replaced_by(theirs.context),
            project_models: theirs.models,
            permissions: work.permissions,
            sandbox: work.sandbox,
            web: work.web,
            limits: work.limits,
            ..user
        };
        config.context_limits()?;
        Ok(config)
    }

    /// Returns true if it sets anything that a project needs trust for.
    fn chooses(&self) -> bool {
        self.model.is_some()
            || self.compact_at.is_some()
            || self.context != context::ContextSection::default()
    }

    /// Reads a project's file.
    ///
    /// A repository must not send a key to an address of its choice, run a command, change prices
    /// or widen anything: the table of keys lists the rest.
    fn read_project(file: &Path) -> Result<Self> {
        let Some(text) = read_text(file)? else {
            return Ok(Self::default());
        };
        project::check(&text, file)?;
        toml::from_str(&text).map_err(|error| project::unreadable(file, &text, &error))
    }

    /// Returns the name of the user in a local store.
    pub(crate) fn user_name(&self) -> Option<PersonName> {
        self.user.name.clone().map(|name| name.0)
    }

    /// Returns what rewinds take back, if no option says it.
    pub(crate) fn file_choice(&self) -> FileChoice {
        match self.undo {
            Some(UndoWord::Ask) | None => FileChoice::Ask,
            Some(UndoWord::Conversation) => FileChoice::Conversation,
            Some(UndoWord::Files) => FileChoice::Files,
        }
    }

    /// Returns the handling of interrupted turns at start, for front ends that supervise agents.
    pub(crate) fn resume(&self) -> Resume {
        match self.resume {
            None | Some(ResumeWord::Ask) => Resume::Ask,
            Some(ResumeWord::Auto) => Resume::Auto,
            Some(ResumeWord::Never) => Resume::Never,
        }
    }

    /// Returns the handling of working agents when the terminal closes.
    pub(crate) fn on_hangup(&self) -> OnHangUp {
        match self.on_hangup {
            None | Some(HangUpWord::Background) => OnHangUp::Background,
            Some(HangUpWord::Pause) => OnHangUp::Pause,
        }
    }

    /// Returns the kind of notification for a user who is not looking.
    pub(crate) fn notify(&self) -> Notify {
        let notify = self.notify.clone();
        notify.map(|word| word.0).unwrap_or_default()
    }

    /// Returns when the terminal gets the status of the program.
    pub(crate) fn program_status(&self) -> StatusReports {
        match self.program_status {
            None | Some(StatusWord::Auto) => StatusReports::Auto,
            Some(StatusWord::On) => StatusReports::On,
            Some(StatusWord::Off) => StatusReports::Off,
        }
    }

    /// Turns the sandbox off.
    pub(crate) fn without_sandbox(mut self) -> Self {
        self.sandbox = self.sandbox.disabled();
        self
    }

    /// Returns the sections about permissions and limits of agents.
    pub(crate) fn work(&self) -> Work {
        Work {
            permissions: self.permissions.clone(),
            sandbox: self.sandbox.clone(),
            web: self.web.clone(),
            limits: self.limits,
            agents: self.agents.clone(),
            mcp: self.mcp.clone(),
        }
    }

    /// Returns the shares at which conversations are shortened; fails if they contradict.
    pub(crate) fn context_limits(&self) -> Result<ContextLimits> {
        self.context
            .limits(self.compact_at.map(|percent| percent.0))
    }

    /// Returns the configuration of providers.
    pub(crate) fn providers(&self) -> BTreeMap<String, ProviderConfig> {
        let configs = self.providers.iter().map(|(name, section)| {
            let config = ProviderConfig {
                base_url: section.base_url.clone(),
                dialect: section.dialect.clone(),
                key_env: section.key_env.clone(),
                key_command: section.key_command.clone(),
                headers: section.headers.clone(),
                connect: section.connect.map(|deadline| deadline.0),
                first_byte: section.first_byte.map(|deadline| deadline.0),
                idle: section.idle.map(|deadline| deadline.0),
                ca_file: section.ca_file.clone().map(|file| file.0),
                short_call_ids: section.short_call_ids,
                alternating_roles: section.alternating_roles,
            };
            (name.clone(), config)
        });
        configs.collect()
    }

    /// Returns the file of additional trusted certificates.
    ///
    /// It comes from the configuration, or from the variable that OpenSSL uses.
    pub(crate) fn ca_file(&self) -> Option<PathBuf> {
        let configured = self.ca_file.clone().map(|file| file.0);
        let usual = || std::env::var_os("SSL_CERT_FILE").filter(|name| !name.is_empty());
        configured.or_else(|| usual().map(PathBuf::from))
    }

    /// Returns models that are added to the table, or corrected.
    pub(crate) fn models(&self) -> Result<Vec<ModelSpec>> {
        let own = self.models.iter();
        let own = own.map(|(name, section)| section.apply_to(name));
        let mut specs = own.collect::<Result<Vec<_>>>()?;
        for (name, section) in &self.project_models {
            let spec = section.lower(name, &specs)?;
            specs.retain(|known| (&known.provider, &known.id) != (&spec.provider, &spec.id));
            specs.push(spec);
        }
        Ok(specs)
    }
}

impl ModelSection {
    /// Returns the model of the built-in table.
    fn find(name: &str) -> Result<ModelSpec> {
        let named = ModelName::parse(name);
        let known = Catalogue::embedded().find(named.provider.as_deref(), &named.model);
        Ok(match (known, named.provider) {
            (Some(known), _) => known.clone(),
            (None, Some(provider)) => ModelSpec::unknown(provider, named.model),
            (None, None) => bail!(
                "unknown model `{name}` in [models]\nhint: name its provider: [models.\"PROVIDER:{name}\"]"
            ),
        })
    }

    /// Lowers the limits of a model, which the user may have corrected already.
    fn lower(&self, name: &str, corrected: &[ModelSpec]) -> Result<ModelSpec> {
        let mut spec = Self::find(name)?;
        let is_same = |it: &&ModelSpec| (&it.provider, &it.id) == (&spec.provider, &spec.id);
        if let Some(known) = corrected.iter().find(is_same) {
            spec = known.clone();
        }
        spec.context_window = project::lower(spec.context_window, self.context_window);
        spec.max_output = project::lower(spec.max_output, self.max_output);
        if self.max_output.is_some() {
            spec.output_limit = project::lower(spec.output_limit, spec.max_output);
        }
        Ok(spec)
    }

    fn apply_to(&self, name: &str) -> Result<ModelSpec> {
        let mut spec = Self::find(name)?;
        spec.context_window = self.context_window.or(spec.context_window);
        spec.max_output = self.max_output.or(spec.max_output);
        spec.output_limit = self.max_output;
        spec.images = self.images.unwrap_or(spec.images);
        spec.price_in = self.price_in.or(spec.price_in);
        spec.price_out = self.price_out.or(spec.price_out);
        spec.price_cache_read = self.price_cache_read.or(spec.price_cache_read);
        spec.price_cache_write = self.price_cache_write.or(spec.price_cache_write);
        Ok(spec)
    }
}

/// Reads and parses a configuration file; the default if it does not exist.
pub(crate) fn read_file<T: Default + DeserializeOwned>(path: &Path) -> Result<T> {
    match read_text(path)? {
        Some(text) => {
            toml::from_str(&text).map_err(|error| project::unreadable(path, &text, &error))
        }
        None => Ok(T::default()),
    }
}

/// Returns ignored keys of a project's file, which only the user may set.
pub(crate) fn ignored_keys(file: &Path) -> Result<Vec<project::PlacedKey>> {
    match read_text(file)? {
        Some(text) => project::check(&text, file),
        None => Ok(Vec::new()),
    }
}

/// Describes the settings of a project's file that need trust; none if it only restricts.
pub(crate) fn settings_to_trust(text: &str) -> Option<String> {
    let paths = project::trusted_keys(text);
    (!paths.is_empty()).then(|| format!("sets {}", paths.join(", ")))
}

fn read_text(path: &Path) -> Result<Option<String>> {
    let named = || format!("cannot read `{}`", path.display());
    let Some(mut file) = small_file::open(path).with_context(named)? else {
        return Ok(None);
    };
    let text = small_file::read(&mut file, MOST_FILE_BYTES).with_context(named)?;
    Ok(Some(text))
}

/// Returns the path of the user's file.
pub(crate) fn user_file(home: &Path) -> PathBuf {
    home.join("config.toml")
}

/// Returns the path of a project's file.
pub(crate) fn project_file(project: &Path) -> PathBuf {
    project.join(".ikigai").join("config.toml")
}

/// Returns `$XDG_CONFIG_HOME/ikigai`, if that is absolute, or its default.
pub(crate) fn home() -> Option<PathBuf> {
    directory("XDG_CONFIG_HOME", ".config")
}

/// Returns the directory for local state: `$XDG_STATE_HOME/ikigai`.
pub(crate) fn state_home() -> Option<PathBuf> {
    directory("XDG_STATE_HOME", ".local/state")
}

/// Returns the directory for caches: `$XDG_CACHE_HOME/ikigai`.
pub(crate) fn cache_home() -> Option<PathBuf> {
    directory("XDG_CACHE_HOME", ".cache")
}

/// Returns the program's directories, which no tool may use: the ones in force and the defaults.
///
/// If a variable moves a directory, processes without the variable still use the default.
pub(crate) fn own_directories() -> OwnDirectories {
    let both = |variable, default| candidates(variable, default).collect();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|path| path.is_absolute());
    OwnDirectories {
        configuration: both("XDG_CONFIG_HOME", ".config"),
        data: both("XDG_DATA_HOME", ".local/share"),
        state: candidates("XDG_STATE_HOME", ".local/state")
            .chain(runtime.map(|runtime| runtime.join("ikigai")))
            .collect(),
        cache: both("XDG_CACHE_HOME", ".cache"),
    }
}

fn directory(variable: &str, default: &str) -> Option<PathBuf> {
    candidates(variable, default).next()
}

/// Returns the directory in a variable, if it is absolute, then the default.
fn candidates(variable: &str, default: &str) -> impl Iterator<Item = PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    let named = named.filter(|path| path.is_absolute());
    let home = std::env::home_dir().map(|home| home.join(default));
    let all = named.into_iter().chain(home);
    all.map(|path| path.join("ikigai"))
}
