//! Credentials file: API keys that only its owner can read.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;

use crate::small_file;

/// Largest credentials file; anything larger is something else.
pub(crate) const MOST_FILE_BYTES: u64 = 64 * 1024;

/// Error of reading or writing keys.
#[derive(Debug, Error)]
pub enum CredentialsError {
    /// Other users can read the file.
    #[error("other users can read `{path}` (mode {mode:o}), so its keys are ignored")]
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
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write `{path}`")]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A line of the file has the wrong form.
    #[error("`{path}`, line {line}: expected `name = \"key\"`")]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line.
        line: usize,
    },
    /// The command that prints a key failed.
    #[error("the key command of `{provider}` failed: {reason}")]
    Command {
        /// Name of the provider.
        provider: String,
        /// Failure, without the command's output.
        reason: String,
    },
}

impl CredentialsError {
    /// Returns the user's remedy.
    pub fn advice(&self) -> String {
        match self {
            Self::Open { path, .. } => format!("chmod 600 '{}'", path.display()),
            Self::Read { path, .. } => format!("check the owner of '{}'", path.display()),
            Self::Write { path, .. } => format!("check the directory of '{}'", path.display()),
            Self::Line { .. } => {
                "use one line per provider, for example: anthropic = \"sk-…\"".to_owned()
            }
            Self::Command { .. } => {
                "run the command in `key_command` yourself to see why".to_owned()
            }
        }
    }
}

/// Reads the credentials file: lines `provider = "key"`, and comments. A missing file is empty.
pub fn read_file(path: &Path) -> Result<BTreeMap<String, SecretString>, CredentialsError> {
    let read = |source| CredentialsError::Read {
        path: path.to_owned(),
        source,
    };
    let Some(mut file) = small_file::open(path).map_err(read)? else {
        return Ok(BTreeMap::new());
    };
    // Checked on the open file, which cannot be replaced in between.
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

/// Stores a key in the credentials file, in place of its provider's previous one.
///
/// The rest of the file stays unchanged; only its owner can read it.
pub fn write_file(path: &Path, provider: &str, key: &SecretString) -> Result<(), CredentialsError> {
    // Fails for a file that other users can read, or that is no credentials file.
    read_file(path)?;
    let written = write_line(path, provider, key);
    written.map_err(|source| CredentialsError::Write {
        path: path.to_owned(),
        source,
    })
}

#[expect(clippy::disallowed_methods, reason = "runs on a blocking thread")]
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
    // A file of a crashed process may be left there.
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
