//! Location of the store, and the session of the working directory.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use ikigai_store::StoreError;
use ikigai_store::postgres::Url;
use secrecy::{ExposeSecret, SecretString};

use crate::config;

/// Environment variable with the store's location.
pub(crate) const VARIABLE: &str = "IKIGAI_DB";

/// Location of the store. Its displayed form has no password.
#[derive(Clone)]
pub(crate) enum StoreLocation {
    /// File of this machine.
    File(PathBuf),
    /// Database on a server.
    Server {
        url: Url,
        /// Address as it was given.
        given: SecretString,
    },
}

impl StoreLocation {
    /// Returns the path, if the store is a file.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Server { .. } => None,
        }
    }

    /// Returns the password of the server, to keep it out of outputs.
    pub(crate) fn password(&self) -> Option<&SecretString> {
        match self {
            Self::File(_) => None,
            Self::Server { url, .. } => url.password(),
        }
    }

    /// Passes the location to a child process.
    ///
    /// An address with a password goes into a variable, because all users can see arguments.
    pub(crate) fn pass_to(&self, command: &mut std::process::Command) {
        match self {
            Self::File(path) => command.arg("--db").arg(path),
            Self::Server { given, .. } => command.env(VARIABLE, given.expose_secret()),
        };
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Server { url, .. } => url.fmt(f),
        }
    }
}

/// Returns the variable with the location, if it may contain a password.
pub(crate) fn secret_variable() -> Option<String> {
    let value = env::var(VARIABLE).unwrap_or_default();
    Url::is_meant(&value).then(|| VARIABLE.to_owned())
}

/// Finds the store: from `--db`, the environment, the configuration, or the default.
pub(crate) fn database(flag: Option<String>, configured: Option<&str>) -> Result<StoreLocation> {
    let from_environment = || env::var(VARIABLE).ok().filter(|value| !value.is_empty());
    let configured = || configured.map(str::to_owned);
    match flag.or_else(from_environment).or_else(configured) {
        Some(url) => parse(&url),
        None => Ok(StoreLocation::File(
            data_home()?.join("ikigai").join("ikigai.db"),
        )),
    }
}

/// Returns the directory with the drafts and pending messages of a store.
pub(crate) fn drafts(store: &StoreLocation) -> Option<PathBuf> {
    // FNV-1a, which must stay the same between versions.
    let hash = store
        .to_string()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let all = config::state_home()?.join("drafts");
    Some(all.join(format!("{hash:016x}")))
}

/// Parses `sqlite:PATH`, PATH, or `postgres://…`.
pub(crate) fn parse(url: &str) -> Result<StoreLocation> {
    if Url::is_meant(url) {
        return Ok(StoreLocation::Server {
            url: Url::parse(url).map_err(StoreError::from)?,
            given: url.into(),
        });
    }
    let path = url.strip_prefix("sqlite:").unwrap_or(url);
    if path.is_empty() {
        bail!("the path of the database is empty\nhint: use --db PATH or sqlite:PATH");
    }
    let path = std::path::absolute(path).with_context(|| format!("cannot use `{path}`"))?;
    Ok(StoreLocation::File(path))
}

/// Returns `$XDG_DATA_HOME` if it is absolute, else its default.
fn data_home() -> Result<PathBuf> {
    let named = env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    if let Some(named) = named.filter(|path| path.is_absolute()) {
        return Ok(named);
    }
    let home = env::home_dir().filter(|home| home.is_absolute());
    let home = home.context("no home directory\nhint: set HOME, or use --db PATH")?;
    Ok(home.join(".local").join("share"))
}

/// Working directory, and the directory of its session: the git root, else itself.
pub(crate) struct Here {
    /// Working directory.
    pub(crate) workdir: String,
    /// Directory of the session.
    pub(crate) session: String,
}

impl Here {
    /// Finds the working directory and its session.
    pub(crate) fn find() -> Result<Self> {
        let workdir =
            env::current_dir().context("the working directory does not exist any more")?;
        Self::of(&workdir)
    }

    /// Finds the session of a working directory.
    pub(crate) fn of(workdir: &Path) -> Result<Self> {
        let root = workdir
            .ancestors()
            .find(|directory| directory.join(".git").exists());
        let session = text(root.unwrap_or(workdir))?;
        Ok(Self {
            workdir: text(workdir)?,
            session,
        })
    }
}

fn text(path: &Path) -> Result<String> {
    let text = path
        .to_str()
        .context("the name of the working directory is not UTF-8")?;
    Ok(text.to_owned())
}
