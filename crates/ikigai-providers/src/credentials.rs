//! Keys: from the environment, a command, or a file that only its owner can read.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use secrecy::SecretString;
use thiserror::Error;

/// A file of keys is small; anything larger is something else.
const MOST_FILE_BYTES: u64 = 64 * 1024;

/// Where a key comes from, in the order in which it is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// This variable of the environment.
    Variable(String),
    /// What this command prints.
    Command(String),
    /// The credentials file.
    File,
}

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
    let mut file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(read(error)),
    };
    // Asked of the open file, so that it cannot be another one by now.
    let mode = file.metadata().map_err(read)?.mode() & 0o777;
    if mode & 0o77 != 0 {
        return Err(CredentialsError::Open {
            path: path.to_owned(),
            mode,
        });
    }
    let mut text = String::new();
    Read::by_ref(&mut file)
        .take(MOST_FILE_BYTES)
        .read_to_string(&mut text)
        .map_err(read)?;
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

fn key_line(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let key = value.trim().strip_prefix('"')?.strip_suffix('"')?;
    Some((name.trim(), key)).filter(|(name, key)| !name.is_empty() && !key.is_empty())
}

/// Runs a command that prints a key.
pub fn run_command(provider: &str, command: &str) -> Result<SecretString, CredentialsError> {
    let failed = |reason: String| CredentialsError::Command {
        provider: provider.to_owned(),
        reason,
    };
    let output = Command::new("sh")
        .arg("-c")
        .arg(command)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    let key = String::from_utf8(output.stdout).map_err(|_| failed("it printed no text".into()))?;
    match key.trim() {
        "" => Err(failed("it printed nothing".into())),
        key => Ok(SecretString::from(key)),
    }
}
