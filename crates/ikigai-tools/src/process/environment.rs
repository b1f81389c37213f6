//! What a child process finds in its environment: what ikigai itself has, but for secrets.

use std::ffi::{OsStr, OsString};

/// What is set for every child, whatever ikigai itself was given: there is no terminal, so nothing
/// may draw on one, page its output or ask a question there.
const SET: &[(&str, &str)] = &[
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("PAGER", "cat"),
    ("TERM", "dumb"),
];

/// Words that make a variable a secret wherever they stand in its name.
const SECRET_WORDS: &[&str] = &[
    "APIKEY",
    "AUTHORIZATION",
    "COOKIE",
    "CREDENTIAL",
    "JWT",
    "PASS",
    "PRIVATEKEY",
    "SECRET",
    "TOKEN",
];

/// Words of natural language processing, in which `TOKEN` is no secret.
const HARMLESS_WORDS: &[&str] = &["TOKENIZ", "TOKENIS"];

/// Words that make a variable a secret between underscores: `HISTKEYS` is none.
const SECRET_PARTS: &[&str] = &["KEY", "KEYS", "PAT", "PWD"];

/// Beginnings of well-known keys.
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

/// Which variables children get.
///
/// By default those that ikigai has, without anything that looks like a secret and without what
/// steers ikigai itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    withheld: Vec<String>,
    kept: Vec<String>,
    /// Whether what looks like a secret is let through.
    trusted: bool,
}

impl Environment {
    /// Also withholds these, such as the variables that the configuration reads keys from.
    #[must_use]
    pub fn withholding(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.withheld.extend(names);
        self
    }

    /// Lets these through although they look like secrets, because the user said so. What
    /// [`Environment::withholding`] names stays withheld.
    #[must_use]
    pub fn keeping(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.kept.extend(names);
        self
    }

    /// Lets everything through but what [`Environment::withholding`] names and what steers ikigai
    /// itself: for lines that the user runs.
    #[must_use]
    pub fn for_the_user(mut self) -> Self {
        self.trusted = true;
        self
    }

    /// The variables for a child, from those that ikigai was started with.
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        self.select(std::env::vars_os())
    }

    fn select(
        &self,
        all: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Vec<(OsString, OsString)> {
        all.into_iter()
            .filter(|(name, value)| self.passes(name, value))
            .chain(
                SET.iter()
                    .map(|(name, value)| (OsString::from(name), OsString::from(value))),
            )
            .collect()
    }

    fn passes(&self, name: &OsStr, value: &OsStr) -> bool {
        let name = name.to_string_lossy();
        if self.withheld.iter().any(|withheld| *withheld == name)
            || name.starts_with("IKIGAI_")
            || SET.iter().any(|(set, _)| *set == name)
        {
            return false;
        }
        self.trusted
            || self.kept.iter().any(|kept| *kept == name)
            || !(is_secret_name(&name) || is_secret_value(&value.to_string_lossy()))
    }
}

/// Whether a variable of this name is likely to hold a secret. Rather one too many: a program that
/// misses a variable says so, one that leaks a key does not.
fn is_secret_name(name: &str) -> bool {
    if name == "PWD" {
        return false;
    }
    let name = HARMLESS_WORDS
        .iter()
        .fold(name.to_ascii_uppercase(), |name, word| {
            name.replace(word, "")
        });
    SECRET_WORDS.iter().any(|word| name.contains(word))
        || name.split('_').any(|part| SECRET_PARTS.contains(&part))
}

/// True if a value is a known kind of key, or has a password in it.
fn is_secret_value(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    SECRET_BEGINNINGS
        .iter()
        .any(|beginning| value.starts_with(beginning))
        || SECRET_FIELDS.iter().any(|field| lower.contains(field))
        || holds_password(value)
}

/// Whether a value is an address with a password in it, such as that of a database.
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
