//! Typed API keys: verified with the provider's list of models, then saved.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use thiserror::Error;

use crate::credentials::CredentialsError;
use crate::transport::fetch::NoDocument;

/// Time limit of the request for a list of models.
pub(crate) const DEADLINE: Duration = Duration::from_secs(15);

/// Smallest and largest length of a key.
const SHORTEST: usize = 8;
const LONGEST: usize = 4096;

/// Prefixes of keys of well-known providers, and their smallest length.
const BEGINNINGS: [&str; 4] = ["sk-", "AIza", "xai-", "gsk_"];
const LEAST_LOOK: usize = 24;

/// A typed key. It is never shown.
#[derive(Clone)]
pub struct TypedKey(SecretString);

impl TypedKey {
    /// Makes a key of typed text without surrounding spaces; none if it cannot be a key.
    pub fn new(typed: &str) -> Option<Self> {
        let typed = typed.trim();
        // A quote would end the key in the file.
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

/// Returns true if a text contains a likely key of a well-known provider.
pub fn looks_like_key(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut words = text.split(|c: char| !is_part(c));
    words.any(|word| {
        let begins = BEGINNINGS
            .iter()
            .any(|beginning| word.starts_with(beginning));
        // Names of files and branches rarely have both digits and letters.
        let has = |is: fn(&char) -> bool| word.chars().any(|c| is(&c));
        begins
            && word.len() >= LEAST_LOOK
            && has(char::is_ascii_digit)
            && has(char::is_ascii_alphabetic)
    })
}

/// A verified and saved key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredKey {
    /// Display name of the provider.
    pub title: String,
    /// Number of models that it lists.
    pub models: usize,
    /// One of its models that is reachable, as the user types it.
    pub model: Option<String>,
    /// The credentials file.
    pub file: PathBuf,
    /// Variable or command that overrides the key in the file.
    pub hidden_by: Option<String>,
}

/// Error of verifying or saving a key.
#[derive(Debug, Error)]
pub enum KeyError {
    /// There is no such provider, or it needs no key.
    #[error("unknown provider `{0}`, or it needs no key")]
    NoProvider(String),
    /// The provider refuses the key.
    #[error("{provider} rejected the key (status {status})")]
    Refused {
        /// Name of the provider.
        provider: String,
        /// HTTP status.
        status: u16,
    },
    /// The provider could not be reached.
    #[error("could not reach {provider} to verify the key: {reason}")]
    Untried {
        /// Name of the provider.
        provider: String,
        /// The cause.
        reason: String,
    },
    /// There is no credentials file to write to.
    #[error("no home directory for the key file")]
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
            NoDocument::Unanswered(reason) | NoDocument::Unreadable(reason) => {
                Self::Untried { provider, reason }
            }
        }
    }
}

/// Counts the models in a list, in the shapes of the providers; none if it is no list.
pub(crate) fn count_models(answer: &Value) -> Option<usize> {
    let list = answer.get("data").or_else(|| answer.get("models"))?;
    Some(list.as_array()?.len())
}

#[cfg(test)]
mod tests;
