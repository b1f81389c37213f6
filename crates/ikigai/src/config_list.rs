//! `ikigai config`: all settings with source and meaning, as a configuration file.

use std::env;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use ikigai_core::project::ContextLimits;
use ikigai_engine::looks_like_key;
use serde_json::json;
use toml::{Table, Value};

use crate::arguments::ConfigOrder;
use crate::config::network::NetworkSetting;
use crate::config::{self, KEYS, Key, Project};
use crate::context::configuration;
use crate::output::{print, visible};
use crate::store_location::{self, Here};
use crate::trust::trusts_settings;

/// Replacement of a secret.
const SECRET: &str = "[secret]";

pub(crate) fn config(db: Option<String>, order: &ConfigOrder) -> Result<ExitCode> {
    // A file with an error fails here, with the usual message.
    let limits = configuration()?.context_limits()?;
    let sources = Sources::read(db, limits)?;
    let mut text = String::new();
    if !order.json {
        text.push_str(&sources.describe_files());
    }
    let mut section = String::new();
    for setting in sources.settings() {
        if order.json {
            let line = json!({
                "key": setting.path(),
                "value": setting.value.as_ref().map(|value| json!(value)),
                "from": setting.from,
                "about": setting.key.about,
            });
            let _ = writeln!(text, "{line}");
            continue;
        }
        if setting.section != section {
            section.clone_from(&setting.section);
            let _ = writeln!(text, "\n[{section}]");
        }
        let _ = writeln!(text, "# {}", setting.key.about);
        let _ = match &setting.value {
            Some(value) => writeln!(
                text,
                "{} = {}  # {}",
                bare(&setting.name),
                format_value(value),
                setting.from
            ),
            None => writeln!(
                text,
                "# {}: not set (default: {})",
                setting.name, setting.from
            ),
        };
    }
    print(&visible(&text))?;
    Ok(ExitCode::SUCCESS)
}

/// Key with its present value.
struct Setting {
    key: &'static Key,
    /// Sections of the key, as written in a file.
    section: String,
    name: String,
    value: Option<Value>,
    /// Source of the value, or the description of a missing default.
    from: String,
}

impl Setting {
    fn path(&self) -> String {
        match self.section.as_str() {
            "" => bare(&self.name),
            section => format!("{section}.{}", bare(&self.name)),
        }
    }
}

/// All sources of settings.
struct Sources {
    flag: Option<String>,
    user_file: Option<PathBuf>,
    user: Table,
    project_file: PathBuf,
    project: Table,
    /// True if the project's file may override settings.
    is_trusted: bool,
    /// Limits in force; some defaults depend on other keys.
    limits: ContextLimits,
}

impl Sources {
    fn read(flag: Option<String>, limits: ContextLimits) -> Result<Self> {
        let user_file = config::home().map(|home| config::user_file(&home));
        let here = Here::find()?;
        let project_file = config::project_file(Path::new(&here.session));
        Ok(Self {
            is_trusted: trusts_settings(Path::new(&here.session)),
            flag,
            user: match &user_file {
                Some(file) => config::read_file(file)?,
                None => Table::new(),
            },
            user_file,
            project: config::read_file(&project_file)?,
            project_file,
            limits,
        })
    }

    /// Describes the files.
    fn describe_files(&self) -> String {
        let described = |file: &Path| {
            if file.exists() {
                file.display().to_string()
            } else {
                format!("none ({})", file.display())
            }
        };
        let yours = self.user_file.as_deref().map(described);
        let ignored = config::ignored_keys(&self.project_file).unwrap_or_default();
        let ignored = ignored.iter().fold(String::new(), |mut text, key| {
            let _ = writeln!(
                text,
                "#                 line {}: {} is ignored",
                key.line, key.path
            );
            text
        });
        format!(
            "# your config:    {}\n# project config: {}\n{}# API keys are not listed; `ikigai models` shows which are found\n\n",
            yours.unwrap_or_else(|| "none (no home directory)".to_owned()),
            described(&self.project_file),
            if self.is_trusted {
                ignored
            } else {
                format!(
                    "#                 not trusted: it can only restrict; review: ikigai trust\n{ignored}"
                )
            }
        )
    }

    fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        let mut rest = KEYS;
        while let Some(first) = rest.first() {
            // Keys of a section with any name are grouped by name.
            let many = first.path.split_once(".*").map(|(section, _)| section);
            let count = match many {
                Some(section) => {
                    let is_of_it = |key: &&Key| key.path.starts_with(&format!("{section}.*"));
                    rest.iter().take_while(is_of_it).count()
                }
                None => 1,
            };
            let (keys, further) = rest.split_at(count);
            rest = further;
            match many {
                Some(section) => settings.extend(self.named(section, keys)),
                None => settings.push(self.setting(first, first.path)),
            }
        }
        settings
    }

    /// Returns the settings of all names in a section.
    fn named(&self, section: &str, keys: &'static [Key]) -> Vec<Setting> {
        let of = |table: &Table| {
            let names = table.get(section).and_then(Value::as_table);
            names.map(|names| names.keys().cloned().collect::<Vec<_>>())
        };
        let mut names = of(&self.user).unwrap_or_default();
        if keys.iter().any(Key::is_open) {
            names.extend(of(&self.project).unwrap_or_default());
        }
        names.sort();
        names.dedup();
        let settings = names.iter().flat_map(|name| {
            keys.iter().map(move |key| {
                let path: Vec<_> = key
                    .path
                    .split('.')
                    .map(|part| if part == "*" { name } else { part })
                    .collect();
                self.setting_at(key, &path)
            })
        });
        settings.filter(|setting| setting.value.is_some()).collect()
    }

    fn setting(&self, key: &'static Key, path: &str) -> Setting {
        self.setting_at(key, &path.split('.').collect::<Vec<_>>())
    }

    fn setting_at(&self, key: &'static Key, path: &[&str]) -> Setting {
        let (value, from) = self.value(key, path);
        let (name, section) = path.split_last().unwrap_or((&"", &[]));
        let section: Vec<_> = section.iter().map(|part| bare(part)).collect();
        Setting {
            key,
            section: section.join("."),
            name: (*name).to_owned(),
            value: value.map(|value| hide_secrets(path, value)),
            from,
        }
    }

    /// Returns the value in force and its source.
    fn value(&self, key: &Key, path: &[&str]) -> (Option<Value>, String) {
        if let Some(flag) = self.flag.as_ref().filter(|_| key.path == "store") {
            return (Some(Value::String(flag.clone())), "--db".to_owned());
        }
        let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        if let Some((name, value)) = key.variable().and_then(|name| Some((name, set(name)?))) {
            let value = value.parse().map_or(Value::String(value), Value::Integer);
            return (Some(value), name.to_owned());
        }
        if key.path == "theme" && set("NO_COLOR").is_some() {
            return (
                Some(Value::String("mono".to_owned())),
                "NO_COLOR".to_owned(),
            );
        }
        let yours = lookup(&self.user, path).cloned();
        let theirs = lookup(&self.project, path).cloned();
        let counts = key.is_open() && (key.project != Project::Replaces || self.is_trusted);
        let theirs = theirs.filter(|_| counts);
        match (key.project, yours, theirs) {
            (Project::Adds, Some(Value::Array(yours)), Some(Value::Array(theirs))) => {
                let both = yours.into_iter().chain(theirs).collect();
                (
                    Some(Value::Array(both)),
                    "your file and the project's".to_owned(),
                )
            }
            (Project::Lowers, yours, Some(theirs)) => {
                let ours = yours.as_ref().and_then(Value::as_integer);
                let ours = ours.or_else(|| key.default.parse().ok());
                let lowers = ours.is_none() || theirs.as_integer() < ours;
                match (lowers, yours) {
                    (true, _) => (Some(theirs), "the project's file".to_owned()),
                    (false, Some(yours)) => (Some(yours), "your file".to_owned()),
                    (false, None) => self.usual(key),
                }
            }
            (Project::Narrows, yours, Some(theirs)) => {
                let setting = |value: Value| value.try_into::<NetworkSetting>().ok();
                let ours = yours.clone().and_then(setting).unwrap_or_default();
                let both = setting(theirs).map(|theirs| ours.clone().narrowed_by(theirs));
                match both {
                    Some(both) if both != ours => {
                        (Some(both.into()), "the project's file".to_owned())
                    }
                    _ if yours.is_some() => (yours, "your file".to_owned()),
                    _ => self.usual(key),
                }
            }
            (_, _, Some(theirs)) => (Some(theirs), "the project's file".to_owned()),
            (_, Some(yours), None) => (Some(yours), "your file".to_owned()),
            (_, None, None) => self.usual(key),
        }
    }

    /// Returns the default of a key; shares are lowered to fit others.
    fn usual(&self, key: &Key) -> (Option<Value>, String) {
        let (value, from) = usual(key);
        let mut shares = config::dependent_shares(&self.limits).into_iter();
        let percent = shares.find(|(path, _)| *path == key.path);
        let in_force = percent.and_then(|(_, percent)| i64::try_from(percent).ok());
        match in_force.map(Value::Integer) {
            Some(lower) if value.as_ref() != Some(&lower) => {
                (Some(lower), "default, lowered to fit the others".to_owned())
            }
            _ => (value, from),
        }
    }
}

