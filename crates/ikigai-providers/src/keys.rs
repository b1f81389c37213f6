//! A key that somebody types: tried with the provider's list of models, and only then kept.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use thiserror::Error;

use crate::credentials::CredentialsError;
use crate::transport::fetch::NoDocument;

/// A list of models comes soon, or the key is tried another time.
pub(crate) const DEADLINE: Duration = Duration::from_secs(15);

/// Keys are neither shorter nor longer.
const SHORTEST: usize = 8;
const LONGEST: usize = 4096;

/// How keys of well-known providers begin, and how long they are at least.
const BEGINNINGS: [&str; 4] = ["sk-", "AIza", "xai-", "gsk_"];
const LEAST_LOOK: usize = 24;

/// A key that somebody typed. Nothing shows it.
#[derive(Clone)]
pub struct TypedKey(SecretString);

impl TypedKey {
    /// What was typed, without the spaces around it; none if that can be no key.
    pub fn new(typed: &str) -> Option<Self> {
        let typed = typed.trim();
        // A quote would end it in the file.
        let fits = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\');
        let is_key = (SHORTEST..=LONGEST).contains(&typed.len()) && typed.chars().all(fits);
        is_key.then(|| Self(SecretString::from(typed)))
    }

    pub(crate) fn secret(&self) -> &SecretString {
        &self.0
    }
}

impl fmt::Debug for TypedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

impl PartialEq for TypedKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.expose_secret() == other.0.expose_secret()
    }
}

impl Eq for TypedKey {}

/// Whether a text has something in it that looks like a key of a well-known provider.
pub fn looks_like_key(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut words = text.split(|c: char| !is_part(c));
    words.any(|word| {
        let begins = BEGINNINGS
            .iter()
            .any(|beginning| word.starts_with(beginning));
        // Names of files and branches have no digits, or no letters.
        let has = |is: fn(&char) -> bool| word.chars().any(|c| is(&c));
        begins
            && word.len() >= LEAST_LOOK
            && has(char::is_ascii_digit)
            && has(char::is_ascii_alphabetic)
    })
}

/// A key that was tried and is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptKey {
    /// What people call the provider.
    pub title: String,
    /// How many models it lists.
    pub models: usize,
    /// One of its models that can be asked, as it is typed.
    pub model: Option<String>,
    /// The file.
    pub file: PathBuf,
    /// What comes before the file, so that the key is not used: a variable or a command.
    pub hidden_by: Option<String>,
}

/// Why a key is not kept.
#[derive(Debug, Error)]
pub enum KeyError {
    /// There is no such provider, or it needs no key.
    #[error("there is no provider `{0}` that takes a key")]
    NoProvider(String),
    /// The provider does not take the key.
    #[error("`{provider}` refuses the key (status {status})")]
    Refused {
        /// Who.
        provider: String,
        /// With which status.
        status: u16,
    },
    /// The provider cannot be asked.
    #[error("`{provider}` could not be asked whether it takes the key: {reason}")]
    Untried {
        /// Who.
        provider: String,
        /// Why.
        reason: String,
    },
    /// There is no place for it.
    #[error("there is no file for keys")]
    NoFile,
    /// The file cannot be written.
    #[error(transparent)]
    File(#[from] CredentialsError),
}

impl KeyError {
    pub(crate) fn of(provider: &str, why: NoDocument) -> Self {
        let provider = provider.to_owned();
        match why {
            NoDocument::Status(status @ (400 | 401 | 403)) => Self::Refused { provider, status },
            NoDocument::Status(status) => Self::Untried {
                provider,
                reason: format!("status {status}"),
            },
            NoDocument::Nobody(reason) | NoDocument::Unreadable(reason) => {
                Self::Untried { provider, reason }
            }
        }
    }
}

/// How many models a list has, in the shapes that providers have; none if it is no list.
pub(crate) fn listed(answer: &Value) -> Option<usize> {
    let list = answer.get("data").or_else(|| answer.get("models"))?;
    Some(list.as_array()?.len())
}

#[cfg(test)]
mod tests;
