//! Environment variables of child processes: those of ikigai without secrets.

use std::ffi::{OsStr, OsString};

use ikigai_core::word_list::WordList;
use secrecy::{ExposeSecret, SecretString};

/// Variables set for every child.
///
/// A child has no terminal, so no program may draw on one, page its output, prompt or edit there.
const SET: &[(&str, &str)] = &[
    ("AGENT", "ikigai"),
    ("EDITOR", "true"),
    ("GIT_EDITOR", "true"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("PAGER", "cat"),
    ("TERM", "dumb"),
    ("VISUAL", "true"),
];

/// Words that mark a secret anywhere in a variable's name.
const SECRET_WORDS: WordList =
    WordList("APIKEY AUTHORIZATION COOKIE CREDENTIAL JWT PASS PRIVATEKEY SECRET TOKEN");

/// Words of natural language processing, in which `TOKEN` is no secret.
const HARMLESS_WORDS: &[&str] = &["TOKENIZ", "TOKENIS"];

/// Words that mark a secret between underscores: `HISTKEYS` is none.
const SECRET_PARTS: &[&str] = &["KEY", "KEYS", "PAT", "PWD"];

/// Prefixes of well-known keys.
const SECRET_BEGINNINGS: &[&str] = &[
    "-----BEGIN ",
    "AKIA",
    "Basic ",
    "Bearer ",
    "eyJ",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "hf_",
    "npm_",
    "sk-",
    "xoxb-",
    "xoxp-",
];

/// Fields of connection strings, in lower case.
const SECRET_FIELDS: &[&str] = &[
    "accountkey=",
    "passwd=",
    "password=",
    "pwd=",
    "sharedaccesskey=",
    "&sig=",
];

/// Selection of the variables that children get.
///
/// By default all variables of ikigai, except for likely secrets and the variables that configure
/// ikigai.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildEnvironment {
    withheld: Vec<String>,
    kept: Vec<String>,
    /// True if likely secrets are passed on.
    trusted: bool,
}

impl ChildEnvironment {
    /// Withholds these, too, such as variables with configured keys.
    #[must_use]
    pub fn withholding(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.withheld.extend(names);
        self
    }

    /// Passes these on although they look like secrets, because the user allows it. Variables of
    /// [`ChildEnvironment::withholding`] stay withheld.
    #[must_use]
    pub fn keeping(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.kept.extend(names);
        self
    }

    /// Passes on likely secrets as well: for command lines that the user runs.
    ///
    /// Variables of [`ChildEnvironment::withholding`] and of ikigai itself stay withheld.
    #[must_use]
    pub fn for_the_user(mut self) -> Self {
        self.trusted = true;
        self
    }

    /// Returns true if a variable configures ikigai or holds a key of its providers.
    pub fn withholds(&self, name: &str) -> bool {
        self.withheld.iter().any(|withheld| withheld == name) || name.starts_with("IKIGAI_")
    }

    /// Returns true if a variable with this name or value is likely to be a secret.
    pub(crate) fn is_likely_secret(name: &str, value: &SecretString) -> bool {
        is_secret_name(name) || is_secret_value(value.expose_secret())
    }

    /// Selects a child's variables from the environment of this process.
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        self.select(std::env::vars_os())
    }

    fn select(
        &self,
        all: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Vec<(OsString, OsString)> {
        all.into_iter()
            .filter(|(name, value)| self.is_allowed(name, value))
            .chain(
                SET.iter()
                    .map(|(name, value)| (OsString::from(name), OsString::from(value))),
            )
            .collect()
    }

    fn is_allowed(&self, name: &OsStr, value: &OsStr) -> bool {
        let name = name.to_string_lossy();
        if self.withholds(&name) || SET.iter().any(|(set, _)| *set == name) {
            return false;
        }
        self.trusted
            || self.kept.iter().any(|kept| *kept == name)
            || !(is_secret_name(&name) || is_secret_value(&value.to_string_lossy()))
    }
}

/// Returns true if a variable of this name is likely to hold a secret.
///
/// Errs on the side of withholding: a program reports a missing variable, but not a leaked key.
fn is_secret_name(name: &str) -> bool {
    if name == "PWD" {
        return false;
    }
    let name = HARMLESS_WORDS
        .iter()
        .fold(name.to_ascii_uppercase(), |name, word| {
            name.replace(word, "")
        });
    SECRET_WORDS.words().any(|word| name.contains(word))
        || name.split('_').any(|part| SECRET_PARTS.contains(&part))
}

/// Returns true if a value is a known kind of key or contains a password.
fn is_secret_value(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    SECRET_BEGINNINGS
        .iter()
        .any(|beginning| value.starts_with(beginning))
        || SECRET_FIELDS.iter().any(|field| lower.contains(field))
        || holds_password(value)
}

/// Returns true if a value is a URL with a password, such as a database's.
fn holds_password(value: &str) -> bool {
    value.match_indices("://").any(|(start, separator)| {
        let authority = value[start + separator.len()..]
            .split(['/', '?', '#', ' '])
            .next()
            .unwrap_or_default();
        authority
            .rsplit_once('@')
            .is_some_and(|(user, _)| user.contains(':'))
    })
}

#[cfg(test)]
mod tests;
