//! Keys from a file that only its owner can read.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;

use crate::small_file;

/// A file of keys is small; anything larger is something else.
pub(crate) const MOST_FILE_BYTES: u64 = 64 * 1024;

/// Why the keys cannot be read.
#[derive(Debug, Error)]
pub enum CredentialsError {
    /// Others may read the file.
    #[error("`{path}` can be read by others (mode {mode:o}), so its keys are not used")]
    Open {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The file cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write `{path}`")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file is not what it should be.
    #[error("`{path}`, line {line}: expected `name = \"key\"`")]
    Line {
        /// The file.
        path: PathBuf,
        /// Where.
        line: usize,
    },
    /// The command that prints a key failed.
    #[error("the command for the key of `{provider}` failed: {reason}")]
    Command {
        /// Whose key.
        provider: String,
        /// What happened, without what the command printed.
        reason: String,
    },
}

impl CredentialsError {
    /// What a person can do about it.
    pub fn advice(&self) -> String {
        match self {
            Self::Open { path, .. } => format!("chmod 600 '{}'", path.display()),
            Self::Read { path, .. } => format!("check the owner of '{}'", path.display()),
            Self::Write { path, .. } => format!("check the directory of '{}'", path.display()),
            Self::Line { .. } => {
                "write one line for each provider, for example: anthropic = \"sk-…\"".to_owned()
            }
            Self::Command { .. } => "run the command of `key_command` by hand and look".to_owned(),
        }
    }
}

/// Reads the file of keys: lines `provider = "key"`, and comments. None if there is no file.
pub fn read_file(path: &Path) -> Result<BTreeMap<String, SecretString>, CredentialsError> {
    let read = |source| CredentialsError::Read {
        path: path.to_owned(),
        source,
    };
    let Some(mut file) = small_file::open(path).map_err(read)? else {
        return Ok(BTreeMap::new());
    };
    // Asked of the open file, so that it cannot be another one by now.
    let mode = file.metadata().map_err(read)?.mode() & 0o777;
    if mode & 0o77 != 0 {
        return Err(CredentialsError::Open {
            path: path.to_owned(),
            mode,
        });
    }
    let text = small_file::read(&mut file, MOST_FILE_BYTES).map_err(read)?;
    let mut keys = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with('[') {
            continue;
        }
        let (name, key) = key_line(line).ok_or_else(|| CredentialsError::Line {
            path: path.to_owned(),
            line: index + 1,
        })?;
        keys.insert(name.to_owned(), SecretString::from(key));
    }
    Ok(keys)
}

/// Puts a key into the file of keys, in the place of one that its provider has there. Whatever else
/// is in the file stays; only its owner can read it.
pub fn write_file(path: &Path, provider: &str, key: &SecretString) -> Result<(), CredentialsError> {
    // A file that others can read, or that is no file of keys, is left alone.
    read_file(path)?;
    let written = write_line(path, provider, key);
    written.map_err(|source| CredentialsError::Write {
        path: path.to_owned(),
        source,
    })
}

fn write_line(path: &Path, provider: &str, key: &SecretString) -> io::Result<()> {
    let before = match small_file::open(path)? {
        Some(mut file) => small_file::read(&mut file, MOST_FILE_BYTES)?,
        None => String::new(),
    };
    let is_other = |line: &&str| key_line(line.trim()).is_none_or(|(name, _)| name != provider);
    let mut text = String::new();
    for line in before.lines().filter(is_other) {
        text.push_str(line);
        text.push('\n');
    }
    let key = key.expose_secret();
    let _ = writeln!(text, "{provider} = \"{key}\"");
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let new = PathBuf::from(name);
    // What a process that died left there is nobody's.
    let _ = std::fs::remove_file(&new);
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    File::open(directory)?.sync_all()
}

fn key_line(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let key = value.trim().strip_prefix('"')?.strip_suffix('"')?;
    Some((name.trim(), key)).filter(|(name, key)| !name.is_empty() && !key.is_empty())
}
