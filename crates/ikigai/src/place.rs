//! Where the store is, and which directory's session this is.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The path of the database: from `--db`, the environment, the configuration, or the default.
pub(crate) fn database(flag: Option<String>, configured: Option<&str>) -> Result<PathBuf> {
    let from_environment = || env::var("IKIGAI_DB").ok().filter(|value| !value.is_empty());
    let configured = || configured.map(str::to_owned);
    match flag.or_else(from_environment).or_else(configured) {
        Some(url) => parse(&url),
        None => Ok(data_home()?.join("ikigai").join("ikigai.db")),
    }
}

fn parse(url: &str) -> Result<PathBuf> {
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        bail!("this version keeps its store in SQLite only\nhint: use --db sqlite:PATH");
    }
    let path = url.strip_prefix("sqlite:").unwrap_or(url);
    if path.is_empty() {
        bail!("the store `{url}` names no file\nhint: use --db sqlite:PATH");
    }
    std::path::absolute(path).with_context(|| format!("cannot use `{path}`"))
}

/// `$XDG_DATA_HOME`, which counts only if it is absolute, or its default.
fn data_home() -> Result<PathBuf> {
    let named = env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    if let Some(named) = named.filter(|path| path.is_absolute()) {
        return Ok(named);
    }
    let home = env::home_dir().filter(|home| home.is_absolute());
    let home =
        home.context("there is no home directory\nhint: set HOME, or use --db sqlite:PATH")?;
    Ok(home.join(".local").join("share"))
}

/// Where the user is, and the directory whose session that is: its git root, else itself.
pub(crate) struct Here {
    /// The working directory.
    pub(crate) workdir: String,
    /// The session's directory.
    pub(crate) session: String,
}

impl Here {
    /// Finds out where the user is.
    pub(crate) fn find() -> Result<Self> {
        let workdir = env::current_dir().context("the working directory is gone")?;
        let root = workdir
            .ancestors()
            .find(|directory| directory.join(".git").exists());
        let session = text(root.unwrap_or(&workdir))?;
        Ok(Self {
            workdir: text(&workdir)?,
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