/// Returns the default of a key, or its description.
fn usual(key: &Key) -> (Option<Value>, String) {
    if key.path == "store"
        && let Ok(file) = store_location::database(None, None)
    {
        return (Some(Value::String(file.to_string())), "default".to_owned());
    }
    match key.without() {
        Some(words) => (None, words.to_owned()),
        // Sections with any name show only keys that are set.
        None if key.path.contains('*') => (None, String::new()),
        None => {
            let table: Table = toml::from_str(&format!("it = {}", key.default)).unwrap_or_default();
            (table.get("it").cloned(), "default".to_owned())
        }
    }
}

fn lookup<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let mut value = table.get(*first)?;
    for part in rest {
        value = value.as_table()?.get(*part)?;
    }
    Some(value)
}

/// Replaces the secrets in a value.
fn hide_secrets(path: &[&str], value: Value) -> Value {
    match value {
        Value::Table(table) => {
            let entries = table.into_iter().map(|(name, value)| {
                // Headers often contain keys.
                let value = if path.contains(&"headers") || path.contains(&"env") {
                    Value::String(SECRET.to_owned())
                } else {
                    hide_secrets(path, value)
                };
                (name, value)
            });
            Value::Table(entries.collect())
        }
        Value::Array(values) => {
            let values = values.into_iter().map(|value| hide_secrets(path, value));
            Value::Array(values.collect())
        }
        Value::String(text) if looks_like_key(&text) => Value::String(SECRET.to_owned()),
        Value::String(text) => Value::String(without_password(&text)),
        other => other,
    }
}

/// Removes passwords from an address: `scheme://user:password@host?password=…`.
fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, behind) = rest.split_at(end);
    let authority = match authority.rsplit_once('@') {
        Some((who, host)) => match who.split_once(':') {
            Some((user, _)) => format!("{user}:{SECRET}@{host}"),
            None => authority.to_owned(),
        },
        None => authority.to_owned(),
    };
    let behind = behind.split_inclusive(['?', '&']).map(|part| {
        let end = part.trim_end_matches(['?', '&']).len();
        match part.split_once("password=") {
            Some((name, _)) => format!("{name}password={SECRET}{}", &part[end..]),
            None => part.to_owned(),
        }
    });
    format!("{scheme}://{authority}{}", behind.collect::<String>())
}

/// Formats a key for a file.
pub(crate) fn bare(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(is_bare) {
        name.to_owned()
    } else {
        json!(name).to_string()
    }
}

/// Formats a value for a file.
pub(crate) fn format_value(value: &Value) -> String {
    match value {
        // TOML escapes strings like JSON.
        Value::String(text) => json!(text).to_string(),
        Value::Array(values) => {
            let values: Vec<_> = values.iter().map(format_value).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Table(table) => {
            let entries = table.iter();
            let entries =
                entries.map(|(name, value)| format!("{} = {}", bare(name), format_value(value)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Boolean(is) => is.to_string(),
        Value::Datetime(time) => time.to_string(),
    }
}

#[cfg(test)]
mod tests;
